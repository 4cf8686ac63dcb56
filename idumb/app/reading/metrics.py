"""Figures over all runs of this repository: how tasks end, what agents use, how long people are waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain import agent, outcome
from idumb.domain.runs import spending
from idumb.domain.runs.spending import Spent

_ENDS = {"task.completed": "completed", "task.failed": "failed", "task.skipped": "skipped", "task.accepted": "accepted"}
_ENDS_OF_RUNS = {"run.completed": "completed", "run.failed": "failed", "run.halted": "halted"}
_MOST_WORKFLOWS = 5


def metrics(services: Services) -> Result:
    """Return the figures of all runs that the log has; archived ones do not count."""
    agents = list(_agents(services))
    total = spending.total(spent for _, _, spent in agents)
    data = {
        "runs": _count(services, _ENDS_OF_RUNS),
        "tasks": _count(services, _ENDS),
        "first_pass": _first_pass(services),
        "agents": [_row(adapter, model, ended) for (adapter, model), ended in _grouped(agents).items()],
        "total": _sums(total),
        "waiting_seconds": round(_waiting(services), 3),
        "workflows": _workflows(services),
    }
    return Result(data)


def _count(services: Services, kinds: Mapping[str, str]) -> dict[str, int]:
    return {name: sum(1 for _ in services.log.events(kind=kind)) for kind, name in kinds.items()}


def _first_pass(services: Services) -> dict[str, int]:
    """Return how many tasks were completed, and how many of them with their first attempt."""
    done = {(event.run, event.task): event.attempt for event in services.log.events(kind="task.completed")}
    return {"completed": len(done), "at_once": sum(attempt in (1, None) for attempt in done.values())}


Call = tuple[tuple[str, str], str, Spent]
"""Adapter and model of a call to a builder or validator, how it ended, and what it used."""


def _agents(services: Services) -> Iterator[Call]:
    started = {
        (event.run, event.task, event.attempt): event.payload for event in services.log.events(kind="attempt.started")
    }
    finished = services.log.events(kind="attempt.finished")
    ended_last = {(event.run, event.task, event.attempt): event.payload for event in finished}
    for key, payload in ended_last.items():  # one that waited for a person ends twice
        for role in (agent.BUILDER, agent.VALIDATOR):
            result = payload.get(role)
            if result is None:
                continue
            envelope = started.get(key, {}).get("envelope", {})
            adapter = str((result if role == agent.VALIDATOR else envelope).get("adapter") or "unknown")
            model = str(result.get("model") or envelope.get("model") or "")
            ended = str(payload["outcome"] if role == agent.BUILDER else result.get("outcome"))
            used = spending.spent_by_call(result.get("usage"), reports=adapter not in spending.FREE)
            yield (adapter, model), ended, used + Spent(attempts=1, seconds=result.get("seconds") or 0.0)


def _grouped(calls: list[Call]) -> dict[tuple[str, str], list[tuple[str, Spent]]]:
    grouped: dict[tuple[str, str], list[tuple[str, Spent]]] = {}
    for who, ended, spent in calls:
        grouped.setdefault(who, []).append((ended, spent))
    return grouped


def _row(adapter: str, model: str, ended: list[tuple[str, Spent]]) -> dict[str, Any]:
    outcomes = Counter(name for name, _ in ended)
    rate = round(outcomes[outcome.COMPLETED] / len(ended), 3)
    sums = _sums(spending.total(spent for _, spent in ended))
    return {"adapter": adapter, "model": model, **sums, "outcomes": dict(outcomes), "success_rate": rate}


def _sums(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.attempts,
        "seconds": round(spent.seconds, 3),
        "tokens": spent.tokens,
        "cost_usd": spent.cost_usd,
        "unknown_cost": spent.unknown_cost,
    }


def _waiting(services: Services) -> float:
    """Return for how many seconds questions waited for the answer of a person."""
    asked = {event.payload["id"]: event.at for event in services.log.events(kind="decision.asked")}
    answers = services.log.events(kind="decision.answered")
    pairs = ((asked.get(event.payload["decision"]), event.at) for event in answers)
    return sum(_seconds(end) - _seconds(start) for start, end in pairs if start is not None)


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _workflows(services: Services) -> list[dict[str, Any]]:
    """Return the phases and workflows that ran most often, with their last run, success and failure."""
    names: dict[str | None, str] = {}
    rows: dict[str, dict[str, Any]] = {}
    for event in services.log.events(kind="run.started"):
        names[event.run] = phase = str(event.payload["phase"])
        row = rows.setdefault(phase, {"phase": phase, "runs": 0, "last": "", "last_success": "", "last_failure": ""})
        row |= {"runs": row["runs"] + 1, "last": event.at}
    for kind, name in (("run.completed", "last_success"), ("run.failed", "last_failure")):
        for event in services.log.events(kind=kind):
            if event.run in names:
                rows[names[event.run]][name] = event.at
    return sorted(rows.values(), key=lambda row: -row["runs"])[:_MOST_WORKFLOWS]
