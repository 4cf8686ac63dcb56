"""Git's tree objects as bytes: parse and write, with names as bytes end to end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

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
    """One row as it stands in a tree object."""
    return b"%o %b\0%b" % (mode, os.fsencode(name), oid)


def sort_key(row: bytes) -> bytes:
    """Git's order: folders as if their names ended with `/`."""
    mode, _, rest = row.partition(b" ")
    name = rest[: rest.index(b"\0")]
    return name + b"/" if mode == b"40000" else name


def join(rows: Iterable[bytes]) -> bytes:
    ordered: list[bytes] = sorted(rows, key=sort_key)
    return b"".join(ordered)


def from_items(items: dict[str, Item]) -> bytes:
    return join(line(item.mode, name, item.oid) for name, item in items.items())


def split(path: str) -> Iterator[str]:
    """The parts of a path; empty for the root."""
    return (part for part in path.split("/") if part)
