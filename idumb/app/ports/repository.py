"""The user's repository: what the engine reads of it, and the few ways in which it writes to it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from idumb.domain.proof.ledger import Change, Entry

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.proof.builder_commits import Commit


@dataclass(frozen=True, slots=True)
class Head:
    """`commit` is None before the first commit, `branch` None when HEAD is detached."""

    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """Where HEAD was, a digest of each of git's own files that decide what git runs, and the user's refs.

    A ref's value is a commit or tag, or the name of another ref. `kept` are idumb's own refs of this work tree.
    """

    head: Head
    guarded: Mapping[str, str]
    refs: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit under `refs/idumb/`; `tree` is the tree of the work tree's bytes alone."""

    commit: str
    tree: str
    ref: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that idumb will not write because its present bytes are not what was expected."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class InnerChange:
    """A path in a submodule or nested repository that is not as it was; the repository's own, where HEAD moved.

    `kept` says that the snapshot has its bytes of before.
    """

    repository: str
    path: str
    kept: bool


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """`commit` is None when git, a hook or the signer refused; `words` then holds what they said."""

    commit: str | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class BuilderCommits:
    """What a builder committed in its clone, made at `base`: the branch's tip, and the commits, oldest first.

    `problem` says why nothing can be taken; `tip` is None then, and where there is no commit at all.
    """

    base: str | None
    tip: str | None
    commits: tuple[Commit, ...] = ()
    problem: str = ""

    @property
    def made(self) -> bool:
        """Whether there is something to take."""
        return self.tip is not None and self.tip != self.base


class Trees(Protocol):
    """Bytes of the workspace as trees in the object database. Durable: what returns has been forced to disk."""

    @property
    def root(self) -> str:
        """Absolute path of the workspace."""

    def scan(self, also: Iterable[str] = ()) -> str:
        """Store the present bytes of all tracked and untracked, not ignored files; the tree's id.

        `also` are literal paths that are included though they may be ignored.
        """

    def snapshot(self, ref: str, reason: str, also: Iterable[str] = ()) -> Snapshot:
        """`scan`, with index, HEAD and modes kept beside, as a commit under `ref`, read back before it returns."""

    def kept_tree(self, snapshot: str) -> str:
        """The work tree's tree of a snapshot's commit."""

    def leads_out(self, link: str) -> str | None:
        """What leads a symbolic link out of the workspace, by itself or through others; None where it stays inside."""

    def uncovered(self, path: str) -> bool:
        """Whether a file was there, as it is, and ignored at the last snapshot: the ignore rules changed, not it."""

    def left_out(self) -> Mapping[str, str]:
        """Path, a folder with `/` at its end, to why the last scan did not save it: ignored, special, a repository."""

    def ignored(self) -> tuple[str, ...]:
        """Those of `left_out` that git ignores; submodules, which cost a look each, are not looked into for them."""

    def gone(self) -> tuple[str, ...]:
        """What git ignores that was there at the last snapshot and is no more; no snapshot has it."""

    def hidden_by(self, new: Iterable[str], changed: Iterable[str] = ()) -> Mapping[str, str]:
        """Path, a folder with `/`, that git ignores to the one of these `.gitignore` files whose rule it is.

        Of those that are only `changed` without what was ignored at the last snapshot.
        """

    def caches(self) -> tuple[str, ...]:
        """Folders, with `/`, that git ignores only by a `.gitignore` in them which is in no tree.

        They say that they are caches or virtual environments. Any other `.gitignore` is scanned, ignored or not.
        """

    def repositories(self) -> tuple[str, ...]:
        """Submodules, and folders that are repositories of their own, as the last scan found them."""

    def inner_changes(self, snapshot: Snapshot) -> tuple[InnerChange, ...]:
        """What is not as it was at a snapshot in these: HEAD, and files that are or were not as HEAD has them."""

    def refs_at(self, snapshot: str) -> Mapping[str, str]:
        """The user's refs when a snapshot commit was made, but for the branch that HEAD was on; by name."""

    def keep(self, ref: str, tree: str, reason: str, parent: str | None = None) -> Snapshot:
        """A commit under `ref` for a tree that was scanned before."""

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Paths that differ, sorted; renames are a deletion and a creation."""

    def entry(self, tree: str, path: str) -> Entry | None: ...

    def is_folder(self, tree: str, path: str) -> bool: ...

    def overlay(self, tree: str, source: str, paths: Iterable[str]) -> str:
        """`tree` with each of `paths` as it is in `source` (absent there: removed)."""

    def read(self, oid: str) -> bytes:
        """An object's bytes. Refusal `git.object-missing` where it is not there or damaged."""

    def pieces(self, oid: str) -> Iterator[bytes]:
        """A blob's bytes, a piece at a time where it is large."""

    def store(self, data: bytes) -> str:
        """Keep bytes as a blob; its id. Used with `keep_blobs` for plans that are locked in."""

    def keep_blobs(self, ref: str, blobs: Mapping[str, str], reason: str) -> str:
        """A commit under `ref` whose tree holds `name -> blob id`; the commit's id."""

    def kept_blobs(self, ref: str) -> Mapping[str, str]:
        """What `keep_blobs` stored under `ref`; empty when there is none."""

    def restore(
        self,
        target: str,
        expected: str,
        paths: Iterable[str],
        *,
        force: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> tuple[Conflict, ...]:
        """Write each path as it is in `target`, only where its present bytes are those of `expected`.

        All paths are looked at first: with a conflict then, no path is written. One that arises while they are written,
        because somebody changes a path at that moment, stops it there: those before it are written, that one and the
        rest are not. The same holds for OSError. Doing it again is right: a path that is as in `target` is no conflict.
        `force` skips the comparison (the present was saved before). Files and folders are forced to disk. `tell` is
        given a line for each file that loses what a tree cannot hold: other links, extended attributes.
        """

    def missing_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Which of the folders, and of those that lead to them, are not there; outer ones first."""

    def present_folders(self, folders: Iterable[str]) -> tuple[str, ...]: ...

    def make_folders(self, folders: Iterable[str]) -> None:
        """Make those that are missing, forced to disk; what stands in the way stays."""

    def remove_folders(self, folders: Iterable[str]) -> None:
        """Remove those that hold nothing, inner ones first."""

    def force(self, paths: Iterable[str]) -> None:
        """Force the present bytes of these paths to disk, and the folders that lead to them."""

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        """A unified diff, without external tools, text conversion or colour."""

    def line_counts(self, old: str, new: str) -> Mapping[str, tuple[int | None, int | None]]:
        """Path to lines added and removed; None for binary files."""

    def apply_patch(self, patch: str, allowed: Callable[[str], str | None]) -> tuple[bool, str]:
        """Apply a git patch to the workspace, all or nothing. `allowed` says why a path may not be written."""


class History(Protocol):
    """HEAD, branch and refs of the user's repository."""

    def head(self) -> Head: ...

    def state(self) -> RepositoryState: ...

    def kept_refs(self) -> Mapping[str, str]:
        """Idumb's own refs of this work tree and what they hold, as they are now."""

    def expected_refs(self) -> Mapping[str, str]:
        """The same as they were when somebody looked last, and as this process made them since."""

    def descends(self, commit: str, tip: str | None = None) -> bool:
        """Whether HEAD, or the commit `tip`, is this commit or came from it."""

    def index(self) -> bytes | None:
        """The bytes of the index file; None where there is none."""

    def index_changes(self, snapshot: str, present: bytes | None) -> tuple[str, ...]:
        """Paths of which the index has something else than at a snapshot; what git learned of times is no change."""

    def index_again(self, snapshot: str, paths: Sequence[str]) -> tuple[bytes, tuple[str, ...]]:
        """What `git update-index -z --index-info` takes to give the index what a snapshot has of these paths.

        And the commands for the top folder that set the flags which that cannot set.
        """

    def index_rows(self, entries: Mapping[str, Entry | None]) -> bytes:
        """The same for entries that are known; None takes the path out."""

    def staged(self, paths: Sequence[str]) -> Mapping[str, Entry | None]:
        """Those of the paths of which the index has something else than HEAD; None where only HEAD has the path."""

    def index_command(self, snapshot: str) -> str:
        """What a person says in the top folder to have the index of a snapshot again."""

    def unlike_index(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of the paths that the work tree has otherwise than the index, filters applied."""

    def committed(self, base: str | None, paths: Sequence[str]) -> Mapping[str, Container[str]]:
        """Those of the paths that `base` or a commit of HEAD's since has, each with the ids of its blobs there."""

    def head_at(self, snapshot: str) -> str | None:
        """HEAD's commit when a snapshot was taken."""

    def tree_of(self, commit: str | None) -> str:
        """The tree of a commit of the user's; the empty one for None."""

    def obstacle(self) -> tuple[str, str] | None:
        """(code, message) of a state in which nothing may be run: a merge in progress, unmerged entries, ..."""

    def unsupported(self) -> tuple[str, str] | None:
        """(code, message) where no command of idumb's can work: the repository's format, owner or work tree."""

    def identity_problem(self) -> str | None:
        """Why git could not make a commit for this user, or None."""

    def head_tree(self) -> str | None:
        """The tree of HEAD's commit, None before the first commit."""

    def ignored(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths that git ignores and does not track."""

    def repositories(self, places: Iterable[str]) -> tuple[str, ...]:
        """Every submodule of the index, and those of the places and the folders above them that are repositories.

        A folder that holds tracked files is none. Nothing is written.
        """

    def untracked(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of the paths that are files which git neither tracks nor ignores."""

    def uncommitted(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of the paths (globs allowed) with changes in work tree or index against HEAD, as git sees it."""

    def commit(
        self, paths: Sequence[str], message: str, *, expected_head: str | None, hooks: bool, allow_empty: bool
    ) -> CommitAttempt:
        """Commit exactly these paths as they are in the work tree, with the git program, on the current branch.

        Whatever else is staged or changed stays as it is. Refused when HEAD is not `expected_head`.
        """

    def begin_branch(self, name: str) -> None:
        """Make a branch where HEAD is and put HEAD on it; index and work tree stay as they are.

        Refusal `git.branch-name`, or `git.branch-exists` where there is one that stands elsewhere.
        """

    def settle(self, made: str, paths: Sequence[str]) -> None:
        """Let the index follow a commit of ours after which git was ended; entries that somebody changed stay."""

    def advance(self, tip: str, message: str, *, expected_head: str | None, hooks: bool) -> CommitAttempt:
        """Move the branch, or a detached HEAD, forward to a commit that is there, and the index entries that differ.

        Refused when HEAD is neither `expected_head` nor `tip`; of a branch at `tip` the index alone is looked at.
        Entries that somebody changed stay, and so do the files. `message` is for the reflog.
        """

    def trailers_since(self, base: str | None, limit: int = 10_000) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """(commit, its Idumb-* trailers) from HEAD back to `base`, newest first; only commits that have any."""

    def refs(self, prefix: str) -> Mapping[str, str]: ...

    def keep_ref(self, ref: str, commit: str) -> None:
        """Make a ref below `refs/idumb/` for a commit that is there, forced to disk."""

    def delete_ref(self, ref: str, expected: str) -> None: ...

    def remove_stale_files(self, since: str | None) -> Sequence[str]:
        """Remove locks and temporary files of an operation of this work tree that began then and was killed.

        Their paths. What a live process may have made stays. None: only what lies among idumb's own files.
        """


class KeptRefs(Protocol):
    """All refs below `refs/idumb/`, of every work tree."""

    def list(self) -> Mapping[str, str]: ...

    def bundle(self, path: str) -> int:
        """Write them with all that they need into a file; how many."""

    def delete(self, expected: Mapping[str, str]) -> None:
        """All or none, each with its expected value."""
