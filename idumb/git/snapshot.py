"""Snapshot commits: the working tree's bytes, the index file and the state of HEAD, under a ref, read back.

A commit's tree holds `worktree/`, `index`, `staged/` (what only the index refers to), `refs` (the user's) and
`meta.json`. Git's hooks, signing and identity play no part.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pygit2

from idumb.app.ports.repository import Snapshot
from idumb.domain import canonical_json, errors
from idumb.domain.proof.ledger import Entry
from idumb.git import index_file
from idumb.git import refs as own_refs
from idumb.git.discover import Repository
from idumb.git.index_file import INDEX
from idumb.git.objects import tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, FOLDER, Item
from idumb.git.scan import ignores, nested_repositories, uncommitted
from idumb.git.scan.scanner import Inventory

WORKTREE, STAGED, REFS, META = "worktree", "staged", "refs", "meta.json"
_STATE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
_LISTED = 1000
UNREADABLE = "git.snapshot-unreadable"
_KEPT = 0o777  # do not restore set-user-id and similar bits: the restored file may have another owner

Noted = tuple[int, str, Mapping[str, Any]]
"""A snapshot's time, its tree, and what it records beside the tree."""


class Snapshots:
    """Makes snapshot commits in one repository, and remembers which trees it has verified on disk."""

    def __init__(self, place: Repository, objects: Repository, repository: pygit2.Repository, writer: Writer) -> None:
        self._place = place
        self._objects = objects
        self._repository = repository
        self._writer = writer
        self._folder = os.path.join(objects.common_dir, "objects")
        self._verified: bytes | None = None
        self._stored: dict[bytes, bytes] = {}
        self._index: tuple[ignores.Signature, Mapping[str, Item]] = ((), {})

    def take(
        self, ref: str, tree: str, reason: str, inventory: Inventory, nested: nested_repositories.Look | None
    ) -> Snapshot:
        """Make a snapshot of the scanned `tree`, of the index and the refs, and of changes in `nested` repositories."""
        head, branch = self._head_commit(), self._branch()
        in_progress = [name for name in _STATE if os.path.lexists(os.path.join(self._place.git_dir, name))]
        meta = {"head": head, "branch": branch, "in_progress": in_progress, **described(inventory)}
        index = self._index_items(head)
        # The commit records the branch that HEAD is on: most snapshots then share the same refs.
        refs = {name: at for name, at in own_refs.values(self._objects.common_dir).items() if name != branch}
        text = json.dumps(meta, sort_keys=True, ensure_ascii=True, indent=1)
        items = {
            WORKTREE: Item(FOLDER, bytes.fromhex(tree)),
            META: Item(FILE, self._writer.blob(text.encode("ascii"))),
            **index,
        }
        if refs:
            items[REFS] = Item(FILE, self._writer.blob(_as_bytes(refs)))
        if nested is not None:
            items[nested_repositories.FACTS] = Item(FILE, self._writer.blob(nested.as_json()))
            if nested.files:
                items[nested_repositories.KEPT] = Item(FOLDER, nested_repositories.tree(nested.files, self._writer))
        return self._commit(ref, tree, reason, items, head)

    def keep(self, ref: str, tree: str, reason: str, parent: str | None) -> Snapshot:
        """Commit a tree alone. The reason is in the commit message, so that an unchanged tree costs one object."""
        return self._commit(ref, tree, reason, {WORKTREE: Item(FOLDER, bytes.fromhex(tree))}, parent)

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        items = {name: Item(FILE, bytes.fromhex(oid)) for name, oid in blobs.items()}
        for name, item in items.items():
            if "/" in name or not name:
                message = f"a kept blob needs a plain name: {name!r}"
                raise ValueError(message)
            if not tree_objects.is_stored(self._repository, self._folder, item.oid):
                raise _unreadable(item.oid.hex())
        commit = self._write_commit(items, reason, None)
        own_refs.move(self._repository, self._objects, ref, commit)
        return commit

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        commit = own_refs.current(self._repository, ref)
        if commit is None:
            return {}
        return {name: item.oid.hex() for name, item in tree_objects.rows_of(self._repository, commit).items()}

    def tree_of(self, commit: str) -> str:
        """Return the working tree's tree of a snapshot commit."""
        return tree_objects.rows_of(self._repository, commit)[WORKTREE].oid.hex()

    def refs(self, commit: str) -> Mapping[str, str]:
        """Return the user's refs at the time of a snapshot, except the branch that HEAD was on."""
        item = tree_objects.rows_of(self._repository, commit).get(REFS)
        return {} if item is None else _of_bytes(self._repository[pygit2.Oid(item.oid)].read_raw())

    def skipped(self, commit: str) -> Mapping[str, str]:
        """Return what a snapshot does not have, and why; of a long list, only a part."""
        noted = _meta(self._repository, commit)
        skipped: Mapping[str, str] = noted[2].get("skipped", {}) if noted is not None else {}
        return skipped

    def inner(self, commit: str) -> tuple[dict[str, Any], Callable[[str], bool]]:
        """Return what a snapshot records of other repositories, and whether it has the bytes of a path in them."""
        items = tree_objects.rows_of(self._repository, commit)
        if nested_repositories.FACTS not in items:
            return {}, lambda _: False
        oid = pygit2.Oid(items[nested_repositories.FACTS].oid)
        facts: dict[str, Any] = json.loads(self._repository[oid].read_raw())
        if nested_repositories.KEPT not in items:
            return facts, lambda _: False
        kept = items[nested_repositories.KEPT].oid.hex()
        return facts, lambda path: tree_objects.entry(self._repository, kept, path) is not None

    def _commit(self, ref: str, tree: str, reason: str, items: dict[str, Item], parent: str | None) -> Snapshot:
        """Write a commit, read back from disk everything that is new since the last one, and move the ref."""
        commit = self._write_commit(items, reason, parent)
        worktree = bytes.fromhex(tree)
        trees = [(worktree, self._verified)]
        if nested_repositories.KEPT in items:
            trees.append((items[nested_repositories.KEPT].oid, None))
        damaged = tree_objects.damaged(self._repository, self._folder, bytes.fromhex(commit), trees)
        if damaged is not None:
            raise _unreadable(damaged)
        self._verified = worktree
        own_refs.move(self._repository, self._objects, ref, commit)
        return Snapshot(commit, tree, ref)

    def _write_commit(self, items: dict[str, Item], reason: str, parent: str | None) -> str:
        if items.get(WORKTREE, Item(0, b"")).oid.hex() == tree_objects.EMPTY_TREE:
            self._writer.tree({})
        commit = self._writer.commit(self._writer.tree(items), f"idumb: {reason}\n", [parent] if parent else [])
        self._writer.flush()
        return commit

    def _head_commit(self) -> str | None:
        return None if self._repository.head_is_unborn else str(self._repository.head.target)

    def _branch(self) -> str | None:
        symbolic = self._repository.lookup_reference("HEAD").raw_target
        return os.fsdecode(symbolic) if isinstance(symbolic, bytes) else None

    def _index_items(self, head: str | None) -> Mapping[str, Item]:
        """Return the index file, and the staged blobs; stored again only if the file changed."""
        path = os.path.join(self._place.git_dir, INDEX)
        present = ignores.signature([path])
        if self._index[0] != present:
            index = self._store_index(path)
            staged = None if index is None else self._store_staged(head)
            items = {INDEX: index, STAGED: staged}
            self._index = (present, {name: item for name, item in items.items() if item is not None})
        return self._index[1]

    def _store_staged(self, head: str | None) -> Item | None:
        """Return the blobs that only the index refers to.

        The index file names them, but no garbage collection asks it.
        """
        try:
            tree = tree_objects.tree_of(self._repository, head)
            if tree == tree_objects.EMPTY_TREE:
                self._writer.tree({})
            staged = uncommitted.staged_blobs(self._place, self._repository, tree)
        except (errors.Refusal, pygit2.GitError):
            return None  # an unreadable index refers to nothing; its bytes are stored all the same
        items = {oid: Item(FILE, bytes.fromhex(oid)) for oid in sorted(staged) if self._writer.existing(oid)}
        return Item(FOLDER, self._writer.tree(items)) if items else None

    def _store_index(self, path: str) -> Item | None:
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            return None
        pieces = list(index_file.pieces(data))
        if len(pieces) == 1:
            return Item(FILE, self._writer.blob(data))
        self._stored = {piece: self._stored.get(piece) or self._writer.blob(piece) for piece in pieces}
        items = {f"{number:06}": Item(FILE, self._stored[piece]) for number, piece in enumerate(pieces)}
        return Item(FOLDER, self._writer.tree(items))


def _unreadable(oid: str) -> errors.Refusal:
    return errors.Refusal(UNREADABLE, f"object {oid} of a snapshot is missing or damaged", hint="git fsck")


def described(inventory: Inventory) -> dict[str, Any]:
    """Record what a tree cannot hold: unusual modes, empty folders, and omitted paths. Long lists are cut."""
    facts = {
        "modes": {path: f"{bits:o}" for path, bits in inventory.modes.items()},
        "skipped": inventory.skipped,
        "empty_folders": inventory.empty,
        "changing": inventory.changing,
    }
    return {key: _cut(value) for key, value in facts.items() if value}


def _as_bytes(refs: Mapping[str, str]) -> bytes:
    """Return a line `VALUE NAME` per ref, sorted by name. Git's ref names contain no blank."""
    return b"".join(os.fsencode(f"{value} {name}\n") for name, value in sorted(refs.items()))


def _of_bytes(data: bytes) -> Mapping[str, str]:
    rows = (os.fsdecode(line).partition(" ") for line in data.splitlines())
    return {name: value for value, _, name in rows}


def _cut(value: Any) -> Any:
    if len(value) <= _LISTED:
        return value
    return dict(sorted(value.items())[:_LISTED]) if isinstance(value, dict) else value[:_LISTED]


class Manifest:
    """What the snapshots below a prefix of refs record beside trees: permission bits, and folders that were empty.

    Read on demand, newest first. `noted` caches what commits say between restores: there may be thousands, and they
    never change.
    """

    def __init__(self, repository: pygit2.Repository, prefix: str, noted: dict[str, Noted]) -> None:
        self._repository = repository
        self._prefix = prefix
        self._noted = noted

    def modes(self, entries: Mapping[str, Entry]) -> Mapping[str, int]:
        """Return the unusual bits of the wanted files, from the newest snapshot that holds exactly these files."""
        rest = dict(entries)
        unusual: dict[str, int] = {}
        if not rest:
            return unusual
        for tree, meta in self._snapshots:
            if not rest:
                break
            modes = meta.get("modes", {})
            held = [path for path, entry in rest.items() if tree_objects.entry(self._repository, tree, path) == entry]
            unusual.update((path, int(modes[path], 8) & _KEPT) for path in held if path in modes)
            for path in held:
                del rest[path]
        return unusual

    def was_empty(self, folder: str) -> bool:
        """Return whether the folder was empty when a snapshot was made: then it is the user's and not a task's work."""
        return folder in self._empty

    @functools.cached_property
    def _empty(self) -> frozenset[str]:
        return frozenset(folder.rstrip("/") for _, meta in self._snapshots for folder in meta.get("empty_folders", ()))

    @functools.cached_property
    def _snapshots(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return (tree, manifest), newest first."""
        return [(tree, meta) for _, tree, meta in sorted(self._read(), key=lambda row: row[0], reverse=True)]

    def _read(self) -> Iterator[Noted]:
        for name in self._repository.references:
            if not name.startswith(self._prefix):
                continue
            try:
                commit = str(self._repository.references[name].target)
                if commit not in self._noted:
                    meta = _meta(self._repository, commit)
                    if meta is None:
                        continue
                    self._noted[commit] = meta
                yield self._noted[commit]
            except (pygit2.GitError, KeyError, ValueError):
                continue  # `doctor` reports a damaged snapshot; here it has no manifest


def _meta(repository: pygit2.Repository, name: str) -> Noted | None:
    commit = repository[name].peel(pygit2.Commit)
    items = tree_objects.rows_of(repository, name)
    if META not in items or WORKTREE not in items:
        return None
    data = repository[pygit2.Oid(items[META].oid)].read_raw()
    return commit.commit_time, items[WORKTREE].oid.hex(), canonical_json.decode(data)
