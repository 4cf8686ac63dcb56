"""What the system refused, as an error with a code, the place it is about and what to do."""

from __future__ import annotations

import errno
import os
import re

from idumb.domain import errors
from idumb.system.files import file_systems, state_dir

_AGAIN = "then say it again; idumb status shows where you are"
_LOOK = "Look at owner and mode of that path and its folder"
# Number to (code, what happened, what to do); libgit2 gives no number, only the system's words.
_ANSWERS = {
    errno.ENOSPC: ("system.full", "No space is left", f"Make room, {_AGAIN}"),
    errno.EDQUOT: ("system.full", "The disk quota is used up", f"Make room, {_AGAIN}"),
    errno.EROFS: ("system.read-only", "The file system is read-only", f"Make it writable, {_AGAIN}"),
    errno.EACCES: ("system.denied", "The system does not permit it", _LOOK),
    errno.EPERM: ("system.denied", "The system does not permit it", _LOOK),
    errno.EIO: ("system.disk", "The disk failed", f"Check the disk, {_AGAIN}"),
    errno.EMFILE: ("system.files", "Too many files are open", f"Raise the limit (ulimit -n), {_AGAIN}"),
    errno.ENFILE: ("system.files", "Too many files are open on this system", f"End other programs, {_AGAIN}"),
    errno.ENOMEM: ("system.memory", "The system has no memory left", f"End other programs, {_AGAIN}"),
    errno.EAGAIN: ("system.memory", "The system starts no more processes", f"End other programs, {_AGAIN}"),
}
_OF_PLACE = ("system.read-only", "system.denied", "system.refused")
_OTHER = ("system.refused", "The system refused", f"Mend that, {_AGAIN}")


def explain(problem: OSError) -> errors.IdumbError:
    """A Refusal: nothing is recorded that was not done, so the same command goes on from there."""
    number = problem.errno or _number(str(problem))
    code, words, hint = _ANSWERS.get(number, _OTHER)
    path = _path(problem)
    if code in _OF_PLACE and _is_state(path):
        words = f"The state directory {state_dir.path()} cannot be used"
        hint = f"Make it writable, or name another folder in the variable XDG_STATE_HOME, {_AGAIN}"
    said = problem.strerror or str(problem)
    message = f"{words}: {said}" if path in said else f"{words}: {path}: {said}"
    if code == "system.full":
        message += file_systems.described(path)
    return errors.Refusal(code, message, hint=hint, details={"path": path})


def _is_state(path: str) -> bool:
    """Whether a path is in the state directory or on the way to it, and no folder that holds where we stand."""
    state, here = state_dir.path(), os.getcwd()
    if path == state or path.startswith(f"{state}/"):
        return True
    return state.startswith(f"{path}/") and not f"{here}/".startswith(f"{path.rstrip('/')}/")


def _number(words: str) -> int:
    return next((number for number in _ANSWERS if words.rstrip().endswith(os.strerror(number))), 0)


def _path(problem: OSError) -> str:
    """What the call was about, absolute. Libgit2 quotes it in its words; where nobody says it, where we stand."""
    if isinstance(problem.filename, (str, bytes)):
        return os.path.abspath(os.fsdecode(problem.filename))
    quoted = re.search(r"'(/[^']+)'", str(problem))
    return quoted[1] if quoted else os.getcwd()
