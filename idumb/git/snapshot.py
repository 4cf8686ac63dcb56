"""Snapshot commits: the working tree's bytes, the index file and the state of HEAD, under a ref, read back.

A commit's tree holds `worktree/`, `index`, `staged/` (what only the index refers to), `refs` (the user's) and
`meta.json`. Git's hooks, signing and identity play no part.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pygit2

from idumb.app.ports.repository import Snapshot
from idumb.domain import errors
from idumb.git.discover import Repository
from idumb.git.objects import tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, FOLDER, SUBMODULE, Item
from idumb.git.refs import refs as own_refs
from idumb.git.scan import ignores, nested_changes, uncommitted
from idumb.git.scan.walk import Folder

WORKTREE, INDEX, STAGED, REFS, META = "worktree", "index", "staged", "refs", "meta.json"
_STATE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
_LISTED = 1000
# A large index is stored in pieces cut by its own content, so that a small change writes little.
_WHOLE = 128 << 10
_SMALLEST = 16 << 10
_CUT = re.compile(rb"\x5a[\xa0-\xaf]")
UNREADABLE = "git.snapshot-unreadable"


class Snapshots:
    """Makes snapshot commits in one repository, and remembers which trees it has verified on disk."""

    def __init__(self, place: Repository, objects: Repository, repository: pygit2.Repository, writer: Writer) -> None:
        self._place = place
        self._objects = objects
        self._repository = repository
        self._writer = writer
        self._verified: bytes | None = None
        self._stored: dict[bytes, bytes] = {}
        self._index: tuple[ignores.Signature, Item | None] | None = None
        self._staged: Item | None = None

    def take(
        self, ref: str, tree: str, reason: str, top: Folder, within: nested_changes.Look | None = None
    ) -> Snapshot:
        """Make a snapshot of the scanned `tree`, and of the changes `within` other repositories."""
        items = self._items(tree, {**self._head(), **described(top)})
        index = self._index_item()
        if index is not None:
            items[INDEX] = index
            if self._staged is not None:
                items[STAGED] = self._staged
        present = own_refs.as_bytes(self._user_refs())
        if present:
            items[REFS] = Item(FILE, self._writer.blob(present))
        if within is not None:
            items[nested_changes.FACTS] = Item(FILE, self._writer.blob(within.as_json()))
            if within.files:
                items[nested_changes.KEPT] = Item(FOLDER, nested_changes.tree(within.files, self._writer.tree))
        return self._commit(ref, tree, reason, items, self._head_commit())

    def keep(self, ref: str, tree: str, reason: str, parent: str | None) -> Snapshot:
        """Commit a tree alone. The reason is in the commit message, so that an unchanged tree costs one object."""
        return self._commit(ref, tree, reason, {WORKTREE: Item(FOLDER, bytes.fromhex(tree))}, parent)

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        items = {name: Item(FILE, bytes.fromhex(oid)) for name, oid in blobs.items()}
        for name, item in items.items():
            if "/" in name or not name:
                message = f"a kept blob needs a plain name: {name!r}"
                raise ValueError(message)
            self._require(item.oid)
        commit = self._write_commit(items, reason, None)
        own_refs.move(self._repository, self._objects, ref, commit)
        return commit

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        commit = own_refs.current(self._repository, ref)
        if commit is None:
            return {}
        found = tree_objects.rows_of(self._repository, commit)
        return {name: item.oid.hex() for name, item in found.items()}

    def tree_of(self, commit: str) -> str:
        """Return the working tree's tree of a snapshot commit."""
        return tree_objects.rows_of(self._repository, commit)[WORKTREE].oid.hex()

    def refs(self, commit: str) -> Mapping[str, str]:
        """Return the user's refs at the time of a snapshot, except the branch that HEAD was on."""
        item = tree_objects.rows_of(self._repository, commit).get(REFS)
        return {} if item is None else own_refs.of_bytes(self._repository[pygit2.Oid(item.oid)].read_raw())

    def inner(self, commit: str) -> tuple[dict[str, Any], Callable[[str], bool]]:
        """Return what a snapshot records of other repositories, and whether it has the bytes of a path in them."""
        items = tree_objects.rows_of(self._repository, commit)
        if nested_changes.FACTS not in items:
            return {}, lambda _: False
        facts: dict[str, Any] = json.loads(self._repository[pygit2.Oid(items[nested_changes.FACTS].oid)].read_raw())
        if nested_changes.KEPT not in items:
            return facts, lambda _: False
        kept = items[nested_changes.KEPT].oid.hex()
        return facts, lambda path: tree_objects.entry(self._repository, kept, path) is not None

    def _items(self, tree: str, meta: Mapping[str, Any]) -> dict[str, Item]:
        text = json.dumps(meta, sort_keys=True, ensure_ascii=True, indent=1)
        oid = self._writer.blob(text.encode("ascii"))
        return {WORKTREE: Item(FOLDER, bytes.fromhex(tree)), META: Item(FILE, oid)}

    def _commit(self, ref: str, tree: str, reason: str, items: dict[str, Item], parent: str | None) -> Snapshot:
        commit = self._write_commit(items, reason, parent)
        self._read_back(commit, bytes.fromhex(tree))
        if nested_changes.KEPT in items:
            self._verify(items[nested_changes.KEPT].oid, None)
        own_refs.move(self._repository, self._objects, ref, commit)
        return Snapshot(commit, tree, ref)

    def _write_commit(self, items: dict[str, Item], reason: str, parent: str | None) -> str:
        if items.get(WORKTREE, Item(0, b"")).oid.hex() == tree_objects.EMPTY_TREE:
            self._writer.tree(b"")
        top = self._writer.tree(tree_objects.from_items(items))
        commit = self._writer.commit(top, f"idumb: {reason}\n", [parent] if parent else [])
        self._writer.flush()
        return commit

    def _read_back(self, commit: str, tree: bytes) -> None:
        """Read back from disk everything that is new since the last snapshot.

        Raises StoreError if anything is missing.
        """
        self._require(bytes.fromhex(commit), whole=True)
        self._verify(tree, self._verified)
        self._verified = tree

    def _verify(self, tree: bytes, known: bytes | None) -> None:
        """Verify every object of `tree` that is not in the tree verified before."""
        stack: list[tuple[bytes, bytes | None]] = [(tree, known)]
        while stack:
            new, old = stack.pop()
            if new == old:
                continue
            self._require(new, whole=True)
            before = tree_objects.rows(self._repository, old) if old else {}
            for name, item in tree_objects.rows(self._repository, new).items():
                earlier = before.get(name)
                if earlier == item or item.mode == SUBMODULE:
                    continue
                if item.mode == FOLDER:
                    stack.append((item.oid, earlier.oid if earlier and earlier.mode == FOLDER else None))
                else:
                    self._require(item.oid)

    def _require(self, oid: bytes, *, whole: bool = False) -> None:
        """Find an object on disk; `whole` reads it and checks its hash, bypassing libgit2's cache."""
        name = oid.hex()
        path = os.path.join(self._objects.common_dir, "objects", name[:2], name[2:])
        try:
            if not whole:
                if os.stat(path).st_size > 0:
                    return
            else:
                with open(path, "rb") as stream:
                    if hashlib.sha1(zlib.decompress(stream.read()), usedforsecurity=False).digest() == oid:
                        return
        except FileNotFoundError:
            if pygit2.Oid(oid) in self._repository.odb:
                return
        except zlib.error:
            pass
        raise errors.Refusal(UNREADABLE, f"object {name} of a snapshot is missing or damaged", hint="git fsck")

    def _head_commit(self) -> str | None:
        return None if self._repository.head_is_unborn else str(self._repository.head.target)

    def _head(self) -> dict[str, Any]:
        present = [name for name in _STATE if os.path.lexists(os.path.join(self._place.git_dir, name))]
        return {"head": self._head_commit(), "branch": self._branch(), "in_progress": present}

    def _user_refs(self) -> Mapping[str, str]:
        """Omit the branch that HEAD is on: the commit records it, and most snapshots then share the same refs."""
        own = self._branch()
        found = own_refs.values(self._objects.common_dir)
        return {name: value for name, value in found.items() if name != own}

    def _branch(self) -> str | None:
        symbolic = self._repository.lookup_reference("HEAD").raw_target
        return os.fsdecode(symbolic) if isinstance(symbolic, bytes) else None

    def _index_item(self) -> Item | None:
        path = os.path.join(self._place.git_dir, "index")
        present = ignores.signature([path])
        if self._index is None or self._index[0] != present:
            self._index = (present, self._store_index(path))
            self._staged = self._store_staged() if self._index[1] is not None else None
        return self._index[1]

    def _store_staged(self) -> Item | None:
        """Return the blobs that only the index refers to.

        The index file names them, but no garbage collection asks it.
        """
        try:
            tree = tree_objects.tree_of(self._repository, self._head_commit())
            if tree == tree_objects.EMPTY_TREE:
                self._writer.tree(b"")
            found = uncommitted.staged_blobs(self._place, self._repository, tree)
        except (errors.Refusal, pygit2.GitError):
            return None  # an unreadable index refers to nothing; its bytes are stored all the same
        kept = {oid: Item(FILE, bytes.fromhex(oid)) for oid in sorted(found) if self._writer.existing(oid)}
        return Item(FOLDER, self._writer.tree(tree_objects.from_items(kept))) if kept else None

    def _store_index(self, path: str) -> Item | None:
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            return None
        if len(data) <= _WHOLE:
            return Item(FILE, self._writer.blob(data))
        pieces = list(_pieces(data))
        self._stored = {piece: self._stored.get(piece) or self._writer.blob(piece) for piece in pieces}
        items = {f"{number:06}": Item(FILE, self._stored[piece]) for number, piece in enumerate(pieces)}
        return Item(FOLDER, self._writer.tree(tree_objects.from_items(items)))


def described(top: Folder) -> dict[str, Any]:
    """Record what a tree cannot hold: unusual modes, empty folders, and omitted paths. Long lists are cut."""
    modes: dict[str, str] = {}
    skipped: dict[str, str] = {}
    empty: list[str] = []
    unsteady: list[str] = []
    for prefix, folder in top.below():
        modes.update((prefix + name, f"{bits:o}") for name, bits in folder.odd.items())
        skipped.update((prefix + name, why) for name, why in folder.skipped.items())
        unsteady.extend(prefix + name for name in folder.unsteady)
        if prefix and folder.tree == b"" and not folder.folders:
            empty.append(prefix)
    named = {"modes": modes, "skipped": skipped, "empty_folders": sorted(empty), "changing": sorted(unsteady)}
    return {key: _cut(value) for key, value in named.items() if value}


def _pieces(data: bytes) -> Iterator[bytes]:
    """Split the data into pieces of 16 KiB and more; the object ids in an index make the cuts as good as random."""
    start = 0
    for match in _CUT.finditer(data):
        if match.start() - start >= _SMALLEST:
            yield data[start : match.start()]
            start = match.start()
    yield data[start:]


def _cut(value: Any) -> Any:
    if len(value) <= _LISTED:
        return value
    return dict(sorted(value.items())[:_LISTED]) if isinstance(value, dict) else value[:_LISTED]
