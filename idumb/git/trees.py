"""The Trees port on a working tree: scan, snapshot, compare, restore; and the workspace `here`."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pygit2.enums import ObjectType

from idumb.app.ports.repository import Conflict, Snapshot, Trees
from idumb.domain import errors, paths
from idumb.domain.proof.ledger import Change, Entry
from idumb.domain.settings import SNAPSHOT_LIMIT
from idumb.git import guarded_files, index_file, links, nested_repositories, open_repository, snapshot, status
from idumb.git.discover import Repository
from idumb.git.objects import durable_files, tree_objects
from idumb.git.open_repository import CheckedRepository
from idumb.git.projects.project_paths import ProjectPaths
from idumb.git.restore import patch
from idumb.git.restore.displaced import Shelf
from idumb.git.shadow import Shadow
from idumb.git.shadow_folder import ShadowFolder
from idumb.system.files import private_folders

_ATTRIBUTES = ".gitattributes"
_TRIES = 10
_OFF = ("false", "no", "off", "0")


class GitTrees:
    """`objects` is the repository that stores objects and refs, if it is not the one of the working tree (a checkout).

    Its ignore rules also apply. Scans leave out untracked files of more than `limit` MB.
    They do not remember names in which `has_secret` finds a known value. `folder` is that of the project, "" for the
    top. Trees and snapshots are of the whole repository. Nothing outside the folder is ever written: such a path raises
    ValueError.
    """

    def __init__(
        self,
        repository: Repository,
        objects: Repository | None = None,
        limit: Callable[[], int] = lambda: SNAPSHOT_LIMIT,
        has_secret: Callable[[bytes], bool] = lambda _: False,
        folder: str = "",
    ) -> None:
        self.paths = ProjectPaths(folder)
        self.root = self.paths.root(repository.root)
        self._place = repository
        self._objects = objects or repository
        self.has_secret = has_secret
        self.limit = limit
        self._counted: tuple[tuple[str, str], patch.Counts] | None = None

    @functools.cached_property
    def repository(self) -> CheckedRepository:
        return open_repository.repository(self._objects)

    @functools.cached_property
    def shadow(self) -> Shadow:
        folder = ShadowFolder(self._place, self._objects)
        return Shadow(self._place, self._objects, folder, self.limit(), self.has_secret)

    @functools.cached_property
    def snapshots(self) -> snapshot.Snapshots:
        return snapshot.Snapshots(self._place, self._objects, self.repository, self.shadow)

    def scan(self, also: Iterable[str] = ()) -> str:
        return self.shadow.scan(self.paths.all_stored(also))

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        paths, last = self.paths.all_stored(also), None
        for _ in range(_TRIES):
            tree = self.shadow.scan(paths)
            try:
                return self.snapshots.take(ref, tree, reason, self.shadow.omitted)
            except errors.Refusal as refusal:
                if refusal.code != open_repository.UNREADABLE:
                    raise
                last = refusal
            # `git gc --prune=now` may have removed objects that nothing referred to yet, or a power cut emptied one
            # that somebody wrote without fsync: write all of it again.
            self._set_aside(str(last.details["object"]))
            self.forget()
        raise last or AssertionError("there is at least one try")

    def _set_aside(self, oid: str) -> None:
        """Move a damaged object out of git's way: git does not write an object again whose file exists."""
        place = os.path.join(self._objects.common_dir, "objects", oid[:2], oid[2:])
        if os.path.exists(place):
            folder = os.path.join(self._objects.common_dir, "idumb", "damaged")
            private_folders.make_below(self._objects.common_dir, folder)
            self._objects.guard()
            os.replace(place, os.path.join(folder, oid))

    def repositories(self) -> tuple[str, ...]:
        return self.paths.kept(self.shadow.repositories)

    def tree_at(self, snapshot: str) -> str:
        return self.snapshots.tree_of(snapshot)

    def outside_target(self, link: str) -> str | None:
        return links.outside_target(self._place.root, self.paths.stored(link))

    def places_of_machine(self, data: bytes) -> frozenset[str]:
        return links.places_of_machine(self._place.root, data)

    def omitted(self) -> Mapping[str, str]:
        """Return paths that the last scan omitted, and why. A folder of which all is ignored ends with `/`.

        Such paths are ignored, unreadable, too large and not tracked, or repositories.
        """
        dirty = (path for path in self.repositories() if nested_repositories.is_dirty(self.root, path))
        return {
            **dict.fromkeys(self.ignored(), paths.IGNORED_BY_GIT),
            **dict.fromkeys(dirty, "uncommitted work in a submodule"),
            **{self.paths.shown(path): why for path, why in self.shadow.omitted.items() if self.paths.has(path)},
        }

    def ignored(self) -> tuple[str, ...]:
        return self.paths.kept(self.shadow.ignored())

    def hidden_by(self, rules: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        files, shown = frozenset(self.paths.all_stored(rules)), self.paths.shown
        hidden = self.paths.all_stored(self.ignored()) if files else ()
        hiding = status.deciding(self._place.root, hidden, self._objects)
        return {shown(path): (shown(file), rule) for path, (file, rule) in hiding.items() if file in files}

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        return self.snapshots.keep(ref, tree, reason)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        return tree_objects.changes(self.repository, self._part(old), self._part(new))

    def _part(self, tree: str) -> str:
        """Return the project's own tree in a tree of the repository; the empty tree if there is no such folder."""
        return tree_objects.folder(self.repository, tree, self.paths.folder) or tree_objects.EMPTY_TREE

    def changes_outside(self, old: str, new: str) -> tuple[Change, ...]:
        if not self.paths.folder:
            return ()
        changed = tree_objects.changes(self.repository, old, new)
        return self.paths.rows(change for change in changed if not self.paths.has(change.path))

    def entry(self, tree: str, path: str) -> Entry | None:
        return tree_objects.entry(self.repository, tree, self.paths.stored(path))

    def is_folder(self, tree: str, path: str) -> bool:
        return tree_objects.is_folder(self.repository, tree, self.paths.stored(path))

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        return self.overlay_each(tree, [(source, paths)])

    def overlay_each(self, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
        own = [(source, self.paths.all_own(paths)) for source, paths in sources]
        return tree_objects.overlay(self.repository, tree, own)

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        tree = tree_objects.tree_of(self.repository, head)
        result = self.overlay(tree, source, paths)
        own = self.paths.all_own(paths)
        present = [path for path in own if tree_objects.entry(self.repository, source, path) is not None]
        if present and self.may_convert(tree, present):
            cleaned = index_file.cleaned(self._objects, self._place.root, head, present)
            result = tree_objects.put(self.repository, result, cleaned)
        return result

    def may_convert(self, head: str, changed: Iterable[str]) -> bool:
        """Return whether git may commit other bytes, or another mode, than these files have.

        A setting or a file of attributes says so.
        """
        guarded = guarded_files.of_repository(self._objects)
        if guarded.converts or guarded.configuration.effective.get("core.filemode", "").lower() in _OFF:
            return True
        roots, folders = {self._place.root, self._objects.root}, paths.folders_above(changed)
        names = [_ATTRIBUTES, *(f"{folder}/{_ATTRIBUTES}" for folder in folders)]
        committed = any(tree_objects.entry(self.repository, head, name) for name in names)
        return committed or any(os.path.lexists(os.path.join(root, name)) for root in roots for name in names)

    def read(self, oid: str) -> bytes:
        return self.repository.read(oid)[1]

    def pieces(self, oid: str) -> Iterator[bytes]:
        return tree_objects.pieces(self.repository, self._objects.root, oid)

    def store(self, data: bytes) -> str:
        return str(self.repository.write(ObjectType.BLOB, data))

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        return self.snapshots.keep_blobs(ref, blobs, reason)

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        return self.snapshots.kept_blobs(ref)

    def restore(self, target: str, expected: str, paths: Iterable[str], *, force: bool = False) -> tuple[Conflict, ...]:
        from idumb.git.restore import restore_paths

        try:
            conflicts = restore_paths.restore(
                self.repository,
                self._place.root,
                target,
                expected,
                self.paths.all_own(paths),
                force=force,
                shelf=self._shelf(),
                guard=self._objects.guard,
            )
        except KeyError as problem:  # an agent can remove snapshots, and run git's garbage collection
            raise open_repository.unreadable(str(problem.args[0])) from problem
        return self.paths.rows(conflicts)

    def release_displaced(self) -> tuple[str, ...]:
        """Remove the files that restores displaced; return the absolute paths of those that were written to since.

        Call it when the operation ends.
        """
        return self._shelf().release()

    def _shelf(self) -> Shelf:
        folder = os.path.join(self._place.common_dir, "idumb", "displaced", self._place.worktree_id)
        return Shelf(folder, self._place.root)

    def present_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        at = {path: os.path.join(self._place.root, path) for path in self.paths.all_own(folders)}
        return self.paths.kept(path for path, place in at.items() if os.path.isdir(place) and not os.path.islink(place))

    def force(self, paths: Iterable[str]) -> None:
        durable_files.force_below(self._place.root, self.paths.all_stored(paths))

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        return patch.diff(self._objects, self._part(old), self._part(new), paths)

    def line_counts(self, old: str, new: str) -> patch.Counts:
        """The summary is written twice at the end of a run: before and after its verification."""
        if self._counted is None or self._counted[0] != (old, new):
            self._counted = ((old, new), patch.line_counts(self._objects, self._part(old), self._part(new)))
        return self._counted[1]

    def apply_patch(self, patch_text: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        """Apply it to a tree first, so that every path is judged before anything is written."""
        present = self.scan()
        patched = patch.applied(self._objects, present, patch_text, self.paths.folder)
        if not isinstance(patched, str):
            return False, patched.words
        if outside := self.changes_outside(present, patched):
            return False, f"{outside[0].path}: it is outside the project in {self.paths.folder}"
        changed = [change.path for change in self.changes(present, patched)]
        refused = next(((path, why) for path in changed if (why := allowed(path)) is not None), None)
        if refused is not None:
            return False, ": ".join(refused)
        conflicts = self.restore(patched, present, changed)
        return not conflicts, "; ".join(f"{conflict.path} {conflict.why}" for conflict in conflicts)

    def forget(self) -> None:
        """Forget the last scan: the working tree or its git folder was recreated, or objects are gone."""
        self.shadow.forget()
        self.__dict__.pop("snapshots", None)


class Here:
    """The user's own working tree as the workspace of a person."""

    in_place = True

    def __init__(self, trees: Trees) -> None:
        self.trees = trees

    def show(self, tree: str, head: str | None) -> None:  # noqa: ARG002 - as in a checkout
        raise AssertionError("nothing is shown in the user's own working tree")

    def raw(self, tree: str, paths: Iterable[str]) -> str:  # noqa: ARG002 - as in a checkout
        return tree

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:  # noqa: ARG002 - as in a checkout
        raise AssertionError("nothing is shown in place")

    def cleaned(self, path: str, data: bytes) -> str:  # noqa: ARG002 - as in a checkout
        raise AssertionError("a person's work has no steps")

    def messages(self, head: str | None) -> tuple[str, ...]:  # noqa: ARG002 - as in a checkout
        return ()

    def begin(self, ref: str) -> None:
        """Nothing is lost there."""

    def keep(self) -> None:
        """Nothing is lost there."""

    def end(self) -> None:
        """Nothing was begun."""
