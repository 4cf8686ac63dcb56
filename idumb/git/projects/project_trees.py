"""The port `Trees` for a project in a subfolder.

Trees and snapshots are of the whole repository. Paths are relative to the project's folder, and comparisons end at it.
Nothing outside the folder is ever written: such a path raises ValueError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from idumb.app.ports.repository import Conflict, NestedChange, Snapshot
from idumb.domain.proof.ledger import Change, Entry
from idumb.git.objects import tree_objects
from idumb.git.projects.project_paths import ProjectPaths
from idumb.git.restore import patch
from idumb.git.trees import GitTrees

Value = TypeVar("Value")


class ProjectTrees:
    """Shows the project in `folder` of the repository of `whole`."""

    def __init__(self, whole: GitTrees, folder: str) -> None:
        self.whole = whole
        self._paths = ProjectPaths(folder)
        self.root = os.path.join(whole.root, folder)

    def _part(self, tree: str) -> str:
        """Return the project's own tree in a tree of the repository; the empty tree if there is no such folder."""
        return tree_objects.folder(self.whole.repository, tree, self._paths.folder) or tree_objects.EMPTY_TREE

    def scan(self, also: Iterable[str] = ()) -> str:
        return self.whole.scan(self._paths.all_stored(also))

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        return self.whole.snapshot(ref, reason, self._paths.all_stored(also))

    def tree_at(self, snapshot: str) -> str:
        return self.whole.tree_at(snapshot)

    def outside_target(self, link: str) -> str | None:
        return self.whole.outside_target(self._paths.stored(link))

    def places_of_machine(self, data: bytes) -> frozenset[str]:
        return self.whole.places_of_machine(data)

    def inside_target(self, link: str) -> str | None:
        target = self.whole.inside_target(self._paths.stored(link))
        return None if target is None else self._paths.shown(target)

    def is_older(self, path: str) -> bool:
        return self.whole.is_older(self._paths.stored(path))

    def omitted(self) -> Mapping[str, str]:
        return _within(self._paths, self.whole.omitted())

    def ignored(self) -> tuple[str, ...]:
        return self._paths.kept(self.whole.ignored())

    def hidden_by(self, rules: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        hidden = self.whole.hidden_by(self._paths.all_stored(rules))
        shown = self._paths.shown
        return {shown(path): (shown(file), rule) for path, (file, rule) in hidden.items() if self._paths.has(path)}

    def repositories(self) -> tuple[str, ...]:
        return self._paths.kept(self.whole.repositories())

    def nested_changes(self, snapshot: Snapshot) -> tuple[NestedChange, ...]:
        shown = self._paths.shown
        changed = self.whole.nested_changes(snapshot)
        return tuple(replace(c, repository=shown(c.repository), path=shown(c.path)) for c in changed)

    def refs_at(self, snapshot: str) -> Mapping[str, str]:
        return self.whole.refs_at(snapshot)

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        return self.whole.keep(ref, tree, reason)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        return self.whole.changes(self._part(old), self._part(new))

    def changes_outside(self, old: str, new: str) -> tuple[Change, ...]:
        changed = self.whole.changes(old, new)
        return tuple(replace(c, path=self._paths.shown(c.path)) for c in changed if not self._paths.has(c.path))

    def entry(self, tree: str, path: str) -> Entry | None:
        return self.whole.entry(tree, self._paths.stored(path))

    def is_folder(self, tree: str, path: str) -> bool:
        return self.whole.is_folder(tree, self._paths.stored(path))

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        return self.whole.committed(head, source, self._paths.all_own(paths))

    @property
    def converted(self) -> tuple[str, ...]:
        return self._paths.kept(self.whole.converted)

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        return self.whole.overlay(tree, source, self._paths.all_own(paths))

    def overlay_each(self, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
        return self.whole.overlay_each(tree, [(source, self._paths.all_own(paths)) for source, paths in sources])

    def read(self, oid: str) -> bytes:
        return self.whole.read(oid)

    def pieces(self, oid: str) -> Iterator[bytes]:
        return self.whole.pieces(oid)

    def store(self, data: bytes) -> str:
        return self.whole.store(data)

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        return self.whole.keep_blobs(ref, blobs, reason)

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        return self.whole.kept_blobs(ref)

    def restore(
        self,
        target: str,
        expected: str,
        paths: Iterable[str],
        *,
        force: bool = False,
    ) -> tuple[Conflict, ...]:
        own = self._paths.all_own(paths)
        conflicts = self.whole.restore(target, expected, own, force=force)
        return tuple(replace(conflict, path=self._paths.shown(conflict.path)) for conflict in conflicts)

    def release_displaced(self) -> tuple[str, ...]:
        return self.whole.release_displaced()

    def present_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        return self._paths.kept(self.whole.present_folders(self._paths.all_own(folders)))

    def force(self, paths: Iterable[str]) -> None:
        self.whole.force(self._paths.all_stored(paths))

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        return self.whole.diff(self._part(old), self._part(new), paths)

    def line_counts(self, old: str, new: str) -> patch.Counts:
        return self.whole.line_counts(self._part(old), self._part(new))

    def apply_patch(self, patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        folder, paths = self._paths.folder, self._paths

        def judged(path: str) -> str | None:
            return allowed(paths.shown(path)) if paths.has(path) else f"it is outside the project in {folder}"

        return self.whole.apply_patch(patch, judged, folder)

    def forget(self) -> None:
        self.whole.forget()


def _within(paths: ProjectPaths, rows: Mapping[str, Value]) -> dict[str, Value]:
    return {paths.shown(path): value for path, value in rows.items() if paths.has(path)}
