"""Parse, write, compare and combine git's tree objects. Names are bytes throughout.

A comparison never opens subtrees that are equal.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pygit2

from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry
from idumb.git.objects.object_writer import Writer

FOLDER = 0o40000
FILE = 0o100644
PROGRAM = 0o100755
LINK = 0o120000
SUBMODULE = 0o160000

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Item(NamedTuple):
    """One row of a tree: git mode and raw 20-byte id."""

    mode: int
    oid: bytes


def parse(data: bytes) -> dict[str, Item]:
    """Name to row; names are decoded as file names are."""
    rows: dict[str, Item] = {}
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = os.fsdecode(data[space + 1 : end])
        rows[name] = Item(int(data[at:space], 8), data[end + 1 : end + 21])
        at = end + 21
    return rows


def line(mode: int, name: str, oid: bytes) -> bytes:
    """Return one row in the format of a tree object."""
    return b"%o %b\0%b" % (mode, os.fsencode(name), oid)


def sort_key(row: bytes) -> bytes:
    """Git's order: folders sort as if their names ended with `/`."""
    mode, _, rest = row.partition(b" ")
    name = rest[: rest.index(b"\0")]
    return name + b"/" if mode == b"40000" else name


def join(rows: Iterable[bytes]) -> bytes:
    ordered: list[bytes] = sorted(rows, key=sort_key)
    return b"".join(ordered)


def from_items(items: dict[str, Item]) -> bytes:
    return join(line(item.mode, name, item.oid) for name, item in items.items())


def split(path: str) -> Iterator[str]:
    """Return the parts of a path; none for the root."""
    return (part for part in path.split("/") if part)


_Rows = dict[str, Item]


_Wanted = dict[tuple[str, ...], Entry | None]


_Pair = tuple[str, bytes | None, bytes | None]


def tree_of(repository: pygit2.Repository, commit: str | None) -> str:
    """Return the id of a commit's tree, without opening the tree: its reader reports an unreadable one.

    Before the first commit, this is the empty tree.
    """
    return EMPTY_TREE if commit is None else str(repository[commit].peel(pygit2.Commit).tree_id)


def rows_of(repository: pygit2.Repository, commit: str) -> _Rows:
    """Return the rows of a commit's tree. Raises KeyError if the commit or tree is missing."""
    return rows(repository, bytes.fromhex(tree_of(repository, commit)))


def rows(repository: pygit2.Repository, oid: bytes) -> _Rows:
    """Return the rows of one tree object. Raises KeyError if it is missing."""
    if oid.hex() == EMPTY_TREE:
        return {}
    return parse(repository[pygit2.Oid(oid)].read_raw())


@functools.lru_cache(maxsize=32)
def shared_rows(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    """Return cached `rows`; do not modify them. Thousands of paths of one folder are looked up one after the other."""
    return rows(repository, oid)


def changes(repository: pygit2.Repository, old: str, new: str) -> tuple[Change, ...]:
    """Return all paths that differ, sorted. Uses a stack, because folders can nest deeper than Python recurses."""
    found: list[Change] = []
    stack: list[_Pair] = [("", bytes.fromhex(old), bytes.fromhex(new))]
    while stack:
        _compare(repository, stack.pop(), found, stack)
    return tuple(sorted(found, key=lambda change: change.path))


def _compare(repository: pygit2.Repository, pair: _Pair, found: list[Change], stack: list[_Pair]) -> None:
    prefix, old, new = pair
    if old == new:
        return
    before = rows(repository, old) if old else {}
    after = rows(repository, new) if new else {}
    for name in before.keys() | after.keys():
        left, right = before.get(name), after.get(name)
        if left == right:
            continue
        path = prefix + name
        old_folder = left.oid if left and left.mode == FOLDER else None
        new_folder = right.oid if right and right.mode == FOLDER else None
        if old_folder or new_folder:
            stack.append((path + "/", old_folder, new_folder))
        change = _change(path, None if old_folder else left, None if new_folder else right)
        if change is not None:
            found.append(change)


def _change(path: str, left: Item | None, right: Item | None) -> Change | None:
    if left is None and right is None:
        return None
    kind = CREATED if left is None else DELETED if right is None else MODIFIED
    return Change(path, kind, _entry(left), _entry(right))


def _entry(item: Item | None) -> Entry | None:
    return None if item is None else Entry(item.mode, item.oid.hex())


def entry(repository: pygit2.Repository, tree: str, path: str) -> Entry | None:
    """Return the file at a path; None for folders and missing paths."""
    found: Item | None = Item(FOLDER, bytes.fromhex(tree))
    for part in split(path):
        if found is None or found.mode != FOLDER:
            return None
        found = shared_rows(repository, found.oid).get(part)
    return None if found is None or found.mode == FOLDER else _entry(found)


def is_folder(repository: pygit2.Repository, tree: str, path: str) -> bool:
    found: Item | None = Item(FOLDER, bytes.fromhex(tree))
    for part in split(path):
        if found is None or found.mode != FOLDER:
            return False
        found = shared_rows(repository, found.oid).get(part)
    return found is not None and found.mode == FOLDER


def overlay(repository: pygit2.Repository, writer: Writer, tree: str, source: str, paths: Iterable[str]) -> str:
    """Return `tree` with each path as in `source`. A file replaces a folder of the same name, and the reverse."""
    wanted: _Wanted = {tuple(path.split("/")): entry(repository, source, path) for path in paths}
    oid = _overlay(repository, writer, bytes.fromhex(tree), wanted)
    return oid.hex() if oid else EMPTY_TREE


def _overlay(repository: pygit2.Repository, writer: Writer, tree: bytes | None, wanted: _Wanted) -> bytes:
    items = rows(repository, tree) if tree else {}
    below: dict[str, _Wanted] = {}
    for parts, item in wanted.items():
        if len(parts) > 1:
            below.setdefault(parts[0], {})[parts[1:]] = item
    for (name, *rest), item in wanted.items():
        if not rest and item is not None:
            items[name] = Item(item.mode, bytes.fromhex(item.oid))
        elif not rest and name in items and items[name].mode != FOLDER:
            del items[name]
    for name, inner in below.items():
        _overlay_folder(repository, writer, items, name, inner)
    return writer.tree(from_items(items)) if items else b""


def _overlay_folder(repository: pygit2.Repository, writer: Writer, items: _Rows, name: str, inner: _Wanted) -> None:
    present = items.get(name)
    folder = present.oid if present is not None and present.mode == FOLDER else None
    if folder is None and not any(inner.values()):
        return
    written = _overlay(repository, writer, folder, inner)
    if written:
        items[name] = Item(FOLDER, written)
    else:
        items.pop(name, None)
