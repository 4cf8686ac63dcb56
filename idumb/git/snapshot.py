"""Snapshots: the working tree's bytes, the index file and the state of HEAD, in a tree with a name, read back.

A snapshot's tree holds `worktree/`, `index`, `staged/` (what only the index refers to), `head/` (the tree of HEAD, to
which the index refers too), `refs` (the user's) and `meta.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import pygit2

from idumb.app.ports.repository import Snapshot
from idumb.domain import canonical_json, errors
from idumb.git import guarded_files, index_file, names, nested_repositories, open_repository, status
from idumb.git import refs as own_refs
from idumb.git.discover import Repository
from idumb.git.index_file import INDEX
from idumb.git.objects import durable_files, object_writer, tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.objects.tree_objects import FILE, FOLDER, Item
from idumb.git.shadow import Shadow

WORKTREE, STAGED, HEAD, REFS, META = "worktree", "staged", "head", "refs", "meta.json"
_STATE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
_LISTED = 1000

Noted = tuple[str, Mapping[str, Any]]
"""A snapshot's tree of files, and what it records beside them."""


class Snapshots:
    """Makes snapshots in one repository, and remembers which trees it has verified on disk."""

    def __init__(
        self, place: Repository, objects: Repository, repository: pygit2.Repository, writer: Writer, shadow: Shadow
    ) -> None:
        self._place = place
        self._objects = objects
        self._repository = repository
        self._writer = writer
        self._folder = os.path.join(objects.common_dir, "objects")
        self._shadow = shadow
        self._head: str | None = None
        self._index: tuple[tuple[int, ...] | None, Mapping[str, Item]] = ((), {})

    def take(
        self, ref: str, tree: str, reason: str, omitted: Mapping[str, str], nested: nested_repositories.Look | None
    ) -> Snapshot:
        """Make a snapshot of the scanned `tree`, of the index and the refs, and of changes in `nested` repositories.

        `omitted` are paths that the scan left out, and why; of a long list, the snapshot has a part.
        """
        head, branch = open_repository.head_of(self._repository), open_repository.branch_of(self._repository)
        in_progress = [name for name in _STATE if os.path.lexists(os.path.join(self._place.git_dir, name))]
        meta: dict[str, Any] = {"head": head, "branch": branch, "in_progress": in_progress}
        meta |= {"omitted": dict(sorted(omitted.items())[:_LISTED])} if omitted else {}
        index = self._index_items(head)
        # `head` is that branch's value: most snapshots then share the same refs.
        refs = {name: at for name, at in own_refs.of_user(self._objects.common_dir).items() if name != branch}
        text = json.dumps(meta, sort_keys=True)  # with `indent`, each call leaves cycles to the garbage collector
        items = {
            WORKTREE: Item(FOLDER, bytes.fromhex(tree)),
            META: Item(FILE, self._writer.blob(text.encode("ascii"))),
            **index,
        }
        if head is not None:
            items[HEAD] = Item(FOLDER, self._repository[head].peel(pygit2.Commit).tree_id.raw)
        if refs:
            items[REFS] = Item(FILE, self._writer.blob(_as_bytes(refs)))
        if nested is not None:
            items[nested_repositories.FACTS] = Item(FILE, self._writer.blob(nested.as_json()))
            if nested.files:
                kept = tree_objects.put(self._repository, self._writer.tree, tree_objects.EMPTY_TREE, nested.files)
                items[nested_repositories.KEPT] = Item(FOLDER, bytes.fromhex(kept))
        if head is not None:
            self._keep_head(head)
        return self._keep(ref, tree, reason, items)

    def _keep_head(self, head: str) -> None:
        """Keep HEAD, which a tree cannot: an agent could rewrite history, and remove what no ref reaches.

        Where history was rewritten since the last snapshot, what HEAD was then keeps a ref too.
        """
        if head == self._head:
            return
        place, repository = self._objects, self._repository
        below = f"{own_refs.PREFIX}worktrees/{place.worktree_id}/"
        last = own_refs.current(repository, below + "head")
        self._head = head
        if last == head:
            return
        if last is not None and last in repository and not repository.descendant_of(head, last):
            own_refs.move(repository, place, f"{below}former/{last[:16]}", last)
        own_refs.move(repository, place, below + "head", head)

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        """Keep a tree of files alone."""
        return self._keep(ref, tree, reason, {WORKTREE: Item(FOLDER, bytes.fromhex(tree))})

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        items = {name: Item(FILE, bytes.fromhex(oid)) for name, oid in blobs.items()}
        for name, item in items.items():
            if "/" in name or not name:
                message = f"a kept blob needs a plain name: {name!r}"
                raise ValueError(message)
            if not tree_objects.is_stored(self._repository, self._folder, item.oid):
                raise object_writer.unreadable(item.oid.hex())
        oid = self._writer.tree(items).hex()
        names.put(self._repository, self._objects, ref, oid, reason)
        return oid

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        kept = names.find(self._repository, ref)
        if kept is None:
            return {}
        return {name: item.oid.hex() for name, item in tree_objects.rows_of(self._repository, kept).items()}

    def tree_of(self, snapshot: str) -> str:
        """Return the tree of the working tree's files in a snapshot."""
        return tree_objects.rows_of(self._repository, snapshot)[WORKTREE].oid.hex()

    def refs(self, snapshot: str) -> Mapping[str, str]:
        """Return the user's refs at the time of a snapshot, except the branch that HEAD was on."""
        item = tree_objects.rows_of(self._repository, snapshot).get(REFS)
        return {} if item is None else _of_bytes(self._repository.read(pygit2.Oid(item.oid))[1])

    def inner(self, snapshot: str) -> tuple[dict[str, Any], Callable[[str], bool]]:
        """Return what a snapshot records of other repositories, and whether it has the bytes of a path in them."""
        items = tree_objects.rows_of(self._repository, snapshot)
        if nested_repositories.FACTS not in items:
            return {}, lambda _: False
        oid = pygit2.Oid(items[nested_repositories.FACTS].oid)
        facts: dict[str, Any] = json.loads(self._repository.read(oid)[1])
        if nested_repositories.KEPT not in items:
            return facts, lambda _: False
        kept = items[nested_repositories.KEPT].oid.hex()
        return facts, lambda path: tree_objects.entry(self._repository, kept, path) is not None

    def _keep(self, ref: str, tree: str, reason: str, items: dict[str, Item]) -> Snapshot:
        """Write a snapshot, read back from disk everything that is new since the last one, and give it its name."""
        if tree == tree_objects.EMPTY_TREE:
            self._writer.tree({})
        oid = self._writer.tree(items)
        new: set[str] = set()
        if (lost := self._lost(oid, items, new)) is not None:
            raise object_writer.unreadable(lost)
        durable_files.force_objects(self._folder, new)
        names.put(self._repository, self._objects, ref, oid.hex(), reason)
        # A `git gc --prune=now` that began before the ref moved may have removed what it did not see.
        self._writer.see_packs()
        if (lost := self._lost(oid, items)) is not None:
            raise object_writer.unreadable(lost)
        self._shadow.verified = tree
        return Snapshot(oid.hex(), tree, ref)

    def _lost(self, oid: bytes, items: Mapping[str, Item], read: set[str] | None = None) -> str | None:
        """Return the first object of a snapshot that is missing; with `read`, which gets the objects, or damaged.

        What was verified before still exists, and so does what HEAD reaches.
        """
        stored, whole = tree_objects.is_stored, read is not None
        for item in items.values():
            if item.mode == FILE and not stored(self._repository, self._folder, item.oid, whole=whole):
                return item.oid.hex()
        verified = bytes.fromhex(self._shadow.verified)
        if not verified or not stored(self._repository, self._folder, verified):
            # It is the first, or somebody deleted the refs that keep it, and collected garbage.
            verified = self._reached(items) or b""
        trees = [(items[WORKTREE].oid, verified or None)]
        if nested_repositories.KEPT in items:
            trees.append((items[nested_repositories.KEPT].oid, None))
        return tree_objects.damaged(self._repository, self._folder, oid, trees, read)

    def _reached(self, items: Mapping[str, Item]) -> bytes | None:
        """Return HEAD's tree if HEAD kept it from every garbage collection while this snapshot was made.

        A repository that lends objects does not know the borrower's HEAD.
        """
        head = open_repository.head_of(self._repository)
        if head is None or HEAD not in items or len(open_repository.lenders(self._objects)) > 1:
            return None
        tree: bytes = self._repository[head].peel(pygit2.Commit).tree_id.raw
        return tree if tree == items[HEAD].oid else None

    def _index_items(self, head: str | None) -> Mapping[str, Item]:
        """Return the index file, and the staged blobs; stored again only if the file changed."""
        present = guarded_files.stat_key(index_file.path_of(self._place))
        if self._index[0] != present:
            data, items = index_file.read(self._place), dict[str, Item]()
            if data is not None:
                items[INDEX] = Item(FILE, self._writer.blob(data))
                if (staged := self._store_staged(head)) is not None:
                    items[STAGED] = staged
            self._index = (present, items)
        return self._index[1]

    def _store_staged(self, head: str | None) -> Item | None:
        """Return the blobs that only the index refers to.

        The index file names them, but no garbage collection asks it.
        """
        try:
            tree = tree_objects.tree_of(self._repository, head)
            if tree == tree_objects.EMPTY_TREE:
                self._writer.tree({})
            staged = status.staged_blobs(self._place, tree)
        except (errors.Refusal, pygit2.GitError):
            return None  # an unreadable index refers to nothing; its bytes are stored all the same
        items = {oid: Item(FILE, bytes.fromhex(oid)) for oid in sorted(staged) if self._writer.has(pygit2.Oid(hex=oid))}
        return Item(FOLDER, self._writer.tree(items)) if items else None


def _as_bytes(refs: Mapping[str, str]) -> bytes:
    """Return a line `VALUE NAME` per ref, sorted by name. Git's ref names contain no blank."""
    return b"".join(os.fsencode(f"{value} {name}\n") for name, value in sorted(refs.items()))


def _of_bytes(data: bytes) -> Mapping[str, str]:
    rows = (os.fsdecode(line).partition(" ") for line in data.splitlines())
    return {name: value for value, _, name in rows}


def head_of(repository: pygit2.Repository, snapshot: str) -> str | None:
    """Return HEAD's commit at a snapshot. Raises KeyError if the snapshot is missing."""
    noted = _meta(repository, snapshot)
    head: str | None = None if noted is None else noted[1]["head"]
    return head


def _meta(repository: pygit2.Repository, snapshot: str) -> Noted | None:
    items = tree_objects.rows_of(repository, snapshot)
    if META not in items or WORKTREE not in items:
        return None
    data = repository.read(pygit2.Oid(items[META].oid))[1]
    return items[WORKTREE].oid.hex(), canonical_json.decode(data)
