"""The names of what idumb keeps: one tree for each working tree, which one ref keeps.

A ref for each snapshot would slow git down, and `git log --all` would show each as a commit. So a name such as
`refs/idumb/worktrees/main/runs/R/T1-01/1/base` is a row of our tree, and a snapshot is a tree. Commits have refs of
their own under such names, as the snapshots of earlier versions of idumb do; they are found here too.

Our tree is never a tree of the user's, and at most four levels deep. It has these rows, where `:` stands for the `/` of
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
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors
from idumb.git import open_repository, refs
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, FOLDER, Item

UNREADABLE = "git.snapshot-unreadable"
_WORKTREES = f"{refs.PREFIX}worktrees/"
_CLOSED, _CHUNK, _RUNS, _ROLES = "closed", "chunk", "runs", "roles"
_WIDTH, _LEVELS = 16, 3
_ROW = re.compile(r"[0-9a-f]{8}:")
_TRIES = 5

_Write = Callable[[Mapping[str, Item]], bytes]
_Read = Callable[[bytes], Mapping[str, Item]]


class _Damaged(Protocol):
    def __call__(self, *, trusting: bool) -> str | None: ...


class _Kept(NamedTuple):
    sequence: int
    item: Item


class _Table(NamedTuple):
    """The names of one working tree: its tree, the rows of that tree, and the names of the open group by row name.

    A name that is put is added to `opened` when its ref has moved.
    """

    root: str | None
    rows: Mapping[str, Item]
    group: str
    opened: dict[str, _Kept]


# The tables that this process wrote last, by shared git folder and working tree.
_tables: dict[tuple[str, str], _Table] = {}


def unreadable(oid: str) -> errors.Refusal:
    return errors.Refusal(UNREADABLE, f"object {oid} of a snapshot is missing or damaged", hint="git fsck")


def find(repository: pygit2.Repository, place: Repository, name: str) -> str | None:
    """Return the object of a name, or None."""
    parts = _parts(name)
    if parts is not None:
        item = _lookup(repository, _present(repository, place, parts[0]), parts[1])
        if item is not None:
            return item.oid.hex()
    return refs.current(repository, name)


def below(repository: pygit2.Repository, place: Repository, prefix: str) -> dict[str, str]:
    """Return the names that start with a prefix of idumb's, with their objects; refs of commits among them."""
    of_git = refs.own(place.common_dir, prefix[: prefix.rindex("/") + 1])
    found = {name: oid for name, oid in of_git.items() if name.startswith(prefix)}
    if prefix.startswith(refs.ROOTS):
        return found
    found = {name: oid for name, oid in found.items() if not name.startswith(refs.ROOTS)}
    parts = _parts(prefix)
    for worktree in [parts[0]] if parts is not None else _worktrees(place):
        row = parts[1] if parts is not None else ""
        try:
            named = list(_named(repository, _present(repository, place, worktree), row))
        except errors.Refusal:
            if parts is not None:
                raise
            continue  # `doctor` reports that, and what is missing therefore
        for each, kept in named:
            name = f"{_WORKTREES}{worktree}/{each.replace(':', '/')}"
            if name.startswith(prefix):
                found[name] = kept.item.oid.hex()
    return found


def newest_first(repository: pygit2.Repository, place: Repository, worktree: str) -> Iterator[str]:
    """Return the objects of all names of this working tree, without refs of their own, the newest first."""
    table = _present(repository, place, worktree)
    yield from (table.rows[row].oid.hex() for row in sorted(filter(_ROW.match, table.rows), reverse=True))
    rows = (kept for row, kept in _named(repository, table, "") if f"{kept.sequence:08x}:{row}" not in table.rows)
    yield from (kept.item.oid.hex() for kept in sorted(rows, key=lambda kept: kept.sequence, reverse=True))


def put(
    repository: pygit2.Repository,
    place: Repository,
    writer: Writer,
    name: str,
    item: Item,
    *,
    damaged: _Damaged = lambda *, trusting: None,  # noqa: ARG005
    reason: str = "",
) -> str:
    """Give an object a name, durably, together with everything that the writer has pending. Return our tree's id.

    `damaged` is called when all objects are on disk and before the ref moves; it returns one that cannot be read back.
    It is not `trusting` if the ref is not where this process left it.
    Refusal `git.snapshot-unreadable` then, and `git.ref-moved` if another process is faster each time.
    """
    parts = _parts(name)
    if parts is None:
        message = f"idumb keeps objects below {_WORKTREES}WORKTREE/ only, not at {name}"
        raise ValueError(message)
    worktree, row = parts

    def change(before: _Table) -> tuple[_Table, Mapping[str, _Kept]]:
        return _with(repository, writer.tree, before, row, item)

    return _move(repository, place, writer, worktree, change, damaged, reason)


def keep(repository: pygit2.Repository, place: Repository, writer: Writer, name: str, oid: str) -> None:
    """Give an existing object a name: a ref, if it is a commit or a tag. Refusal `git.ref-moved` if it is missing.

    Of a tree of ours with parts that cannot be read, the ref then names what remains.
    """
    try:
        kind = repository.odb.read_header(pygit2.Oid(hex=oid))[0]
    except (KeyError, ValueError, pygit2.GitError) as problem:
        words = f"{name} could not be kept: object {oid} does not exist"
        raise errors.Refusal("git.ref-moved", words, hint="idumb doctor") from problem
    if name.startswith(refs.ROOTS) and kind == ObjectType.TREE:
        refs.move(repository, place, name, _readable(repository, place, writer, oid))
    elif kind in (ObjectType.COMMIT, ObjectType.TAG) or name.startswith(refs.ROOTS):
        refs.move(repository, place, name, oid)
    else:
        mode = FOLDER if kind == ObjectType.TREE else FILE
        put(repository, place, writer, name, Item(mode, bytes.fromhex(oid)), reason="keep")


def drop(repository: pygit2.Repository, place: Repository, writer: Writer, name: str, expected: str) -> None:
    """Remove a name that still has the expected object. Refusal `git.ref-moved` otherwise."""
    parts = _parts(name)
    item = None if parts is None else _lookup(repository, _present(repository, place, parts[0]), parts[1])
    if parts is None or item is None:
        refs.delete(repository, place, name, expected)
        return
    if item.oid.hex() != expected:
        raise errors.Refusal("git.ref-moved", f"{name} is {item.oid.hex()}, not {expected}", hint="idumb status")
    worktree, row = parts

    def change(before: _Table) -> tuple[_Table, Mapping[str, _Kept]]:
        return _without(repository, writer.tree, before, row), {}

    _move(repository, place, writer, worktree, change, lambda *, trusting: None, "drop")  # noqa: ARG005


def _move(
    repository: pygit2.Repository,
    place: Repository,
    writer: Writer,
    worktree: str,
    change: Callable[[_Table], tuple[_Table, Mapping[str, _Kept]]],
    damaged: _Damaged,
    reason: str,
) -> str:
    ref, key = refs.ROOTS + worktree, (place.common_dir, worktree)
    # Most often, the ref is where this process left it.
    known = _tables.get(key)
    if known is not None and not _is_at(repository, ref, known.root):
        known = None
    for _ in range(_TRIES):
        before = known or _joined(repository, place, writer.tree, worktree)
        after, added = change(before)
        root = writer.tree(after.rows).hex()
        writer.flush()
        if (oid := damaged(trusting=known is not None)) is not None:
            raise unreadable(oid)
        if refs.replace(repository, place, ref, before.root, root, reason):
            after.opened.update(added)
            _tables[key] = after._replace(root=root)
            return root
        known = None
    words = f"{ref} is moved by another process each time that idumb moves it"
    raise errors.Refusal("git.ref-moved", words, hint="idumb status")


def _is_at(repository: pygit2.Repository, ref: str, root: str | None) -> bool:
    try:
        present = repository.references.get(ref)
    except (pygit2.GitError, ValueError):
        return False  # read again, it is reported
    return (present and str(present.target)) == root


def _parts(name: str) -> tuple[str, str] | None:
    """Return the working tree and the row name; None for a name that is in no tree of ours."""
    worktree, slash, rest = name.removeprefix(_WORKTREES).partition("/")
    return (worktree, rest.replace("/", ":")) if name.startswith(_WORKTREES) and slash else None


def _group(row: str) -> str:
    """Return the part of a row name that names a run, or an operation of roles; "" if it belongs to neither."""
    parts = row.split(":")
    at = next((n for n, part in enumerate(parts[:-2]) if part in (_RUNS, _ROLES)), None)
    return "" if at is None else ":".join(parts[: at + 2])


def _opens(group: str) -> bool:
    """Return whether many names of this group are expected."""
    return _RUNS in group.split(":")


def _worktrees(place: Repository) -> list[str]:
    """Return the working trees of which something is kept; `doctor` reports a damaged ref."""
    return [
        name.removeprefix(refs.ROOTS)
        for name, root in refs.own(place.common_dir, refs.ROOTS).items()
        if len(root) == 40
    ]


def _present(repository: pygit2.Repository, place: Repository, worktree: str) -> _Table:
    """Return the table as its ref is now."""
    known = _tables.get((place.common_dir, worktree))
    root = refs.current(repository, refs.ROOTS + worktree)
    return known if known is not None and known.root == root else _read(repository, root)


def _joined(repository: pygit2.Repository, place: Repository, write: _Write, worktree: str) -> _Table:
    """Return the table as its ref is now, with all names that this process knows.

    An agent can set the ref back to an earlier tree; a change must then lose nothing that was kept since.
    """
    known, present = _tables.get((place.common_dir, worktree)), _present(repository, place, worktree)
    if known is present:
        return present
    joined = present._replace(opened=dict(present.opened))
    return joined if known is None else _with_remains(repository, place, write, joined, known)


def _with_remains(
    repository: pygit2.Repository, place: Repository, write: _Write, table: _Table, lost: _Table
) -> _Table:
    """Return the table with the names of another one that it does not have, and whose objects still exist.

    `git gc` fails in a repository in which a ref reaches a missing object.
    """
    present = open_repository.repository(place)  # libgit2 would answer from its memory
    names = {row: _Kept(0, item) for row, item in lost.rows.items() if _is_plain(row)} | lost.opened
    read = functools.partial(_rows_that_exist, present)
    closed = lost.rows.get(_CLOSED)
    for part in read(closed.oid).values() if closed is not None else ():
        for folder in read(part.oid).values():
            _collect(read, read(folder.oid), names)
    for row, kept in sorted(names.items(), key=lambda named: named[1].sequence):
        if pygit2.Oid(kept.item.oid) in present.odb and _lookup(repository, table, row) is None:
            table, added = _with(repository, write, table, row, kept.item)
            table.opened.update(added)
    return table


def _rows_that_exist(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    try:
        return _tree(repository, oid)
    except errors.Refusal:
        return {}


def _readable(repository: pygit2.Repository, place: Repository, writer: Writer, root: str) -> str:
    """Return a tree of ours if all of it can be read, otherwise a new one with what remains of it."""
    read = functools.partial(_rows_that_exist, repository)
    rows, opened = _tree(repository, bytes.fromhex(root)), dict[str, _Kept]()
    _collect(read, rows, opened)
    table = _Table(root, rows, _group(next(iter(opened), "")), opened)
    try:
        _collect(functools.partial(_tree, repository), rows, {})
        for _ in _named(repository, table, ""):
            pass
    except errors.Refusal:
        remains = _with_remains(repository, place, writer.tree, _Table(None, {}, "", {}), table)
        root = writer.tree(remains.rows).hex()
        writer.flush()
    return root


@functools.lru_cache(maxsize=4)
def _read(repository: pygit2.Repository, root: str | None) -> _Table:
    """Return the table of a tree; an empty one if the object is not a tree.

    Refusal `git.object-missing` if it cannot be read: what is based on it would lose names.
    """
    rows: Mapping[str, Item] = {}
    opened: dict[str, _Kept] = {}
    try:
        if root is not None and repository.odb.read_header(pygit2.Oid(hex=root))[0] == ObjectType.TREE:
            rows = _tree(repository, bytes.fromhex(root))
    except (KeyError, ValueError, pygit2.GitError) as problem:
        raise _missing(str(root), problem) from problem
    _collect(functools.partial(_tree, repository), rows, opened)
    return _Table(root, rows, _group(next(iter(opened), "")), opened)


def _tree(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    """Return the rows of a tree of ours, or of a tree in it. Refusal `git.object-missing` if it cannot be read."""
    try:
        return tree_objects.rows(repository, oid)
    except (KeyError, ValueError, pygit2.GitError) as problem:
        raise _missing(oid.hex(), problem) from problem


def _missing(oid: str, problem: Exception) -> errors.Refusal:
    words = f"tree {oid} with the names of what idumb keeps is missing or damaged: {problem}"
    return errors.Refusal("git.object-missing", words, hint="idumb doctor --fix")


def _is_plain(row: str) -> bool:
    """Return whether a row of our tree is the name of what belongs to no run."""
    return row != _CLOSED and not row.startswith(_CHUNK) and not _ROW.match(row)


def _collect(read: _Read, rows: Mapping[str, Item], into: dict[str, _Kept]) -> None:
    """Add the names in these rows, and in the chunks among them; the newest object of a name counts."""
    for name, item in rows.items():
        if name.startswith(_CHUNK):
            _collect(read, read(item.oid), into)
        elif _ROW.match(name):
            kept = _Kept(int(name[:8], 16), item)
            into[name[9:]] = max(kept, into.get(name[9:], kept))


def _collect_folder(repository: pygit2.Repository, folder: Item, into: dict[str, _Kept]) -> None:
    _collect(functools.partial(_tree, repository), _tree(repository, folder.oid), into)


def _lookup(repository: pygit2.Repository, table: _Table, row: str) -> Item | None:
    group = _group(row)
    if not group:
        return table.rows.get(row)
    names = table.opened if group == table.group else _closed(repository, table, group)
    return names[row].item if row in names else None


def _named(repository: pygit2.Repository, table: _Table, start: str) -> Iterator[tuple[str, _Kept]]:
    """Yield the names that start so, in any order."""
    group = _group(f"{start}::")
    for row, item in table.rows.items():
        if row.startswith(start) and _is_plain(row):
            yield row, _Kept(0, item)
    yield from ((row, kept) for row, kept in table.opened.items() if row.startswith(start))
    for folder in _groups(repository, table, group if start.startswith(f"{group}:") else "").values():
        names: dict[str, _Kept] = {}
        _collect_folder(repository, folder, names)
        yield from ((row, kept) for row, kept in names.items() if row.startswith(start))


def _groups(repository: pygit2.Repository, table: _Table, only: str = "") -> Mapping[str, Item]:
    """Return the trees of the closed groups, or of one."""
    folders = _rows(repository, table.rows.get(_CLOSED))
    parts = [folders.get(_fan(only))] if only else folders.values()
    groups = {group: item for part in parts for group, item in _rows(repository, part).items()}
    return {only: groups[only]} if only in groups else {} if only else groups


def _closed(repository: pygit2.Repository, table: _Table, group: str) -> dict[str, _Kept]:
    names: dict[str, _Kept] = {}
    for folder in _groups(repository, table, group).values():
        _collect_folder(repository, folder, names)
    return names


def _rows(repository: pygit2.Repository, folder: Item | None) -> Mapping[str, Item]:
    return {} if folder is None else _tree(repository, folder.oid)


def _fan(group: str) -> str:
    return hashlib.sha256(group.encode("utf-8", "surrogateescape")).hexdigest()[:2]


def _with(
    repository: pygit2.Repository, write: _Write, table: _Table, row: str, item: Item
) -> tuple[_Table, Mapping[str, _Kept]]:
    """Return the table with a name, and what is to be added to its open group when the ref has moved."""
    group, rows = _group(row), dict(table.rows)
    if _lookup(repository, table, row) == item:
        return table, {}
    if not group:
        return table._replace(rows={**rows, row: item}), {}
    newest = max((int(name[:8], 16) for name in rows if _ROW.match(name)), default=0)
    if not _opens(group):
        names = _closed(repository, table, group)
        sequence = 1 + max([newest, *(kept.sequence for kept in names.values())])
        names[row] = _Kept(sequence, item)
        return table._replace(rows=_with_closed(repository, write, rows, group, _flat(names))), {}
    if group != table.group:
        table = _opened(repository, write, table, group)
        rows = dict(table.rows)
        newest = max([newest, *(kept.sequence for kept in table.opened.values())])
    kept = _Kept(newest + 1, item)
    if row in table.opened:
        rows.pop(f"{table.opened[row].sequence:08x}:{row}", None)
    _fold(write, rows)
    rows[f"{kept.sequence:08x}:{row}"] = item
    return table._replace(rows=rows), {row: kept}


def _without(repository: pygit2.Repository, write: _Write, table: _Table, row: str) -> _Table:
    group, rows = _group(row), dict(table.rows)
    if not group:
        rows.pop(row, None)
        return table._replace(rows=rows)
    if group == table.group:
        table = _opened(repository, write, table, "")
        rows = dict(table.rows)
    names = _closed(repository, table, group)
    names.pop(row, None)
    return table._replace(rows=_with_closed(repository, write, rows, group, _flat(names)))


def _flat(names: Mapping[str, _Kept]) -> Mapping[str, Item]:
    return {f"{kept.sequence:08x}:{row}": kept.item for row, kept in names.items()}


def _opened(repository: pygit2.Repository, write: _Write, table: _Table, group: str) -> _Table:
    """Return the table with another open group, or with none."""
    rows = {row: item for row, item in table.rows.items() if not row.startswith(_CHUNK) and not _ROW.match(row)}
    if table.opened:
        rows = _with_closed(repository, write, rows, table.group, _flat(table.opened))
    names: dict[str, _Kept] = {}
    for folder in _groups(repository, table, group).values() if group else ():
        _collect_folder(repository, folder, names)
        rows = _with_closed(repository, write, rows, group, {})
        rows[f"{_CHUNK}{_LEVELS}:{min(kept.sequence for kept in names.values()):08x}"] = folder
    return _Table(table.root, rows, group, names)


def _with_closed(
    repository: pygit2.Repository, write: _Write, rows: dict[str, Item], group: str, names: Mapping[str, Item]
) -> dict[str, Item]:
    """Return the rows with the tree of a closed group replaced; without it if it has no names."""
    folders = dict(_rows(repository, rows.get(_CLOSED)))
    part = dict(_rows(repository, folders.get(_fan(group))))
    for above, name, below in ((part, group, names), (folders, _fan(group), part), (rows, _CLOSED, folders)):
        above.pop(name, None)
        if below:
            above[name] = Item(FOLDER, write(below))
    return rows


def _fold(write: _Write, rows: dict[str, Item]) -> None:
    """Move full sets of rows into chunks."""
    full = sorted(filter(_ROW.match, rows))
    for level in range(1, _LEVELS + 1):
        if len(full) < _WIDTH:
            return
        first = full[0][:8] if level == 1 else full[0].partition(":")[2]
        rows[f"{_CHUNK}{level}:{first}"] = Item(FOLDER, write({name: rows.pop(name) for name in full}))
        full = sorted(name for name in rows if name.startswith(f"{_CHUNK}{level}:"))
