"""Turns an OSError into an error with a code, the path and the next step."""

from __future__ import annotations

import errno
import os
import re

from idumb.domain import errors
from idumb.system.files import file_systems, user_folders

_AGAIN = "then run the command again; idumb status shows where you are"
_LOOK = "Check the owner and mode of this path and its folder"
# errno to (code, message, hint). libgit2 gives no errno, only the text.
_ANSWERS = {
    errno.ENOSPC: ("system.full", "No space left on the disk", f"Free disk space, {_AGAIN}"),
    errno.EDQUOT: ("system.full", "Disk quota exceeded", f"Free disk space, {_AGAIN}"),
    errno.EROFS: ("system.read-only", "Read-only file system", f"Make it writable, {_AGAIN}"),
    errno.EACCES: ("system.denied", "Permission denied", _LOOK),
    errno.EPERM: ("system.denied", "Operation not permitted", _LOOK),
    errno.EIO: ("system.disk", "Disk error", f"Check the disk, {_AGAIN}"),
    errno.EMFILE: ("system.files", "Too many open files", f"Raise the limit (ulimit -n), {_AGAIN}"),
    errno.ENFILE: ("system.files", "Too many open files on this system", f"Close other programs, {_AGAIN}"),
    errno.ENOMEM: ("system.memory", "Out of memory", f"Close other programs, {_AGAIN}"),
    errno.EAGAIN: ("system.memory", "Cannot start another process", f"Close other programs, {_AGAIN}"),
}
_PATH_CODES = ("system.read-only", "system.denied", "system.refused")
_OTHER = ("system.refused", "The operating system refused", f"Fix this, {_AGAIN}")


def explain(problem: OSError) -> errors.IdumbError:
    """Return the Refusal. Only completed work is recorded, so the same command can continue."""
    number = problem.errno or _number(str(problem))
    code, summary, hint = _ANSWERS.get(number, _OTHER)
    path = _path(problem)
    if code in _PATH_CODES and _is_state(path):
        summary = f"Cannot use the state directory {user_folders.path()}"
        hint = f"Make it writable, or set XDG_STATE_HOME to another folder, {_AGAIN}"
    reason = problem.strerror or str(problem)
    message = f"{summary}: {reason}" if path in reason else f"{summary}: {path}: {reason}"
    if code == "system.full":
        message += file_systems.described(path)
    return errors.Refusal(code, message, hint=hint, details={"path": path})


def _is_state(path: str) -> bool:
    """Return whether a path is in or above the state directory, but not above the current folder."""
    state, here = user_folders.path(), os.getcwd()
    if path == state or path.startswith(f"{state}/"):
        return True
    return state.startswith(f"{path}/") and not f"{here}/".startswith(f"{path.rstrip('/')}/")


def _number(message: str) -> int:
    return next((number for number in _ANSWERS if message.rstrip().endswith(os.strerror(number))), 0)


def _path(problem: OSError) -> str:
    """Return the absolute path that failed: from the error, from libgit2's text, or the current folder."""
    if isinstance(problem.filename, (str, bytes)):
        return os.path.abspath(os.fsdecode(problem.filename))
    quoted = re.search(r"'(/[^']+)'", str(problem))
    return quoted[1] if quoted else os.getcwd()
