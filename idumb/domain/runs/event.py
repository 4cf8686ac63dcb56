"""Events: the only memory of idumb. A gapless sequence, chained by hash, append-only.

`docs/events.md` lists every kind with its payload and is checked against `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from idumb.domain import outcome

PAYLOAD_VERSION = 1
GENESIS = "0" * 64

KINDS: Mapping[str, str] = {
    "operation.started": "a writing command began",
    "operation.finished": "a writing command ended, with its exit code",
    "run.started": "a run of a phase began: contract, base, tasks in order",
    "run.resumed": "a run went on after an interruption, a failure or an answer",
    "guarded.accepted": "a person said that changed files of git's own may stay as they are",
    "amendment.intended": "a plan is about to be changed, on a person's word; its next bytes are kept",
    "amendment.abandoned": "an intended amendment was not written, so the contract stays as it was",
    "contract.amended": "the run goes on under the next version of its contract",
    "run.locked": "what the attempts of a run run under is recorded: envelopes, levels, confidence",
    "envelope.changed": "part of what a run's attempts run under is not what was locked in, and the run goes on",
    "run.halted": "a run stopped before its end: why, and which task",
    "run.interrupted": "a run was stopped by a signal, at a safe point",
    "run.paused": "a person asked that a run waits until it is resumed; after a task, or while nothing ran",
    "run.completed": "no task is left to run: every one is completed, accepted or skipped",
    "run.failed": "no task can run any more, and some failed or are blocked",
    "task.carried": "a task completed by an earlier run of the phase, unchanged since, counts as completed",
    "task.completed": "a task's criteria are proven and its checkpoint is recorded",
    "task.failed": "a task has no attempt left, or its failure blocks",
    "task.waiting": "a task waits for a person's decision",
    "task.accepted": "a person accepted a task, with a reason",
    "task.skipped": "a person or the plan skipped a task, with a reason",
    "task.reset": "a task may be tried again",
    "task.guided": "a person said something to the next attempts of a task",
    "attempt.started": "snapshot and task base are durable; the builder is about to start",
    "attempt.opened": "the work of an attempt is left to who drives idumb, until they submit it or give it up",
    "attempt.told": "who works on an attempt says where they stand; nothing follows from it",
    "attempt.interrupted": "an attempt was cut short by the executor's own end; it does not count",
    "attempt.finished": "builder ended, candidate frozen, ledger and verdict known",
    "nondeterminism.found": "an attempt left other files than an earlier one under the same envelope, base and request",
    "step.finished": "one tool call of a task's steps, for the audit",
    "evidence.recorded": "one check and its result",
    "snapshot.taken": "the tree was saved before a validator was asked, because it had changed since the last snapshot",
    "checkpoint.intended": "the task's files are about to be delivered from a clone or committed",
    "checkpoint.recorded": "commit and snapshot after an attempt, whatever its outcome",
    "decision.asked": "a question was put to a person",
    "decision.answered": "a person answered",
    "verification.recorded": "verify-work judged a phase",
    "handoff.asked": "work or a verdict is asked for elsewhere, under a ticket that nobody could foresee",
    "handoff.created": "a task that is done passes work on to whom it names",
    "handoff.failed": "a task that is done could not be passed on to somebody; the run goes on",
    "handoff.updated": "somebody said where the work is that was passed on",
    "handoff.completed": "work that was passed on is done",
    "dead-letter.removed": "a failed task or run is not listed any more, on a person's word",
    "rollback.intended": "a rollback or undo is about to put paths back; what was there is kept",
    "rollback.abandoned": "an intended rollback or undo put nothing back, because somebody changed its paths",
    "rollback.compensated": "the commands that take a task's effects back were run before a rollback",
    "rollback.completed": "paths were put back to a checkpoint; tasks after it are pending again",
    "undo.completed": "an operation was undone",
    "phase.forced": "a verified phase is run again on the user's word",
    "reports.committed": "the Markdown reports were committed",
    "legacy.imported": "files of an old iDumb were taken over; told, not witnessed",
    "history.recorded": "a line of the history in state.json: how a run stands",
    "call.retried": "a call of an agent met something that passes, and is made again",
    "breaker.changed": "the circuit breaker of an agent opened, lets one call through, or closed",
    "role.asked": "the agent of a role that builds nothing was asked, and how that ended",
    "log.archived": "older events were moved to a segment of the archive",
    "doctor.mended": "idumb doctor mended something",
}

EXACT = frozenset(
    {"branch", "contract_hash", "envelope", "envelopes", "folder", "path", "phase", "plans", "ref", "worktree"}
)
"""Fields of a payload that are never redacted, because idumb compares them with the present state.

People choose these names, and no agent can; paths that a task creates are not among them.
"""

IDENTITY = frozenset(
    {
        "adapter", "attempt", "binding", "choice", "decision", "decisions", "failure", "from_agent", "from_run", "id",
        "key", "kind", "mode", "operation", "outcome", "policy", "result", "role", "run", "state", "status", "task",
        "tasks", "to_agent", "undone", "verdict", "workspace", "worktree",
    }
)  # fmt: skip
"""Fields, at any depth, that identify an event's subject or decide a branch; they never contain program output."""

BESIDE = ("handoff.updated", "handoff.completed")
"""Kinds that name a run without advancing it; any working tree may write them while the run continues elsewhere."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Events of one kind; with a `name`, only those whose payload has one of `values` there."""

    kind: str
    name: str = ""
    values: tuple[str, ...] = ()

    def fits(self, payload: Mapping[str, Any]) -> bool:
        return not self.name or payload.get(self.name) in self.values


ALIASES: Mapping[str, tuple[Selection, ...]] = {
    "workflow_started": (Selection("run.started"),),
    "workflow_completed": (Selection("run.completed"),),
    "workflow_failed": (Selection("run.failed"), Selection("run.halted")),
    "workflow_cancelled": (Selection("run.interrupted", "by", ("cancel",)),),
    "phase_started": (Selection("run.started"),),
    "phase_completed": (Selection("verification.recorded", "status", ("passed",)),),
    "phase_failed": (Selection("run.failed"), Selection("verification.recorded", "status", ("failed", "partial"))),
    "step_started": (Selection("attempt.started"),),
    "step_completed": (Selection("task.completed"),),
    "step_failed": (
        Selection("attempt.finished", "outcome", (outcome.FAILED, outcome.ERRORED, outcome.TIMED_OUT, outcome.REFUSED)),
    ),
    "handoff_created": (Selection("handoff.created"),),
    "handoff_completed": (Selection("handoff.completed"),),
    "agent_execution_started": (Selection("attempt.started"),),
    "agent_execution_completed": (Selection("attempt.finished"),),
}
"""Event names of other workflow engines, which `idumb log --kind` accepts. `docs/events.md` has the same table."""


def selections(kind: str) -> tuple[Selection, ...]:
    """Return the events that a kind or an alias selects; empty if it is neither."""
    return (Selection(kind),) if kind in KINDS else ALIASES.get(kind, ())


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before the log appends it. `payload` is JSON-serialisable."""

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    run: str | None = None
    task: str | None = None
    attempt: int | None = None
    version: int = PAYLOAD_VERSION


@dataclass(frozen=True, slots=True)
class Event:
    """`seq` counts from 1 without gaps; `at` is UTC, ISO 8601 with microseconds; `previous` and `hash` are hex."""

    seq: int
    operation: str
    run: str | None
    task: str | None
    attempt: int | None
    kind: str
    payload: Mapping[str, Any]
    version: int
    fence: int
    at: str
    previous: str
    hash: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "operation": self.operation,
            "run": self.run,
            "task": self.task,
            "attempt": self.attempt,
            "kind": self.kind,
            "payload": dict(self.payload),
            "version": self.version,
            "fence": self.fence,
            "at": self.at,
            "previous": self.previous,
            "hash": self.hash,
        }


@dataclass(frozen=True, slots=True)
class ChainCheck:
    """The result of a walk along the chain: `count` events are valid, `head` is the hash of the last of them.

    `broken_at` is the first invalid sequence number (None: all are valid), `why` says how. `witnessed` is the newest
    event that is also recorded outside the database; a truncation after it would be undetected.
    """

    count: int
    head: str
    broken_at: int | None = None
    why: str = ""
    witnessed: int = 0
