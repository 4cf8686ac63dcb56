"""Open a repository with libgit2, or say in one line why that is impossible."""

from __future__ import annotations

import contextlib

import pygit2
from pygit2.enums import Option, RepositoryOpenFlag

from idumb.domain import errors
from idumb.git.discover import Repository


def repository(place: Repository) -> pygit2.Repository:
    """Raises Refusal `git.unsupported-format`, `git.ownership` or `git.unreadable`."""
    # libgit2 decides whether to fsync refs before the rename when it first reads a ref; for objects it asks each time,
    # and object_writer.py forces those together.
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, 1)
    try:
        found = pygit2.Repository(place.root, RepositoryOpenFlag.NO_SEARCH)
        with contextlib.suppress(pygit2.GitError, KeyError, ValueError):
            found.lookup_reference("HEAD")
    except (pygit2.GitError, KeyError, ValueError) as problem:
        raise refusal(place, str(problem)) from problem
    finally:
        pygit2.option(Option.ENABLE_FSYNC_GITDIR, 0)
    return found


def refusal(place: Repository, words: str) -> errors.Refusal:
    """Return one clear line for a repository that libgit2 does not open."""
    if "owned by" in words or "owner" in words:
        return errors.Refusal(
            "git.ownership",
            f"{place.root} belongs to another user, and git does not trust it",
            hint="git status  (git says which safe.directory entry it misses)",
        )
    if "extension" in words or "object format" in words or "objectformat" in words or "version" in words:
        return errors.Refusal(
            "git.unsupported-format",
            f"{place.root} uses a repository format that idumb cannot read yet: {words}",
            hint="git config --list --local",
        )
    return errors.Refusal("git.unreadable", f"{place.root} cannot be opened: {words}", hint="git status")
