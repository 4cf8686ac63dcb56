"""The state of a run, built from its events by `replay`.

`RunState` is mutable, because a run of ten thousand tasks cannot afford a copy for each event; its values are frozen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Any

from idumb.domain import canonical_json, outcome
from idumb.domain.runs.spending import Spent
from idumb.domain.runs.task_state import TaskState
from idumb.domain.settings import COMMIT_TASK, REPORTS_BRANCH, REPORTS_NONE
from idumb.lazy_dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class RunBase:
    """Where a run started: HEAD, the tree of its files, and the snapshot of them."""

    commit: str | None = None
    tree: str = ""
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class LockedContract:
    """The contract that a run follows.

    - `version`: counts the locked versions from 1. `chain`: binds each version to those before it.
    - `amending`: the amendment that was announced but not recorded yet. `amendments`: those recorded.
    - `appended`: answers that the plan itself contains.
    - `lock_in`: what was recorded when the contract was last locked, None before.
    - `envelopes`: the environments of the agents that apply now.
    """

    hash: str = ""
    plans: tuple[tuple[str, str], ...] = ()
    version: int = 1
    chain: str = ""
    amending: Mapping[str, Any] | None = None
    amendments: tuple[Mapping[str, Any], ...] = ()
    appended: frozenset[str] = frozenset()
    lock_in: Mapping[str, Any] | None = None
    envelopes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def earlier(self) -> tuple[str, ...]:
        """The contract hashes of the earlier versions."""
        return tuple(amendment["from"] for amendment in self.amendments)


@dataclass(frozen=True, slots=True)
class GuardedFiles:
    """Git's own files: `digests` when the last attempt started (None: not recorded), `unchecked` until compared.

    `accepted` are the names and digests that a person accepted: what a task writes into the tree may appear again when
    the task is tried again.
    """

    digests: Mapping[str, str] | None = None
    unchecked: bool = False
    accepted: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class RunState:
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
