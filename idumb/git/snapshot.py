"""Snapshots: the working tree's bytes, the index file and the state of HEAD, in a tree with a name, read back.

A snapshot's tree holds `worktree/`, `index`, `staged/` (what only the index refers to), `head/` (the tree of HEAD, to
which the index refers too) and `meta.json`.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from typing import Any

from pygit2.enums import ObjectType

from idumb.app.ports.repository import Snapshot
from idumb.domain import errors
from idumb.git import guarded_files, index_file, names, open_repository, status
from idumb.git import refs as own_refs
from idumb.git.discover import Repository
from idumb.git.index_file import INDEX
from idumb.git.objects import durable_files, tree_objects
from idumb.git.objects.tree_objects import FILE, FOLDER, SUBMODULE, Item
from idumb.git.open_repository import CheckedRepository
from idumb.git.shadow import Shadow

WORKTREE, STAGED, HEAD, META = "worktree", "staged", "head", "meta.json"
_STATE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "ORIG_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
_LISTED = 1000


class Snapshots:
    """Makes snapshots in one repository, and remembers which trees it has verified on disk."""

    def __init__(self, place: Repository, objects: Repository, repository: CheckedRepository, shadow: Shadow) -> None:
        self._place = place
        self._objects = objects
        self._repository = repository
        self._folder = repository.folders[0]
        self._shadow = shadow
        self._head: str | None = None
        self._index: tuple[tuple[int, ...] | None, Mapping[str, Item]] = ((), {})

    def take(self, ref: str, tree: str, reason: str, omitted: Mapping[str, str]) -> Snapshot:
        """Make a snapshot of the scanned `tree` and of the index.

        `omitted` are paths that the scan left out, and why; of a long list, the snapshot has a part.
        """
        head, branch = open_repository.head_of(self._repository), open_repository.branch_of(self._repository)
        in_progress = [name for name in _STATE if os.path.lexists(os.path.join(self._place.git_dir, name))]
        meta: dict[str, Any] = {"head": head, "branch": branch, "in_progress": in_progress}
        meta |= {"omitted": dict(sorted(omitted.items())[:_LISTED])} if omitted else {}
        index = self._index_items(head)
        text = json.dumps(meta, sort_keys=True)  # with `indent`, each call leaves cycles to the garbage collector
        items = {
            WORKTREE: Item(FOLDER, bytes.fromhex(tree)),
            META: Item(FILE, self._repository.write(ObjectType.BLOB, text.encode("ascii")).raw),
            **index,
        }
        if head is not None:
            items[HEAD] = Item(FOLDER, bytes.fromhex(tree_objects.tree_of(self._repository, head)))
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
                raise open_repository.unreadable(item.oid.hex())
        oid = tree_objects.write(self._repository, items).hex()
        names.put(self._repository, self._objects, ref, oid, reason)
        return oid

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        kept = names.find(self._repository, ref)
        rows = {} if kept is None else tree_objects.rows(self._repository, bytes.fromhex(kept))
        return {name: item.oid.hex() for name, item in rows.items()}

    def tree_of(self, snapshot: str) -> str:
        """Return the tree of the working tree's files in a snapshot."""
        return tree_objects.rows(self._repository, bytes.fromhex(snapshot))[WORKTREE].oid.hex()

    def _keep(self, ref: str, tree: str, reason: str, items: dict[str, Item]) -> Snapshot:
        """Write a snapshot, read back from disk everything that is new since the last one, and give it its name."""
        if tree == tree_objects.EMPTY_TREE:
            tree_objects.write(self._repository, {})
        oid = tree_objects.write(self._repository, items)
        durable_files.force_objects(self._folder, self._require_stored(oid, items, whole=True))
        names.put(self._repository, self._objects, ref, oid.hex(), reason)
        # A `git gc --prune=now` that began before the ref moved may have removed what it did not see.
        self._repository.see_packs()
        self._require_stored(oid, items, whole=False)
        self._shadow.verified = tree
        return Snapshot(oid.hex(), tree, ref)

    def _require_stored(self, oid: bytes, items: Mapping[str, Item], *, whole: bool) -> set[str]:
        """Return the objects of a snapshot that were looked at. Refusal if one is missing or, with `whole`, damaged.

        What was verified before still exists, and so does what HEAD reaches.
        """
        verified = bytes.fromhex(self._shadow.verified)
        if not verified or not tree_objects.is_stored(self._repository, self._folder, verified):
            # It is the first, or somebody deleted the refs that keep it, and collected garbage.
            verified = self._reached(items) or b""
        tree, seen = items[WORKTREE], set[str]()
        own = [item for item in items.values() if item.mode == FILE]
        own += [] if tree.oid == verified else [tree]
        new = tree_objects.new_items(self._repository, verified or None, tree.oid)  # read one after the other
        for item in itertools.chain([Item(FILE, oid), *own], new):
            if item.mode != SUBMODULE:
                seen.add(item.oid.hex())
                whole_one = whole or item.mode == FOLDER
                if not tree_objects.is_stored(self._repository, self._folder, item.oid, whole=whole_one):
                    raise open_repository.unreadable(item.oid.hex())
        return seen

    def _reached(self, items: Mapping[str, Item]) -> bytes | None:
        """Return HEAD's tree if HEAD kept it from every garbage collection while this snapshot was made.

        A repository that lends objects does not know the borrower's HEAD.
        """
        head = open_repository.head_of(self._repository)
        if head is None or HEAD not in items or len(open_repository.lenders(self._objects)) > 1:
            return None
        tree = bytes.fromhex(tree_objects.tree_of(self._repository, head))
        return tree if tree == items[HEAD].oid else None

    def _index_items(self, head: str | None) -> Mapping[str, Item]:
        """Return the index file, and the staged blobs; stored again only if the file changed."""
        present = guarded_files.stat_key(index_file.path_of(self._place))
        if self._index[0] != present:
            data, items = index_file.read(self._place), dict[str, Item]()
            if data is not None:
                items[INDEX] = Item(FILE, self._repository.write(ObjectType.BLOB, data).raw)
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
                tree_objects.write(self._repository, {})
            staged = status.staged_blobs(self._place, tree)
        except errors.Refusal:
            return None  # an unreadable index refers to nothing; its bytes are stored all the same
        self._repository.see_packs()
        items = {oid: Item(FILE, bytes.fromhex(oid)) for oid in sorted(staged) if oid in self._repository}
        return Item(FOLDER, tree_objects.write(self._repository, items)) if items else None
