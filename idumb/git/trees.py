"""The Trees port on a working tree: scan, snapshot, compare, restore; and the workspace `here`."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import pygit2

from idumb.app.ports.repository import Conflict, NestedChange, Snapshot, Trees
from idumb.domain import errors, paths
from idumb.domain.proof.ledger import Change, Entry
from idumb.git import commit_tree, guarded_files, links, open_repository, snapshot
from idumb.git.discover import Repository
from idumb.git.objects import durable_files, object_writer, tree_objects
from idumb.git.objects.object_writer import Writer
from idumb.git.restore import patch, real_folders
from idumb.git.restore.displaced import Shelf
from idumb.git.scan import ignores, nested_repositories, scan_cache, scanner

_ATTRIBUTES = ".gitattributes"
_CONVERTING = ("filter", "text", "eol", "crlf", "ident", "working-tree-encoding")
"""Attributes that make git convert a file when it commits it."""


class GitTrees:
    """Holds the scanner's memory between calls; `close` saves it for the next process.

    `objects` is the repository that stores objects and refs, if it is not the one of the working tree (a clone).
    `rules` is the repository whose ignore rules also apply. Names in which `has_secret` finds a known value are not
    remembered. `key` names the project whose refs hold its snapshots; by default, the working tree does.
    """

    def __init__(
        self,
        repository: Repository,
        objects: Repository | None = None,
        rules: Repository | None = None,
        has_secret: Callable[[bytes], bool] = lambda _: False,
        key: str | None = None,
    ) -> None:
        self.root = repository.root
        self._has_secret = has_secret
        self._place = repository
        self._key = key or repository.worktree_id
        self._objects = objects or repository
        self._rules = rules or repository
        self._opened: pygit2.Repository | None = None
        self._writer: Writer | None = None
        self._scanner: scanner.Scanner | None = None
        self._snapshots: snapshot.Snapshots | None = None
        self._ignored_before: tuple[str, ...] = ()
        self.converted: tuple[str, ...] = ()
        self._counted: tuple[tuple[str, str], patch.Counts] | None = None

    @property
    def repository(self) -> pygit2.Repository:
        if self._opened is None:
            self._opened = open_repository.repository(self._objects)
        return self._opened

    @property
    def writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._objects, self.repository)
        return self._writer

    @property
    def scans(self) -> scanner.Scanner:
        if self._scanner is None:
            if self._objects is self._place:
                self._scanner = scan_cache.load(self._place, self.repository, self.writer)
            else:
                self._scanner = scanner.Scanner(self._place, self.writer, owner=self._rules)
        return self._scanner

    @property
    def snapshots(self) -> snapshot.Snapshots:
        if self._snapshots is None:
            self._snapshots = snapshot.Snapshots(self._place, self._objects, self.repository, self.writer)
        return self._snapshots

    def scan(self, also: Iterable[str] = ()) -> str:
        scans, writer = self.scans, self.writer
        tree = scans.scan(also).hex()
        writer.flush()
        return tree

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        scans = self.scans
        tree = scans.scan(also).hex()
        scans.mark()
        self._ignored_before = self.ignored()
        try:
            return self.snapshots.take(ref, tree, reason, scans.inventory, self._nested())
        except errors.Refusal as refusal:
            if refusal.code != object_writer.UNREADABLE:
                raise
        # `git gc --prune=now` may have removed objects that were scanned and not yet referenced, or a power cut emptied
        # an object that was written without fsync: write all of it again.
        self.writer.afresh()
        self._scanner = scanner.Scanner(self._place, self.writer, owner=self._rules)
        self._snapshots = None
        return self.snapshots.take(ref, self.scan(also), reason, self.scans.inventory, self._nested())

    def _nested(self, also: Iterable[str] = ()) -> nested_repositories.Look | None:
        """Return the uncommitted changes in nested repositories; nothing is read if there are none."""
        repositories = {*self.repositories(), *also}
        return nested_repositories.look(self.root, repositories, self.writer) if repositories else None

    def repositories(self) -> tuple[str, ...]:
        return self.scans.inventory.repositories

    def nested_changes(self, snapshot: Snapshot) -> tuple[NestedChange, ...]:
        before, kept = self.snapshots.inner(snapshot.commit)
        present = self._nested(before)
        return () if present is None else nested_repositories.changes(before, present, kept)

    def refs_at(self, snapshot: str) -> Mapping[str, str]:
        return self.snapshots.refs(snapshot)

    def tree_at(self, snapshot: str) -> str:
        return self.snapshots.tree_of(snapshot)

    def outside_target(self, link: str) -> str | None:
        return links.outside_target(self.root, link)

    def places_of_machine(self, data: bytes) -> frozenset[str]:
        return links.places_of_machine(self.root, data)

    def inside_target(self, link: str) -> str | None:
        return links.inside_target(self.root, link)

    def links(self) -> tuple[str, ...]:
        return self.scans.inventory.links()

    def unignored(self, path: str) -> bool:
        try:
            return self.scans.unignored(path)
        except OSError:
            return False

    def omitted(self) -> Mapping[str, str]:
        inventory = self.scans.inventory
        dirty = (path for path in inventory.submodules if nested_repositories.is_dirty(self.root, path))
        return {
            **dict.fromkeys(self.ignored(), paths.IGNORED_BY_GIT),
            **inventory.skipped,
            **dict.fromkeys(dirty, "uncommitted work in a submodule"),
        }

    def ignored(self) -> tuple[str, ...]:
        return tuple(path for path in self.scans.inventory.ignored if self._exists(path))

    def ignored_before(self) -> tuple[str, ...]:
        return self._ignored_before

    def vanished(self) -> tuple[str, ...]:
        return tuple(path for path in self._ignored_before if not self._exists(path))

    def _exists(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self.root, path.rstrip("/")))

    def hidden_by(self, new: Iterable[str], changed: Iterable[str] = ()) -> Mapping[str, str]:
        created, edited = frozenset(new), frozenset(changed)
        if not created and not edited:
            return {}
        before = frozenset(self._ignored_before)
        hiding = ignores.deciding(self.root, self.ignored(), self._rules)
        return {
            path: file for path, file in hiding.items() if file in created or (file in edited and path not in before)
        }

    def caches(self) -> tuple[str, ...]:
        return self.scans.inventory.caches

    def inventory(self) -> scanner.Inventory:
        return self.scans.inventory

    def lost_modes(self, paths: Iterable[str]) -> Mapping[str, int]:
        mask = os.umask(0o077)  # there is no other way to read it
        os.umask(mask)
        usual = {0o666 & ~mask, 0o777 & ~mask}
        modes = self.scans.inventory.modes
        return {path: modes[path] for path in paths if path in modes and modes[path] not in usual}

    def special_at(self, snapshot: str) -> Container[str]:
        return self.snapshots.skipped(snapshot)

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        return self.snapshots.keep(ref, tree, reason)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        return tree_objects.changes(self.repository, old, new)

    def changes_outside(self, old: str, new: str) -> tuple[Change, ...]:  # noqa: ARG002 - the port's signature
        return ()

    def entry(self, tree: str, path: str) -> Entry | None:
        return tree_objects.entry(self.repository, tree, path)

    def is_folder(self, tree: str, path: str) -> bool:
        return tree_objects.is_folder(self.repository, tree, path)

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        return self.overlay_each(tree, [(source, paths)])

    def overlay_each(self, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
        result = tree_objects.overlay(self.repository, self.writer.tree, tree, sources)
        self.writer.flush()
        return result

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        tree = tree_objects.tree_of(self.repository, head)
        result = self.overlay(tree, source, paths)
        present = [path for path in paths if self.entry(source, path) is not None]
        self.converted = ()
        if convertible := self._convertible(tree, present):
            cleaned = commit_tree.cleaned(self._objects, self.root, head, convertible)
            self.converted = tuple(path for path, entry in cleaned.items() if entry != self.entry(source, path))
            for path, entry in cleaned.items():
                result = tree_objects.put(self.repository, self.writer.tree, result, path, entry)
            self.writer.flush()
        return result

    def _convertible(self, head: str, paths: Sequence[str]) -> Sequence[str]:
        """Return the paths whose bytes git may convert when it commits them."""
        if any(path.rpartition("/")[2] == _ATTRIBUTES for path in paths) or self._converts_all():
            return paths
        if not self._has_attributes(head, paths):
            return ()
        attribute = self.repository.get_attr
        try:
            return [
                path
                for path in paths
                if any(attribute(os.fsencode(path), name) not in (None, False) for name in _CONVERTING)
            ]
        except pygit2.GitError:  # libgit2 reads attributes from the index too, and no sparse one; git decides
            return paths

    def _has_attributes(self, head: str, changed: Iterable[str]) -> bool:
        """Return whether any file of attributes applies to these paths: libgit2 looks for all of them for each path."""
        if guarded_files.of_repository(self._objects).has_attributes:
            return True
        repository, roots = self.repository, {self.root, self._objects.root}
        folders = {folder for path in changed for folder in paths.folders_above(path)}
        names = [_ATTRIBUTES, *(f"{folder}/{_ATTRIBUTES}" for folder in folders)]
        committed = any(tree_objects.entry(repository, head, name) for name in names)
        return committed or any(os.path.lexists(os.path.join(root, name)) for root in roots for name in names)

    def _converts_all(self) -> bool:
        try:
            return str(self.repository.config["core.autocrlf"]).lower() not in ("false", "no", "off", "0", "")
        except KeyError:
            return False

    def read(self, oid: str) -> bytes:
        try:
            return self.repository.read(oid)[1]
        except (KeyError, pygit2.GitError) as problem:
            words = f"object {oid} is missing or damaged: {problem}"
            raise errors.Refusal("git.object-missing", words, hint="git fsck; idumb doctor") from problem

    def pieces(self, oid: str) -> Iterator[bytes]:
        try:
            yield from tree_objects.pieces(self.repository, self._objects.root, oid)
        except (KeyError, pygit2.GitError) as problem:
            words = f"object {oid} is missing or damaged: {problem}"
            raise errors.Refusal("git.object-missing", words, hint="git fsck; idumb doctor") from problem

    def store(self, data: bytes) -> str:
        oid = self.writer.blob(data).hex()
        self.writer.flush()
        return oid

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        return self.snapshots.keep_blobs(ref, blobs, reason)

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        return self.snapshots.kept_blobs(ref)

    def restore(
        self,
        target: str,
        expected: str,
        paths: Iterable[str],
        *,
        force: bool = False,
    ) -> tuple[Conflict, ...]:
        from idumb.git.restore import restore_paths

        try:
            return restore_paths.restore(
                self.repository,
                self.root,
                target,
                expected,
                paths,
                force=force,
                shelf=self._shelf(),
                guard=self._objects.guard,
            )
        except KeyError as problem:  # an agent can remove snapshots, and run git's garbage collection
            raise object_writer.unreadable(str(problem.args[0])) from problem

    def release_displaced(self) -> tuple[str, ...]:
        return self._shelf().release()

    def _shelf(self) -> Shelf:
        return Shelf(os.path.join(self._place.common_dir, "idumb", "displaced", self._key), self.root)

    def present_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        return real_folders.present(self.root, folders)

    def force(self, paths: Iterable[str]) -> None:
        durable_files.force_below(self.root, paths)

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        return patch.diff(self._objects, old, new, paths)

    def line_counts(self, old: str, new: str) -> patch.Counts:
        """The summary is written twice at the end of a run: before and after its verification."""
        if self._counted is None or self._counted[0] != (old, new):
            self._counted = ((old, new), patch.line_counts(self._objects, old, new))
        return self._counted[1]

    def apply_patch(self, patch_text: str, allowed: Callable[[str], str | None], folder: str = "") -> tuple[bool, str]:
        """Apply it to a tree first, so that every path is judged before anything is written.

        The paths of the patch start in `folder`. `allowed` gets paths from the top.
        """
        present = self.scan()
        patched = patch.applied(self._objects, present, patch_text, folder)
        if not isinstance(patched, str):
            return False, patched.words
        changed = [change.path for change in self.changes(present, patched)]
        refused = next(((path, why) for path in changed if (why := allowed(path)) is not None), None)
        if refused is not None:
            return False, ": ".join(refused)
        conflicts = self.restore(patched, present, changed)
        return not conflicts, "; ".join(f"{conflict.path} {conflict.why}" for conflict in conflicts)

    def forget(self) -> None:
        """Forget the last scan: the working tree or its git folder was recreated."""
        self._scanner = None
        self._snapshots = None
        self._ignored_before = ()

    def close(self) -> None:
        """Save the scanner's memory; losing it costs only time."""
        if self._scanner is not None and self._objects is self._place:
            scan_cache.save(self._place, self.repository, self.writer, self._scanner, self._has_secret)
        if self._writer is not None:
            if self._writer.loose or self._writer.unreached or self._writer.replaced or self._writer.moved:
                from idumb.git.kept import kept_packs  # most commands write nothing

                kept_packs.settle(self._objects, self.repository, self._writer)
            self._writer.close()


class OpenTrees(Trees, Protocol):
    """Trees whose scanner remembers, and saves that when it is closed."""

    def close(self) -> None: ...


class Here:
    kind = "here"

    def __init__(self, trees: OpenTrees) -> None:
        self.trees = trees

    def deliver(
        self,
        base: str,  # noqa: ARG002 - the port's signature
        candidate: str,
        paths: Sequence[str],  # noqa: ARG002
    ) -> tuple[str, tuple[Conflict, ...]]:
        return candidate, ()

    def close(self) -> None:
        self.trees.close()
