"""A temporary repository with the present working tree: nothing that runs in it reaches the user's files.

It is next to the clones, outside the git folder, because some agents refuse to write there. It stores its own objects,
so none is added to the user's.
"""

from __future__ import annotations

import contextlib
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
from idumb.system.files import private_folders

_COPY = "work"
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
    folder, lock = private_folders.lock(top)
    try:
        yield _copied(user, head, folder, also)
    finally:
        private_folders.unlock(folder, lock)
        private_folders.remove_empty(top)
        clone_places.tidy(place)


def clear(user: Repository) -> tuple[str, ...]:
    """Remove the copies that killed processes left. Return their folders."""
    removed: list[str] = []
    try:
        place = clone.place_of(user)
    except Refusal:
        return ()  # most commands need no copy, so they do not require a place for one
    for at in clone_places.levels(place):
        removed += _cleared(user, os.path.join(at, clone_places.COPIES))
    if removed:
        clone_places.tidy(place)
    return tuple(removed)


def _cleared(user: Repository, top: str) -> list[str]:
    removed = []
    for folder in private_folders.abandoned(top):
        user.guard()
        if private_folders.remove(folder):
            removed.append(folder)
    private_folders.remove_empty(top)
    return removed


def _copied(user: Repository, head: Head, folder: str, also: Iterable[str]) -> Repository:
    shutil.rmtree(folder, ignore_errors=True)
    folder = os.path.join(folder, _COPY)  # beside it is space for its own clones
    private_folders.make(folder)
    clone.make_git_folder(user, folder, None)
    copy_settings(git_program.settings(user.root), os.path.join(folder, ".git"))
    copy = discover.at(os.path.realpath(folder))
    copy.worktree_id = clone.WORKTREE
    # A scan's temporary objects go to the copy.
    scanned = Repository(user.root, user.git_dir, copy.common_dir, clone.WORKTREE)
    tree = GitTrees(scanned, copy).scan(also)
    clone.write_out(open_repository.repository(copy), bytes.fromhex(tree), copy.root)
    _put_head(copy, head)
    return copy


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
