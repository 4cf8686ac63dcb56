"""A temporary repository with the present working tree: nothing that runs in it reaches the user's files.

It is next to the clones, outside the git folder, because some agents refuse to write there. It stores its own objects,
so none is added to the user's. A lock that ends with its process distinguishes a copy in use from one that a killed
process left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping

import pygit2

from idumb.app.ports.repository import Head
from idumb.domain.errors import Refusal
from idumb.git import discover, git_program, open_repository
from idumb.git.clones import clone, clone_places
from idumb.git.discover import Repository
from idumb.git.trees import GitTrees
from idumb.system.files import user_folders

_COPY = "work"
_LOCK = ".lock"
# Settings that decide how git sees files, and who commits; never what git runs or where it sends something.
_SETTINGS = frozenset(
    {
        "user.name", "user.email",
        "core.autocrlf", "core.eol", "core.safecrlf", "core.filemode", "core.ignorecase", "core.symlinks",
        "core.precomposeunicode", "core.excludesfile", "core.attributesfile",
    }
)  # fmt: skip
_PATHS = frozenset({"core.excludesfile", "core.attributesfile"})


@contextlib.contextmanager
def present_files(user: Repository, head: Head, also: Iterable[str] = ()) -> Iterator[Repository]:
    """Make a copy with this HEAD and all files that are not ignored; `also` are ignored files to include."""
    clear(user)
    place = clone.place_of(user)
    top = os.path.join(clone_places.prepare(place, user.common_dir), clone_places.COPIES)
    user_folders.make_private(top)
    folder, lock = _locked(top)
    try:
        yield _copied(user, head, folder, also)
    finally:
        _remove(folder)
        os.close(lock)
        _remove_empty(top)
        clone_places.tidy(place)


def clear(user: Repository) -> tuple[str, ...]:
    """Remove the copies that killed processes left. Return their folders."""
    removed = _cleared(user, os.path.join(user.common_dir, "idumb", clone_places.COPIES))  # of older versions
    try:
        place = clone.place_of(user)
    except Refusal:
        return tuple(removed)  # most commands need no copy, so they do not require a place for one
    for at in clone_places.levels(place):
        removed += _cleared(user, os.path.join(at, clone_places.COPIES))
    if removed:
        clone_places.tidy(place)
    return tuple(removed)


def _cleared(user: Repository, top: str) -> list[str]:
    try:
        names = sorted(os.listdir(top))
    except OSError:
        return []
    held = {name.removesuffix(_LOCK) for name in names if name.endswith(_LOCK)}
    removed = []
    for name in sorted(held | set(names) - {name + _LOCK for name in held}):
        lock = _taken(os.path.join(top, name + _LOCK), create=False) if name in held else None
        if name in held and lock is None:
            continue
        folder = os.path.join(top, name)
        user.guard()
        _remove(folder)
        removed.append(folder)
        if lock is not None:
            os.close(lock)
    _remove_empty(top)
    return removed


def _locked(top: str) -> tuple[str, int]:
    """Lock a free name: the lock comes before the folder and goes after it. Return the folder and the lock."""
    number = 1
    while (lock := _taken(os.path.join(top, f"{number}{_LOCK}"), create=True)) is None:
        number += 1
    return os.path.join(top, str(number)), lock


def _taken(path: str, *, create: bool) -> int | None:
    """Return the descriptor of a locked file; None if another process has it, or is removing it."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _copied(user: Repository, head: Head, folder: str, also: Iterable[str]) -> Repository:
    shutil.rmtree(folder, ignore_errors=True)
    folder = os.path.join(folder, _COPY)  # beside it is space for its own clones
    user_folders.make_private(folder)
    clone.make_git_folder(user, folder, None)
    copy_settings(settings(user), os.path.join(folder, ".git"))
    copy = discover.at(os.path.realpath(folder))
    copy.worktree_id = clone.WORKTREE
    # A scan's temporary objects go to the copy.
    scanned = Repository(user.root, user.git_dir, copy.common_dir, clone.WORKTREE)
    tree = GitTrees(scanned, copy).scan(also)
    clone.write_out(open_repository.repository(copy), bytes.fromhex(tree), copy.root)
    _put_head(copy, head)
    return copy


def settings(user: Repository) -> Mapping[str, str]:
    """Return git's settings in this working tree, with the user's and the system's: an agent may have another home.

    The last value of each name, with section and variable in lower case; a name without a value is true.
    """
    rows = filter(None, git_program.output(user.root, ["config", "--list", "-z"]).split(b"\0"))
    parted = (os.fsdecode(row).partition("\n") for row in rows)
    return {name: value if sign else "true" for name, sign, value in parted}


def copy_settings(source: Mapping[str, str], git_dir: str) -> None:
    """Give a git folder the settings that decide how git sees files, and who commits."""
    target = pygit2.Config(os.path.join(git_dir, "config"))
    for name, value in source.items():
        if name in _SETTINGS or name.startswith("filter."):
            target[name] = os.path.expanduser(value) if name in _PATHS else value


def _put_head(copy: Repository, head: Head) -> None:
    """Put the same commit on a branch of the same name; nothing is staged."""
    if head.branch is not None:
        git_program.change(copy.root, ["symbolic-ref", "HEAD", f"refs/heads/{head.branch}"])
    if head.commit is not None:
        detached = ["--no-deref"] if head.branch is None else []
        git_program.change(copy.root, ["update-ref", *detached, "HEAD", head.commit])
        git_program.change(copy.root, ["read-tree", head.commit])


def _remove(folder: str) -> None:
    clone.remove_tree(folder)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder + _LOCK)


def _remove_empty(top: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(top)
