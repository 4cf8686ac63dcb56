"""Copies of the user's working tree as temporary repositories: nothing that runs in one reaches the user's files.

They are beside the checkouts, and store their own objects, so none is added to the user's.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from idumb.app.ports import Head
from idumb.domain import errors
from idumb.git import discover, git_program, open_repository
from idumb.git.checkouts import places, user_git
from idumb.git.checkouts.user_git import VisibleGit
from idumb.git.discover import Worktree
from idumb.git.git_dir import EXCLUDE, RAW
from idumb.git.trees import GitTrees
from idumb.system import atomic_write, private_folders

_COPY, _ATTRIBUTES = "work", "info/attributes"


@contextlib.contextmanager
def copy_of(user: Worktree, head: Head, also: Iterable[str] = ()) -> Iterator[Worktree]:
    """Make a copy with this HEAD and all files that are not ignored; `also` are ignored files to include."""
    clear(user)
    top = os.path.join(places.prepare(user), places.COPIES)
    folder, lock = private_folders.lock_folder(top)
    try:
        yield _copied(user, head, folder, also)
    finally:
        private_folders.unlock_folder(folder, lock)
        for empty in (top, *places.own_above(user)):
            private_folders.remove_empty(empty)


def _copied(user: Worktree, head: Head, folder: str, also: Iterable[str]) -> Worktree:
    root, settings = os.path.join(os.path.realpath(folder), _COPY), user_git.read(user)
    private_folders.make(root)
    git = VisibleGit(open_repository.repository(user), settings)
    git.show(root, head.commit, settings.files.get(EXCLUDE, b""))
    with private_folders.opened(root) as opened:
        git.write(opened)
    copy = discover.at(root)
    copy.name = places.REHEARSAL
    # A scan's objects go to the copy.
    scanned = Worktree(user.root, user.git_dir, copy.common_dir, places.REHEARSAL)
    tree = GitTrees(scanned, copy).scan(also)
    attributes = os.path.join(copy.git_dir, _ATTRIBUTES)
    atomic_write.write(attributes, RAW, durable=False)
    git_program.change(root, ["read-tree", "--reset", "-u", tree])
    atomic_write.write(attributes, settings.files.get(_ATTRIBUTES, b""), durable=False)
    git_program.change(root, ["read-tree", head.commit or "--empty"])
    return copy


def clear(user: Worktree) -> tuple[str, ...]:
    """Remove the copies that killed processes left. Return their folders."""
    removed: list[str] = []
    try:
        top = os.path.join(places.folder_of(user), places.COPIES)
    except errors.Refusal:
        return ()  # most commands need no copy, so they do not require a place for one
    for folder in private_folders.abandoned(top):
        user.guard()
        if private_folders.remove(folder):
            removed.append(folder)
    private_folders.remove_empty(top)
    return tuple(removed)
