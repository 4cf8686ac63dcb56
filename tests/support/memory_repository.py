"""A repository in memory, for tests of the engine: trees and history over a dict of paths to bytes.

Every file is regular and not executable; there is no index, no nested repository and no ignore file. A method that no
test of the engine needs is missing. `tests/contracts/` holds these fakes to what git does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from idumb.app.ports import CommitAttempt, Conflict, Head, RepositoryState, Snapshot
from idumb.domain import canonical_json, paths
from idumb.domain.errors import Refusal
from idumb.domain.proof.ledger import CREATED, DELETED, MODIFIED, Change, Entry

FILE = 0o100644
Tree = Mapping[str, str]
"""Path to the id of a blob."""


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """`head` is HEAD when a snapshot was taken; None for a commit of the user's branch."""

    tree: str
    parent: str | None
    message: str
    head: str | None = None


@dataclass(slots=True)
class MemoryRepository:
    """The files, objects and refs. `effect` is called before each durable effect, with its name.

    `refusing` is what a hook says that refuses every commit. `expected` are the refs that idumb wrote.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)
    branch: str | None = "main"
    blobs: dict[str, bytes] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)
    commits: dict[str, StoredCommit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)
    effect: Callable[[str], None] = lambda _: None
    refusing: str = ""

    def store(self, data: bytes) -> str:
        oid = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        self.blobs[oid] = data
        return oid

    def store_tree(self, tree: Tree) -> str:
        oid = canonical_json.digest(["tree", sorted(tree.items())])[:40]
        self.trees[oid] = dict(tree)
        return oid

    def store_commit(self, commit: StoredCommit) -> str:
        oid = canonical_json.digest(["commit", len(self.commits), commit.tree, commit.parent, commit.message])[:40]
        self.commits[oid] = commit
        return oid

    @property
    def head(self) -> str | None:
        return self.refs.get(f"refs/heads/{self.branch}")

    def present(self, also: Iterable[str] = ()) -> Tree:
        named = set(also)
        return {p: self.store(data) for p, data in self.files.items() if p not in self.ignored or p in named}

    def commit_all(self, message: str = "work") -> str:
        """Commit every file that is not ignored, as the user does."""
        return self.advance(self.present(), message)

    def advance(self, tree: Tree, message: str) -> str:
        commit = self.store_commit(StoredCommit(self.store_tree(tree), self.head, message))
        self.refs[f"refs/heads/{self.branch}"] = commit
        return commit

    def clone(self) -> MemoryRepository:
        """Return a working tree of its own, as HEAD is, that shares all objects and refs."""
        tree = {} if self.head is None else self.trees[self.commits[self.head].tree]
        return replace(self, files={path: self.blobs[oid] for path, oid in tree.items()})

    def ancestors(self, tip: str | None) -> Iterable[str]:
        while tip is not None:
            yield tip
            tip = self.commits[tip].parent


class MemoryTrees:
    """As `GitTrees`, for files without links, filters and submodules."""

    root = "/workspace"

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    def places_of_machine(self, data: bytes) -> frozenset[str]:
        return frozenset()

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        tree = self._repository.store_tree({}) if head is None else self._repository.commits[head].tree
        return self.overlay(tree, source, paths)

    def apply_patch(self, patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        return False, "nothing is applied in memory"

    def scan(self, also: Iterable[str] = ()) -> str:
        return self._repository.store_tree(self._repository.present(also))

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        return self.keep(ref, self.scan(also), reason)

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        repository = self._repository
        repository.effect("keep")
        commit = repository.store_commit(StoredCommit(tree, None, reason, repository.head))
        repository.refs[ref] = repository.expected[ref] = commit
        return Snapshot(commit, tree, ref)

    def tree_at(self, snapshot: str) -> str:
        return self._repository.commits[snapshot].tree

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        before, after = self._repository.trees[old], self._repository.trees[new]
        differing = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        return tuple(
            Change(path, _kind(path, before, after), self.entry(old, path), self.entry(new, path)) for path in differing
        )

    def entry(self, tree: str, path: str) -> Entry | None:
        oid = self._repository.trees[tree].get(path)
        return None if oid is None else Entry(FILE, oid)

    def differing(self, tree: str, others: Sequence[str], paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(p for p in paths if self.entry(tree, p) not in [self.entry(other, p) for other in others])

    def is_folder(self, tree: str, path: str) -> bool:
        return any(one.startswith(f"{path}/") for one in self._repository.trees[tree])

    def overlay_each(self, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
        for source, chosen in sources:
            tree = self.overlay(tree, source, chosen)
        return tree

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        taken, other = dict(self._repository.trees[tree]), self._repository.trees[source]
        for path in paths:
            taken.pop(path, None)
            if path in other:
                taken[path] = other[path]
        return self._repository.store_tree(taken)

    def read(self, oid: str) -> bytes:
        if oid not in self._repository.blobs:
            raise Refusal("git.object-missing", f"The object {oid} is missing.")
        return self._repository.blobs[oid]

    def pieces(self, oid: str) -> Iterator[bytes]:
        yield self.read(oid)

    def store(self, data: bytes) -> str:
        return self._repository.store(data)

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        return self.keep(ref, self._repository.store_tree(blobs), reason).commit

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        commit = self._repository.refs.get(ref)
        return {} if commit is None else self._repository.trees[self.tree_at(commit)]

    def restore(self, target: str, expected: str, paths: Iterable[str], *, force: bool = False) -> tuple[Conflict, ...]:
        named = tuple(paths)
        repository, present = self._repository, self._repository.present(named)
        target_tree, expected_tree = repository.trees[target], repository.trees[expected]
        differing = [path for path in named if present.get(path) != target_tree.get(path)]
        changed = [path for path in differing if not force and present.get(path) != expected_tree.get(path)]
        if changed:
            return tuple(Conflict(path, _why(path, expected_tree, present)) for path in sorted(changed))
        for path in differing:
            repository.effect("restore")
            repository.files.pop(path, None)
            if path in target_tree:
                repository.files[path] = repository.blobs[target_tree[path]]
        return ()

    def force(self, paths: Iterable[str]) -> None:
        """Nothing: memory has no disk."""

    def line_counts(self, old: str, new: str, *_: str) -> Mapping[str, tuple[int | None, int | None]]:
        return {change.path: (0, 0) for change in self.changes(old, new)}

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        return "".join(f"{change.kind} {change.path}\n" for change in self.changes(old, new))

    def ignored(self) -> tuple[str, ...]:
        return tuple(sorted(self._repository.ignored & self._repository.files.keys()))

    def repositories(self) -> tuple[str, ...]:
        return ()


def _kind(path: str, before: Tree, after: Tree) -> str:
    if path not in before:
        return CREATED
    return MODIFIED if path in after else DELETED


def _why(path: str, expected: Tree, present: Tree) -> str:
    if path not in present:
        return "was deleted since"
    return "was changed since" if path in expected else "was created since"


class MemoryHistory:
    """Implements `History`: commits, refs, and no index."""

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    def head(self) -> Head:
        return Head(self._repository.head, self._repository.branch)

    def require_usable(self) -> None:
        """Nothing is in progress in memory."""

    def in_progress(self) -> str:
        return ""

    def state(self) -> RepositoryState:
        return RepositoryState(self.head(), {})

    def refs(self, prefix: str) -> Mapping[str, str]:
        return {name: oid for name, oid in self._repository.refs.items() if name.startswith(prefix)}

    def kept(self, name: str) -> str | None:
        return self._repository.refs.get(name)

    def keep_ref(self, ref: str, commit: str) -> None:
        if commit not in self._repository.commits:
            raise Refusal("git.object-missing", f"The commit {commit} is missing.")
        self._repository.effect("keep")
        self._repository.refs[ref] = self._repository.expected[ref] = commit

    def head_tree(self) -> str:
        return self.tree_of(self._repository.head)

    def tree_of(self, commit: str | None) -> str:
        return self._repository.store_tree({}) if commit is None else self._repository.commits[commit].tree

    def tree_before(self, commit: str) -> str:
        return self.tree_of(self._repository.commits[commit].parent)

    def descends(self, commit: str, tip: str | None = None) -> bool:
        return commit in self._repository.ancestors(tip or self._repository.head)

    def uncommitted(self, paths_: Sequence[str]) -> tuple[str, ...]:
        head, present = self._repository.trees[self.tree_of(self._repository.head)], self._repository.present()
        covers = paths.cover(paths_)
        return tuple(sorted(p for p in {*head, *present} if head.get(p) != present.get(p) and covers(p)))

    def make(
        self, tree: str, head: str | None, message: str, *, hooks: bool, wrote: Callable[[str], bool] = lambda _: False
    ) -> CommitAttempt:
        if self._repository.refusing:
            return CommitAttempt(None, self._repository.refusing, tree)
        return CommitAttempt(self._repository.store_commit(StoredCommit(tree, head, message)), tree=tree)

    def unfollow(self, tree: str) -> None:
        """There is no index."""

    def advance(
        self, name: str | None, commit: str, expected: str | None, message: str, own: Collection[str] = ()
    ) -> str:
        if name != self._repository.branch:
            return f"HEAD is not on {name}"
        if self._repository.head == commit:
            return ""
        if self._repository.head != expected:
            return f"HEAD is {self._repository.head}, not {expected}"
        self._repository.effect("commit")
        self._repository.refs[f"refs/heads/{self._repository.branch}"] = commit
        return ""

    def trailers_since(self, base: str | None) -> tuple[tuple[str, Mapping[str, str]], ...]:
        hidden = set(self._repository.ancestors(base))
        newest = [one for one in self._repository.ancestors(self._repository.head) if one not in hidden]
        newest_trailers = ((one, _trailers(self._repository.commits[one].message)) for one in newest)
        return tuple((one, trailers) for one, trailers in newest_trailers if trailers)

    def repositories(self, places: Iterable[str]) -> tuple[str, ...]:
        return ()

    def staged(self, paths: Sequence[str]) -> Mapping[str, Entry | None]:
        return {}


def _trailers(message: str) -> Mapping[str, str]:
    rows = (line.split(": ", 1) for line in message.splitlines() if line.startswith("Idumb-"))
    return {row[0]: row[1] for row in rows if len(row) == 2}
