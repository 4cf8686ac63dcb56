"""Read stored trees and blobs: compare, combine and verify them. A comparison never opens subtrees that are equal."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType

from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry
from idumb.git import git_program
from idumb.git.open_repository import Damaged

FOLDER = 0o40000
FILE = 0o100644
PROGRAM = 0o100755
LINK = 0o120000
SUBMODULE = 0o160000

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
LARGE = 32 << 20
"""Larger blobs are read and written in pieces."""


class Item(NamedTuple):
    """One row of a tree: git mode and raw 20-byte id."""

    mode: int
    oid: bytes


_MODES = {b"%o" % mode: mode for mode in (FOLDER, FILE, PROGRAM, LINK, SUBMODULE)}
_NAMES = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
_Rows = dict[str, Item]
_Wanted = dict[tuple[str, ...], Entry | None]


def parse(data: bytes) -> _Rows:
    """Return the rows of a tree by name. Names are decoded like file names. Raises ValueError for other bytes."""
    rows: _Rows = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        mode = data[at:space]
        name = data[space + 1 : end].decode(*_NAMES)
        rows[name] = Item(_MODES.get(mode) or int(mode, 8), data[end + 1 : end + 21])
        at = end + 21
    if at > len(data):
        message = "the last row of a tree is cut off"
        raise ValueError(message)
    return rows


def write(repository: pygit2.Repository, items: Mapping[str, Item]) -> bytes:
    """Write a tree. Names are encoded like file names."""
    rows = [(item.mode, os.fsencode(name), item.oid) for name, item in items.items()]
    # Git's order: folders sort as if their names ended with `/`.
    rows.sort(key=lambda row: row[1] + b"/" if row[0] == FOLDER else row[1])
    oid: bytes = repository.write(ObjectType.TREE, b"".join(b"%o %b\0%b" % row for row in rows)).raw
    return oid


def tree_of(repository: pygit2.Repository, commit: str | None) -> str:
    """Return the id of a commit's tree, without opening the tree: its reader reports an unreadable one.

    Before the first commit, this is the empty tree.
    """
    return EMPTY_TREE if commit is None else str(repository[commit].peel(pygit2.Commit).tree_id)


def root_of(repository: pygit2.Repository, name: str | pygit2.Oid) -> pygit2.Oid:
    """Return the id of a tree, or of a commit's tree, without opening the tree. Raises KeyError if it is missing."""
    found = repository[name]
    return found.id if found.type == ObjectType.TREE else found.peel(pygit2.Commit).tree_id


def rows(repository: pygit2.Repository, oid: bytes) -> _Rows:
    """Return the rows of one tree object. Raises KeyError if it is missing, GitError if it is damaged or no tree."""
    if oid.hex() == EMPTY_TREE:
        return {}
    # `repository[...]` would parse the object, and then read it from disk again for its bytes.
    kind, data = repository.read(pygit2.Oid(oid))
    if kind != ObjectType.TREE:
        raise Damaged(oid.hex(), "it is no tree")
    try:
        return parse(data)
    except ValueError as problem:
        raise Damaged(oid.hex(), str(problem)) from problem


@functools.lru_cache(maxsize=256)  # a task compares a few trees, path by path
def shared_rows(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    """Return cached `rows`; do not modify them.

    Thousands of paths of one folder are looked up one after the other, and each task compares a tree with the same few.
    """
    return rows(repository, oid)


def changes(repository: pygit2.Repository, old: str, new: str) -> tuple[Change, ...]:
    """Return all files that differ, sorted. Uses a stack, because folders can nest deeper than Python recurses."""
    found: list[Change] = []
    stack: list[tuple[str, bytes | None, bytes | None]] = [("", bytes.fromhex(old), bytes.fromhex(new))]
    while stack:
        prefix, *sides = stack.pop()
        if sides[0] == sides[1]:
            continue
        before, after = (shared_rows(repository, oid) if oid else {} for oid in sides)
        for name in {name for name, _ in before.items() ^ after.items()}:
            pair = before.get(name), after.get(name)
            folders = [item.oid if item is not None and item.mode == FOLDER else None for item in pair]
            if any(folders):
                stack.append((f"{prefix}{name}/", folders[0], folders[1]))
            left, right = (None if folder else _entry(item) for item, folder in zip(pair, folders, strict=True))
            if left != right:
                kind = CREATED if left is None else DELETED if right is None else MODIFIED
                found.append(Change(prefix + name, kind, left, right))
    return tuple(sorted(found, key=lambda change: change.path))


def _entry(item: Item | None) -> Entry | None:
    return None if item is None else Entry(item.mode, item.oid.hex())


def entry(repository: pygit2.Repository, tree: str, path: str) -> Entry | None:
    """Return the file at a path; None for folders and missing paths."""
    item = _item(repository, tree, path)
    return None if item is None or item.mode == FOLDER else _entry(item)


def is_folder(repository: pygit2.Repository, tree: str, path: str) -> bool:
    item = _item(repository, tree, path)
    return item is not None and item.mode == FOLDER


def folder(repository: pygit2.Repository, tree: str, path: str) -> str | None:
    """Return the tree of a folder; None if there is none."""
    item = _item(repository, tree, path)
    return item.oid.hex() if item is not None and item.mode == FOLDER else None


def _item(repository: pygit2.Repository, tree: str, path: str) -> Item | None:
    item: Item | None = Item(FOLDER, bytes.fromhex(tree))
    for part in filter(None, path.split("/")):
        if item is None or item.mode != FOLDER:
            return None
        item = shared_rows(repository, item.oid).get(part)
    return item


def overlay(repository: pygit2.Repository, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return `tree` with the paths of each (source, paths) as in that source, one source after the other.

    A file replaces a folder of the same name, and the reverse.
    """
    oid = bytes.fromhex(tree)
    wanted: _Wanted = {}
    above = set[tuple[str, ...]]()
    for source, paths in sources:
        entries = {tuple(path.split("/")): entry(repository, source, path) for path in paths}
        if not above.isdisjoint(entries):  # written together, a folder wins over a file of its name
            oid = _overlay(repository, oid, wanted)
            wanted, above = {}, set()
        wanted |= entries
        above.update(parts[:depth] for parts in entries for depth in range(1, len(parts)))
    oid = _overlay(repository, oid, wanted)
    return oid.hex() if oid else EMPTY_TREE


def put(repository: pygit2.Repository, tree: str, files: Mapping[str, Entry]) -> str:
    """Return `tree` with these files replaced."""
    wanted: _Wanted = {tuple(path.split("/")): file for path, file in files.items()}
    return _overlay(repository, bytes.fromhex(tree), wanted).hex() or EMPTY_TREE


def _overlay(repository: pygit2.Repository, tree: bytes | None, entries: _Wanted) -> bytes:
    items = dict(shared_rows(repository, tree)) if tree else {}
    below: dict[str, _Wanted] = {}
    for parts, item in entries.items():
        if len(parts) > 1:
            below.setdefault(parts[0], {})[parts[1:]] = item
    for (name, *rest), item in entries.items():
        if not rest and item is not None:
            items[name] = Item(item.mode, bytes.fromhex(item.oid))
        elif not rest and name in items and items[name].mode != FOLDER:
            del items[name]
    for name, inner in below.items():
        _overlay_folder(repository, items, name, inner)
    return write(repository, items) if items else b""


def _overlay_folder(repository: pygit2.Repository, items: _Rows, name: str, inner: _Wanted) -> None:
    present = items.get(name)
    folder = present.oid if present is not None and present.mode == FOLDER else None
    if folder is None and not any(inner.values()):
        return
    written = _overlay(repository, folder, inner)
    if written:
        items[name] = Item(FOLDER, written)
    else:
        items.pop(name, None)


def new_items(repository: pygit2.Repository, old: bytes | None, new: bytes) -> Iterator[Item]:
    """Yield the rows of the tree `new` that `old` does not have at the same path, a folder's before its content."""
    stack = [(old, new)]
    while stack:
        left, right = stack.pop()
        if left == right:
            continue
        before = _present_rows(repository, left)
        for name, item in shared_rows(repository, right).items():
            other = before.get(name)
            if item != other:
                yield item
                if item.mode == FOLDER:
                    stack.append((other.oid if other and other.mode == FOLDER else None, item.oid))


def _present_rows(repository: pygit2.Repository, tree: bytes | None) -> Mapping[str, Item]:
    """Return the rows of a tree; none if it is missing or damaged: a partial clone may lack trees of HEAD."""
    try:
        return shared_rows(repository, tree) if tree else {}
    except (KeyError, pygit2.GitError):
        return {}


def is_stored(repository: pygit2.Repository, objects: str, oid: bytes, *, whole: bool = False) -> bool:
    """Find an object on disk; `whole` reads it and checks its hash. `objects` is git's folder of objects."""
    name = oid.hex()
    try:
        if not whole:
            return os.stat(f"{objects}/{name[:2]}/{name[2:]}").st_size > 0
        repository.read(pygit2.Oid(oid))
    except FileNotFoundError:
        return pygit2.Oid(oid) in repository.odb
    except (KeyError, pygit2.GitError):
        return False
    return True


def pieces(repository: pygit2.Repository, root: str, oid: str) -> Iterator[bytes]:
    """Return a blob's bytes. git reads large blobs out, so only a piece of one is in memory at a time."""
    try:
        is_large = repository.odb.read_header(oid)[1] > LARGE
    except (KeyError, pygit2.GitError):
        is_large = False  # reading it tells what is wrong
    yield from git_program.stream(root, ["cat-file", "blob", oid]) if is_large else [repository.read(oid)[1]]
