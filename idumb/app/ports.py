"""The ports: everything the engine needs from outside, as protocols. `idumb/bootstrap.py` fills them.

Paths are `str`, relative to the workspace root with `/`, bytes that are not UTF-8 as surrogate escapes.
Object ids are hex.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from idumb.domain.agent import AgentRequest, AgentResult, Claim
from idumb.domain.contract import Contract
from idumb.domain.event import ChainCheck, Event, NewEvent
from idumb.domain.finding import Finding, as_agreed, errors
from idumb.domain.ledger import Change, Entry
from idumb.domain.plan import Condition, Plan, Task
from idumb.domain.run import RunState

if TYPE_CHECKING:  # what only some commands pass around is loaded by those that make it
    from idumb.domain.amendment import Amendment
    from idumb.domain.approval import Kept
    from idumb.domain.commits import Commit
    from idumb.domain.decision import Answer, Decision
    from idumb.domain.evidence import Evidence
    from idumb.domain.gap import Gap
    from idumb.domain.handoff import Document
    from idumb.domain.legacy import OldFile
    from idumb.domain.question import Question
    from idumb.domain.quick import Wanted
    from idumb.domain.remembered import Remembered
    from idumb.domain.state_file import Told


@dataclass(frozen=True, slots=True)
class Head:
    """`commit` is None before the first commit, `branch` None when HEAD is detached."""

    commit: str | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class Standing:
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
class Offered:
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


@dataclass(frozen=True, slots=True)
class ParsedPlan:
    """`plan` is None when a finding is an error; `text` is the decoded file, for edits by span.

    `draft` is what could be read of a plan with errors, for checks alone; None where nothing could.
    """

    plan: Plan | None
    findings: tuple[Finding, ...]
    text: str = ""
    draft: Plan | None = None

    @property
    def as_agreed(self) -> ParsedPlan:
        """What comes of the plan under the rules that earlier versions had."""
        findings = as_agreed(self.findings)
        return self if errors(findings) else ParsedPlan(self.plan or self.draft, findings, self.text, self.draft)


class Clock(Protocol):
    def now(self) -> str:
        """UTC, ISO 8601 with microseconds and `Z`."""

    def monotonic(self) -> float:
        """Seconds, for durations only."""

    def pause(self, seconds: float) -> None:
        """Wait, until an interruption at most."""


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

    def standing(self) -> Standing: ...

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

    def clear_debris(self, since: str | None) -> Sequence[str]:
        """Remove locks and temporary files of an operation of this work tree that began then and was killed.

        Their paths. What a live process may have made stays. None: only what lies among idumb's own files.
        """


class Workspace(Protocol):
    """Where tasks run: `here`, the user's work tree, or `clone`, a private copy that delivers path by path."""

    kind: str

    @property
    def trees(self) -> Trees: ...

    def deliver(self, base: str, candidate: str, paths: Sequence[str]) -> tuple[str, tuple[Conflict, ...]]:
        """Bring the candidate's paths into the user's tree, compare-and-swap.

        (tree id in the user's repository, conflicts). In `here` there is nothing to do.
        """

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LeftClone:
    """A clone that is there, made for a run."""

    run: str
    path: str


class Clones(Protocol):
    """The clones of this repository, whatever command made them."""

    def require_place(self) -> None:
        """Refusal `clones.unusable` where none can be made."""

    def place(self) -> str:
        """The folder that they are made in."""

    def left(self) -> Sequence[LeftClone]:
        """Those that are there, also where older versions made them; some may be at work."""

    def keep(self, left: LeftClone, ref: str, reason: str) -> Snapshot | None:
        """End what runs in it and keep its files under `ref`, and what was committed there beside it.

        None where nothing is in its place but a link or a file. Git's own folder in it is made anew.
        """

    def remove(self, left: LeftClone) -> None: ...


class CommittingClone(Protocol):
    """The clone of a run whose builders commit: what they commit there is looked at, and brought home as objects.

    Nothing of the builder's git folder is used but its branch and its objects, and no hook of it runs. Refusal
    `git.clone-gone` where the folder of all clones was replaced.
    """

    @property
    def base(self) -> str | None:
        """The commit that it was made at; None for a history without commits."""

    def begin(self, commit: str | None) -> None:
        """Make the clone anew: files, index and branch as this commit is."""

    def take(self) -> Offered:
        """Put a git folder of idumb's own in place of the builder's, and read what was committed.

        To be called when the builder's processes have ended, before anything else is asked of the clone.
        """

    def uncommitted(self, offered: Offered, base: str, candidate: str) -> tuple[str, ...]:
        """Paths in which the last commit and the candidate differ, git's filters applied.

        What neither the commits nor the attempt changed since the task base is passed over.
        """

    def keep(self, offered: Offered, ref: str) -> str:
        """Bring the commits home, durable and named by `ref`; the clone stands at the last one.

        Why they cannot be, or nothing.
        """

    def drop(self) -> None:
        """Let go of what was committed: the clone stands at its base, with the files as they are."""


class EventLog(Protocol):
    def append(
        self, events: Sequence[NewEvent], *, operation: str, fence: int, expected: int | None = None
    ) -> tuple[Event, ...]:
        """One durable transaction; refused when `fence` is not the current one.

        `expected` is the newest event of the run that the caller knows; Refusal `run.moved-on` when there are later
        ones.
        """

    def events(
        self,
        *,
        run: str | None = None,
        task: str | None = None,
        kind: str | None = None,
        operation: str | None = None,
        since: str | None = None,
        until: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Event]: ...

    def head(self) -> tuple[int, str]:
        """(last sequence number, its hash); (0, GENESIS) when empty."""

    def verify(self) -> ChainCheck:
        """Compute every hash again and follow the chain to the first break."""


class LogFiles(Protocol):
    """Files of the event log beside its database: backups, and segments that older events are moved to."""

    def back_up(self, path: str) -> tuple[int, str]:
        """A file of all events, forced to disk; the last one's number and hash. Refusal `backup.exists`."""

    def check_backup(self, path: str) -> tuple[ChainCheck, bool]:
        """Every hash of a backup again, and whether this log has the same history so far."""

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The segments: number, name, first, last, previous, head, sha256, at, kinds."""

    def starts(self) -> Sequence[tuple[str, str, str, int]]:
        """(run, phase, work tree, first event) of every run of the repository, the oldest first."""

    def archive(self, last: int) -> Sequence[Mapping[str, Any]]:
        """Move the events up to number `last` into segments, each checked before its events go; the new ones."""


class RunIndex(Protocol):
    """Finds runs without replaying them. A row is written in the same transaction as its event."""

    def latest(self, phase: str) -> str | None:
        """Id of the newest run of a phase in this work tree."""

    def last_number(self, phase: str) -> int:
        """The number of the newest run of a phase in this work tree; 0 when there is none."""

    def phases(self) -> tuple[str, ...]: ...


class Ownership(Protocol):
    """One owner per work tree."""

    def acquire(self, command: str, *, force: bool = False) -> int:
        """The fencing token; raises Refusal `lock.held` or `lock.elsewhere` with pid, host and since of the holder.

        `force` takes the work tree from an owner on another machine, whose token is refused from then on.
        """

    def release(self) -> None: ...

    def check(self, fence: int) -> bool:
        """Whether the token is still the current one."""

    def guard(self) -> None:
        """Before each effect: Refusal `lock.lost` where this process was the owner and another one took over."""

    def holder(self) -> Mapping[str, Any] | None:
        """Who seems to own the work tree: pid, host, since, command, fence, standing; None when nobody does."""

    def overtaken(self) -> Mapping[str, Any] | None:
        """As `holder`: a process of this machine that lived and owned the work tree when this one got it; else None."""

    def ask(self, holder: Mapping[str, Any], by: str) -> bool:
        """Ask a holder of this machine to stop; whether it let go within ten seconds."""

    def end(self, holder: Mapping[str, Any]) -> None:
        """Kill a holder of this machine and what it started, as pulling the plug would."""

    def asked(self) -> str | None:
        """Who asked this owner to stop; None when nobody did."""

    def ask_to_pause(self, holder: Mapping[str, Any], by: str, why: str) -> None:
        """Leave word for the holder that it is to stop after the task that it is at."""

    def pause_asked(self) -> tuple[str, str] | None:
        """(who, why) of a person who asked this owner to pause; None when nobody did."""


class Agent(Protocol):
    """An agent adapter. `continues`: a retry after failed validation may go on from the attempt's own work.

    An attribute `resumes` may say that a request's `session`, which it named before, is gone on with; `tells` that it
    is a `TellingAgent`; `idle_timeout` how many seconds of silence it is given where the configuration names none.
    """

    name: str
    version: str
    continues: bool

    def run(self, request: AgentRequest) -> AgentResult: ...

    def describe(self) -> Sequence[str]:
        """What will be run, resolved, for consent: an argument list, or () where nothing is started."""


Hear = Callable[[Claim], None]


class TellingAgent(Agent, Protocol):
    """An agent that says where it stands while it works."""

    tells: bool

    def run(self, request: AgentRequest, hear: Hear | None = None) -> AgentResult:
        """`hear` is called within it, in its thread, where no signal cuts it short; it raises nothing."""


class AgentElsewhere(Agent, Protocol):
    """An agent that answers later, and so is asked by something that outlives the command."""

    def question(self, request: AgentRequest) -> str:
        """A name for what is asked: the same until it was answered."""

    def ticket(self) -> str:
        """A new one, which nobody can foresee; it is kept in the log, and given with every request of its question."""


class Agents(Protocol):
    def get(self, binding: str) -> Agent:
        """The adapter of a binding of the configuration, or of `steps` and `human`."""

    def forget(self) -> None:
        """Remove what was kept so that agents could go on where they were; nobody is asked again."""


class Checks(Protocol):
    """Runs the project's own commands and conditions; the only way a proof is made."""

    def command(self, subject: str, text: str, command: str, *, timeout: float | None, tree: str | None) -> Evidence:
        """Run a fixed command string by `/bin/sh -c` in the workspace; exit 126 and 127 are errors."""

    def condition(self, subject: str, condition: Condition, *, timeout: float | None, tree: str | None) -> Evidence: ...

    def end_processes(self) -> tuple[int, ...]:
        """End every process that builders and checks left behind; their ids."""


class ConsentStore(Protocol):
    """Consent in the user's state directory, keyed by repository and contract hash."""

    def given(self, contract_hash: str) -> bool: ...

    def record(
        self, contract_hash: str, *, phase: str, how: str, at: str, agreed: Mapping[str, Any] | None = None
    ) -> None:
        """`agreed` is what the hash does not tell of what was agreed to, any JSON object."""

    def agreed(self, contract_hash: str) -> Mapping[str, Any]:
        """What `record` was given with it; empty where there is no consent."""

    def all_agreed(self, phase: str) -> tuple[Mapping[str, Any], ...]:
        """The same of every consent under a phase, the newest first."""

    def approvals(self, phase: str) -> tuple[Kept, ...]:
        """Every approval of a phase that was given for this repository, the newest first."""

    def approve(self, kept: Kept) -> None:
        """Keep an approval; one of the same contract and nonce is replaced."""

    def phases(self) -> tuple[str, ...]:
        """Every phase, as it was spelled, of which this repository has an approval or consent."""

    def withdraw(self, phase: str) -> int:
        """Forget the plain consent to every contract of a phase; how many there were."""

    def keep_question(self, question: str, record: Mapping[str, Any]) -> None:
        """Keep a question about consent until it is answered; `question` is `consent.` and a hash."""

    def questions(self) -> tuple[Mapping[str, Any], ...]:
        """What `keep_question` was given for this repository; Refusal `consent.unsafe` as elsewhere."""

    def forget_question(self, question: str) -> None: ...

    def mark(self) -> str:
        """Another text as soon as consent or an approval was given or taken back."""

    def nonce(self) -> str:
        """A name that no approval had before."""

    def export(self, kept: Kept, path: str) -> str:
        """Write a signed approval to a new file; its absolute path. Refusal `approval.file-exists`."""

    def read_file(self, path: str) -> Kept:
        """A signed approval from a file; InputError `approval.unreadable`."""


class Memory(Protocol):
    """Answers that a person asked to be remembered: in the user's state directory, for this repository alone."""

    def all(self) -> tuple[Remembered, ...]: ...

    def get(self, question: str) -> Remembered | None: ...

    def keep(self, answer: Remembered) -> None: ...

    def forget(self, question: str) -> bool:
        """Whether there was one."""


class Signatures(Protocol):
    """Signatures over approvals, by the user's own keys."""

    def sign(self, data: bytes, key: str, *, interactive: bool) -> str:
        """Armoured signature of a key file. Refusal `approval.not-signed` with the signer's words."""

    def signer(self, data: bytes, signature: str) -> str | None:
        """Who signed, by the user's list of allowed signers; None where nobody on it did.

        Refusal `approval.no-signers` where there is no such list, or others could have written it.
        """

    def intact(self, data: bytes, signature: str) -> bool:
        """Whether a signature is one over these bytes, whoever made it."""

    def has_list(self) -> bool:
        """Whether there is a list of allowed signers."""


class Files(Protocol):
    """Files of the work tree that commands name."""

    def digests(self, paths: Iterable[str]) -> Mapping[str, str]:
        """SHA-256 of the bytes of each path that is a file, links followed; the others are left out."""

    def signature(self, paths: Iterable[str]) -> str | None:
        """Another text as soon as one of the files may have changed; None where that cannot be told yet."""

    def there(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths at which something is, be it a link that leads nowhere."""

    def programs(self, names: Iterable[str]) -> Mapping[str, str]:
        """The absolute path of each program that can be started and lies outside the root."""

    def startable(self, programs: Iterable[str]) -> frozenset[str]:
        """Those that can be started: names on PATH, and paths of executable files, seen from the root."""

    def links(self, folders: Iterable[str]) -> Mapping[str, str]:
        """Folders that are links or lie below one, and where they lead: from the root, or absolute where outside."""


class Surroundings(Protocol):
    """What attempts run under and no plan says, read anew each time it is asked for."""

    def places(self) -> tuple[str, ...]:
        """Absolute paths of the files on which the rest depends."""

    def template(self, name: str) -> str:
        """The text of a prompt template that is shipped; "" where there is none."""

    def tools(self) -> Mapping[str, str]:
        """A program's name to its version text."""

    def shown(self, text: str) -> str:
        """What a program said, without all that may be a secret."""

    def without_secrets(self, text: str) -> str:
        """What idumb itself writes, without the secrets that are known: what log, reports and commits have of it."""

    def may_hide(self, shown: str, text: str) -> bool:
        """Whether `shown` may be `text` without its secrets, of which one is not known now."""

    def knows_secrets(self) -> bool:
        """Whether there is any value that `secrets_in` could find."""

    def secrets_in(self, pieces: Iterable[bytes]) -> Sequence[tuple[str, int]]:
        """The variable and the line of each known value in bytes that come in pieces."""

    def held_in(self, pieces: Iterable[bytes], wanted: frozenset[str]) -> frozenset[str]:
        """Those of the wanted variables whose values are in the bytes. Reads no further than it must."""


class PlanFiles(Protocol):
    """Reads `.planning/`; the only place where plan files are opened."""

    def phase_folder(self, phase: str) -> str:
        """`.planning/phases/01-name` for `1`; raises InputError phase.not-found or phase.ambiguous.

        For the path or id of a step plan, whether it is there or not, the folder that its reports go to.
        """

    def same_phase(self, one: str, other: str) -> bool:
        """Whether two spellings mean one phase or step plan; nothing is read, so neither need be there."""

    def phases(self) -> tuple[tuple[str, str], ...]:
        """(number, folder) of every phase folder, in order; then those of quick plans."""

    def quick_text(self, phase: str, wanted: Wanted) -> str:
        """The plan of one task, which is written nowhere yet."""

    def plans(self, folder: str) -> tuple[tuple[str, bytes], ...]:
        """(path, bytes) of every `*PLAN.md`, in order of name; of the step plan that reports in this folder."""

    def parse(self, data: bytes, path: str, others: Sequence[bytes] = ()) -> ParsedPlan:
        """`others` are the other plans of the phase, whose ids are not free."""

    def amended(self, data: bytes, path: str, amendments: Sequence[Amendment]) -> bytes:
        """The plan's bytes with the amendments written in; every other byte as it was.

        InputError `plan.invalid`, `task.unknown`, `amend.task-invalid`, `amend.no-dependency` or `amend.cannot-write`.
        """

    def recorded(self, folder: str) -> Mapping[str, Mapping[str, Any]]:
        """Frontmatter of the SUMMARY and VERIFICATION reports in a phase folder, by that word.

        They may tell of runs that this machine did not witness. What cannot be read is left out.
        """

    def report(self, data: bytes, word: str) -> Mapping[str, Any] | None:
        """The frontmatter of one such report; None for anything else, however broken."""

    def old_state(self, path: str, data: bytes) -> OldFile | None:
        """What a file of an old iDumb says; None for idumb's own files."""

    def roadmap(self) -> tuple[tuple[str, str, int], ...]:
        """(number, title, line) of every phase that ROADMAP.md names."""


class Texts(Protocol):
    """What stands in the texts around a phase, and how they are changed. Pure: takes texts, opens nothing."""

    def roadmap_section(self, text: str, phase: str) -> str:
        """What a roadmap says of a phase; "" where it does not name it."""

    def with_phase(self, text: str, number: str, title: str, goal: str, after: str = "") -> str:
        """A roadmap with one more phase, behind phase `after` or at its end."""

    def questions(self, text: str) -> tuple[Question, ...]:
        """Those of a context file, answered or not."""

    def without_open(self, text: str) -> str:
        """A context file without the questions that nobody answered; "" where nothing else is in it."""

    def with_questions(self, text: str, title: str, questions: Iterable[Question], answers: Mapping[str, str]) -> str:
        """A context file with more questions and answers; every other byte as it was."""

    def research(self, text: str) -> tuple[str | None, str]:
        """The digest of the bundle that a research file answers to, None where idumb did not make it; and its body."""

    def plans_in(self, reply: str) -> tuple[str, ...]:
        """Every plan in an answer of a model."""

    def stated_criteria(self, text: str) -> tuple[str, ...]:
        """What a text lists under "Success criteria" and the like."""


class Reports(Protocol):
    """Projections for people: files under `.idumb/brain/` and the phase folder. Losing them loses nothing."""

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders, without known secrets; refuses links that lead out of the repository."""

    def write_source(self, path: str, text: str) -> None:
        """The same with every byte as it is: a plan, whose commands run, or another file of the user's."""

    def remove(self, path: str) -> None: ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> str | None: ...

    def empty(self, path: str) -> bool:
        """Whether there is a regular file without a byte; it is not read."""

    def files(self, folder: str) -> tuple[str, ...]:
        """Every regular file below a folder, sorted; nothing that a link leads to."""


class HostFiles(Protocol):
    """Files of agent hosts below one root, never reached through a link. What cannot be written is an OSError."""

    def read(self, path: str) -> str | None:
        """None where there is nothing of that name, "" where it is no readable file."""

    def prepare(self, paths: Iterable[str]) -> None:
        """Before the first `write` of these paths: the folders that it will make are remembered."""

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders."""

    def remove(self, path: str) -> None: ...

    def below(self, folder: str, depth: int) -> tuple[str, ...]:
        """Names of files in a folder; with `depth` 1 those in its folders, as `folder/file`."""

    def clear_folders(self) -> None:
        """Remove those that were made at any time and that are empty, and then what was remembered of them."""


class Attic(Protocol):
    """Keeps what something else replaces, below idumb's own folder in the repository's git folder."""

    def keep(self, kind: str, name: str, data: bytes) -> str:
        """The path of a durable copy of `data`; the same bytes under the same name are kept once."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """A folder that idumb keeps for this repository, with how much is in it."""

    what: str
    path: str
    files: int
    bytes: int


class Belongings(Protocol):
    """All that idumb keeps for this repository beside plans, commits, refs and `.idumb/`."""

    def list(self) -> tuple[Belonging, ...]: ...

    def held(self) -> AbstractContextManager[None]:
        """Own every work tree; Refusal `lock.held` where one has an owner."""

    def place_for_backup(self, name: str) -> str: ...

    def begin_backup(self, folder: str) -> None:
        """Refusal `backup.exists` where something is in that folder."""

    def back_up(self, folder: str) -> None: ...

    def keep(self, folder: str, name: str, source: str) -> None:
        """Copy one more folder into a backup."""

    def remove(self) -> None: ...

    def remove_files(self, path: str) -> None:
        """Remove one folder of the work tree with all in it."""


class Machine(Protocol):
    """What the machine tells of the places that idumb works in. `folder` is idumb's own in the git folder."""

    root: str
    git_dir: str
    folder: str

    def state_directory(self) -> tuple[str, str | None]:
        """Where it is, and why what lies in it cannot be trusted."""

    def file_system(self, path: str) -> str:
        """The type of the file system that holds a path; "" where the system does not tell."""

    def room(self, path: str) -> tuple[int, int | None]:
        """Bytes and files that can still be written there; None where files have no limit."""

    def user(self) -> int: ...

    def owner(self, path: str) -> int: ...

    def writable(self, path: str) -> bool:
        """Whether entries can be made in a folder; true where there is none."""

    def exposed(self) -> Sequence[tuple[str, int, int]]:
        """(path, owner, mode) of what others own, or can reach and may read or write, in `folder`."""

    def make_private(self, path: str) -> int | None:
        """Take the rights of others away; the mode, None where it was gone already."""

    def temporary(self) -> Sequence[tuple[str, float]]:
        """(path, age in seconds) of temporary files that dead processes of idumb left."""

    def set_aside(self, path: str) -> str:
        """Move a file into `folder`; where it is now, "" when it was gone already."""

    def left_processes(self) -> Sequence[tuple[int, str]]:
        """(process, run) of what was started by runs in this place and still lives."""

    def end(self, pid: int) -> None:
        """End one of `left_processes`."""


class KeptRefs(Protocol):
    """All refs below `refs/idumb/`, of every work tree."""

    def list(self) -> Mapping[str, str]: ...

    def bundle(self, path: str) -> int:
        """Write them with all that they need into a file; how many."""

    def delete(self, expected: Mapping[str, str]) -> None:
        """All or none, each with its expected value."""


class Asker(Protocol):
    """Puts a decision to a person at the terminal."""

    @property
    def interactive(self) -> bool:
        """Whether somebody can be asked; no more once a question was not answered in time."""

    def ask(self, decision: Decision) -> Answer | None:
        """The answer, or None where nobody can be asked or nothing was decided."""


class Reporter(Protocol):
    """Shows progress; must not fail the run. Receives every event once it is durable, and notes before."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        """The tasks of the run that is about to go on, in execution order, and where each is."""

    def event(self, event: Event) -> None: ...

    def note(self, text: str) -> None: ...


Payload = Mapping[str, Any]


class Interrupts(Protocol):
    """Signals, turned into `Interrupted` only where stopping is safe."""

    def check(self) -> None:
        """Raise Interrupted when the user asked to stop."""

    def armed(self) -> AbstractContextManager[None]:
        """Inside, a signal raises Interrupted at once; outside, it waits for the next `check`."""


class Documents(Protocol):
    """Renders what people read; pure. `views/` implements it."""

    def filled(self, template: str | None, name: str, values: Mapping[str, str]) -> str:
        """A template with values in place of their names; None is the shipped one of that name.

        AdapterError `agent.no-prompt` where none is shipped.
        """

    def checkpoint(
        self, state: RunState, task: Task, evidence: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]
    ) -> str: ...

    def progress(self, state: RunState, statuses: Mapping[str, str]) -> str: ...

    def state(self, told: Told) -> str:
        """`state.json`; the same words of the log give the same bytes."""

    def summary(
        self,
        contract: Contract,
        state: RunState,
        statuses: Mapping[str, str],
        *,
        evidence: Mapping[str, Sequence[Mapping[str, Any]]],
        line_counts: Mapping[str, tuple[int | None, int | None]],
        now: str,
        links: Mapping[str, str],
    ) -> str: ...

    def verification(self, contract: Contract, record: Mapping[str, Any], *, now: str) -> str: ...

    def unverified(self, contract: Contract, state: RunState, *, now: str) -> str:
        """The report of a phase that was judged, and of which tasks were taken back since."""

    def handoff(self, document: Document) -> str: ...

    def gap_plan(
        self,
        contract: Contract,
        gaps: Sequence[Gap],
        *,
        identity: str,
        first: int,
        builder: str | None,
        reach: Sequence[str],
    ) -> str: ...

    def prompt(self, request: PromptRequest) -> str: ...

    def research(self, fields: Mapping[str, str | None], body: str) -> str:
        """A research file; `body` may be of any origin."""

    def first_plan(self, template: str, words: Mapping[str, str]) -> str:
        """A plan from a template; `words` are phase, title, goal, roadmap and builder."""


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """What a prompt is made of; `evidence` is of the attempt before, for the validator of this one.

    `template` is the text of a template of the user's; else the one that is shipped under `name`, or for the role.
    `handover` is the summary of an agent whose context was exhausted. `commits`: the builder commits its work itself.
    `decided` are answers of people in this run that hold for every task.
    """

    role: str
    task: Task
    plan: Plan
    protected: tuple[str, ...]
    feedback: str
    attempt: int
    evidence: tuple[Evidence, ...] = ()
    diff: str = ""
    template: str | None = None
    name: str = ""
    handover: str = ""
    commits: bool = False
    decided: tuple[str, ...] = ()


class Symbols(Protocol):
    def defined(self, path: str, data: bytes) -> frozenset[str] | None:
        """Names that a file defines, members as `Class.member`; None where nobody can tell."""


class Gate(Protocol):
    """A check of our own, made from what changed; pure, so it never touches the workspace."""

    name: str

    def judge(
        self,
        task: Task,
        plan: Plan,
        changes: Sequence[Change],
        line_counts: Mapping[str, tuple[int | None, int | None]],
    ) -> tuple[Evidence, ...]: ...
