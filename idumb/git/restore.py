"""Writes paths as a tree has them, only where the present bytes are the expected ones. All or nothing.

Every path is walked from the root by folder descriptors that follow no link, so nothing outside can be written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from idumb.app.ports import Conflict
from idumb.domain import paths as path_rules
from idumb.domain.ledger import Entry
from idumb.git import blobs, comparing, durable, tree_objects

if TYPE_CHECKING:
    import pygit2

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Present(NamedTuple):
    """What is at a path now. `entry` is None for nothing, folders and things that git cannot hold.

    `in_the_way` is a file or link that stands where a folder above the path would be.
    """

    entry: Entry | None
    status: os.stat_result | None
    in_the_way: str | None = None
    by_link: bool = False

    @property
    def is_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)


class Step(NamedTuple):
    path: str
    want: Entry | None
    present: Present


class _Changed(Exception):
    """Somebody wrote to a path between the check and the write."""


def restore(
    repository: pygit2.Repository, root: str, target: str, expected: str, paths: Iterable[str], *, force: bool
) -> tuple[Conflict, ...]:
    """See `Trees.restore`. Raises ValueError for a path that idumb never writes."""
    wanted = {path: comparing.entry(repository, target, path) for path in _checked(paths)}
    gone = frozenset(path for path, want in wanted.items() if want is None)
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        steps = [Step(path, want, look(top, path)) for path, want in wanted.items()]
        conflicts = []
        for step in steps:
            before = comparing.entry(repository, expected, step.path)
            why = _conflict(step, before, gone, force=force) or _blocked(top, step, gone)
            if why is not None:
                conflicts.append(Conflict(step.path, why))
        if conflicts:
            return tuple(conflicts)
        _force_done(root, steps)
        return _apply(repository, top, steps, _Keeps(repository, target))
    finally:
        os.close(top)


def _checked(paths: Iterable[str]) -> list[str]:
    found = sorted(set(paths))
    for path in found:
        if path_rules.problem(path) or path_rules.protecting_rule(path, (), (path,)) is not None:
            message = f"idumb never restores {path!r}"
            raise ValueError(message)
    return found


def look(top: int, path: str) -> Present:
    """The present state of one path below the open folder `top`."""
    parts = path.split("/")
    try:
        folder = _open_folder(top, parts[:-1])
    except FileNotFoundError:
        return Present(None, None)
    except OSError:
        return _look_blocked(top, parts)
    try:
        status = os.lstat(parts[-1], dir_fd=folder)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return Present(None, status)
        oid = blobs.hash_at(folder, parts[-1], status)
        return Present(Entry(blobs.git_mode(status.st_mode), oid.hex()), status)
    except FileNotFoundError:
        return Present(None, None)
    finally:
        os.close(folder)


def _look_blocked(top: int, parts: list[str]) -> Present:
    """A folder above is no folder: say which, and whether it is a link."""
    for count in range(1, len(parts)):
        with _parent(top, parts[:count]) as folder:
            status = os.lstat(parts[count - 1], dir_fd=folder)
        if not stat.S_ISDIR(status.st_mode):
            return Present(None, None, "/".join(parts[:count]), stat.S_ISLNK(status.st_mode))
    return Present(None, None)


def _open_folder(top: int, parts: Iterable[str], *, create: bool = False) -> int:
    """A descriptor of a folder below `top`, through folders only; the caller closes it."""
    here = os.dup(top)
    for part in parts:
        try:
            below = _open_part(here, part, create=create)
        finally:
            os.close(here)
        here = below
    return here


def _open_part(here: int, part: str, *, create: bool) -> int:
    try:
        return os.open(part, _FOLDER_FLAGS, dir_fd=here)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
    os.fsync(here)
    return os.open(part, _FOLDER_FLAGS, dir_fd=here)


@contextlib.contextmanager
def _parent(top: int, parts: list[str], *, create: bool = False) -> Iterator[int]:
    folder = _open_folder(top, parts[:-1], create=create)
    try:
        yield folder
    finally:
        os.close(folder)


def _conflict(step: Step, before: Entry | None, gone: frozenset[str], *, force: bool) -> str | None:
    present, want = step.present, step.want
    if tree_objects.SUBMODULE in {entry.mode for entry in (want, before) if entry is not None}:
        return "is a submodule, which idumb does not write"
    if present.in_the_way is not None:
        # Below a file or link there is nothing to remove; and what this restore removes may stand in the way.
        if present.in_the_way in gone or want is None:
            return None
        return f"cannot be reached: {present.in_the_way}{'/ is a link now' if present.by_link else ''}"
    if present.entry == want and not _odd(present):
        return None
    if _odd(present):
        return "is neither file nor link now"
    if force or present.entry == before or (present.is_folder and before is None):
        return None
    return _why(present, before)


def _odd(present: Present) -> bool:
    return present.status is not None and present.entry is None and not present.is_folder


def _why(present: Present, before: Entry | None) -> str:
    if present.entry is None:
        return "was deleted since"
    if before is None:
        return "was created since"
    if present.status is not None and present.status.st_size == 0:
        return "is empty now; a crash may have cut it"
    if present.entry.oid == before.oid:
        return "has another mode than expected"
    return "was changed since"


def _blocked(top: int, step: Step, gone: frozenset[str]) -> str | None:
    """A folder where a file has to be is in the way unless this restore empties it."""
    if not step.present.is_folder or step.want is None:
        return None
    rest = next((leaf for leaf in _leaves(top, step.path) if leaf not in gone), None)
    return None if rest is None else f"is a folder now, which holds {rest}"


def _leaves(top: int, path: str) -> Iterator[str]:
    """Everything below a folder that is no folder, and empty folders of others."""
    stack = [path]
    while stack:
        here = stack.pop()
        folder = _open_folder(top, here.split("/"))
        try:
            with os.scandir(folder) as listing:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
        finally:
            os.close(folder)
        for name, is_folder in entries:
            if is_folder:
                stack.append(f"{here}/{name}")
            else:
                yield f"{here}/{name}"


class _Keeps:
    """Says whether the target tree has a folder."""

    def __init__(self, repository: pygit2.Repository, tree: str) -> None:
        self._repository = repository
        self._tree = tree

    def folder(self, path: str) -> bool:
        item = tree_objects.Item(tree_objects.FOLDER, bytes.fromhex(self._tree))
        for part in path.split("/"):
            found = comparing.shared_rows(self._repository, item.oid).get(part)
            if found is None or found.mode != tree_objects.FOLDER:
                return False
            item = found
        return True


def _force_done(root: str, steps: list[Step]) -> None:
    """What is as wanted already may be so by a restore that was killed before it forced it to disk."""
    done = [step for step in steps if step.want is not None and step.present.entry == step.want]
    places = [os.path.join(root, step.path) for step in done]
    files = [
        place for place, step in zip(places, done, strict=True) if step.want and step.want.mode != tree_objects.LINK
    ]
    durable.force([*files, *{os.path.dirname(place) for place in places}])


def _apply(repository: pygit2.Repository, top: int, steps: list[Step], keeps: _Keeps) -> tuple[Conflict, ...]:
    """Deletions first, deepest first, so that files and folders can change places."""
    deletions = [step for step in steps if step.want is None]
    writes = [step for step in steps if step.want is not None and step.present.entry != step.want]
    done = ""
    try:
        for step in reversed(deletions):
            done = step.path
            _delete(top, step, keeps)
        for step in writes:
            done = step.path
            _write(repository, top, step)
    except (_Changed, OSError) as problem:
        return (Conflict(done, str(problem) or "was changed while it was restored"),)
    return ()


def _recheck(folder: int, name: str, present: Present) -> None:
    """The last look before a write; what is left of the race is a few microseconds."""
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


def _delete(top: int, step: Step, keeps: _Keeps) -> None:
    if step.present.in_the_way is not None:
        return
    parts = step.path.split("/")
    if step.present.entry is not None:
        with _parent(top, parts) as folder:
            _recheck(folder, parts[-1], step.present)
            os.unlink(parts[-1], dir_fd=folder)
            os.fsync(folder)
    # Also where the file is gone already: a restore that was killed may have left its folders.
    for count in range(len(parts) - 1, 0, -1):
        if keeps.folder("/".join(parts[:count])) or not _remove_if_empty(top, parts[:count]):
            return


def _remove_if_empty(top: int, parts: list[str]) -> bool:
    """Whether the folder is gone now."""
    try:
        with _parent(top, parts) as folder:
            os.rmdir(parts[-1], dir_fd=folder)
            os.fsync(folder)
    except OSError as problem:
        return problem.errno == errno.ENOENT
    return True


def _write(repository: pygit2.Repository, top: int, step: Step) -> None:
    want = step.want
    if want is None:
        return
    parts = step.path.split("/")
    name = parts[-1]
    with _parent(top, parts, create=True) as folder:
        if step.present.in_the_way is None:
            _recheck(folder, name, step.present)
        if step.present.is_folder:
            _remove_empty(folder, name)
        # The same path takes the same name again, so what a crash left is overwritten by the next try.
        temporary = ".idumb-restore-" + hashlib.sha256(os.fsencode(step.path)).hexdigest()[:16]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        data = repository[want.oid].read_raw()
        _write_new(folder, temporary, data, want.mode, step.present.status)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


def _write_new(folder: int, name: str, data: bytes, mode: int, before: os.stat_result | None) -> None:
    if mode == tree_objects.LINK:
        os.symlink(data, name, dir_fd=folder)
        return
    descriptor = os.open(name, _NEW_FLAGS, 0o777 if mode == tree_objects.PROGRAM else 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        if before is not None and stat.S_ISREG(before.st_mode):
            _keep_owner_and_mode(descriptor, before, mode)
        os.fsync(descriptor)


def _keep_owner_and_mode(descriptor: int, before: os.stat_result, mode: int) -> None:
    """Everything of the old mode but the bit that git records."""
    present = os.fstat(descriptor)
    if (present.st_uid, present.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    bits = stat.S_IMODE(before.st_mode)
    bits = bits | ((bits & 0o444) >> 2) if mode == tree_objects.PROGRAM else bits & ~0o111
    os.fchmod(descriptor, bits)


def _remove_empty(folder: int, name: str) -> None:
    """Remove a folder that holds nothing but folders, deepest first."""
    try:
        inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        for below in os.listdir(inner):
            _remove_empty(inner, below)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
