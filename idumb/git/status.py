"""What git says of paths in a working tree: what differs from HEAD, is not in it, is ignored, or is a repository.

git is not started in submodules and nested repositories, because their configuration may name programs; libgit2 reads
them and writes nothing there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

import pygit2
from pygit2.enums import RepositoryOpenFlag

from idumb.domain import paths as path_rules
from idumb.git import git_program
from idumb.git.discover import Repository

_ON_A_LINE = 200


def changed(place: Repository, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths with uncommitted changes that one of `paths` covers, sorted."""
    if not paths:
        return ()
    # Our globs differ from git's: match them here, on the status of all paths.
    literal = len(paths) <= _ON_A_LINE and not any(map(path_rules.has_wildcard, paths))
    arguments = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", git_program.NO_SUBMODULES]
    rows = git_program.output(place.root, [*arguments, *(["--", *paths] if literal else [])]).split(b"\0")
    return tuple(sorted(filter(path_rules.cover(paths), {os.fsdecode(row[3:]) for row in rows if row})))


def ignored(place: Repository, paths: Iterable[str]) -> frozenset[str]:
    """Return the paths that git ignores, and in which it tracks nothing."""
    return frozenset(os.fsdecode(path[2:]) for path in _checked(place.root, paths) if path)


def deciding(root: str, paths: Iterable[str], rules: Repository) -> dict[str, tuple[str, str]]:
    """Return each path that a rule covers, with the rule's file, relative within the working tree, and its text.

    `rules` is the repository whose rules outside the tree apply. For a clone, that is the user's: an agent can change
    the rules in the clone's own git folder.
    """
    rows = _checked(root, paths, "--no-index", "--verbose", rules=rules)  # file, line, pattern and path, in turn
    found = zip(rows[::4], rows[2::4], rows[3::4], strict=False)
    return {os.fsdecode(path[2:]): (os.fsdecode(file), os.fsdecode(rule)) for file, rule, path in found}


def _checked(root: str, paths: Iterable[str], *options: str, rules: Repository | None = None) -> list[bytes]:
    names = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    if not names:
        return []
    arguments = ["check-ignore", *options, "-z", "--stdin"]
    # This command does not support literal paths; `./` keeps a leading `:` from being magic.
    extra = {"GIT_LITERAL_PATHSPECS": "0"}
    if rules is not None and rules.root != root:
        extra |= {"GIT_DIR": rules.git_dir, "GIT_COMMON_DIR": rules.common_dir, "GIT_WORK_TREE": root}
    result = git_program.read(root, arguments, names, extra)
    if result.status not in {0, 1}:
        raise git_program.failure(arguments, result)
    return result.out.split(b"\0")


def repositories(place: Repository, places: Iterable[str]) -> tuple[str, ...]:
    """Return every submodule of the index, and each of the places and their parent folders that is a repository."""
    own = os.path.realpath(place.root)
    above = path_rules.folders_above(f"{path}/" for path in places)
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
