"""The files of a proving tree to which a checkout gives other bytes than the commit holds.

Loaded only if attributes or settings ask for that, or a file is in the LFS store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.domain import wording
from idumb.git import checkout_bytes
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.objects.tree_objects import Item
from idumb.git.proving_files import Content, LargeFile
from idumb.git.submodules import Submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pygit2

_LFS = lazy_pattern.compile(
    rb"\Aversion https://git-lfs\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\n"
)
_LFS_POINTER = 1024
_SCRATCH = "clone"


class Shown(NamedTuple):
    """The working tree into which files are written: its folder, its repository, and the submodules in it.

    `blob` returns the bytes that the commit holds for a file.
    """

    root: str
    repository: pygit2.Repository
    submodules: Submodules | None
    blob: Callable[[str, Item], bytes]


class ConvertedFiles:
    """`place` and `objects` are the user's repository. Its settings are read once, before any check runs."""

    def __init__(self, place: Repository, objects: pygit2.Repository) -> None:
        self._place = place
        self._objects = objects
        self._settings = checkout_bytes.settings(place)
        self._unlike: set[str] = set()

    def put_into(self, git_dir: str) -> None:
        """Give a git folder the same line endings and attributes, so that git finds no file changed."""
        checkout_bytes.put_into(git_dir, self._settings)

    @property
    def unlike(self) -> tuple[str, ...]:
        """Return a sentence if files have other bytes than in a fresh clone."""
        if not self._unlike:
            return ()
        files = wording.listed(sorted(self._unlike))
        return (f"your git settings give {files} other bytes than a clone has ({self._settings.words})",)

    def forget(self, path: str | None = None) -> None:
        """Forget what is unlike a clone in a file that is no longer there, or in all."""
        self._unlike = set() if path is None else self._unlike - {path}

    def read(self, files: Sequence[tuple[str, Item]], shown: Shown) -> dict[str, Content]:
        """Return path to content of the files that differ from those in the commit."""
        by_path: dict[str, Content] = {}
        by_owner: dict[str, list[tuple[str, str]]] = {}
        for path, item in files:
            if item.mode in {tree_objects.SUBMODULE, tree_objects.LINK}:
                continue
            owner = "" if shown.submodules is None else shown.submodules.owner(path)
            if checkout_bytes.is_large(shown.repository, path):
                large = self._large_file(shown.blob(path, item), self._repository_of(owner, shown)[0])
                by_path |= {path: large} if large is not None else {}
            else:
                by_owner.setdefault(owner, []).append((path.removeprefix(f"{owner}/"), item.oid.hex()))
        for owner, rows in by_owner.items():
            by_path |= self._of_owner(owner, rows, shown)
        return by_path

    def _of_owner(self, owner: str, rows: Sequence[tuple[str, str]], shown: Shown) -> dict[str, bytes]:
        """Return the bytes of files from one repository, and record which a clone has in another way."""
        place, objects = self._repository_of(owner, shown)
        index = os.path.join(shown.root, ".git", "index" if not owner else "none")
        source = checkout_bytes.Source(place, os.path.join(shown.root, owner).rstrip("/"), index)
        scratch, chosen = os.path.join(os.path.dirname(shown.root), _SCRATCH), self._settings
        if owner:  # nobody guards the settings of a submodule, so no program of it runs
            ours = checkout_bytes.in_a_clone(source, rows, scratch, chosen.line_endings)
            compared = rows if chosen.writes_crlf else []
        else:
            differing = [row for row in rows if checkout_bytes.may_differ(shown.repository, row[0], chosen)]
            ours = checkout_bytes.as_checked_out(source, differing, chosen)
            filtered = [row for row in differing if checkout_bytes.has_filter(shown.repository, row[0], chosen)]
            compared = rows if chosen.is_local else filtered
        clones = checkout_bytes.in_a_clone(source, compared, scratch) if compared else {}
        for path, oid in compared:
            stored = bytes(objects.read(oid)[1])
            name = os.path.join(owner, path)
            self._unlike.discard(name)
            if ours.get(path, stored) != clones.get(path, stored):
                self._unlike.add(name)
        return {os.path.join(owner, path): data for path, data in ours.items()}

    @staticmethod
    def _large_file(data: bytes, place: Repository) -> LargeFile | None:
        """Return a file of the local LFS store for its pointer; None if it is missing."""
        pointer = _LFS.match(data) if len(data) < _LFS_POINTER else None
        if pointer is None:
            return None
        name = pointer[1].decode("ascii")
        stored = os.path.join(place.common_dir, "lfs", "objects", name[:2], name[2:4], name)
        return LargeFile(stored, bytes.fromhex(name), data) if os.path.isfile(stored) else None

    def _repository_of(self, owner: str, shown: Shown) -> tuple[Repository, pygit2.Repository]:
        if shown.submodules is None or not owner:
            return self._place, self._objects
        return shown.submodules[owner]
