"""Snapshots: the working tree's bytes, what is staged and the state of HEAD, in a tree with a name, read back.

A snapshot's tree holds `worktree/`, `head/` (the tree of HEAD), and `staged/` if the index differs from that.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping

from pygit2.enums import ObjectType

from idumb.app.ports import Snapshot
from idumb.domain import errors
from idumb.domain.proof.ledger import Entry
from idumb.git import discover, disk, open_repository, refs, status, tree_objects
from idumb.git.discover import Worktree
from idumb.git.open_repository import CheckedRepository
from idumb.git.scanner import Scanner
from idumb.git.tree_objects import EMPTY_TREE, FILE, FOLDER, SUBMODULE, Rows
from idumb.system import private_folders

WORKTREE, STAGED, HEAD = "worktree", "staged", "head"
_TRIES = 10


class Snapshots:
    """Those of `worktree`, and which trees were verified on disk.

    `store` is the working tree whose repository stores objects and refs, if it is another (for a checkout): its ignore
    rules apply. Scans leave out untracked files of more than `limit` MB.
    """

    def __init__(self, worktree: Worktree, store: Worktree, limit: Callable[[], int]) -> None:
        self._worktree = worktree
        self._store = store
        self.limit = limit
        self._head: str | None = None

    @functools.cached_property
    def repository(self) -> CheckedRepository:
        return open_repository.repository(self._store)

    @functools.cached_property
    def scanner(self) -> Scanner:
        return Scanner(self._worktree, self._store, self.limit())

    def forget(self) -> None:
        """Forget the last scan: the working tree or its git folder was recreated, or objects are gone."""
        self.scanner.forget()
        self._head = None

    def take(self, ref: str, reason: str, also: Iterable[str]) -> Snapshot:
        """Scan, and make a snapshot of all files and of the index. `also` are ignored paths to include."""
        paths = tuple(also)
        for left in reversed(range(_TRIES)):
            tree = self.scanner.scan(paths)
            try:
                return self._take(ref, tree, reason)
            except errors.Refusal as refusal:
                if refusal.code != open_repository.UNREADABLE or not left:
                    raise
                # `git gc --prune=now` may have removed objects that nothing referred to yet, or a power cut emptied one
                # that somebody wrote without fsync: write all of it again.
                self._set_aside(str(refusal.details["object"]))
            self.forget()
        raise AssertionError("there is at least one try")

    def _set_aside(self, oid: str) -> None:
        """Move a damaged object out of git's way: git does not write an object again whose file exists."""
        place = os.path.join(self._store.common_dir, "objects", oid[:2], oid[2:])
        if os.path.exists(place):
            folder = os.path.join(self._store.common_dir, "idumb", "damaged")
            private_folders.make(folder, root=self._store.common_dir)
            self._store.guard()
            os.replace(place, os.path.join(folder, oid))

    def _take(self, ref: str, tree: str, reason: str) -> Snapshot:
        """Make a snapshot of the scanned `tree` and of the index."""
        head, items = open_repository.head_of(self.repository), {WORKTREE: Entry(FOLDER, tree)}
        if head is not None:
            items[HEAD] = Entry(FOLDER, tree_objects.tree_of(self.repository, head))
            self._keep_head(head)
        self.repository.see_packs()
        if staged := status.staged_tree(self.repository):
            items[STAGED] = Entry(FOLDER, staged)
        return self._keep(ref, tree, reason, items)

    def _keep_head(self, head: str) -> None:
        """Keep HEAD's commit, which a tree cannot: the user may amend it, and collect garbage while a task is built."""
        if head == self._head:
            return
        ref = f"{discover.OWN_REFS}worktrees/{self._store.name}/head"
        if refs.current(self.repository, ref) != head:
            refs.move(self.repository, ref, head)
        self._head = head

    def store(self, data: bytes) -> str:
        """Store bytes as a blob; return its id. `keep_blobs` then keeps it."""
        return str(self.repository.write(ObjectType.BLOB, data))

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        """Keep a tree of files alone."""
        return self._keep(ref, tree, reason, {WORKTREE: Entry(FOLDER, tree)})

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        """Keep blobs by plain file name under the name `ref`; return the id of their tree."""
        for oid in blobs.values():
            if not tree_objects.is_stored(self.repository, oid):
                raise open_repository.unreadable(oid)
        tree = tree_objects.write(self.repository, {name: Entry(FILE, oid) for name, oid in blobs.items()})
        refs.move(self.repository, ref, tree, reason)
        return tree

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        """Return the blobs by name that `keep_blobs` stored under `ref`; empty if there are none."""
        kept = refs.find(self.repository, ref)
        rows = {} if kept is None else tree_objects.rows(self.repository, kept)
        return {name: entry.oid for name, entry in rows.items()}

    def tree_at(self, snapshot: str) -> str:
        """Return the tree of the working tree's files in a snapshot."""
        return tree_objects.rows(self.repository, snapshot)[WORKTREE].oid

    def _keep(self, ref: str, tree: str, reason: str, items: Rows) -> Snapshot:
        """Write a snapshot, read back from disk everything that is new since the last one, and give it its name."""
        if EMPTY_TREE in {entry.oid for entry in items.values()}:
            tree_objects.write(self.repository, {})
        oid = tree_objects.write(self.repository, items)
        disk.force_objects(self.repository.object_folders[0], self._require_stored(oid, items, whole=True))
        refs.move(self.repository, ref, oid, reason)
        # A `git gc --prune=now` that began before the ref moved may have removed what it did not see.
        self.repository.see_packs()
        self._require_stored(oid, items, whole=False)
        self.scanner.verified = tree
        return Snapshot(oid, tree, ref)

    def _require_stored(self, oid: str, items: Rows, *, whole: bool) -> set[str]:
        """Return the objects of a snapshot that were looked at. Refusal if one is missing or, with `whole`, damaged.

        What was verified before still exists, and so does what HEAD reaches.
        """
        verified = self.scanner.verified
        if self.repository.is_partial or not verified or not tree_objects.is_stored(self.repository, verified):
            # It is the first, or somebody deleted the refs that keep it, and collected garbage. A partial clone lacks
            # some of what HEAD has, and git fetches that when it is needed.
            head = open_repository.head_of(self.repository)
            lent = len(open_repository.object_folders(self._store)) > 1  # by one that does not know the borrower's HEAD
            verified = "" if head is None or lent else tree_objects.tree_of(self.repository, head)
        tree, seen = items[WORKTREE], set[str]()
        own = [Entry(FILE, oid), *(entry for entry in items.values() if entry.mode == FILE)]
        own += [] if tree.oid == verified else [tree]
        new = tree_objects.new_rows(self.repository, verified, tree.oid)  # read one after the other
        for entry in itertools.chain(own, new):
            if entry.mode != SUBMODULE:
                seen.add(entry.oid)
                if not tree_objects.is_stored(self.repository, entry.oid, whole=whole or entry.mode == FOLDER):
                    raise open_repository.unreadable(entry.oid)
        return seen
