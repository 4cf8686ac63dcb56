"""The scanner's memory between processes. Checksummed, tied to a ref that keeps its objects alive; safe to lose."""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
from collections.abc import Callable
from typing import Any

import pygit2

from idumb.domain import errors
from idumb.git import names
from idumb.git.discover import Repository
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FOLDER, Item
from idumb.git.scan.scanner import Folder, Scanner
from idumb.system.files import atomic_write

# marshal reads only what the same Python version wrote; another version starts empty.
_FORMAT = b"idumb scan 4 " + sys.version.encode() + b"\n"
_DIGEST = 32


def _path(place: Repository) -> str:
    return os.path.join(place.state_dir, "scan.cache")


def ref(place: Repository) -> str:
    """Keeps cached objects alive: `git gc` could otherwise remove a blob that the cache assumes present."""
    return f"refs/idumb/worktrees/{place.worktree_id}/scan"


def load(place: Repository, repository: pygit2.Repository, writer: Writer) -> Scanner:
    """Return a scanner with the memory of the last process, or an empty one."""
    try:
        with open(_path(place), "rb") as stream:
            data = stream.read()
    except OSError:
        return Scanner(place, writer)
    body = data[len(_FORMAT) + _DIGEST :]
    if not data.startswith(_FORMAT) or hashlib.sha256(body).digest() != data[len(_FORMAT) :][:_DIGEST]:
        return Scanner(place, writer)
    kept, rules, index, packed = marshal.loads(body)  # noqa: S302 - our own file, beside the hooks git would run
    if names.find(repository, ref(place)) != kept:
        return Scanner(place, writer)
    scanner = Scanner(place, writer, _unpack(marshal.loads(packed)))  # noqa: S302 - the same
    scanner.rules, scanner.index = rules, index
    return scanner


def save(
    place: Repository,
    repository: pygit2.Repository,
    writer: Writer,
    scanner: Scanner,
    has_secret: Callable[[bytes], bool],
) -> None:
    """Write the cache, unless a name in it contains a secret. A failure never fails the caller."""
    if scanner.top.tree is None or not scanner.counted:
        return
    with contextlib.suppress(OSError, pygit2.GitError, errors.Refusal):
        packed = marshal.dumps(_pack(scanner.top))
        if has_secret(packed):
            return
        # Wrapped, because our tree never contains a row that is a tree of the user's commits.
        kept = writer.tree({"worktree": Item(FOLDER, scanner.top.tree)})
        writer.flush()
        names.put(repository, place, ref(place), kept.hex(), "scan cache")
        body = marshal.dumps((kept.hex(), scanner.rules, scanner.index, packed))
        data = _FORMAT + hashlib.sha256(body).digest() + body
        atomic_write.write(_path(place), data, durable=False, mode=0o600)
        scanner.counted = 0


def _pack(top: Folder) -> list[tuple[Any, ...]]:
    """One row per folder, parents before children. Folders can nest deeper than Python recurses."""
    rows: list[tuple[Any, ...]] = []
    stack: list[tuple[str, int, Folder]] = [("", -1, top)]
    while stack:
        name, parent, folder = stack.pop()
        here = len(rows)
        rows.append((name, parent, folder.files, folder.ignored, folder.links, folder.odd, folder.rules, folder.tree))
        stack.extend((below, here, child) for below, child in folder.folders.items())
    return rows


def _unpack(rows: list[tuple[Any, ...]]) -> Folder:
    folders: list[Folder] = []
    for name, parent, files, ignored, links, odd, rules, tree in rows:
        folder = Folder()
        folder.files, folder.ignored, folder.links, folder.odd = files, ignored, links, odd
        folder.rules, folder.tree = rules, tree
        if parent >= 0:
            folders[parent].folders[name] = folder
        folders.append(folder)
    return folders[0]
