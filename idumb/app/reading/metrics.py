"""Figures: over all runs, and the tokens, cost and time of each agent call of one run. Unknown values stay unknown."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import asdict

from idumb.app.core import run_lookup
from idumb.app.core.services import Result, Services
from idumb.app.reading import stages
from idumb.domain import agent, outcome
from idumb.domain.runs import spending
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent

_ENDS = {"task.completed": "completed", "task.failed": "failed", "task.skipped": "skipped", "task.accepted": "accepted"}
_ENDS_OF_RUNS = {"run.completed": "completed", "run.failed": "failed", "run.halted": "halted"}
_MOST_WORKFLOWS = 5
_BY = ("task", "role", "adapter", "model")


def metrics(services: Services, since: str | None = None) -> Result:
    """Return the figures of all runs that the log has, as far as they ended `since`; archived ones do not count."""
    calls = list(_calls_of_attempts(services, since))
    by_agent: dict[tuple[str, str], list[_Call]] = {}
    for call in calls:
        by_agent.setdefault((call.adapter, call.model), []).append(call)
    data = {
        "since": since,
        "runs": _count(services, _ENDS_OF_RUNS, since),
        "tasks": _count(services, _ENDS, since),
        "first_pass": _first_pass(services, since),
        "agents": [_row(adapter, model, of_agent) for (adapter, model), of_agent in by_agent.items()],
        "total": _sums(calls),
        "waiting_seconds": round(_waiting(services, since), 3),
        "workflows": _workflows(services, since),
    }
    return Result(data)


def _count(services: Services, kinds: Mapping[str, str], since: str | None) -> dict[str, int]:
    return {name: sum(1 for _ in services.log.events(kind=kind, since=since)) for kind, name in kinds.items()}


def _first_pass(services: Services, since: str | None) -> dict[str, int]:
    """Count completed tasks, and those that took one attempt. A rollback sets the count of attempts back."""
    kinds = (services.log.events(kind=kind) for kind in ("attempt.started", "task.completed"))
    tried: dict[tuple[str | None, str | None], set[int | None]] = {}
    completed = at_once = 0
    for event in heapq.merge(*kinds, key=lambda one: one.seq):
        key = (event.run, event.task)
        if event.kind == "attempt.started":
            tried.setdefault(key, set()).add(event.attempt)
            continue
        attempts = tried.pop(key, set())
        if event.at >= (since or ""):
            completed += 1
            at_once += len(attempts) <= 1
    return {"completed": completed, "at_once": at_once}


class _Call(NamedTuple):
    """A call to a builder or validator, how it ended, and what it used."""

    adapter: str
    model: str
    outcome: str
    spent: Spent


def _calls_of_attempts(services: Services, since: str | None) -> Iterator[_Call]:
    started = {
        (event.run, event.task, event.attempt): event.payload for event in services.log.events(kind="attempt.started")
    }
    finished = services.log.events(kind="attempt.finished", since=since)
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
            yield _Call(adapter, model, ended, used + Spent(attempts=1, seconds=result.get("seconds") or 0.0))


def _row(adapter: str, model: str, calls: list[_Call]) -> dict[str, Any]:
    outcomes = Counter(call.outcome for call in calls)
    rate = round(outcomes[outcome.COMPLETED] / len(calls), 3)
    return {"adapter": adapter, "model": model, **_sums(calls), "outcomes": dict(outcomes), "success_rate": rate}


def _sums(calls: list[_Call]) -> dict[str, Any]:
    row = _sum_row(spending.total(call.spent for call in calls))
    del row["unknown_tokens"]
    return row


def _waiting(services: Services, since: str | None) -> float:
    """Return for how many seconds questions waited for the answer of a person, in the period."""
    asked = {event.payload["id"]: max(event.at, since or "") for event in services.log.events(kind="decision.asked")}
    answers = services.log.events(kind="decision.answered", since=since)
    pairs = ((asked.get(event.payload["decision"]), event.at) for event in answers)
    return sum(stages.seconds(start, end) for start, end in pairs if start is not None)


def _workflows(services: Services, since: str | None) -> list[dict[str, Any]]:
    """Return the phases and workflows that ran most often: how their runs ended, their last run, success and failure.

    A run that continued after it failed counts with its last end. `seconds` is the mean time to that, waits included.
    """
    started = {event.run: event for event in services.log.events(kind="run.started")}
    ends: dict[str | None, tuple[str, str]] = {}
    for kind in ("run.failed", "run.completed"):
        for event in services.log.events(kind=kind, since=since):
            ends[event.run] = max(ends.get(event.run, ("", "")), (event.at, kind))
    rows: list[dict[str, Any]] = []
    for phase in dict.fromkeys(str(event.payload["phase"]) for event in started.values()):
        begun = {run: event.at for run, event in started.items() if str(event.payload["phase"]) == phase}
        recent = [at for at in begun.values() if at >= (since or "")]
        done = {kind: [ends[run][0] for run in begun if run in ends and ends[run][1] == kind] for kind in _ENDS_OF_RUNS}
        took = [stages.seconds(at, ends[run][0]) for run, at in begun.items() if run in ends]
        row = {
            "phase": phase,
            "runs": len(recent),
            "completed": len(done["run.completed"]),
            "failed": len(done["run.failed"]),
            "seconds": round(sum(took) / len(took), 3) if took else None,
            "last": max(begun.values()),
            "last_success": max(done["run.completed"], default=""),
            "last_failure": max(done["run.failed"], default=""),
        }
        rows += [row] if recent or took else []
    return sorted(rows, key=lambda row: -row["runs"])[:_MOST_WORKFLOWS]


def usage(services: Services, name: str) -> Result:
    """Return the calls of the newest run of a phase, or those for one of its tasks, with sums and the total."""
    phase, task = run_lookup.phase_or_task(name)
    state = run_lookup.named_run(services, phase)
    if task:
        run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.number} of phase {state.phase}")
    rows = [row for row in _calls(services, state) if task in (None, row["task"])]
    spent = [(row, _spent(row)) for row in rows]
    sums = [
        {"by": by, "name": name, **_sum_row(spending.total(s for row, s in spent if row[by] == name))}
        for by in _BY
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


_FACTS = ("role", "binding", "adapter", "model", "outcome", "failure", "tokens_in", "tokens_out", "cost_usd")


def _calls(services: Services, state: RunState) -> Iterator[dict[str, Any]]:
    """Yield a row for each call that ended: first those of builders and validators, in the order of their ends.

    Other roles were asked about the phase or its tasks, in any run or none.
    """
    attempts = (event for event in services.log.events(run=state.id) if event.kind != "role.asked")
    calls = [(call.task, call) for call in stages.of_run(attempts) if call.end and call.facts.get("role")]
    about = {f"phase-{state.phase}": "", **{task: task for task in state.tasks}}
    asked = (event for event in services.log.events(kind="role.asked") if event.payload["about"] in about)
    calls += [(about[event.payload["about"]], stages.of_role(event)) for event in asked]
    for name, call in calls:
        if call.facts["outcome"] is not None:  # a person who builds is no call
            row = {"task": name or None, "attempt": call.attempt or None, "seconds": call.seconds}
            yield row | {fact: call.facts[fact] for fact in _FACTS}


def _spent(row: Mapping[str, Any]) -> Spent:
    used = spending.spent_by_call(row, reports=row["adapter"] not in spending.FREE)
    return used + Spent(attempts=1, seconds=row["seconds"] or 0.0)


def _sum_row(spent: Spent) -> dict[str, Any]:
    row = asdict(spent)
    row["calls"] = row.pop("attempts")
    return {**row, "seconds": round(spent.seconds, 3)}
