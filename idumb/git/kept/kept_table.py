"""The tree of the names of one working tree: its rows, the chunks of the open group, and the closed groups.

The tree is never one of the user's, and at most four levels deep. It has these rows, where `:` stands for the `/` of
a name (no ref contains it):

    NAME                               what belongs to no run
    SEQUENCE:NAME                      the newest names of the open run
    chunk1:SEQUENCE/SEQUENCE:NAME      16 earlier ones; a chunk2 has 16 of these, and a chunk3 has 16 of those
    closed/XX/GROUP/SEQUENCE:NAME      the names of the other runs, and of roles; XX is a part of the group's hash

A sequence number orders the names by age. So a new name costs one small tree, however many names there are.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType

from idumb import lazy_pattern
from idumb.domain import errors
from idumb.git.objects import tree_objects
from idumb.git.objects.tree_objects import FOLDER, Item

CLOSED, CHUNK = "closed", "chunk"
RUNS = "runs"
WIDTH, LEVELS = 16, 3
ROW = lazy_pattern.compile(r"[0-9a-f]{8}:")
_PART = lazy_pattern.compile(r"[0-9a-f]{2}")

Write = Callable[[Mapping[str, Item]], bytes]
Read = Callable[[bytes], Mapping[str, Item]]


class Kept(NamedTuple):
    sequence: int
    item: Item


class Table(NamedTuple):
    """The names of one working tree: its tree, the rows of that tree, and the names of the open group by row name.

    A name that is put is added to `opened` when its ref has moved.
    """

    root: str | None
    rows: Mapping[str, Item]
    group: str
    opened: dict[str, Kept]


def tree(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    """Return the rows of a tree of ours, or of a tree in it. Refusal `git.object-missing` if it cannot be read."""
    try:
        return tree_objects.rows(repository, oid)
    except (KeyError, ValueError, pygit2.GitError) as problem:
        raise missing(oid.hex(), problem) from problem


def missing(oid: str, problem: Exception) -> errors.Refusal:
    words = f"tree {oid} with the names of what idumb keeps is missing or damaged: {problem}"
    return errors.Refusal("git.object-missing", words, hint="idumb doctor --fix")


def is_plain(row: str) -> bool:
    """Return whether a row of our tree is the name of what belongs to no run."""
    return row != CLOSED and not row.startswith(CHUNK) and not ROW.match(row)


def collect(read: Read, rows: Mapping[str, Item], into: dict[str, Kept]) -> None:
    """Add the names in these rows, and in the chunks among them; the newest object of a name counts."""
    for name, item in rows.items():
        if name.startswith(CHUNK):
            collect(read, read(item.oid), into)
        elif ROW.match(name):
            kept = Kept(int(name[:8], 16), item)
            into[name[9:]] = max(kept, into.get(name[9:], kept))


def collect_folder(repository: pygit2.Repository, folder: Item, into: dict[str, Kept]) -> None:
    collect(functools.partial(tree, repository), tree(repository, folder.oid), into)


def groups(repository: pygit2.Repository, table: Table, only: str = "") -> Mapping[str, Item]:
    """Return the trees of the closed groups, or of one."""
    folders = _rows(repository, table.rows.get(CLOSED))
    parts = [folders.get(_fan(only))] if only else folders.values()
    groups = {group: item for part in parts for group, item in _rows(repository, part).items()}
    return {only: groups[only]} if only in groups else {} if only else groups


def closed(repository: pygit2.Repository, table: Table, group: str) -> dict[str, Kept]:
    names: dict[str, Kept] = {}
    for folder in groups(repository, table, group).values():
        collect_folder(repository, folder, names)
    return names


def _rows(repository: pygit2.Repository, folder: Item | None) -> Mapping[str, Item]:
    return {} if folder is None else tree(repository, folder.oid)


def _fan(group: str) -> str:
    return hashlib.sha256(group.encode("utf-8", "surrogateescape")).hexdigest()[:2]


def flat(names: Mapping[str, Kept]) -> Mapping[str, Item]:
    return {f"{kept.sequence:08x}:{row}": kept.item for row, kept in names.items()}


def replaced(repository: pygit2.Repository, root: str, rows: Mapping[str, Item]) -> Iterator[str]:
    """Yield the trees of `root` that the tree with `rows` does not have, and that no other tree of ours can have.

    The names of a run in them make them unique: its id is random, and its sequence numbers grow. But while our tree
    has rows of one kind only, a chunk can be the same tree. The rows are those of the tree itself: if an agent set the
    ref back to what is a chunk now, the table has more.
    """
    before = tree(repository, bytes.fromhex(root))
    if len({_kind(row) for row in before}) > 1:
        yield root
    old, new = before.get(CLOSED), rows.get(CLOSED)
    if old is None or old == new:
        return
    present = _rows(repository, new)
    parts = [part for name, part in _rows(repository, old).items() if present.get(name) != part]
    unique = [part for part in parts if _has_run(_rows(repository, part))]
    yield from (item.oid.hex() for item in [*([old] if unique else ()), *unique])


def everything(repository: pygit2.Repository, root: str) -> Iterator[bytes]:
    """Yield all trees of names in our tree, and the objects that have names."""
    rows = tree(repository, bytes.fromhex(root))
    yield from _below(repository, rows)
    for part in _rows(repository, rows.get(CLOSED)).values():
        yield part.oid
        for group in _rows(repository, part).values():
            yield group.oid
            yield from _below(repository, _rows(repository, group))


def _below(repository: pygit2.Repository, rows: Mapping[str, Item]) -> Iterator[bytes]:
    for name, item in rows.items():
        yield item.oid
        if name.startswith(CHUNK):
            yield from _below(repository, _rows(repository, item))


def is_ours(repository: pygit2.Repository, oid: str) -> bool:
    """Return whether an object can be a tree of `replaced`: its names, or those in one of its trees, name a run."""
    try:
        if repository.odb.read_header(pygit2.Oid(hex=oid))[0] != ObjectType.TREE:
            return False  # the notes are damaged, and a file may be large
        rows = tree(repository, bytes.fromhex(oid))
        parts = (item for name, item in rows.items() if item.mode == FOLDER and _PART.fullmatch(name))
        return _has_run(rows) or any(_has_run(tree(repository, item.oid)) for item in parts)
    except (errors.Refusal, KeyError, ValueError, pygit2.GitError):
        return False


def _has_run(names: Iterable[str]) -> bool:
    return any(f"{RUNS}:" in name for name in names)


def _kind(row: str) -> str:
    return "" if ROW.match(row) else row.partition(":")[0] if row.startswith(CHUNK) else CLOSED


def opened(repository: pygit2.Repository, write: Write, table: Table, group: str) -> Table:
    """Return the table with another open group, or with none."""
    rows = {row: item for row, item in table.rows.items() if not row.startswith(CHUNK) and not ROW.match(row)}
    if table.opened:
        rows = with_closed(repository, write, rows, table.group, flat(table.opened))
    names: dict[str, Kept] = {}
    for folder in groups(repository, table, group).values() if group else ():
        collect_folder(repository, folder, names)
        rows = with_closed(repository, write, rows, group, {})
        rows[f"{CHUNK}{LEVELS}:{min(kept.sequence for kept in names.values()):08x}"] = folder
    return Table(table.root, rows, group, names)


def with_closed(
    repository: pygit2.Repository, write: Write, rows: dict[str, Item], group: str, names: Mapping[str, Item]
) -> dict[str, Item]:
    """Return the rows with the tree of a closed group replaced; without it if it has no names."""
    folders = dict(_rows(repository, rows.get(CLOSED)))
    part = dict(_rows(repository, folders.get(_fan(group))))
    for above, name, below in ((part, group, names), (folders, _fan(group), part), (rows, CLOSED, folders)):
        above.pop(name, None)
        if below:
            above[name] = Item(FOLDER, write(below))
    return rows
