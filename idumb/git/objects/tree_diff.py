"""Trees in the object database compared, looked into and combined; equal subtrees are never opened."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import pygit2

from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry
from idumb.git.objects import tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FOLDER, Item

_Rows = dict[str, Item]
_Wanted = dict[tuple[str, ...], Entry | None]
_Pair = tuple[str, bytes | None, bytes | None]


def tree_of(repository: pygit2.Repository, commit: str | None) -> str:
    """The id of a commit's tree, which is not looked at: an unreadable one is told by who reads it.

    Before the first commit it is the empty tree.
    """
    return tree_objects.EMPTY_TREE if commit is None else str(repository[commit].peel(pygit2.Commit).tree_id)


def rows_of(repository: pygit2.Repository, commit: str) -> _Rows:
    """The rows of a commit's tree. Raises KeyError when it is not there."""
    return rows(repository, bytes.fromhex(tree_of(repository, commit)))


def rows(repository: pygit2.Repository, oid: bytes) -> _Rows:
    """The rows of one tree object. Raises KeyError when it is not there."""
    if oid.hex() == tree_objects.EMPTY_TREE:
        return {}
    return tree_objects.parse(repository[pygit2.Oid(oid)].read_raw())


@functools.lru_cache(maxsize=32)
def shared_rows(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    """`rows`, not to be changed: thousands of paths of one folder are looked up one after the other."""
    return rows(repository, oid)


def changes(repository: pygit2.Repository, old: str, new: str) -> tuple[Change, ...]:
    """All paths that differ, sorted. Folders nest deeper than a recursion may, hence the stack."""
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
    """The file at a path; None for folders and for nothing."""
    found: Item | None = Item(FOLDER, bytes.fromhex(tree))
    for part in tree_objects.split(path):
        if found is None or found.mode != FOLDER:
            return None
        found = shared_rows(repository, found.oid).get(part)
    return None if found is None or found.mode == FOLDER else _entry(found)


def is_folder(repository: pygit2.Repository, tree: str, path: str) -> bool:
    found: Item | None = Item(FOLDER, bytes.fromhex(tree))
    for part in tree_objects.split(path):
        if found is None or found.mode != FOLDER:
            return False
        found = shared_rows(repository, found.oid).get(part)
    return found is not None and found.mode == FOLDER


def overlay(repository: pygit2.Repository, writer: Writer, tree: str, source: str, paths: Iterable[str]) -> str:
    """`tree` with each path as in `source`; a file in the way of a folder, or the reverse, gives way."""
    wanted: _Wanted = {tuple(path.split("/")): entry(repository, source, path) for path in paths}
    oid = _overlay(repository, writer, bytes.fromhex(tree), wanted)
    return oid.hex() if oid else tree_objects.EMPTY_TREE


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
    return writer.tree(tree_objects.from_items(items)) if items else b""


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
