"""Write paths as a tree has them, only where the present bytes are the expected ones.

Every path is checked before the first one is written, so an existing conflict leaves everything unchanged. A change
during the write, or a failing disk, can stop it with some paths written. Every path is reached from the root by folder
descriptors that follow no link, so nothing outside can be written.

Files are exchanged with displaced ones, and then every changed folder is forced to disk once. A file that is displaced
is compared after the exchange, so a save at any moment is either seen and put back, or comes after the restore.
Displaced files stay in git's folder until the operation ends: a program that holds one open may still write to it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.app.ports import Conflict
from idumb.domain import paths as path_rules
from idumb.domain.proof.ledger import Entry
from idumb.git import disk, path_state, tree_objects
from idumb.git.discover import Worktree
from idumb.git.path_state import Spot, Step
from idumb.system import private_folders

if TYPE_CHECKING:
    import pygit2

# errors that mean that somebody changed the tree meanwhile
_IN_THE_WAY = frozenset(
    (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ELOOP, errno.EBUSY)
)
_CHANGED = "was changed while it was restored"
_ELSEWHERE = "is on another file system than the working tree, where idumb does not write"


class _Changed(Exception):
    """Somebody wrote to a path between the check and the write."""


class Writing(Struct, frozen=True):
    """One restore below `root`; `top` is that folder, open. `changed` collects the folders to force to disk."""

    repository: pygit2.Repository
    root: str
    shelf: Shelf
    guard: Callable[[], None]
    top: int = -1
    changed: set[str] = field(default_factory=set)


def restore(writing: Writing, target: str, expected: str, paths: Iterable[str], *, force: bool) -> tuple[Conflict, ...]:
    """See `Trees.restore`. Raises ValueError for a path that idumb never writes, and the errors of `guard`."""
    with private_folders.opened(writing.root) as top:
        writing = replace(writing, top=top)
        steps, conflicts = _compared(writing, target, expected, paths, force=force)
        if conflicts:
            return conflicts
        _force_done(writing.root, steps)
        return apply(writing, steps)


def conflicts(writing: Writing, target: str, expected: str, paths: Iterable[str]) -> tuple[Conflict, ...]:
    """See `Trees.conflicts`."""
    with private_folders.opened(writing.root) as top:
        return _compared(replace(writing, top=top), target, expected, paths, force=False)[1]


def _compared(
    writing: Writing, target: str, expected: str, paths: Iterable[str], *, force: bool
) -> tuple[list[Step], tuple[Conflict, ...]]:
    repository = writing.repository
    wanted = {path: tree_objects.entry(repository, target, path) for path in _checked(paths)}
    deletions = frozenset(path for path, want in wanted.items() if want is None)
    steps = [Step(path, want, path_state.look(writing.top, path)) for path, want in wanted.items()]
    found = []
    for step in steps:
        before = tree_objects.entry(repository, expected, step.path)
        why = _conflict(step, before, deletions, force=force) or _blocked(writing.root, step, deletions)
        found += [Conflict(step.path, why)] if why is not None else []
    return steps, tuple(found)


def _checked(paths: Iterable[str]) -> list[str]:
    names = sorted(set(paths))
    for path in names:
        if path_rules.never_below(path) or path_rules.protecting_rule(path, (), (path,)) is not None:
            message = f"idumb never restores {path!r}"
            raise ValueError(message)
    return names


def _conflict(step: Step, before: Entry | None, gone: frozenset[str], *, force: bool) -> str | None:
    present, want = step.present, step.want
    if tree_objects.SUBMODULE in {entry.mode for entry in (want, before) if entry is not None}:
        return "is a submodule, which idumb does not write"
    if present.in_the_way is not None:
        # Below a file or link there is nothing to remove; and this restore may remove what is in the way.
        if present.in_the_way in gone or want is None:
            return None
        return f"cannot be reached: {present.in_the_way}{'/ is a link now' if present.by_link else ''}"
    if present.is_odd:
        return "is no longer a file or a link"
    if present.entry == want or force or present.entry == before:
        return None
    if present.entry is None:
        return "was deleted since"
    if before is not None and present.status is not None and present.status.st_size == 0:
        return "is empty now; a crash may have cut it"
    return "was created since" if before is None else "was changed since"


def _blocked(root: str, step: Step, gone: frozenset[str]) -> str | None:
    """Return whether a folder is in the way of a file: it is, unless this restore empties it."""
    if not step.present.is_folder or step.want is None:
        return None
    below = (os.path.relpath(place, root) for place in _files_below(os.path.join(root, step.path)))
    left = next((path for path in below if path not in gone), None)
    return None if left is None else f"is a folder now, which contains {left}"


def _files_below(folder: str) -> Iterator[str]:
    """Yield the files and links below a folder; a link to a folder is not followed."""
    for here, folders, names in os.walk(folder):
        links = (name for name in folders if os.path.islink(os.path.join(here, name)))
        yield from (os.path.join(here, name) for name in (*names, *links))


def apply(writing: Writing, steps: list[Step]) -> tuple[Conflict, ...]:
    """Delete first, deepest first, so that files and folders can change places."""
    deletions = [step for step in steps if step.want is None]
    writes = [step for step in steps if step.want is not None and step.present.entry != step.want]
    done = ""
    try:
        for step in (*reversed(deletions), *writes):
            done = step.path
            writing.guard()
            (_delete if step.want is None else _write)(writing, step)
    except _Changed as problem:
        return (Conflict(done, str(problem)),)
    except OSError as problem:
        if problem.errno == errno.EXDEV:
            return (Conflict(done, _ELSEWHERE),)
        if problem.errno not in _IN_THE_WAY:
            # A failing disk is no conflict: nobody changed anything, and the same restore is repeated later.
            problem.filename = done
            raise
        return (Conflict(done, _CHANGED),)
    finally:
        _force_folders(writing.root, writing.changed)
    return ()


def _force_done(root: str, steps: list[Step]) -> None:
    """Force even a path that is as wanted: a killed restore may not have forced it."""
    done = [step for step in steps if step.present.entry == step.want]
    written = [step for step in done if step.want is not None and step.want.mode != tree_objects.LINK]
    disk.force(os.path.join(root, step.path) for step in written)
    _force_folders(root, {os.path.dirname(step.path) for step in done})


def _force_folders(root: str, folders: set[str]) -> None:
    disk.force(place for folder in sorted(folders) if os.path.isdir(place := os.path.join(root, folder)))


def _delete(writing: Writing, step: Step) -> None:
    parts = step.path.split("/")
    if step.present.entry is not None:
        with path_state.parent(writing.top, parts) as folder:
            writing.changed.add(os.path.dirname(step.path))
            _move_aside(writing, step, Spot(folder, parts[-1]))
    # Even if the file is gone: a killed restore may have left its folders.
    for count in range(len(parts) - 1, 0, -1):
        if not _remove_if_empty(writing, parts[:count]):
            return


def _move_aside(writing: Writing, step: Step, target: Spot) -> None:
    aside = writing.shelf.free(step)
    os.rename(target.name, aside.name, src_dir_fd=target.folder, dst_dir_fd=aside.folder)
    if path_state.look_at(aside).entry == step.present.entry:
        return
    try:
        path_state.move_to_free(aside, target)
    except FileExistsError:  # saved again meanwhile
        raise _Changed(_kept(aside)) from None
    raise _Changed(_CHANGED)


def _kept(spot: Spot) -> str:
    return f"{_CHANGED}; another saved version is in {spot.name}"


def _remove_if_empty(writing: Writing, parts: list[str]) -> bool:
    """Return whether the folder is gone now."""
    try:
        with path_state.parent(writing.top, parts) as folder:
            os.rmdir(parts[-1], dir_fd=folder)
            writing.changed.add("/".join(parts[:-1]))
    except OSError as problem:
        return problem.errno == errno.ENOENT
    return True


def _write(writing: Writing, step: Step) -> None:
    parts = step.path.split("/")
    with path_state.parent(writing.top, parts, writing.changed) as folder:
        target = Spot(folder, parts[-1])
        if step.present.is_folder:
            _remove_empty_folders(target)
        writing.changed.add(os.path.dirname(step.path))
        new = _made(writing, step)
        # Making and forcing it took time, in which another process may have become the owner.
        writing.guard()
        if step.present.entry is None:
            path_state.move_to_free(new, target)
        elif not path_state.exchange(new, target):
            # The path is missing for a moment, but no save is lost.
            _move_aside(writing, step, target)
            path_state.move_to_free(new, target)
        elif path_state.look_at(new).entry != step.present.entry:
            _exchange_back(step, new, target)


def _remove_empty_folders(spot: Spot) -> None:
    """Remove a folder that holds no file. Raises OSError for one that holds any now."""
    with contextlib.suppress(FileNotFoundError):
        for _, names, _, here in os.fwalk(spot.name, topdown=False, dir_fd=spot.folder):
            for name in names:
                os.rmdir(name, dir_fd=here)
        os.rmdir(spot.name, dir_fd=spot.folder)


def _made(writing: Writing, step: Step) -> Spot:
    """Make the wanted file or link on the shelf, complete and on disk."""
    want = step.want
    if want is None:
        raise AssertionError("a deletion makes no file")
    begun, spot = writing.shelf.incoming(), writing.shelf.free(step)
    if want.mode == tree_objects.LINK:
        os.symlink(writing.repository.read(want.oid)[1], begun.name)
    else:
        _write_new(writing, begun.name, want, step.present.status)
    os.rename(begun.name, spot.name)
    return spot


def _exchange_back(step: Step, displaced: Spot, target: Spot) -> None:
    """Put back what somebody saved at the last moment. Raises _Changed."""
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
        path_state.exchange(displaced, target)
        if path_state.look_at(displaced).entry == step.want:
            raise _Changed(_CHANGED)
        path_state.exchange(displaced, target)  # saved again meanwhile, and the newest stays at its path
    raise _Changed(_kept(displaced))


def _write_new(writing: Writing, path: str, want: Entry, before: os.stat_result | None) -> None:
    if before is not None and not stat.S_ISREG(before.st_mode):
        before = None
    # A private file is private from its first moment.
    bits = (0o777 if want.mode == tree_objects.PROGRAM else 0o666) & (0o777 if before is None else before.st_mode)
    descriptor = os.open(path, private_folders.NEW, bits)
    with os.fdopen(descriptor, "wb") as stream:
        for chunk in tree_objects.pieces(writing.repository, writing.root, want.oid):
            stream.write(chunk)
        stream.flush()
        if before is not None:
            _keep_owner(descriptor, before)
            os.fchmod(descriptor, _bits(before, want.mode))
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


class Shelf(NamedTuple):
    """The folder of displaced files of one working tree. It exists only while it holds any.

    The path of a file tells with what it is compared before it is removed, also after a kill:
    `<new id>-<displaced id>-<number>/<path>`.
    """

    root: str

    def incoming(self) -> Spot:
        """Return where a new file is until it is complete. The next one replaces what a kill left there."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        spot = Spot(None, os.path.join(self.root, "incoming"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spot.name)
        return spot

    def free(self, step: Step) -> Spot:
        """Return a free place for the file that the step displaces."""
        ids = "-".join("none" if entry is None else entry.oid for entry in (step.want, step.present.entry))
        paths = (os.path.join(self.root, f"{ids}-{number}", step.path) for number in itertools.count())
        path = next(path for path in paths if not os.path.lexists(path))
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return Spot(None, path)

    def release(self) -> tuple[str, ...]:
        """Remove every file with the bytes that a restore took or gave; return the paths of the others, which stay."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.root, "incoming"))
        saved = [place for place in _files_below(self.root) if not _is_released(place, self.root)]
        for folder, _, _ in os.walk(self.root, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return tuple(sorted(saved))


def shelf(worktree: Worktree) -> Shelf:
    """Return the one of a working tree: in git's folder, or in `.idumb` if that is on another file system."""
    if _is_on_one_file_system(worktree.root, worktree.common_dir):
        return Shelf(os.path.join(worktree.common_dir, "idumb", "displaced", worktree.name))
    return Shelf(os.path.join(worktree.root, ".idumb", "displaced"))


def _is_on_one_file_system(*folders: str) -> bool:
    return len({os.stat(folder).st_dev for folder in folders}) == 1


def _is_released(place: str, root: str) -> bool:
    """Remove a displaced file with one of the contents that its path names; return False if it has another."""
    ids = os.path.relpath(place, root).partition(os.sep)[0].split("-")
    try:
        entry = path_state.look_at(Spot(None, place)).entry
        if entry is None or entry.oid not in ids:
            return False
        os.unlink(place)
    except OSError:
        return False
    return True
