"""Remove what killed programs left: git's locks, temporary files of git and of idumb. Never a user's file.

A lock is removed only if the killed operation can have made it (it is not older) and no live process can (no git works
in the repository, and nobody has it open). A git that outlived idumb is awaited, because it may still finish. Inside a
container, other containers are invisible: a lock is removed only if the killed operation ran in the same container, or
if the lock is older than the last boot.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import glob
import math
import os
import stat
import time
from collections.abc import Iterable, Iterator

from idumb import lazy_pattern
from idumb.domain import canonical_json
from idumb.domain.runs import project_key
from idumb.git import git_program
from idumb.git.discover import Repository
from idumb.git.objects import durable_files
from idumb.system import host_identity
from idumb.system.processes import process_tree

# Temporary names that the steps and `atomic_write` use until a file is complete.
_OURS = lazy_pattern.compile(r"(?:\.idumb-[0-9a-f]{12}\.tmp|\..{1,100}\.(\d+)-[0-9a-f]{8}\.tmp)")
_PATTERNS = (":(top,glob)**/.idumb-*.tmp", ":(top,glob)**/.idumb/**/.*.tmp", ":(top,glob)**/.planning/**/.*.tmp")
_PATIENCE = 5.0
_LOOK = 0.05
_GRAIN = 2.0  # a file system's clock may be behind the system's


def clear(place: Repository, branch: str | None, since: str | None) -> tuple[str, ...]:
    """Remove what a killed operation that began at `since` left. Return the removed paths.

    Without `since`, remove only temporary files among idumb's own, which a kill may leave after the operation's end.
    """
    if since is None:
        return _cleared(place, _private(place))
    begun = dt.datetime.fromisoformat(since).timestamp() - _GRAIN
    here, span = (place.root, place.git_dir), (begun, _newest(place))
    removed = [path for path in _locks(place) if _removed(place, path, span, here, _PATIENCE)]
    anywhere = (*here, *_others(place))
    removed += [path for path in _locks_of_refs(place, branch) if _removed(place, path, span, anywhere, _PATIENCE)]
    # Locks shared by all working trees may belong to a git anywhere; do not wait for that one.
    removed += [path for path in _shared(place) if _removed(place, path, span, ("/",), 0)]
    durable_files.force({os.path.dirname(path) for path in removed})
    return (
        *removed,
        *_cleared(place, _emptied_refs(place)),
        *_cleared(place, _temporary(place)),
        *_cleared(place, _private(place)),
    )


def _others(place: Repository) -> Iterator[str]:
    """Yield the folders of the repository's other working trees: a `git gc` there locks refs of all."""
    yield place.common_dir
    if os.path.basename(place.common_dir) == ".git":
        yield os.path.dirname(place.common_dir)
    for path in glob.iglob(os.path.join(glob.escape(place.common_dir), "worktrees", "*", "gitdir")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="surrogateescape") as stream:
            yield os.path.dirname(os.path.join(os.path.dirname(path), stream.read().rstrip("\n")))


def _newest(place: Repository) -> float:
    """Return the time from which on a lock may belong to a process that is invisible from here."""
    if host_identity.sees_all_processes():
        return math.inf
    try:
        with open(os.path.join(place.state_dir, "owner.json"), encoding="utf-8") as stream:
            before = canonical_json.decode(stream.read()).get("namespace_before")
    except (OSError, ValueError, AttributeError):
        before = None
    if before is not None and before == host_identity.process_namespace():
        return math.inf
    return host_identity.booted_at() or 0.0


def _cleared(place: Repository, paths: Iterable[str]) -> tuple[str, ...]:
    removed = []
    for path in paths:
        place.guard()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            removed.append(path)
    durable_files.force({os.path.dirname(path) for path in removed})
    return tuple(removed)


def _locks(place: Repository) -> Iterator[str]:
    yield os.path.join(place.git_dir, "index.lock")
    yield os.path.join(place.git_dir, "HEAD.lock")
    # `git commit --only` builds the next index in this file; the number is its process id.
    yield from glob.iglob(os.path.join(glob.escape(place.git_dir), "next-index-*.lock"))


def _locks_of_refs(place: Repository, branch: str | None) -> Iterator[str]:
    if branch is not None:
        yield os.path.join(place.common_dir, "refs", "heads", f"{branch}.lock")
    yield from (path for path in _refs(place) if path.endswith(".lock"))


def _emptied_refs(place: Repository) -> Iterator[str]:
    """Remove empty refs of ours, left by a power cut: git fails on every list of refs while they exist."""
    yield from (path for path in _refs(place) if not path.endswith(".lock") and os.path.getsize(path) == 0)


def _refs(place: Repository) -> Iterator[str]:
    """Return the files of our own refs of this working tree."""
    own = os.path.join(place.common_dir, "refs", "idumb")
    yield from _of_projects(place, os.path.join(own, "kept"))
    for top in _of_projects(place, os.path.join(own, "worktrees")):
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)


def _of_projects(place: Repository, folder: str) -> list[str]:
    """Return what belongs to this working tree's projects in a folder with one entry, or lock, for each project."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    keys = ((name, name.removesuffix(".lock")) for name in names)
    return [os.path.join(folder, name) for name, key in keys if project_key.place(key)[0] == place.worktree_id]


def _shared(place: Repository) -> Iterator[str]:
    """Return the lock of packed refs, and git's unfinished objects."""
    yield os.path.join(place.common_dir, "packed-refs.lock")
    for folder, below, names in os.walk(os.path.join(place.common_dir, "objects")):
        below[:] = [name for name in below if len(name) == 2]
        yield from (os.path.join(folder, name) for name in names if name.startswith("tmp_obj_"))


def _removed(place: Repository, path: str, span: tuple[float, float], places: tuple[str, ...], patience: float) -> bool:
    if not _is_dead(path, span, places, patience):
        return False
    place.guard()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
        return True
    return False


def _is_dead(path: str, span: tuple[float, float], places: tuple[str, ...], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_uid != os.geteuid()
            or not span[0] <= status.st_mtime < span[1]
        ):
            return False
        if not process_tree.may_be_at_work("git", places, path):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)


def _temporary(place: Repository) -> Iterator[str]:
    listed = git_program.output(place.root, ["ls-files", "--others", "-z", "--", *_PATTERNS], extra=_GLOBS)
    for name in listed.split(b"\0"):
        yield from _if_ours(os.path.join(place.root, os.fsdecode(name)))


def _private(place: Repository) -> Iterator[str]:
    """Return temporary files in folders that only idumb writes."""
    own = os.path.join(place.common_dir, "idumb")
    for folder in (own, *_of_projects(place, os.path.join(own, "worktrees"))):
        with contextlib.suppress(FileNotFoundError):
            for entry in os.listdir(folder):
                yield from _if_ours(os.path.join(folder, entry))


# Reading commands take paths literally; these are our own patterns.
_GLOBS = {"GIT_LITERAL_PATHSPECS": "0"}


def _if_ours(path: str) -> Iterator[str]:
    match = _OURS.fullmatch(os.path.basename(path))
    if match is not None and not (match[1] and host_identity.process_alive(int(match[1]))):
        yield path
