"""Handoffs: the document that passes work from one agent to another, and its validation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field, to_builtins

from idumb.domain import agent, canonical_json
from idumb.domain.plans import workflow
from idumb.domain.settings import Settings

STANDARD, ESCALATION, COLLABORATION, ERROR_RECOVERY = TYPES = (
    "standard",
    "escalation",
    "collaboration",
    "error_recovery",
)
NEVER = "never"
"""The type with which a plan names a receiver but requests no handoff."""

PENDING, IN_PROGRESS, COMPLETE, BLOCKED, FAILED = STATUSES = ("pending", "in_progress", "complete", "blocked", "failed")

PRIORITIES = ("critical", "high", "normal", "low")

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_REQUIRED = ("handoff_id", "from_agent", "to_agent", "request_id", "timestamp", "handoff_type", "status", "priority")


def agents(settings: Settings) -> frozenset[str]:
    """Return all valid givers and receivers: bindings, roles, people, steps and the editor."""
    return frozenset((*settings.bindings, *agent.ROLES, *agent.BUILT_IN))


class Document(Struct, frozen=True):
    """One handoff. `timestamp` is UTC in ISO 8601; `request_id` names the request of the work.

    `workflow` is the phase. `deliverables` are paths with their changes, `acceptance_criteria` the texts that hold.
    `handoff_id` is a UUID. `outputs` are those of a workflow's step.
    """

    handoff_id: str
    from_agent: str
    to_agent: str
    request_id: str
    timestamp: str
    handoff_type: str = STANDARD
    status: str = PENDING
    priority: str = "normal"
    title: str = ""
    summary: str = ""
    deliverables: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    next_steps: str = ""
    workflow: str = ""
    run: str = ""
    task: str = ""
    attempt: int = 1
    outputs: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the document as JSON, without outputs if there are none."""
        return {name: value for name, value in to_builtins(self).items() if name != "outputs" or value}


def workflow_of(receiver: str) -> str | None:
    """Return the name in `workflow:NAME`; None for other receivers."""
    prefix, _, name = receiver.partition(":")
    return name if prefix == "workflow" and workflow.NAME.fullmatch(name) else None


def new_id(run: str, task: str, attempt: int, number: int) -> str:
    """Return the UUID of an attempt's handoff to receiver `number`; it is deterministic."""
    digest = canonical_json.digest(["handoff", run, task, attempt, number])
    # RFC 9562, version 8: the content is the program's own affair.
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def type_of(written: str | None) -> str:
    """Return the type that a plan means: spaces and hyphens equal underscores, and case is ignored."""
    return re.sub(r"[\s-]+", "_", (written or STANDARD).strip().lower())


def problems(document: Document, agents: Collection[str]) -> tuple[str, ...]:
    """Return the problems of a handoff, in words; `agents` are the valid receivers and givers."""
    values = document.as_dict()
    wrong = [f"{name} is missing" for name in _REQUIRED if not values[name]]
    chosen = {"handoff_type": TYPES, "status": STATUSES, "priority": PRIORITIES}
    receivers = [document.to_agent] if workflow_of(document.to_agent) else []
    allowed_agents = {"from_agent": sorted(agents), "to_agent": [*sorted(agents), *receivers]}
    for name, allowed in {**allowed_agents, **chosen}.items():
        if values[name] and values[name] not in allowed:
            wrong += [f"{name}: {values[name]!r} is not one of {', '.join(allowed)}"]
    if document.timestamp and not _is_moment(document.timestamp):
        wrong.append(f"timestamp: {document.timestamp!r} is not an ISO 8601 time with a time zone")
    if document.handoff_id and not _UUID.fullmatch(document.handoff_id):
        wrong.append(f"handoff_id: {document.handoff_id!r} is not a UUID")
    return tuple(wrong)


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
