"""Usage: tokens, cost and time of each agent call of a run, with sums. Unknown values stay unknown."""

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


def usage(services: Services, name: str) -> Result:
    """Return the calls of the newest run of a phase, or those for one of its tasks, with sums and the total."""
    phase, task = run_lookup.phase_or_task(name)
    state = run_lookup.named_run(services, phase)
    if task:
        run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.number} of phase {state.phase}")
    calls = (*_attempt_calls(services, state), *_role_calls(services, state))
    rows = [row for row in calls if task in (None, row["task"])]
    spent = [(row, _spent(row)) for row in rows]
    sums = [
        {"by": by, "name": name, **_sum_row(spending.total(s for row, s in spent if row[by] == name))}
        for by in BY
        for name in dict.fromkeys(row[by] for row in rows)
        if name is not None
    ]
    data = {
        "run": state.id,
        "phase": state.phase,
        "calls": rows,
        "sums": sums,
        "total": _sum_row(spending.total(s for _, s in spent)),
    }
    return Result(data)


def _attempt_calls(services: Services, state: RunState) -> Iterator[dict[str, Any]]:
    """Yield the calls of builders and validators, in the order in which their attempts ended."""
    started: dict[tuple[str | None, int | None], Event] = {}
    told = set[tuple[str | None, int | None, str]]()  # an attempt that waited ends twice
    for event in services.log.events(run=state.id):
        key = (event.task, event.attempt)
        if event.kind == "attempt.started":
            started[key] = event
        elif event.kind == "attempt.interrupted" and key in started:
            yield _row(event, started[key], agent.BUILDER, {"outcome": "interrupted", "seconds": None})
        elif event.kind == "attempt.finished" and key in started:
            for role in (agent.BUILDER, agent.VALIDATOR):
                if event.payload.get(role) is not None and (*key, role) not in told:
                    told.add((*key, role))
                    yield _row(event, started[key], role, event.payload[role])


def _row(event: Event, started: Event, role: str, result: Mapping[str, Any]) -> dict[str, Any]:
    if role == agent.VALIDATOR:
        return _call(event.task, event.attempt, role, result, result)
    envelope = started.payload.get("envelope", {})
    agent_fields = {
        "binding": started.payload["builder"],
        "adapter": envelope.get("adapter"),
        "model": result.get("model") or envelope.get("model"),
    }
    return _call(event.task, event.attempt, role, agent_fields, result)


def _role_calls(services: Services, state: RunState) -> Iterator[dict[str, Any]]:
    """Yield the calls of other roles about the phase or its tasks, in any run or none."""
    about = {f"phase-{state.phase}", *state.tasks}
    for event in services.log.events(kind="role.asked"):
        if event.payload["about"] in about:
            task = event.payload["about"] if event.payload["about"] in state.tasks else None
            yield _call(task, event.attempt, event.payload["role"], event.payload, event.payload)


def _call(
    task: str | None, attempt: int | None, role: str, agent_fields: Mapping[str, Any], result: Mapping[str, Any]
) -> dict[str, Any]:
    usage = result.get("usage") or {}
    return {
        "task": task,
        "attempt": attempt,
        "role": role,
        **{name: agent_fields.get(name) for name in ("binding", "adapter", "model")},
        "outcome": result.get("outcome"),
        "failure": result.get("failure"),
        "seconds": result.get("seconds"),
        **{name: usage.get(name) for name in ("tokens_in", "tokens_out", "cost_usd")},
    }


def _spent(row: Mapping[str, Any]) -> Spent:
    used = spending.spent_by_call(row, reports=row["adapter"] not in spending.FREE)
    return used + Spent(attempts=1, seconds=row["seconds"] or 0.0)


def _sum_row(spent: Spent) -> dict[str, Any]:
    row = dataclasses.asdict(spent)
    row["calls"] = row.pop("attempts")
    return {**row, "seconds": round(spent.seconds, 3)}
