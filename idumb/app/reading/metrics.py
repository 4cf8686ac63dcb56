"""Reading: what a run's attempts and the roles around it used, call by call and in sums. Unknown stays unknown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain import agent
from idumb.domain.runs import spending
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent

BY = ("task", "role", "adapter", "model")


def metrics(services: Services, phase: str) -> Result:
    """The newest run of a phase: a row for each call of an agent, sums by task, role, adapter and model, and all."""
    state = run_lookup.require_run(services, phase)
    rows = [*_of_run(services, state), *_of_roles(services, state)]
    spent = [(row, _spent(row)) for row in rows]
    sums = [
        {"by": by, "name": name, **_plain(spending.total(s for row, s in spent if row[by] == name))}
        for by in BY
        for name in dict.fromkeys(row[by] for row in rows)
        if name is not None
    ]
    data = {
        "run": state.id,
        "phase": state.phase,
        "calls": rows,
        "sums": sums,
        "total": _plain(spending.total(s for _, s in spent)),
    }
    return Result(data)


def _of_run(services: Services, state: RunState) -> Iterator[dict[str, Any]]:
    """Builders and validators, in the order in which their attempts ended."""
    begun: dict[tuple[str | None, int | None], Event] = {}
    for event in services.log.events(run=state.id):
        key = (event.task, event.attempt)
        if event.kind == "attempt.started":
            begun[key] = event
        elif event.kind == "attempt.interrupted" and key in begun:
            yield _row(event, begun[key], agent.BUILDER, {"outcome": "interrupted", "seconds": None})
        elif event.kind == "attempt.finished" and key in begun:
            for role in (agent.BUILDER, agent.VALIDATOR):
                if event.payload.get(role) is not None:
                    yield _row(event, begun[key], role, event.payload[role])


def _row(event: Event, begun: Event, role: str, said: Mapping[str, Any]) -> dict[str, Any]:
    if role == agent.VALIDATOR:
        return _call(event.task, event.attempt, role, said, said)
    envelope = begun.payload.get("envelope", {})
    known = {
        "binding": begun.payload["builder"],
        "adapter": envelope.get("adapter"),
        "model": said.get("model") or envelope.get("model"),
    }
    return _call(event.task, event.attempt, role, known, said)


def _of_roles(services: Services, state: RunState) -> Iterator[dict[str, Any]]:
    """What other roles were asked about the phase or one of its tasks, by any run or none."""
    about = {f"phase-{state.phase}", *state.tasks}
    for event in services.log.events(kind="role.asked"):
        if event.payload["about"] in about:
            task = event.payload["about"] if event.payload["about"] in state.tasks else None
            yield _call(task, event.attempt, event.payload["role"], event.payload, event.payload)


def _call(
    task: str | None, attempt: int | None, role: str, known: Mapping[str, Any], said: Mapping[str, Any]
) -> dict[str, Any]:
    usage = said.get("usage") or {}
    return {
        "task": task,
        "attempt": attempt,
        "role": role,
        **{name: known.get(name) for name in ("binding", "adapter", "model")},
        "outcome": said.get("outcome"),
        "failure": said.get("failure"),
        "seconds": said.get("seconds"),
        **{name: usage.get(name) for name in ("tokens_in", "tokens_out", "cost_usd")},
    }


def _spent(row: Mapping[str, Any]) -> Spent:
    used = spending.spent_by_call(row, reports=row["adapter"] not in spending.FREE)
    return used + Spent(attempts=1, seconds=row["seconds"] or 0.0)


def _plain(spent: Spent) -> dict[str, Any]:
    found = dataclasses.asdict(spent)
    found["calls"] = found.pop("attempts")
    return {**found, "seconds": round(spent.seconds, 3)}
