"""The user's repository: snapshots and trees, history, index and refs; and where programs and people work in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from idumb.domain.proof.ledger import Change, Entry
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """`commit` is None before the first commit; `branch` is None if HEAD is detached."""

    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """HEAD, and a digest of each file that decides what git runs (`guarded`).

    `configuration` has the settings of each file of git's configuration; it is never recorded.
    """

    head: Head
    guarded: Mapping[str, str]
    configuration: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A kept tree with the name `ref` and the id `commit`; `tree` is the tree of the working tree's files alone."""

    commit: str
    tree: str
    ref: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that idumb does not write, because its present bytes are not the expected ones."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """`commit` is None if git, a hook or the signer refused; `words` is their message.

    `tree` is that of the commit, or of what a hook has left that refused (`by_hook`). `unrun` are hooks in the tree
    that this run wrote: then no hook ran.
    """

    commit: str | None
    words: str = ""
    tree: str = ""
    by_hook: bool = False
    unrun: tuple[str, ...] = ()


class Trees(Protocol):
    """The files of the workspace as trees in the object database. Every result is durable.

    A tree is of the whole repository. Paths are relative to the project's folder, and only paths in it are compared and
    written; what is outside is as `changes_outside` says.
    """

    @property
    def root(self) -> str:
        """Return the absolute path of the workspace."""

    def scan(self, also: Iterable[str] = ()) -> str:
        """Store all tracked and untracked files that are not ignored; return the tree's id.

        `also` are literal paths to include even if they are ignored. What cannot be saved is left out: see `omitted`.
        """

    def save(self, paths: Iterable[str]) -> str:
        """Store these files as they are, byte for byte; return a tree that has them, and perhaps others."""

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        """Store a `scan`, the index and HEAD under the name `ref`, and read it back."""

    def tree_at(self, snapshot: str) -> str:
        """Return the tree of the working tree's files in a snapshot."""

    def outside_target(self, link: str) -> str | None:
        """Return the target of the link that leads out of the workspace, directly or through others, or None."""

    def places_of_machine(self, data: bytes) -> frozenset[str]:
        """Return the absolute paths in a file that exist now, and that only this machine is sure to have."""

    def ignored(self) -> tuple[str, ...]:
        """Return the ignored paths of `omitted`, as they are now, without those inside submodules."""

    def hidden_by(self, rules: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """Return each path that one of these `.gitignore` files hides, with that file and its rule."""

    def repositories(self) -> tuple[str, ...]:
        """Return the submodules and nested repositories of the last scan."""

    def keep(self, ref: str, tree: str, reason: str) -> Snapshot:
        """Keep a scanned tree under the name `ref`."""

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return the paths that differ, sorted. A rename is a deletion and a creation."""

    def changes_outside(self, old: str, new: str) -> tuple[Change, ...]:
        """Return the paths outside the project's folder that differ; each begins with `../`. None for the top."""

    def entry(self, tree: str, path: str) -> Entry | None: ...

    def is_folder(self, tree: str, path: str) -> bool: ...

    def committed(self, head: str | None, source: str, paths: Sequence[str]) -> str:
        """Return the tree that a commit of these paths, with their bytes of `source`, has on top of the commit `head`.

        Git's filters and line endings are applied. `source` is the present tree of the workspace.
        """

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        """Return `tree` with each of `paths` taken from `source`, or removed if `source` does not have it."""

    def overlay_each(self, tree: str, sources: Iterable[tuple[str, Iterable[str]]]) -> str:
        """Return `tree` after an overlay of each (source, paths), one after the other."""

    def read(self, oid: str) -> bytes:
        """Return an object's bytes. Refusal `git.object-missing` if it is missing or damaged."""

    def pieces(self, oid: str) -> Iterator[bytes]:
        """Return a blob's bytes, in pieces if it is large."""

    def store(self, data: bytes) -> str:
        """Store bytes as a blob; return its id. `keep_blobs` then keeps it."""

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        """Keep blobs by file name under the name `ref`; return the id of their tree."""

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        """Return the blobs by name that `keep_blobs` stored under `ref`; empty if there are none."""

    def restore(
        self,
        target: str,
        expected: str,
        paths: Iterable[str],
        *,
        force: bool = False,
    ) -> tuple[Conflict, ...]:
        """Write each path as in `target` if its present bytes and mode are those in `expected`.

        All paths are compared first; with a conflict, none is written. If a path changes while paths are written, or
        on OSError, writing stops there: earlier paths are written, this one and the rest are not. It is safe to repeat:
        a path that is as in `target` is no conflict. `force` skips the comparison. All writes are durable. A save of
        another program at any moment stays at its path, or is displaced and named.
        """

    def force(self, paths: Iterable[str]) -> None:
        """Flush these files and their parent folders to disk."""

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        """Return a unified diff without external tools, text conversion or color."""

    def line_counts(self, old: str, new: str) -> Mapping[str, tuple[int | None, int | None]]:
        """Return the added and removed lines of each path; None for binary files."""

    def apply_patch(self, patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        """Apply a git patch to the workspace, all or nothing. `allowed` returns why a path may not be written."""


class Workspace(Protocol):
    """Where a task is built. `in_place` is the user's own working tree, where nobody but people may work."""

    in_place: bool

    @property
    def trees(self) -> Trees: ...

    def show(self, tree: str, head: str | None) -> object:
        """Make the files those of `tree`, on top of the commit `head`. Ignored files stay.

        Only a checkout can do that: AssertionError in place.
        """

    def with_ignored(self, tree: str, paths: Iterable[str]) -> str:
        """Return the tree that was just shown, with those of these paths that are there although it lacks them."""

    def raw(self, tree: str, paths: Iterable[str], seen: Sequence[str] = ()) -> str:
        """Return `tree` with the bytes that these files have in the user's working tree.

        Those are what git checks out, or what the first of the trees `seen` has that git calls unmodified.
        """

    def cleaned(self, path: str, data: bytes) -> str:
        """Return the object that git stores for a file with these bytes."""

    def messages(self, head: str | None) -> tuple[str, ...]:
        """Return the messages of the commits that programs made there on top of `head`, the oldest first."""

    def begin(self, ref: str) -> None:
        """Note that an attempt works there. If nothing ends it, what it left is kept under the name `ref`."""

    def keep(self) -> None:
        """Keep what an attempt that was begun and not ended has left, under its name."""

    def end(self) -> None:
        """Note that nothing has to be kept: the next `show` removes what is there besides the tree."""
