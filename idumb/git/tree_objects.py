"""Read stored trees and blobs: compare, combine and verify them. A comparison never opens subtrees that are equal."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pygit2
from pygit2.enums import ObjectType

from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry
from idumb.git import git_program
from idumb.git.open_repository import CheckedRepository, Damaged

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


def write(repository: pygit2.Repository, items: Rows) -> str:
    """Write a tree. Names are encoded like file names."""
    rows = [(entry.mode, os.fsencode(name), bytes.fromhex(entry.oid)) for name, entry in items.items()]
    # Git's order: folders sort as if their names ended with `/`.
    rows.sort(key=lambda row: row[1] + b"/" if row[0] == FOLDER else row[1])
    return str(repository.write(ObjectType.TREE, b"".join(b"%o %b\0%b" % row for row in rows)))


def tree_of(repository: pygit2.Repository, commit: str | None) -> str:
    """Return the id of a commit's tree, without opening the tree: its reader reports an unreadable one.

    Before the first commit, this is the empty tree.
    """
    return EMPTY_TREE if commit is None else str(repository[commit].peel(pygit2.Commit).tree_id)


@functools.lru_cache(maxsize=256)
def rows(repository: pygit2.Repository, tree: str) -> Rows:
    """Return the rows of one tree object. Raises KeyError if it is missing, GitError if it is damaged or no tree.

    Names are decoded like file names. Thousands of paths of one folder are looked up one after the other, and each task
    compares a tree with the same few, so the last ones are remembered.
    """
    if tree == EMPTY_TREE:
        return {}
    # `repository[...]` would parse the object, and then read it from disk again for its bytes.
    kind, data = repository.read(tree)
    found: dict[str, Entry] = {}
    here = 0
    try:
        while kind == ObjectType.TREE and here < len(data):
            space = data.index(b" ", here)
            end = data.index(b"\0", space)
            name = os.fsdecode(data[space + 1 : end])
            found[name] = Entry(int(data[here:space], 8), data[end + 1 : end + 21].hex())
            here = end + 21
    except ValueError as problem:
        raise Damaged(tree, str(problem)) from problem
    if kind != ObjectType.TREE or here != len(data):
        raise Damaged(tree, "it is no tree, or not all of one")
    return found


@functools.lru_cache(maxsize=8)
def changes(repository: pygit2.Repository, old: str, new: str) -> tuple[Change, ...]:
    """Return all files that differ, sorted. Uses a stack, because folders can nest deeper than Python recurses."""
    found: list[Change] = []
    stack: list[tuple[str, str | None, str | None]] = [("", old, new)]
    while stack:
        prefix, *sides = stack.pop()
        if sides[0] == sides[1]:
            continue
        before, after = (rows(repository, tree) if tree else {} for tree in sides)
        for name in before.keys() | after.keys():
            pair = before.get(name), after.get(name)
            if pair[0] == pair[1]:
                continue
            folders = [each.oid if each is not None and each.mode == FOLDER else None for each in pair]
            if any(folders):
                stack.append((f"{prefix}{name}/", folders[0], folders[1]))
            left, right = (None if folder else each for each, folder in zip(pair, folders, strict=True))
            if left != right:
                kind = CREATED if left is None else DELETED if right is None else MODIFIED
                found.append(Change(prefix + name, kind, left, right))
    return tuple(sorted(found, key=lambda change: change.path))


def at(repository: pygit2.Repository, tree: str, path: str) -> Entry | None:
    """Return the file, link, submodule or folder at a path; None if there is nothing."""
    found: Entry | None = Entry(FOLDER, tree)
    for part in filter(None, path.split("/")):
        if found is None or found.mode != FOLDER:
            return None
        found = rows(repository, found.oid).get(part)
    return found


def entry(repository: pygit2.Repository, tree: str, path: str) -> Entry | None:
    """Return the file at a path; None for folders and missing paths."""
    found = at(repository, tree, path)
    return None if found is None or found.mode == FOLDER else found


def overlay(repository: pygit2.Repository, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return `tree` with the paths of each (source, paths) as in that source, one source after the other.

    A file replaces a folder of the same name, and the reverse.
    """
    wanted: dict[str, Entry | None] = {}
    above = set[tuple[str, ...]]()
    for source, paths in sources:
        entries = {path: entry(repository, source, path) for path in paths}
        parts = {tuple(path.split("/")) for path in entries}
        if not above.isdisjoint(parts):  # written together, a folder wins over a file of its name
            tree, wanted, above = put(repository, tree, wanted), {}, set()
        wanted |= entries
        above.update(each[:depth] for each in parts for depth in range(1, len(each)))
    return put(repository, tree, wanted)


def put(repository: pygit2.Repository, tree: str, files: Mapping[str, Entry | None]) -> str:
    """Return `tree` with these files replaced, or removed where there is None."""
    return _put(repository, tree, {tuple(path.split("/")): file for path, file in files.items()}) or EMPTY_TREE


def _put(repository: pygit2.Repository, tree: str, files: _Wanted) -> str:
    """Return the tree; "" if it has no file."""
    items = dict(rows(repository, tree)) if tree else {}
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
        if written := _put(repository, folder, inner):
            items[name] = Entry(FOLDER, written)
        else:
            items.pop(name, None)
    return write(repository, items) if items else ""


def new_rows(repository: pygit2.Repository, old: str, new: str) -> Iterator[Entry]:
    """Yield the rows of the tree `new` that `old` does not have at the same path, a folder's before its content."""
    stack = [(old, new)]
    while stack:
        left, right = stack.pop()
        if left == right:
            continue
        before = _present_rows(repository, left)
        for name, found in rows(repository, right).items():
            other = before.get(name)
            if found != other:
                yield found
                if found.mode == FOLDER:
                    stack.append((other.oid if other and other.mode == FOLDER else "", found.oid))


def _present_rows(repository: pygit2.Repository, tree: str) -> Rows:
    """Return the rows of a tree; none if it is missing or damaged: a partial clone may lack trees of HEAD."""
    try:
        return rows(repository, tree) if tree else {}
    except (KeyError, pygit2.GitError):
        return {}


def is_stored(repository: CheckedRepository, oid: str, *, whole: bool = False) -> bool:
    """Find an object on disk; `whole` reads it and checks its hash."""
    try:
        if not whole:
            return os.stat(f"{repository.object_folders[0]}/{oid[:2]}/{oid[2:]}").st_size > 0
        repository.read(oid)
    except FileNotFoundError:
        return pygit2.Oid(hex=oid) in repository.odb
    except (KeyError, pygit2.GitError):
        return False
    return True


def store(git: Callable[[Sequence[str]], bytes], places: Sequence[str]) -> list[str]:
    """Store files as they are, durably; return their ids. `git` runs a command that must succeed."""
    command, oids = ("hash-object", "-w", "--no-filters", "--"), list[str]()
    for first in range(0, len(places), _AT_ONCE):
        oids += git([*command, *places[first : first + _AT_ONCE]]).decode("ascii").split()
    return oids


def pieces(repository: pygit2.Repository, root: str, oid: str) -> Iterator[bytes]:
    """Return a blob's bytes. git reads large blobs out, so only a piece of one is in memory at a time."""
    try:
        is_large = repository.odb.read_header(oid)[1] > LARGE
    except (KeyError, pygit2.GitError):
        is_large = False  # reading it tells what is wrong
    yield from git_program.stream(root, ["cat-file", "blob", oid]) if is_large else [repository.read(oid)[1]]
