"""The stages of each attempt of a run, with their times, from its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from idumb.domain import agent
from idumb.domain.runs.event import Event

BUILT, JUDGED, WAITED, DELIVERED = "built", "judged", "waited", "delivered"
ROLES = {agent.BUILDER: BUILT, agent.VALIDATOR: "validated"}
"""The stages in which an agent is called; a call of another role is a stage with the name of the role."""


class Stage(Struct, frozen=True):
    """`start` and `end` are UTC times; `end` is "" while it lasts. A call of the whole phase has no task.

    `seconds` is the time of an agent as it was recorded; None if it was not. `facts`: `outcome` and `reason`; of an
    agent's call also its `role`, `binding`, `adapter`, `model` and usage; of a wait `decision`, `choice` and `by`; of a
    delivery `commit`.
    """

    task: str
    attempt: int
    name: str
    start: str
    end: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None


def of_run(events: Iterable[Event]) -> Iterator[Stage]:
    """Yield the stages in the order in which they ended; the open ones last."""
    stages = _Stages()
    for event in events:
        yield from stages.take(event)
    yield from stages.rest()


def seconds(start: str, end: str) -> float:
    """Return the time between two moments, never less than nothing: a clock can go back."""
    return round(max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()), 6)


def _shifted(at: str, by: float) -> str:
    return (datetime.fromisoformat(at) + timedelta(seconds=by)).isoformat(timespec="microseconds")


class _Stages:
    """What is open, by task: the attempt that began, its wait with the decisions that are unanswered, and its delivery.

    `_went_on` is when the work of a task last went on.
    """

    def __init__(self) -> None:
        self._begun: dict[str, Event] = {}
        self._waits: dict[str, Event] = {}
        self._unanswered: dict[str, set[str]] = {}
        self._deliveries: dict[str, str] = {}
        self._went_on: dict[str, str] = {}
        self._validated: set[tuple[str, int | None]] = set()
        self._resumed = ""

    def take(self, event: Event) -> Iterator[Stage]:
        task, p = event.task or "", event.payload
        if task in self._waits and event.kind != "decision.asked":
            yield from self._answered(task, event)
        if event.kind == "attempt.started":
            self._begun[task] = event
        elif event.kind in ("attempt.finished", "attempt.interrupted"):
            yield from self._ended(task, event)
        elif event.kind == "task.waiting":
            self._waits[task], self._unanswered[task] = event, set(p["decisions"])
        elif event.kind == "checkpoint.intended":
            self._deliveries[task] = event.at
        elif event.kind == "checkpoint.recorded" and task in self._deliveries:
            facts = {"outcome": p["status"], "commit": p["commit"]}
            yield Stage(task, event.attempt or 0, DELIVERED, self._deliveries.pop(task), event.at, facts)
        elif event.kind == "role.asked":
            yield of_role(event)
        elif event.kind == "run.resumed":
            self._resumed = event.at

    def _answered(self, task: str, event: Event) -> Iterator[Stage]:
        """End the wait of a task with its last answer, or with whatever else goes on with it."""
        self._unanswered[task].discard(event.payload.get("decision", ""))
        if event.kind == "decision.answered" and self._unanswered[task]:
            return
        asked, self._went_on[task] = self._waits.pop(task), event.at
        facts = {name: event.payload[name] for name in ("decision", "choice", "by") if name in event.payload}
        yield Stage(task, asked.attempt or 0, WAITED, asked.at, event.at, facts)

    def _ended(self, task: str, event: Event) -> Iterator[Stage]:
        p, begun = event.payload, self._begun.pop(task, None)
        if event.kind == "attempt.interrupted":
            if begun is not None:
                facts = {"outcome": "interrupted", "reason": p["reason"]}
                yield _call(begun, agent.BUILDER, _builder(begun), facts, begun.at, event.at)
            return
        judged_from = max(self._went_on.get(task, ""), self._resumed) or event.at
        built, judged = p["builder"], p.get("validator")
        if begun is not None:
            # The record has the agent's own time; a person who builds has no other than that of the attempt.
            judged_from = event.at if built is None else min(event.at, _shifted(begun.at, built["seconds"]))
            yield _call(begun, agent.BUILDER, _builder(begun), built or {}, begun.at, judged_from)
        if judged is not None and (task, event.attempt) not in self._validated:  # one that waited ends twice
            self._validated.add((task, event.attempt))
            start = max(judged_from, _shifted(event.at, -judged["seconds"]))
            yield _call(event, agent.VALIDATOR, judged, judged, start, event.at)
        facts = {"outcome": p["outcome"], "reason": p["reason"]}
        self._went_on[task] = event.at  # if a hook changes what was proven, the attempt ends again
        yield Stage(task, event.attempt or 0, JUDGED, judged_from, event.at, facts)

    def rest(self) -> Iterator[Stage]:
        for event in self._begun.values():
            yield _call(event, agent.BUILDER, _builder(event), {}, event.at, "")
        for event in self._waits.values():
            yield Stage(event.task or "", event.attempt or 0, WAITED, event.at, "")


def of_role(asked: Event) -> Stage:
    """Return the call of a role that builds and judges no task."""
    p = asked.payload
    return _call(asked, p["role"], p, p, _shifted(asked.at, -(p["seconds"] or 0.0)), asked.at)


def _builder(started: Event) -> Mapping[str, Any]:
    return {"binding": started.payload["builder"], **started.payload.get("envelope", {})}


def _call(event: Event, role: str, who: Mapping[str, Any], result: Mapping[str, Any], start: str, end: str) -> Stage:
    """Return the call of an agent: `who` names it, `result` says how it ended and what it used."""
    used = result.get("usage") or {}
    facts = {
        "role": role,
        **{name: who.get(name) for name in ("binding", "adapter")},
        "model": result.get("model") or who.get("model"),
        **{name: result.get(name) for name in ("outcome", "reason", "failure")},
        **{name: used.get(name) for name in ("tokens_in", "tokens_out", "cost_usd")},
    }
    name = ROLES.get(role, role)
    return Stage(event.task or "", event.attempt or 0, name, start, end, facts, result.get("seconds"))
