"""Submodules and nested repositories: find them, and see whether they have uncommitted changes.

git is not started in them, because their configuration may name programs; libgit2 reads them and writes nothing there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import pygit2
from pygit2.enums import RepositoryOpenFlag

from idumb.domain import paths
from idumb.git import git_program
from idumb.git.discover import Repository


def among(place: Repository, places: Iterable[str]) -> tuple[str, ...]:
    """Return every submodule of the index, and each of the places and their parent folders that is a repository."""
    own = os.path.realpath(place.root)
    above = dict.fromkeys(folder for path in places for folder in paths.folders_above(f"{path}/"))
    at = {folder: os.path.join(place.root, folder) for folder in above}
    # A link may lead back to the top.
    found = [name for name, at in at.items() if os.path.lexists(f"{at}/.git") and os.path.realpath(at) != own]
    if not found and not os.path.lexists(os.path.join(place.root, ".gitmodules")):
        return ()
    listed = b"\0" + git_program.read(place.root, ["ls-files", "-s", "-z"]).out  # other checks report a failure
    links = map(os.fsdecode, submodules(listed))
    # A folder with tracked files is no other repository.
    others = (name for name in found if b"\t%b/" % os.fsencode(name) not in listed)
    return tuple(sorted({*links, *others}))


def submodules(listed: bytes) -> dict[bytes, bytes]:
    """Return the submodules, path to commit, in the output of `git ls-files -s -z` after a first NUL."""
    return {path: oid for oid, path in re.findall(rb"\x00160000 ([0-9a-f]+) 0\t([^\0]*)", listed)}


def is_dirty(root: str, repository: str) -> bool:
    """Return whether anything in the repository differs from its HEAD; True if libgit2 cannot open it."""
    place = os.path.join(root, repository)
    try:
        return bool(pygit2.Repository(place, RepositoryOpenFlag.NO_SEARCH).status())
    except (pygit2.GitError, KeyError, ValueError, OSError):
        return os.path.isdir(place) and any(os.scandir(place))
