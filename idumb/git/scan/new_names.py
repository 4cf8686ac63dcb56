"""What a new name in the working tree is: a submodule, a nested repository, a special file, ignored, or a cache."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

import pygit2

from idumb import lazy_pattern
from idumb.domain.paths import IGNORE_FILE
from idumb.git.discover import Repository
from idumb.git.scan import ignores

# Listing a new folder ahead saves one question to git per level.
_AHEAD = 500
NESTED = "a repository of its own"

_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"
_TOOL = lazy_pattern.compile(rb"#.*\b(created|generated) by \S", re.IGNORECASE)
_MOST = 4096


def submodule(base: str, path: str, tracked: ignores.Tracked) -> str | None:
    """Return the commit that is checked out in a submodule, or else the one in the index; None for other folders."""
    tracked.refresh()
    recorded = tracked.submodule(path)
    if recorded is None:
        return None
    try:
        return str(pygit2.Repository(base + path, pygit2.enums.RepositoryOpenFlag.NO_SEARCH).head.target)
    except (pygit2.GitError, KeyError, ValueError):
        return recorded


def reason_to_skip(base: str, prefix: str, entry: os.DirEntry[str], tracked: ignores.Tracked) -> str | None:
    """Return why the name cannot be saved: a nested repository, a device, a socket or a pipe; None if it can be."""
    path = prefix + entry.name
    if entry.is_dir(follow_symlinks=False):
        return NESTED if os.path.lexists(f"{base}{path}/.git") and not tracked.holds_below(path) else None
    return None if entry.is_file(follow_symlinks=False) or entry.is_symlink() else "neither file, link nor folder"


def ignored(root: str, base: str, paths: Sequence[str], rules: Repository) -> dict[str, bool]:
    """Return whether git's rules cover each path, and some of the content of new folders."""
    if not paths:
        return {}
    folders = [path for path in paths if os.path.isdir(base + path) and not os.path.islink(base + path)]
    names = [*paths, *_ahead(base, folders)]
    covered = ignores.ignored(root, names, rules)
    return {path: path in covered for path in names}


def _ahead(base: str, folders: list[str]) -> list[str]:
    """Return some of the content below new folders, without entering nested repositories or following links."""
    content: list[str] = []
    stack = list(folders)
    while stack and len(content) < _AHEAD:
        folder = stack.pop()
        try:
            with os.scandir(base + folder) as listing:
                entries = list(listing)
        except OSError:
            continue
        if any(entry.name == ".git" for entry in entries):
            continue
        content += [f"{folder}/{entry.name}" for entry in entries]
        stack += [f"{folder}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return content


def is_cache(base: str, prefix: str, owner: str) -> bool:
    """Return whether a folder whose own `.gitignore` ignores it is a cache; `prefix` ends with `/`.

    In a clone, so is a folder that the `owner` working tree has too, self-ignored by the same rules.
    """
    path = base + prefix
    if _is_tagged(path) or os.path.isfile(path + "pyvenv.cfg") or _is_signed(path):
        return True
    other = owner.rstrip("/") + "/"
    rules = None if other == base else _rules(path)
    same = rules is not None and rules == _rules(other + prefix)
    return same and bool(ignores.ignored(owner, [prefix + IGNORE_FILE]))


def _is_signed(path: str) -> bool:
    """Return whether its `.gitignore` starts with a tool's own comment and ignores everything and nothing else."""
    lines = [line.strip() for line in (_rules(path) or b"").splitlines()]
    if not lines or not _TOOL.match(lines[0]):
        return False
    return [line for line in lines if line and not line.startswith(b"#")] == [b"*"]


def _rules(path: str) -> bytes | None:
    """Return the `.gitignore` of a folder; nothing if it is long or not a regular file."""
    file = path + IGNORE_FILE
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return None
        with open(file, "rb") as stream:
            rules = stream.read(_MOST + 1)
    except OSError:
        return None
    return rules if len(rules) <= _MOST else None


def _is_tagged(path: str) -> bool:
    tag = path + "CACHEDIR.TAG"
    if not os.path.isfile(tag):  # a pipe would block until a writer comes
        return False
    try:
        with open(tag, "rb") as stream:
            return stream.read(len(_TAG)) == _TAG
    except OSError:
        return False
