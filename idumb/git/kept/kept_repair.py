"""What can still be read of a tree of names that is damaged, or that its ref does not name any more."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import pygit2

from idumb.domain import errors
from idumb.git import open_repository
from idumb.git.discover import Repository
from idumb.git.kept import kept_table
from idumb.git.kept.kept_table import Kept, Table
from idumb.git.objects.tree_objects import Item


def remains(place: Repository, lost: Table) -> list[tuple[str, Item]]:
    """Return the names of a table whose objects still exist, the oldest first.

    `git gc` fails in a repository in which a ref reaches a missing object.
    """
    present = open_repository.repository(place)  # libgit2 would answer from its memory
    read = functools.partial(_rows_that_exist, present)
    names = {row: Kept(0, item) for row, item in lost.rows.items() if kept_table.is_plain(row)} | lost.opened
    closed = lost.rows.get(kept_table.CLOSED)
    for part in read(closed.oid).values() if closed is not None else ():
        for folder in read(part.oid).values():
            kept_table.collect(read, read(folder.oid), names)
    by_age = sorted(names.items(), key=lambda named: named[1].sequence)
    return [(row, kept.item) for row, kept in by_age if pygit2.Oid(kept.item.oid) in present.odb]


def differing(repository: pygit2.Repository, before: Mapping[str, Item], after: Mapping[str, Item]) -> dict[str, Kept]:
    """Return the names in the rows of an earlier tree, without those in chunks and groups that the later one has too.

    Refusal `git.object-missing` if a part of either cannot be read.
    """
    read = functools.partial(kept_table.tree, repository)
    rows = {name: item for name, item in before.items() if after.get(name) != item}
    names = {row: Kept(0, item) for row, item in rows.items() if kept_table.is_plain(row)}
    kept_table.collect(read, rows, names)
    closed = rows.get(kept_table.CLOSED)
    parts = read(closed.oid) if closed is not None else {}
    present = read(after[kept_table.CLOSED].oid) if kept_table.CLOSED in after else {}
    for part, item in parts.items():
        if present.get(part) != item:
            theirs = read(present[part].oid) if part in present else {}
            for group, folder in read(item.oid).items():
                if theirs.get(group) != folder:
                    kept_table.collect(read, read(folder.oid), names)
    return names


def readable(repository: pygit2.Repository, root: str) -> Table:
    """Return the table of a tree without the chunks that cannot be read. Its group stays open."""
    rows, opened = kept_table.tree(repository, bytes.fromhex(root)), dict[str, Kept]()
    kept_table.collect(functools.partial(_rows_that_exist, repository), rows, opened)
    return Table(root, rows, "", opened)


def is_whole(repository: pygit2.Repository, table: Table) -> bool:
    """Return whether all trees with names can be read."""
    try:
        kept_table.collect(functools.partial(kept_table.tree, repository), table.rows, {})
        for folder in kept_table.groups(repository, table).values():
            kept_table.collect_folder(repository, folder, {})
    except errors.Refusal:
        return False
    return True


def _rows_that_exist(repository: pygit2.Repository, oid: bytes) -> Mapping[str, Item]:
    try:
        return kept_table.tree(repository, oid)
    except errors.Refusal:
        return {}
