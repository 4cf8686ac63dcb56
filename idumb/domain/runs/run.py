"""The state of a run and of its tasks, built from events by `replay`.

`RunState` is mutable, because a run of ten thousand tasks cannot afford a copy for each event; its values are frozen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from idumb.domain import canonical_json, outcome
from idumb.domain.runs.spending import Spent
from idumb.domain.settings import COMMIT_TASK, REPORTS_BRANCH, REPORTS_NONE

ACTIVE = "active"
HALTED = "halted"
INTERRUPTED = "interrupted"
PAUSED = "paused"
COMPLETED = "completed"
FAILED = "failed"
DROPPED = "dropped"
CLOSED = frozenset({COMPLETED, DROPPED})

START = "start"
MAIN = "main"
ANSWERED, ELSEWHERE, JUDGED = "answered", "elsewhere", "judged"
"""Why a task was reset."""
EFFECT, COMPENSATED = "made", "compensated"

GIT_INDEX = ".git/index"
"""The guarded file that git itself changes."""


class RunBase(Struct, frozen=True):
    """Where a run started: HEAD, the tree of its files, and the snapshot of them."""

    commit: str | None = None
    tree: str = ""
    snapshot: str | None = None


class LockedContract(Struct, frozen=True):
    """The contract that a run follows.

    - `version`: counts the locked versions from 1. `chain`: binds each version to those before it.
    - `amendments`: those recorded.
    - `appended`: answers that the plan itself contains.
    - `lock_in`: what was recorded when the contract was last locked, None before.
    - `envelopes`: the environments of the agents that apply now.
    """

    hash: str = ""
    plans: tuple[tuple[str, str], ...] = ()
    version: int = 1
    chain: str = ""
    amendments: tuple[Mapping[str, Any], ...] = ()
    appended: frozenset[str] = frozenset()
    lock_in: Mapping[str, Any] | None = None
    envelopes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def earlier(self) -> tuple[str, ...]:
        """The contract hashes of the earlier versions."""
        return tuple(amendment["from"] for amendment in self.amendments)


class GuardedFiles(Struct, frozen=True):
    """Git's own files: `digests` when the last attempt started (None: not recorded), `unchecked` until compared.

    `accepted` are the names and digests that a person accepted: what a task writes into the tree may appear again when
    the task is tried again.
    """

    digests: Mapping[str, str] | None = None
    unchecked: bool = False
    accepted: frozenset[tuple[str, str]] = frozenset()


class RunState(Struct):
    """The state of one run.

    - `tasks`: by id, in execution order. `attempted`: the attempted tasks, in the order of their first attempt;
      one that only asked a person does not count once the work begins.
    - `operations`: what each rollback and undo removed, for the undo of it.
    - `restoring`: the rollback or undo that was announced but not recorded yet.
    - `spent`: by role.
    - `reports`: where its reports are kept, one of `settings.REPORTS`.
    - `moved_at`: when the status of the run or of a task last changed.
    - `uncommitted_by`: the paths of each finished task without a commit.
    """

    id: str = ""
    phase: str = ""
    number: int = 0
    mode: str = "guided"
    policy: str = "task"
    branch: str | None = None
    base: RunBase = RunBase()
    contract: LockedContract = LockedContract()
    guarded: GuardedFiles = GuardedFiles()
    state: str = ACTIVE
    reason: str = ""
    started_at: str = ""
    changed_at: str = ""
    moved_at: str = ""
    failures_in_a_row: int = 0
    tasks: dict[str, TaskState] = field(default_factory=dict)
    attempted: dict[str, int] = field(default_factory=dict)
    decisions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    verification: Mapping[str, Any] | None = None
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)
    restoring: Mapping[str, Any] | None = None
    reports: str = "branch"
    spent: dict[str, Spent] = field(default_factory=dict)
    last_seq: int = 0
    uncommitted_by: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def uncommitted(self) -> tuple[str, ...]:
        """Return the paths of finished tasks without a commit."""
        return tuple(dict.fromkeys(path for written in self.uncommitted_by.values() for path in written))

    def note(self, *tasks: TaskState) -> None:
        """Keep `uncommitted_by` up to date, after these tasks have changed."""
        for task in tasks:
            kept = task.checkpoint
            # Of a task that an earlier run finished, only the checkpoint says what it wrote.
            written = task.work.touched or (kept.files if kept is not None else ())
            if written and task.status in outcome.DONE and (kept is None or kept.commit is None):
                self.uncommitted_by[task.id] = written
            else:
                self.uncommitted_by.pop(task.id, None)

    @property
    def opened(self) -> TaskState | None:
        """The task whose attempt is open in an editor; there is at most one."""
        return next((task for task in self.tasks.values() if task.attempt.opened is not None), None)

    @property
    def is_complete(self) -> bool:
        """Whether no task needs more work and no rollback is half done: only then can the whole phase be judged."""
        return self.restoring is None and all(task.status in outcome.ENDED for task in self.tasks.values())

    @property
    def verified(self) -> bool:
        return self.verification is not None and self.verification["status"] == "passed"

    @property
    def reports_in_log(self) -> bool:
        """Only the log has the reports of the run, and no file does."""
        return self.reports == REPORTS_NONE

    @property
    def commits_reports(self) -> bool:
        """The reports of the run are committed to its branch."""
        return self.reports == REPORTS_BRANCH and self.policy == COMMIT_TASK

    @property
    def stage(self) -> str:
        """The stage of the phase, in iDumb's terms."""
        if self.verified:
            return "verified"
        return "executed" if self.state in {COMPLETED, FAILED} else "executing"

    @property
    def git_hash(self) -> str | None:
        """HEAD at the newest checkpoint; without a checkpoint, where the run started."""
        kept = [task.checkpoint for task in self.tasks.values() if task.checkpoint is not None]
        return max(kept, key=lambda checkpoint: checkpoint.seq).git_hash if kept else self.base.commit

    @property
    def session(self) -> str:
        """`closed` once every task is settled, else `active`; a rollback makes it active again."""
        return "closed" if self.state in CLOSED and self.restoring is None else "active"

    def wrote(self, path: str) -> bool:
        """Return whether a task of this run changed the file, also where that is undeclared."""
        return any(path in task.work.touched or path in task.work.deviations for task in self.tasks.values())

    def answers_about(self, tasks: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """Return the answers to questions about these tasks and about the phase as a whole."""
        subjects = ((id, self.decisions.get(id, {}).get("task")) for id in self.answers)
        return {id: self.answers[id] for id, task in subjects if task is None or task in tasks}

    def forget_answers_about_phase(self) -> None:
        """Forget the answers about the phase as a whole, because its work changes."""
        self.forget_answers(self.answers_about(()))

    def forget_answers(self, ids: Iterable[str]) -> None:
        for decision in ids:
            self.answers.pop(decision, None)


def run_id(contract_hash: str, base_commit: str | None, number: int, worktree: str = MAIN) -> str:
    """Return the deterministic id of a run: a hash of its first contract hash, base commit and number.

    The name of a linked working tree is part of it, so that two of them can start the same phase at once.
    """
    linked = () if worktree == MAIN else (worktree,)
    return canonical_json.digest([contract_hash, base_commit, number, *linked])[:16]


def chained(chain: str, contract_hash: str) -> str:
    """Return the next link of the chain of contracts, which shows if a version was removed."""
    return canonical_json.digest([chain, contract_hash])


def is_in_tree(name: str) -> bool:
    """Return whether a name of a guarded file is a path in the working tree."""
    return not name.startswith((".git/", "~/", "/"))


def guarded_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of guarded files whose digests differ."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def guarded_change(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return whether a guarded file that changed is new or was removed; "" if it has other bytes or another mode."""
    if name not in before:
        return "new"
    return "" if name in after else "removed"


class Checkpoint(Struct, frozen=True):
    """What idumb keeps after an attempt: `tree` is the candidate's, `git_hash` is HEAD after it (None: no commit).

    `seconds` is None if idumb was killed, and nobody knows how long the attempt took.
    """

    status: str
    git_hash: str | None
    snapshot: str
    tree: str
    files: tuple[str, ...]
    attempt: int
    seconds: float | None
    at: str
    seq: int
    error: str | None = None
    commit: str | None = None


class AgentStatus(Struct, frozen=True):
    """The last status that the agent in `role` reported in its own words; `number` counts reports of the attempt."""

    role: str
    state: str
    message: str
    number: int
    at: str


class AttemptState(Struct, frozen=True):
    """The last attempt of a task, open or ended.

    - `number`: its number; 0 if the task was never attempted.
    - `outcome`: how it ended; None before.
    - `adapter`: the adapter of its builder. `failure`: why its agent could not work, None if it could.
    - `failed_step`: the index of the declared step that ended it.
    - `crashed`: the builder's process was killed or crashed.
    - `unjudged`: the work waits for an external verdict.
    - `deviates`: it changed undeclared files, or what was committed is not what was proven. `unlike`: a deterministic
      run refused it. `next_step`: what helps if its agent could not work.
    - `opened`: while an editor works on it, `by` whom and since when (`at`).
    - `agent_status`: what an agent last reported, until the attempt ends.
    """

    number: int = 0
    running: bool = False
    outcome: str | None = None
    adapter: str = ""
    failure: str | None = None
    failed_step: int | None = None
    crashed: bool = False
    unjudged: bool = False
    deviates: bool = False
    unlike: bool = False
    next_step: str = ""
    opened: Mapping[str, Any] | None = None
    agent_status: AgentStatus | None = None


class TaskWork(Struct, frozen=True):
    """What a task changed.

    - `base`: the tree that the task starts from. `left_tree`: the tree that its last attempt left.
    - `snapshots`: those of the user's tree before its attempts, the newest first.
    - `touched`: the paths changed since the base. `deviations`: those among them that the task does not declare.
    - `accepted_paths`: the deviations that a person accepted.
    - `symbols`: changes of symbols, such as `added slugify in slug.py`.
    """

    base: str | None = None
    left_tree: str | None = None
    snapshots: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    accepted_paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


class TaskProgress(Struct, frozen=True):
    """How often a task was attempted, and what that used.

    - `attempts`: attempts that count against the limit.
    - `settled`: the number of the last attempt that did not end by waiting.
    - `exhausted`: agents whose context window was full.
    - `failure`: (reason, tree left) of the last attempt. `repeated`: attempts after it that ended the same way.
    """

    attempts: int = 0
    settled: int = 0
    exhausted: int = 0
    failure: tuple[str, str] = ("", "")
    repeated: int = 0
    seconds: float = 0.0
    spent: Spent = Spent()


class NextContext(Struct, frozen=True):
    """What the builder of the next attempt receives.

    - `feedback`: what was wrong with the last attempt. `guidance`: the last guidance of a person, with their name.
    - `handover`: what the last agent with a full context window left for its successor.
    """

    feedback: str = ""
    guidance: str = ""
    handover: str = ""


class TaskState(Struct, frozen=True):
    """The state of one task.

    - `decisions`: ids of the questions that the task waits for.
    - `intended`: a checkpoint was announced and not recorded yet.
    - `accepted_commit`: the commit that a person's acceptance made.
    - `carried_from`: the earlier run whose result the task keeps.
    - `effect`: `made` if a task with effects outside its files may have had them, `compensated` if its own commands
      reverted them, else empty.
    - `once`: the person who retried it asked for a single attempt.
    - `outputs`: what the step of a workflow gave out. `omitted_by`: the task whose result omitted it, else "".
    """

    id: str
    digest: str
    status: str = outcome.PENDING
    reason: str = ""
    decisions: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    intended: bool = False
    accepted_commit: str | None = None
    carried_from: str | None = None
    effect: str = ""
    once: bool = False
    outputs: Mapping[str, Any] = field(default_factory=dict)
    omitted_by: str = ""
    attempt: AttemptState = AttemptState()
    work: TaskWork = TaskWork()
    progress: TaskProgress = TaskProgress()
    context: NextContext = NextContext()
