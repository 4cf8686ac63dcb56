"""The writing half of a restore: write files first, then force every changed folder to disk once."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from idumb.app.ports.repository import Conflict
from idumb.git.objects import durable_files, tree_objects
from idumb.git.scan import real_folders
from idumb.git.scan.path_state import Present, Step
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import pygit2

_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# errors that mean that somebody changed the tree meanwhile
_IN_THE_WAY = frozenset(
    (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ELOOP, errno.EXDEV, errno.EBUSY)
)


class _Changed(Exception):
    """Somebody wrote to a path between the check and the write."""


@dataclass(frozen=True, slots=True)
class Writing:
    """One restore. `modes` are bits that git does not know; `keep` tells which empty folders stay.

    `changed` collects the folders to force to disk, relative to `root`.
    """

    repository: pygit2.Repository
    root: str
    top: int
    target: str
    modes: Mapping[str, int]
    keep: Callable[[str], bool]
    guard: Callable[[], None]
    changed: set[str] = field(default_factory=set)


def apply(writing: Writing, steps: list[Step]) -> tuple[Conflict, ...]:
    """Delete first, deepest first, so that files and folders can change places."""
    deletions = [step for step in steps if step.want is None]
    writes = [step for step in steps if step.want is not None and step.present.entry != step.want]
    done = ""
    try:
        for step in reversed(deletions):
            done = step.path
            _delete(writing, step)
        for step in writes:
            done = step.path
            writing.guard()
            _write(writing, step)
    except (_Changed, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno not in _IN_THE_WAY:
            # A failing disk is no conflict: nobody changed anything, and the same restore is repeated later.
            problem.filename = done
            raise
        return (Conflict(done, str(problem) or "was changed while it was restored"),)
    finally:
        real_folders.force(writing.root, writing.changed)
    return ()


def force_done(root: str, steps: list[Step]) -> None:
    """Force even a path that is as wanted: a killed restore may not have forced it."""
    done = [step for step in steps if step.present.entry == step.want]
    written = [step for step in done if step.want is not None and step.want.mode != tree_objects.LINK]
    durable_files.force(os.path.join(root, step.path) for step in written)
    real_folders.force(root, {os.path.dirname(step.path) for step in done})


def _recheck(folder: int, name: str, present: Present) -> None:
    """Check once more before a write; the remaining race is a few microseconds."""
    try:
        status: os.stat_result | None = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        status = None
    if _key(status) != _key(present.status) and not (present.is_folder and status is None):
        message = "was changed while it was restored"
        raise _Changed(message)


def _key(status: os.stat_result | None) -> tuple[int, ...]:
    if status is None or stat.S_ISDIR(status.st_mode):
        return (0 if status is None else 1,)
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)


def _delete(writing: Writing, step: Step) -> None:
    if step.present.in_the_way is not None:
        return
    parts = step.path.split("/")
    if step.present.entry is not None:
        with real_folders.parent(writing.top, parts) as folder:
            _recheck(folder, parts[-1], step.present)
            writing.guard()
            os.unlink(parts[-1], dir_fd=folder)
            writing.changed.add("/".join(parts[:-1]))
    writing.guard()
    # Even if the file is gone: a killed restore may have left its folders.
    for count in range(len(parts) - 1, 0, -1):
        above = "/".join(parts[:count])
        if writing.keep(above) or tree_objects.is_folder(writing.repository, writing.target, above):
            return
        if not _remove_if_empty(writing, parts[:count]):
            return


def _remove_if_empty(writing: Writing, parts: list[str]) -> bool:
    """Return whether the folder is gone now."""
    try:
        with real_folders.parent(writing.top, parts) as folder:
            os.rmdir(parts[-1], dir_fd=folder)
            writing.changed.add("/".join(parts[:-1]))
    except OSError as problem:
        return problem.errno == errno.ENOENT
    return True


def _write(writing: Writing, step: Step) -> None:
    want = step.want
    if want is None:
        return
    parts = step.path.split("/")
    name = parts[-1]
    with real_folders.parent(writing.top, parts, writing.changed) as folder:
        if step.present.in_the_way is None:
            _recheck(folder, name, step.present)
        if step.present.is_folder:
            _remove_empty(folder, name)
        # The same path always gets the same temporary name, so the next try overwrites what a crash left.
        temporary = ".idumb-restore-" + hashlib.sha256(os.fsencode(step.path)).hexdigest()[:16]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        if want.mode == tree_objects.LINK:
            os.symlink(writing.repository.read(want.oid)[1], temporary, dir_fd=folder)
        else:
            _write_new(writing, folder, temporary, step)
        try:
            writing.guard()
            # Check again: writing and forcing took time, and somebody may have saved the file.
            _recheck(folder, name, step.present)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        writing.changed.add("/".join(parts[:-1]))


def _write_new(writing: Writing, folder: int, name: str, step: Step) -> None:
    mode, before, kept = step.want.mode if step.want else 0, step.present.status, writing.modes.get(step.path)
    # a private file is private from its first moment
    bits = (0o777 if mode == tree_objects.PROGRAM else 0o666) & (0o777 if kept is None else kept)
    descriptor = os.open(name, _NEW_FLAGS, bits, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        for chunk in tree_objects.pieces(writing.repository, writing.root, step.want.oid if step.want else ""):
            stream.write(chunk)
        stream.flush()
        if before is not None and stat.S_ISREG(before.st_mode):
            _keep_owner(descriptor, before)
            os.fchmod(descriptor, _bits(before, mode))
        if kept is not None:
            os.fchmod(descriptor, kept)
        os.fsync(descriptor)


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    present = os.fstat(descriptor)
    if (present.st_uid, present.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)


def _bits(before: os.stat_result, mode: int) -> int:
    """Return the old mode except the bit that git records."""
    bits = stat.S_IMODE(before.st_mode)
    return bits | ((bits & 0o444) >> 2) if mode == tree_objects.PROGRAM else bits & ~0o111


def _remove_empty(folder: int, name: str) -> None:
    """Remove a folder that holds only folders, deepest first."""
    try:
        inner = os.open(name, real_folders.FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        for below in os.listdir(inner):
            _remove_empty(inner, below)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
