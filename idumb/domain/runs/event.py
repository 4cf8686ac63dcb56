"""Events: the only memory of idumb. A gapless sequence, append-only; those of each run are chained by hash.

`docs/events.md` describes every kind with its payload and is checked against `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from idumb.domain import outcome

PAYLOAD_VERSION = 1
GENESIS = "0" * 64

KINDS = (
    "operation.started", "operation.finished", "run.started", "run.resumed", "guarded.accepted",
    "contract.amended", "run.locked", "envelope.changed",
    "run.halted", "run.interrupted", "run.paused", "run.completed", "run.failed", "task.carried",
    "task.completed", "task.failed", "task.waiting", "task.accepted", "task.skipped", "task.omitted", "task.reset",
    "task.guided", "attempt.started", "attempt.opened", "attempt.told", "attempt.interrupted",
    "attempt.finished", "nondeterminism.found", "step.finished", "evidence.recorded",
    "checkpoint.intended", "checkpoint.recorded", "decision.asked", "decision.answered", "verification.recorded",
    "handoff.asked", "handoff.created", "handoff.failed", "handoff.updated", "handoff.completed",
    "rollback.intended", "rollback.compensated",
    "rollback.completed", "undo.completed", "work.dropped", "phase.forced", "reports.committed",
    "legacy.imported", "history.recorded", "call.retried", "breaker.changed", "role.asked", "log.archived",
    "log.restored", "snapshots.freed", "setting.remembered", "doctor.fixed",
)  # fmt: skip

EXACT = frozenset(
    {"branch", "contract_hash", "envelope", "envelopes", "folder", "path", "phase", "plans", "ref", "worktree"}
)
"""Fields of a payload that are never redacted, because idumb compares them with the present state.

People choose these names, and no agent can; paths that a task creates are not among them.
"""

IDENTITY = frozenset(
    {
        "adapter", "attempt", "binding", "choice", "decision", "decisions", "failure", "from_agent", "from_run", "id",
        "key", "kind", "mode", "operation", "outcome", "policy", "result", "role", "run", "runs", "state", "status",
        "task", "tasks", "to_agent", "undone", "verdict", "worktree",
    }
)  # fmt: skip
"""Fields, at any depth, that identify an event's subject or decide a branch; they never contain program output."""

KEPT_OF_ARCHIVED = ("run.started", "history.recorded", "log.archived")
"""Kinds that stay in the log when their run is archived: its plans, its line in `state.json`, its head."""

BESIDE = ("handoff.updated", "handoff.completed")
"""Kinds that name a run without advancing it; any working tree may write them while the run continues elsewhere."""


class Selection(Struct, frozen=True):
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
    "workflow_cancelled": (Selection("run.interrupted", "by", ("stop",)),),
    "phase_started": (Selection("run.started"),),
    "phase_resumed": (Selection("run.resumed"),),
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


class NewEvent(Struct, frozen=True):
    """An event before the log appends it. `payload` is JSON-serialisable."""

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    run: str | None = None
    task: str | None = None
    attempt: int | None = None
    version: int = PAYLOAD_VERSION


class Event(Struct, frozen=True):
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
        return {**asdict(self), "payload": dict(self.payload)}


class ChainCheck(Struct, frozen=True):
    """The result of a walk along the chains: `count` events are valid, `head` is the hash of the last of them.

    `broken_at` is the first invalid sequence number (None: all are valid), `why` says how. `witnessed` is the newest
    event that is also recorded in the state directory; a truncation after it would be undetected.
    """

    count: int
    head: str
    broken_at: int | None = None
    why: str = ""
    witnessed: int = 0
