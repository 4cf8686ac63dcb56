"""Read stored trees and blobs: compare, combine and verify them. A comparison never opens subtrees that are equal."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry
from idumb.git import git_program
from idumb.git.objects import COMMIT, TREE, Damaged, Objects

FOLDER = 0o40000
FILE = 0o100644
PROGRAM = 0o100755
LINK = 0o120000
SUBMODULE = 0o160000

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
LARGE = 32 << 20
"""Larger blobs are read and written in pieces."""

_AT_ONCE = 500  # files on a command line

Rows = Mapping[str, Entry]
_Wanted = Mapping[tuple[str, ...], Entry | None]


def write(objects: Objects, items: Rows) -> str:
    """Store a tree. Names are encoded like file names."""
    rows = [(entry.mode, os.fsencode(name), bytes.fromhex(entry.oid)) for name, entry in items.items()]
    # Git's order: folders sort as if their names ended with `/`.
    rows.sort(key=lambda row: row[1] + b"/" if row[0] == FOLDER else row[1])
    return objects.write(TREE, b"".join(b"%o %b\0%b" % row for row in rows))


def tree_of(objects: Objects, commit: str | None) -> str:
    """Return the id of a commit's tree, without opening the tree: its reader reports an unreadable one.

    Before the first commit, this is the empty tree.
    """
    if commit is None:
        return EMPTY_TREE
    kind, data = objects.read(commit)
    if kind != COMMIT:
        raise Damaged(commit, f"is no commit, but a {kind}")
    return data.partition(b"\n")[0].removeprefix(b"tree ").decode("ascii")


@functools.lru_cache(maxsize=256)
def rows(objects: Objects, tree: str) -> Rows:
    """Return the rows of one tree object. Raises Missing, or Damaged also if it is no tree.

    Names are decoded like file names. Thousands of paths of one folder are looked up one after the other, and each task
    compares a tree with the same few, so the last ones are remembered.
    """
    if tree == EMPTY_TREE:
        return {}
    kind, data = objects.read(tree)
    found: dict[str, Entry] = {}
    here = 0
    try:
        while kind == TREE and here < len(data):
            space = data.index(b" ", here)
            end = data.index(b"\0", space)
            name = os.fsdecode(data[space + 1 : end])
            found[name] = Entry(int(data[here:space], 8), data[end + 1 : end + 21].hex())
            here = end + 21
    except ValueError as problem:
        raise Damaged(tree, f"is damaged: {problem}") from problem
    if kind != TREE or here != len(data):
        raise Damaged(tree, "is no tree, or not all of one")
    return found


@functools.lru_cache(maxsize=8)
def changes(objects: Objects, old: str, new: str) -> tuple[Change, ...]:
    """Return all files that differ, sorted. Raises Missing or Damaged."""
    if old == new:
        return ()
    arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new]
    result = git_program.read(objects.place.root, arguments, extra={"GIT_DIR": objects.place.git_dir})
    if result.status != 0:
        for tree in (old, new):
            rows(objects, tree)
        raise Damaged(new, f"cannot be compared: {result.words}")
    found = []
    for _, path, before, after in raw_rows(result.out):
        kind = CREATED if before is None else DELETED if after is None else MODIFIED
        found.append(Change(path, kind, before, after))
    return tuple(sorted(found, key=lambda change: change.path))


def raw_rows(listed: bytes) -> Iterator[tuple[str, str, Entry | None, Entry | None]]:
    """Yield git's letter, the path and both entries of each change that git lists with `--raw -z --no-abbrev`."""
    fields = listed.split(b"\0")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        *modes, old, new, letter = about.decode("ascii").removeprefix(":").split(" ")
        before, after = (
            Entry(int(mode, 8), oid) if int(mode, 8) else None for mode, oid in zip(modes, (old, new), strict=True)
        )
        yield letter, os.fsdecode(path), before, after


def at(objects: Objects, tree: str, path: str) -> Entry | None:
    """Return the file, link, submodule or folder at a path; None if there is nothing."""
    found: Entry | None = Entry(FOLDER, tree)
    for part in filter(None, path.split("/")):
        if found is None or found.mode != FOLDER:
            return None
        found = rows(objects, found.oid).get(part)
    return found


def entry(objects: Objects, tree: str, path: str) -> Entry | None:
    """Return the file at a path; None for folders and missing paths."""
    found = at(objects, tree, path)
    return None if found is None or found.mode == FOLDER else found


def overlay(objects: Objects, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return `tree` with the paths of each (source, paths) as in that source, one source after the other.

    A file replaces a folder of the same name, and the reverse.
    """
    wanted: dict[str, Entry | None] = {}
    above = set[tuple[str, ...]]()
    for source, paths in sources:
        entries = {path: entry(objects, source, path) for path in paths}
        parts = {tuple(path.split("/")) for path in entries}
        if not above.isdisjoint(parts):  # written together, a folder wins over a file of its name
            tree, wanted, above = put(objects, tree, wanted), {}, set()
        wanted |= entries
        above.update(each[:depth] for each in parts for depth in range(1, len(each)))
    return put(objects, tree, wanted)


def put(objects: Objects, tree: str, files: Mapping[str, Entry | None]) -> str:
    """Return `tree` with these files replaced, or removed where there is None."""
    return _put(objects, tree, {tuple(path.split("/")): file for path, file in files.items()}) or EMPTY_TREE


def _put(objects: Objects, tree: str, files: _Wanted) -> str:
    """Return the tree; "" if it has no file."""
    items = dict(rows(objects, tree)) if tree else {}
    below: dict[str, dict[tuple[str, ...], Entry | None]] = {}
    for (name, *rest), file in files.items():
        if rest:
            below.setdefault(name, {})[tuple(rest)] = file
        elif file is not None:
            items[name] = file
        elif name in items and items[name].mode != FOLDER:
            del items[name]
    for name, inner in below.items():
        present = items.get(name)
        folder = present.oid if present is not None and present.mode == FOLDER else ""
        if not folder and not any(inner.values()):
            continue
        if written := _put(objects, folder, inner):
            items[name] = Entry(FOLDER, written)
        else:
            items.pop(name, None)
    return write(objects, items) if items else ""


def store(git: Callable[[Sequence[str]], bytes], places: Sequence[str]) -> list[str]:
    """Store files as they are, durably; return their ids. `git` runs a command that must succeed."""
    command, oids = ("hash-object", "-w", "--no-filters", "--"), list[str]()
    for first in range(0, len(places), _AT_ONCE):
        oids += git([*command, *places[first : first + _AT_ONCE]]).decode("ascii").split()
    return oids


def pieces(objects: Objects, oid: str) -> Iterator[bytes]:
    """Return a blob's bytes. git reads large blobs out, so only a piece of one is in memory at a time."""
    is_large = objects.about(oid)[1] > LARGE
    yield from git_program.stream(objects.place.root, ["cat-file", "blob", oid]) if is_large else [objects.read(oid)[1]]
