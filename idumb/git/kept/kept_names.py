"""The names of what idumb keeps: one tree for each working tree, which one ref keeps.

A ref for each snapshot would slow git down, and `git log --all` would show each as a commit. So a name such as
`refs/idumb/worktrees/main/runs/R/T1-01/1/base` is a row of our tree (`kept_table`), and a snapshot is a tree. Commits
have refs of their own under such names, as the snapshots of earlier versions of idumb do; they are found here too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import pygit2
from pygit2.enums import ObjectType

from idumb.domain import errors
from idumb.git import open_repository, refs
from idumb.git.discover import Repository
from idumb.git.kept import kept_repair, kept_table
from idumb.git.kept.kept_table import Kept, Table, Write
from idumb.git.objects import object_writer
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, FOLDER, Item

_WORKTREES = f"{refs.PREFIX}worktrees/"
_ROLES = "roles"
_TRIES = 5


class _Damaged(Protocol):
    def __call__(self, *, trusting: bool) -> str | None: ...


# The tables that this process wrote last, by shared git folder and working tree.
_tables: dict[tuple[str, str], Table] = {}


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
    yield from (table.rows[row].oid.hex() for row in sorted(filter(kept_table.ROW.match, table.rows), reverse=True))
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

    def change(before: Table) -> tuple[Table, Mapping[str, Kept]]:
        return _with(repository, writer.tree, before, row, item)

    return _move(repository, place, writer, worktree, change, damaged, reason)


def keep(repository: pygit2.Repository, place: Repository, writer: Writer, name: str, oid: str) -> None:
    """Give an existing object a name: a ref, if it is a commit or a tag. Refusal `git.ref-moved` if it is missing.

    The ref of a tree of ours keeps the names that it has, and gets those that it lacks. Of trees with parts that
    cannot be read, it then names what remains.
    """
    try:
        kind = repository.odb.read_header(pygit2.Oid(hex=oid))[0]
    except (KeyError, ValueError, pygit2.GitError) as problem:
        words = f"{name} could not be kept: object {oid} does not exist"
        raise errors.Refusal("git.ref-moved", words, hint="idumb doctor") from problem
    if name.startswith(refs.ROOTS) and kind == ObjectType.TREE:
        if not _add_missing(repository, place, writer, name, oid):
            refs.move(repository, place, name, _readable(repository, place, writer, oid))
    elif kind in (ObjectType.COMMIT, ObjectType.TAG) or name.startswith(refs.ROOTS):
        refs.move(repository, place, name, oid)
    else:
        mode = FOLDER if kind == ObjectType.TREE else FILE
        put(repository, place, writer, name, Item(mode, bytes.fromhex(oid)), reason="keep")


def missing(repository: pygit2.Repository, place: Repository, ref: str, root: str) -> dict[str, str]:
    """Return the names in an earlier tree of ours that the tree of its ref lacks, and whose objects exist.

    Refusal `git.object-missing` if a part of either cannot be read.
    """
    worktree = ref.removeprefix(refs.ROOTS)
    present = _present(repository, place, worktree)
    lost = _missing(repository, place, present, root)
    return {f"{_WORKTREES}{worktree}/{row.replace(':', '/')}": item.oid.hex() for row, item in lost}


def _missing(repository: pygit2.Repository, place: Repository, present: Table, root: str) -> list[tuple[str, Item]]:
    """Return row names and objects, the oldest first."""
    rows = kept_table.tree(repository, bytes.fromhex(root))
    names = kept_repair.differing(repository, rows, present.rows)
    closed = functools.cache(functools.partial(kept_table.closed, repository, present))
    odb = open_repository.repository(place).odb  # libgit2 would answer from its memory

    def is_missing(row: str, item: Item) -> bool:
        group = _group(row)
        there = present.rows if not group else present.opened if group == present.group else closed(group)
        return row not in there and pygit2.Oid(item.oid) in odb

    by_age = sorted(names.items(), key=lambda named: named[1].sequence)
    return [(row, kept.item) for row, kept in by_age if is_missing(row, kept.item)]


def _add_missing(repository: pygit2.Repository, place: Repository, writer: Writer, ref: str, root: str) -> bool:
    """Give the names in an earlier tree to its ref. Return False if the ref has no other tree that can be read."""
    worktree = ref.removeprefix(refs.ROOTS)
    try:
        present = _present(repository, place, worktree)
        if present.root in (None, root):
            return False
        lost = _missing(repository, place, present, root)
    except errors.Refusal:
        return False

    def change(before: Table) -> tuple[Table, Mapping[str, Kept]]:
        before = before._replace(opened=dict(before.opened))
        return _with_all(repository, writer.tree, before, lost), {}

    _move(repository, place, writer, worktree, change, lambda *, trusting: None, "restore")  # noqa: ARG005
    return True


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

    def change(before: Table) -> tuple[Table, Mapping[str, Kept]]:
        return _without(repository, writer.tree, before, row), {}

    _move(repository, place, writer, worktree, change, lambda *, trusting: None, "drop")  # noqa: ARG005


def _move(
    repository: pygit2.Repository,
    place: Repository,
    writer: Writer,
    worktree: str,
    change: Callable[[Table], tuple[Table, Mapping[str, Kept]]],
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
            raise object_writer.unreadable(oid)
        if refs.replace(repository, place, ref, before.root, root, reason):
            if before.root is not None and root != before.root:
                writer.moved.append((before.root, root))
            after.opened.update(added)
            _tables[key] = after._replace(root=root)
            if len(writer.loose) >= object_writer.MANY:
                from idumb.git.kept import kept_packs  # most runs are too short for it

                kept_packs.pack(place, repository, writer)
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
    at = next((n for n, part in enumerate(parts[:-2]) if part in (kept_table.RUNS, _ROLES)), None)
    return "" if at is None else ":".join(parts[: at + 2])


def _opens(group: str) -> bool:
    """Return whether many names of this group are expected."""
    return kept_table.RUNS in group.split(":")


def _worktrees(place: Repository) -> list[str]:
    """Return the working trees of which something is kept; `doctor` reports a damaged ref."""
    return [
        name.removeprefix(refs.ROOTS)
        for name, root in refs.own(place.common_dir, refs.ROOTS).items()
        if len(root) == 40
    ]


def _present(repository: pygit2.Repository, place: Repository, worktree: str) -> Table:
    """Return the table as its ref is now."""
    known = _tables.get((place.common_dir, worktree))
    root = refs.current(repository, refs.ROOTS + worktree)
    return known if known is not None and known.root == root else _read(repository, root)


def _joined(repository: pygit2.Repository, place: Repository, write: Write, worktree: str) -> Table:
    """Return the table as its ref is now, with all names that this process knows.

    An agent can set the ref back to an earlier tree; a change must then lose nothing that was kept since.
    """
    known, present = _tables.get((place.common_dir, worktree)), _present(repository, place, worktree)
    if known is present:
        return present
    joined = present._replace(opened=dict(present.opened))
    return joined if known is None else _with_all(repository, write, joined, kept_repair.remains(place, known))


def _with_all(repository: pygit2.Repository, write: Write, table: Table, names: Iterable[tuple[str, Item]]) -> Table:
    """Return the table with the names that it does not have yet."""
    for row, item in names:
        if _lookup(repository, table, row) is None:
            table, added = _with(repository, write, table, row, item)
            table.opened.update(added)
    return table


def _readable(repository: pygit2.Repository, place: Repository, writer: Writer, root: str) -> str:
    """Return a tree of ours if all of it can be read, otherwise a new one with what remains of it."""
    table = kept_repair.readable(repository, root)
    if kept_repair.is_whole(repository, table):
        return root
    names = kept_repair.remains(place, table)
    rest = _with_all(repository, writer.tree, Table(None, {}, "", {}), names)
    root = writer.tree(rest.rows).hex()
    writer.flush()
    return root


@functools.lru_cache(maxsize=4)
def _read(repository: pygit2.Repository, root: str | None) -> Table:
    """Return the table of a tree; an empty one if the object is not a tree.

    Refusal `git.object-missing` if it cannot be read: what is based on it would lose names.
    """
    rows: Mapping[str, Item] = {}
    opened: dict[str, Kept] = {}
    try:
        if root is not None and repository.odb.read_header(pygit2.Oid(hex=root))[0] == ObjectType.TREE:
            rows = kept_table.tree(repository, bytes.fromhex(root))
    except (KeyError, ValueError, pygit2.GitError) as problem:
        raise kept_table.missing(str(root), problem) from problem
    kept_table.collect(functools.partial(kept_table.tree, repository), rows, opened)
    return Table(root, rows, _group(next(iter(opened), "")), opened)


def _lookup(repository: pygit2.Repository, table: Table, row: str) -> Item | None:
    group = _group(row)
    if not group:
        return table.rows.get(row)
    names = table.opened if group == table.group else kept_table.closed(repository, table, group)
    return names[row].item if row in names else None


def _named(repository: pygit2.Repository, table: Table, start: str) -> Iterator[tuple[str, Kept]]:
    """Yield the names that start so, in any order."""
    group = _group(f"{start}::")
    for row, item in table.rows.items():
        if row.startswith(start) and kept_table.is_plain(row):
            yield row, Kept(0, item)
    yield from ((row, kept) for row, kept in table.opened.items() if row.startswith(start))
    for folder in kept_table.groups(repository, table, group if start.startswith(f"{group}:") else "").values():
        names: dict[str, Kept] = {}
        kept_table.collect_folder(repository, folder, names)
        yield from ((row, kept) for row, kept in names.items() if row.startswith(start))


def _with(
    repository: pygit2.Repository, write: Write, table: Table, row: str, item: Item
) -> tuple[Table, Mapping[str, Kept]]:
    """Return the table with a name, and what is to be added to its open group when the ref has moved."""
    group, rows = _group(row), dict(table.rows)
    if _lookup(repository, table, row) == item:
        return table, {}
    if not group:
        return table._replace(rows={**rows, row: item}), {}
    newest = max((int(name[:8], 16) for name in rows if kept_table.ROW.match(name)), default=0)
    if not _opens(group):
        names = kept_table.closed(repository, table, group)
        sequence = 1 + max([newest, *(kept.sequence for kept in names.values())])
        names[row] = Kept(sequence, item)
        return table._replace(rows=kept_table.with_closed(repository, write, rows, group, kept_table.flat(names))), {}
    if group != table.group:
        table = kept_table.opened(repository, write, table, group)
        rows = dict(table.rows)
        newest = max([newest, *(kept.sequence for kept in table.opened.values())])
    kept = Kept(newest + 1, item)
    if row in table.opened:
        rows.pop(f"{table.opened[row].sequence:08x}:{row}", None)
    _fold(write, rows)
    rows[f"{kept.sequence:08x}:{row}"] = item
    return table._replace(rows=rows), {row: kept}


def _without(repository: pygit2.Repository, write: Write, table: Table, row: str) -> Table:
    group, rows = _group(row), dict(table.rows)
    if not group:
        rows.pop(row, None)
        return table._replace(rows=rows)
    if group == table.group:
        table = kept_table.opened(repository, write, table, "")
        rows = dict(table.rows)
    names = kept_table.closed(repository, table, group)
    names.pop(row, None)
    return table._replace(rows=kept_table.with_closed(repository, write, rows, group, kept_table.flat(names)))


def _fold(write: Write, rows: dict[str, Item]) -> None:
    """Move full sets of rows into chunks."""
    full = sorted(filter(kept_table.ROW.match, rows))
    for level in range(1, kept_table.LEVELS + 1):
        if len(full) < kept_table.WIDTH:
            return
        first = full[0][:8] if level == 1 else full[0].partition(":")[2]
        rows[f"{kept_table.CHUNK}{level}:{first}"] = Item(FOLDER, write({name: rows.pop(name) for name in full}))
        full = sorted(name for name in rows if name.startswith(f"{kept_table.CHUNK}{level}:"))
