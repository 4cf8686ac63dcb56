"""Remove what killed programs left: git's locks, temporary files of git and of idumb. Never a user's file.

A lock is removed only if the killed operation can have made it (it is not older) and no live process can (no git works
in the repository, and nobody has it open). A git that outlived idumb is awaited, because it may still finish. Inside a
container, other containers are invisible: a lock is removed only if the killed operation ran in the same container.
Every other lock stays, and refusals and `idumb doctor` name it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import glob
import itertools
import os
import re
import stat
import time
from collections.abc import Iterator

from idumb.domain.runs import project_key
from idumb.git import disk, git_program
from idumb.git.discover import Worktree
from idumb.system import machine, named_files, process_tree
from idumb.system.private_folders import names_in

# Temporary names that `atomic_write` uses until a file is complete.
_OURS = re.compile(r"\..{1,100}\.(\d+)-[0-9a-f]{8}\.tmp")
_PATTERNS = (":(top,glob)**/.idumb/**/.*.tmp", ":(top,glob)**/.planning/**/.*.tmp")
_PATIENCE = 5.0
_LOOK = 0.05
_GRAIN = 2.0  # a file system's clock may be behind the system's


def clear(worktree: Worktree, branch: str | None, since: str | None) -> tuple[str, ...]:
    """Remove what a killed operation that began at `since` left. Return the removed paths.

    Without `since`, remove only temporary files among idumb's own, which a kill may leave after the operation's end.
    """
    removed = []
    for path in itertools.chain(_private(worktree), _left(worktree, branch, since) if since is not None else ()):
        worktree.guard()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            removed.append(path)
    disk.force({os.path.dirname(path) for path in removed})
    return tuple(removed)


def _left(worktree: Worktree, branch: str | None, since: str) -> Iterator[str]:
    refs = list(_refs(worktree))
    if _shows_processes(worktree):
        begun = dt.datetime.fromisoformat(since).timestamp() - _GRAIN
        places = (worktree.root, worktree.git_dir, *_others(worktree))
        heads = () if branch is None else (os.path.join(worktree.common_dir, "refs", "heads", f"{branch}.lock"),)
        own = (os.path.join(worktree.git_dir, name) for name in ("index.lock", "HEAD.lock"))
        locks = (*own, *heads, *(path for path in refs if path.endswith(".lock")))
        yield from (path for path in locks if _is_dead(path, begun, places))
        # A git may hold the lock of all packed refs from anywhere, and closes the file.
        packed = os.path.join(worktree.common_dir, "packed-refs.lock")
        yield from [packed] if _is_dead(packed, begun, ("/",)) else []
    # Empty refs of ours, left by a power cut: git fails on every list of refs while they exist.
    yield from (path for path in refs if not path.endswith(".lock") and os.path.getsize(path) == 0)
    arguments = ["ls-files", "--others", "-z", "--", *_PATTERNS]
    listed = git_program.output(worktree.root, arguments, extra=git_program.PATTERNS).split(b"\0")
    yield from filter(_is_ours, (os.path.join(worktree.root, os.fsdecode(name)) for name in listed))


def _shows_processes(worktree: Worktree) -> bool:
    """Return whether every process of the killed operation would be visible from here."""
    if machine.sees_all_processes():
        return True
    before = named_files.read_object(os.path.join(worktree.state_dir, "owner.json")).get("namespace_before")
    return before is not None and before == machine.process_namespace()


def _others(worktree: Worktree) -> Iterator[str]:
    """Yield the folders of the repository's other working trees: a `git gc` there locks refs of all."""
    yield worktree.common_dir
    if os.path.basename(worktree.common_dir) == ".git":
        yield os.path.dirname(worktree.common_dir)
    for path in glob.iglob(os.path.join(glob.escape(worktree.common_dir), "worktrees", "*", "gitdir")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="surrogateescape") as stream:
            yield os.path.dirname(os.path.join(os.path.dirname(path), stream.read().rstrip("\n")))


def _refs(worktree: Worktree) -> Iterator[str]:
    """Return the files of our own refs of this working tree."""
    own = os.path.join(worktree.common_dir, "refs", "idumb")
    for top in _of_projects(worktree, os.path.join(own, "worktrees")):
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names)


def _of_projects(worktree: Worktree, folder: str) -> list[str]:
    """Return what belongs to this working tree's projects in a folder with one entry, or lock, for each project."""
    keys = ((name, name.removesuffix(".lock")) for name in names_in(folder))
    return [os.path.join(folder, name) for name, key in keys if project_key.parts(key)[0] == worktree.name]


def _is_dead(path: str, begun: float, places: tuple[str, ...]) -> bool:
    """Return whether the killed operation can have made a lock and no process can still hold it; wait for git."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mtime < begun:
            return False
        if not process_tree.may_be_at_work("git", places, path):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)


def _private(worktree: Worktree) -> Iterator[str]:
    """Yield temporary files in folders that only idumb writes."""
    own = os.path.join(worktree.common_dir, "idumb")
    for folder in (own, *_of_projects(worktree, os.path.join(own, "worktrees"))):
        yield from filter(_is_ours, (os.path.join(folder, name) for name in names_in(folder)))


def _is_ours(path: str) -> bool:
    match = _OURS.fullmatch(os.path.basename(path))
    return match is not None and not process_tree.process_alive(int(match[1]))
