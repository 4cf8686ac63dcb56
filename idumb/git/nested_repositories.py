"""Submodules and nested repositories: find them, read their uncommitted changes, and keep these beside a snapshot.

git is not started in them, because their configuration may name programs; libgit2 reads them and writes nothing there.
A snapshot keeps the files below `repositories/`, and the rest in `repositories.json`: repository to `{"head": commit,
"files": {path: text}}`. The text differs whenever the file differs.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import pygit2
from pygit2.enums import FileStatus, RepositoryOpenFlag

from idumb.app.ports.repository import NestedChange
from idumb.domain.proof.ledger import Entry
from idumb.git import git_program, open_repository
from idumb.git.discover import Repository
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, LINK, PROGRAM
from idumb.lazy_dataclass import dataclass

KEPT, FACTS = "repositories", "repositories.json"
MOST_BYTES = 64 << 20  # for all files of one snapshot
MOST_FILES = 5000
_IN_INDEX = FileStatus.INDEX_NEW | FileStatus.INDEX_MODIFIED | FileStatus.INDEX_RENAMED | FileStatus.INDEX_TYPECHANGE


def among(place: Repository, places: Iterable[str]) -> tuple[str, ...]:
    """Return every submodule of the index, and each of the places and their parent folders that is a repository."""
    own = os.path.realpath(place.root)
    above = dict.fromkeys(folder for path in places for folder in _leading(path))
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


def _leading(path: str) -> Iterator[str]:
    """Return the path and every folder above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


@dataclass(slots=True)
class Look:
    """Facts by repository, and the stored files by path from the root of the working tree."""

    root: str
    writer: Writer
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, Entry] = field(default_factory=dict)
    bytes_left: int = MOST_BYTES

    def add(self, repository: str) -> None:
        """Read one repository and those inside it."""
        if repository in self.facts:
            return
        facts = self.facts[repository] = {"head": None, "files": {}}
        facts["head"], states = _uncommitted(os.path.join(self.root, repository))
        for name, text in states:
            path = f"{repository}/{name.rstrip('/')}"
            if os.path.isdir(os.path.join(self.root, path)) and not os.path.islink(os.path.join(self.root, path)):
                self.add(path)
            else:
                facts["files"][path] = f"{text} {self._file(path)}"

    def _file(self, path: str) -> str:
        """Return the id of the stored file, or the system's error for a file that was not stored."""
        place = os.path.join(self.root, path)
        try:
            status = os.lstat(place)
        except OSError:
            return "gone"
        plain = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
        if plain and status.st_size <= self.bytes_left and len(self.files) < MOST_FILES and _is_readable(place, status):
            stored = _stored(self.writer, place)
            if stored is not None:
                self.bytes_left -= status.st_size
                self.files[path] = stored
                return f"{stored.mode:o} {stored.oid}"
        times = (status.st_mtime_ns, status.st_ctime_ns)
        return " ".join(map(str, (status.st_mode, status.st_size, *times, status.st_ino)))

    def as_json(self) -> bytes:
        return json.dumps(self.facts, sort_keys=True, ensure_ascii=True).encode("ascii")


def _stored(writer: Writer, place: str) -> Entry | None:
    """Store a file or a link; None if it is something else by now."""
    try:
        if os.path.islink(place):
            return Entry(LINK, writer.blob(os.fsencode(os.readlink(place))).hex())
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(mode):
                return None
            return Entry(PROGRAM if mode & 0o100 else FILE, writer.blob(stream.read()).hex())
    except OSError:
        return None


def look(root: str, repositories: Iterable[str], writer: Writer) -> Look:
    """Read the `repositories` below the working tree at `root`."""
    facts = Look(root, writer)
    for repository in sorted(repositories):
        facts.add(repository)
    return facts


def is_dirty(root: str, repository: str) -> bool:
    """Return whether anything in the repository differs from its HEAD."""
    return next(iter(_uncommitted(os.path.join(root, repository))[1]), None) is not None


def changes(before: Mapping[str, Any], after: Look, kept: Callable[[str], bool]) -> tuple[NestedChange, ...]:
    """Return the paths whose facts differ, and each repository whose HEAD differs.

    `kept` names paths with stored bytes.
    """
    differing = []
    for repository in sorted({*before, *after.facts}):
        was, now = (side.get(repository) or {"head": None, "files": {}} for side in (before, after.facts))
        if was["head"] != now["head"]:
            differing.append(NestedChange(repository, repository, kept=False))
        left, right = was["files"], now["files"]
        other = (path for path in sorted({*left, *right}) if left.get(path) != right.get(path))
        differing += [NestedChange(repository, path, kept=kept(path)) for path in other]
    return tuple(differing)


def _uncommitted(folder: str) -> tuple[str | None, Iterable[tuple[str, str]]]:
    """Return (commit of HEAD, each path that differs from HEAD with git's status as text)."""
    try:
        opened = pygit2.Repository(folder, RepositoryOpenFlag.NO_SEARCH)
        head = open_repository.head_of(opened)
        states = opened.status()
        index = opened.index
        return head, [(path, _state(index, path, flags)) for path, flags in sorted(states.items())]
    except (pygit2.GitError, KeyError, ValueError, OSError):
        # Nothing is checked out, or libgit2 cannot open it: every file counts.
        return None, ((path, "-") for path in _walked(folder))


def _state(index: pygit2.Index, path: str, flags: int) -> str:
    staged = str(index[path].id) if flags & _IN_INDEX and path in index else ""
    return f"{int(flags)} {staged}".rstrip()


def _walked(folder: str) -> Iterator[str]:
    for at, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if name != ".git")
        inside = os.path.relpath(at, folder)
        names += [name for name in below if os.path.islink(os.path.join(at, name))]
        yield from (name if inside == "." else f"{inside}/{name}" for name in sorted(names) if name != ".git")


def _is_readable(place: str, status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode) or os.access(place, os.R_OK)
