"""Move the user's branch forward to existing commits, and update the index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from idumb.app.ports.repository import CommitAttempt
from idumb.git import commit, git_program
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects

if TYPE_CHECKING:
    import pygit2


def to(
    place: Repository,
    repository: pygit2.Repository,
    branch: str | None,
    tip: str,
    expected: str | None,
    *,
    message: str,
    hooks: bool,
) -> CommitAttempt:
    """Compare-and-swap by the git program; `branch` None is a detached HEAD. Return git's words if it refuses.

    The index follows the branch, as in every commit of git. If the index update fails, repeating the call is safe.
    """
    if os.path.lexists(os.path.join(place.git_dir, "index.lock")):
        return CommitAttempt(None, f"{os.path.join(place.git_dir, 'index.lock')} exists: another git is at work there")
    place.guard()
    if _head(repository) != tip:
        name = ["--no-deref", "HEAD"] if branch is None else [branch]
        arguments = ["update-ref", "-m", message, *name, tip, expected or "0" * 40]
        result = git_program.write(place.root, arguments, hooks=hooks)
        if result.status != 0:
            return CommitAttempt(None, result.words or f"git update-ref ended with status {result.status}")
    before, after = (tree_objects.tree_of(repository, one) for one in (expected, tip))
    paths = [change.path for change in tree_objects.changes(repository, before, after)]
    place.guard()
    if not commit.follow(place, repository, before, after, paths):
        return CommitAttempt(None, "the branch moved, but git could not write the index")
    commit.sync(place, branch)
    return CommitAttempt(tip)


def _head(repository: pygit2.Repository) -> str | None:
    return None if repository.head_is_unborn else str(repository.head.target)
