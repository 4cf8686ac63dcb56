"""The writing half of a restore: exchange files with displaced ones, then force every changed folder to disk once.

A file that is displaced is compared after the exchange, so a save at any moment is either seen and put back, or comes
after the restore.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from idumb.app.ports.repository import Conflict
from idumb.domain.proof.ledger import Entry
from idumb.git.objects import durable_files, tree_objects
from idumb.git.restore import atomic_moves, path_state
from idumb.git.restore.displaced import Shelf
from idumb.git.restore.path_state import Spot, Step
from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import pygit2

_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# errors that mean that somebody changed the tree meanwhile
_IN_THE_WAY = frozenset(
    (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ELOOP, errno.EXDEV, errno.EBUSY)
)
_CHANGED = "was changed while it was restored"


class _Changed(Exception):
    """Somebody wrote to a path between the check and the write."""


@dataclass(frozen=True, slots=True)
class Writing:
    """One restore into the open folder `top`. `changed` collects the folders to force to disk, relative to `root`."""

    repository: pygit2.Repository
    root: str
    top: int
    shelf: Shelf
    guard: Callable[[], None]
    changed: set[str] = field(default_factory=set)


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
        if problem.errno not in _IN_THE_WAY:
            # A failing disk is no conflict: nobody changed anything, and the same restore is repeated later.
            problem.filename = done
            raise
        return (Conflict(done, _CHANGED),)
    finally:
        path_state.force(writing.root, writing.changed)
    return ()


def force_done(root: str, steps: list[Step]) -> None:
    """Force even a path that is as wanted: a killed restore may not have forced it."""
    done = [step for step in steps if step.present.entry == step.want]
    written = [step for step in done if step.want is not None and step.want.mode != tree_objects.LINK]
    durable_files.force(os.path.join(root, step.path) for step in written)
    path_state.force(root, {os.path.dirname(step.path) for step in done})


def _delete(writing: Writing, step: Step) -> None:
    if step.present.in_the_way is not None:
        return
    parts = step.path.split("/")
    if step.present.entry is not None:
        with path_state.parent(writing.top, parts) as folder:
            _on_shelf(writing, step, folder, lambda free: _move_aside(step, free(), Spot(folder, parts[-1])))
    # Even if the file is gone: a killed restore may have left its folders.
    for count in range(len(parts) - 1, 0, -1):
        if not _remove_if_empty(writing, parts[:count]):
            return


def _on_shelf(writing: Writing, step: Step, folder: int, act: Callable[[Callable[[], Spot]], None]) -> None:
    """Act with what gives free places for displaced files on the file system of the path."""
    writing.changed.add(os.path.dirname(step.path))
    try:
        act(lambda: writing.shelf.free(step))
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        act(lambda: writing.shelf.free_beside(step, folder))


def _move_aside(step: Step, aside: Spot, target: Spot) -> None:
    os.rename(target.name, aside.name, src_dir_fd=target.folder, dst_dir_fd=aside.folder)
    if path_state.look_at(aside).entry == step.present.entry:
        return
    try:
        atomic_moves.place(aside, target)
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
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(parts[-1], dir_fd=folder)

        def put(free: Callable[[], Spot]) -> None:
            new = free()
            _make(writing, step, new)
            # Making and forcing it took time, in which another process may have become the owner.
            writing.guard()
            if step.present.entry is None:
                atomic_moves.place(new, target)
            elif not atomic_moves.exchange(new, target):
                # The path is missing for a moment, but no save is lost.
                _move_aside(step, free(), target)
                atomic_moves.place(new, target)
            elif path_state.look_at(new).entry != step.present.entry:
                _exchange_back(step, new, target)

        _on_shelf(writing, step, folder, put)


def _make(writing: Writing, step: Step, spot: Spot) -> None:
    """Make the wanted file or link at `spot`, complete and on disk."""
    want = step.want
    if want is None:
        raise AssertionError("a deletion makes no file")
    begun = writing.shelf.incoming() if spot.folder is None else spot
    if want.mode == tree_objects.LINK:
        os.symlink(writing.repository.read(want.oid)[1], begun.name, dir_fd=begun.folder)
    else:
        _write_new(writing, begun, want, step.present.status)
    if begun != spot:
        os.rename(begun.name, spot.name)


def _exchange_back(step: Step, displaced: Spot, target: Spot) -> None:
    """Put back what somebody saved at the last moment. Raises _Changed."""
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
        atomic_moves.exchange(displaced, target)
        if path_state.look_at(displaced).entry == step.want:
            raise _Changed(_CHANGED)
        atomic_moves.exchange(displaced, target)  # saved again meanwhile, and the newest stays at its path
    raise _Changed(_kept(displaced))


def _write_new(writing: Writing, spot: Spot, want: Entry, before: os.stat_result | None) -> None:
    replaces = before is not None and stat.S_ISREG(before.st_mode)
    # A private file is private from its first moment.
    bits = (0o777 if want.mode == tree_objects.PROGRAM else 0o666) & (before.st_mode if replaces and before else 0o777)
    descriptor = os.open(spot.name, _NEW_FLAGS, bits, dir_fd=spot.folder)
    with os.fdopen(descriptor, "wb") as stream:
        for chunk in tree_objects.pieces(writing.repository, writing.root, want.oid):
            stream.write(chunk)
        stream.flush()
        if replaces and before is not None:
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
