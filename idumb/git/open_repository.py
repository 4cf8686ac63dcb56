"""Open a repository with libgit2, or say in one line why that is impossible."""

from __future__ import annotations

import contextlib
import os

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


def index(found: pygit2.Repository) -> pygit2.Index:
    """Return the user's index as it is on disk now.

    Raises GitError or OSError for formats that libgit2 does not read.
    """
    present: pygit2.Index = found.index
    # Without force, libgit2 rereads it only if its checksum differs, and git can be configured to write none.
    present.read(not _ends_with_checksum(os.path.join(found.path, "index")))
    return present


def _ends_with_checksum(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            stream.seek(-20, os.SEEK_END)
            return stream.read() != bytes(20)
    except OSError:
        return False


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
