"""A run looked at closely: its state at an event, two runs side by side, the times of a task, and the spans of a trace.

Spans of agent calls follow the conventions for GenAI.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import asdict

from idumb.app.contract import loading
from idumb.app.core import run_lookup, schedule
from idumb.app.core.services import Result, Services
from idumb.app.reading import stages
from idumb.app.reading.stages import Stage
from idumb.domain import envelope as envelopes
from idumb.domain import outcome
from idumb.domain.action import Action
from idumb.domain.errors import InputError, Refusal, StoreError
from idumb.domain.runs import replay, run, spending
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent

_SETTINGS = ("mode", "policy", "branch", "reports")
_ENDED_WELL = frozenset({None, "", outcome.COMPLETED, outcome.WAITING, outcome.ACCEPTED, outcome.SKIPPED})
_PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}
"""Adapters of one provider; a model such as `anthropic:NAME` names its own."""


def run_named(services: Services, name: str) -> str:
    """Return the id of a run that has events: of the newest one of a phase, or of the one whose id begins so."""
    run = find_run(services, name)
    if not any(services.log.events(run=run, limit=1)):
        words = f"the event log is damaged: run {run} has no event"
        raise StoreError("store.corrupt", words, hint=Action.of("debug", "validate", run))
    return run


def find_run(services: Services, name: str) -> str:
    phase = run_lookup.recorded_phase(services, name)
    starts = services.log_files.starts() if name and phase is None else ()
    ids = [start.run for start in starts if start.run.startswith(name)]
    if len(ids) > 1:
        raise InputError("run.unknown", f"The ids of {len(ids)} runs begin with {name}.", hint=Action("log"))
    if not ids:
        newest = None if phase is None else services.log.latest_run(phase)
        return newest or run_lookup.named_run(services, name).id
    file = next((row["file"] for row in services.log_files.archived() if row["run"] == ids[0]), None)
    if file is not None:
        raise Refusal("run.archived", f"The events of run {ids[0]} are in {file}.", hint=Action.of("audit", "verify"))
    return ids[0]


def inspect(services: Services, name: str, at: int | None) -> Result:
    """Return the state of a run after an event, by default the newest one."""
    run = run_named(services, name)
    events = list(itertools.takewhile(lambda one: at is None or one.seq <= at, services.log.events(run=run)))
    if not events:
        first = next(iter(services.log.events(run=run, limit=1)))
        words = f"Run {run} began with event {first.seq}, after event {at}."
        raise InputError("run.later", words, hint=Action.of("debug", "inspect", name, "--at", str(first.seq)))
    state, last = replay.replay(events), events[-1]
    waiting = [question for id, question in state.decisions.items() if id not in state.answers]
    return Result(
        {
            **_head(state),
            "event": {name: last.as_dict()[name] for name in ("seq", "at", "kind", "task", "attempt")},
            "contract": {"hash": state.contract.hash, "version": state.contract.version},
            **{name: getattr(state, name) for name in _SETTINGS},
            "base_commit": state.base.commit,
            "tasks": list(_tasks(services, state)),
            "waiting": [{name: question.get(name) for name in ("id", "task", "what")} for question in waiting],
            "verification": None if state.verification is None else state.verification["status"],
            "spent": _sums(spending.total(state.spent.values())),
        }
    )


def _head(state: RunState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in ("phase", "number", "state", "reason")} | {"run": state.id}


def _tasks(services: Services, state: RunState) -> Iterator[dict[str, Any]]:
    contract = loading.find_locked_contract(services, state)
    statuses = {} if contract is None else schedule.statuses(contract, state)
    for id, task in state.tasks.items():
        yield {
            "id": id,
            "status": statuses.get(id, task.status),
            "reason": task.reason,
            "attempt": task.attempt.number,
            "commit": run_lookup.commit_of(task),
            **_sums(task.progress.spent),
        }


def _sums(spent: Spent) -> dict[str, Any]:
    row = asdict(spent)
    return {**row, "seconds": round(spent.seconds, 3)}


def compare(services: Services, first: str, second: str) -> Result:
    """Return two runs side by side: each task in both, and in what they differ otherwise."""
    states = [run_lookup.run_of(services, run_named(services, name)) for name in (first, second)]
    rows = [{row["id"]: row for row in _tasks(services, state)} for state in states]
    tasks = [{"id": id, "first": rows[0].get(id), "second": rows[1].get(id)} for id in {**rows[0], **rows[1]}]
    runs = [{**_head(state), **_sums(spending.total(state.spent.values()))} for state in states]
    differ = [{"name": name, "first": a, "second": b} for name, a, b in _differences(*states) if a != b]
    return Result({"first": runs[0], "second": runs[1], "tasks": tasks, "differences": differ})


def _differences(first: RunState, second: RunState) -> Iterator[tuple[str, Any, Any]]:
    yield "contract", first.contract.hash, second.contract.hash
    yield "base commit", first.base.commit, second.base.commit
    for name in _SETTINGS:
        yield name, getattr(first, name), getattr(second, name)
    for id in first.tasks.keys() & second.tasks.keys():
        yield f"text of {id}", first.tasks[id].digest, second.tasks[id].digest
    were, are = first.contract.envelopes, second.contract.envelopes
    for binding in {**were, **are}:
        if binding in were and binding in are:
            parts, _ = envelopes.compare(were[binding], are[binding])
            yield from ((f"{part} of {binding}", were[binding][part], are[binding][part]) for part in parts)
        else:
            yield f"agent {binding}", binding in were or None, binding in are or None


def trace(services: Services, name: str, run: str | None) -> Result:
    """Return the stages of every attempt at a task, with their times."""
    phase, task = run_lookup.find_task(name)
    id = run_named(services, run_lookup.recorded_phase(services, phase) or phase if run is None else run)
    state = run_lookup.run_of(services, id)
    run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.number} of phase {state.phase}")
    state = run_lookup.attempting_run(services, state, task)
    now, rows = services.clock.now(), []
    events = list(services.log.events(run=state.id))
    about = (event for event in events if event.task == task or event.kind == "run.resumed")
    for stage in stages.of_run(about):
        took = stages.seconds(stage.start, stage.end or now)
        rows.append({**asdict(stage), "seconds": took, "is_open": not stage.end})
    announced = {e.attempt: e.at for e in events if e.task == task and e.kind == "attempt.started"}
    waited = sum(row["seconds"] for row in rows if row["name"] == stages.WAITED)
    worked = sum(row["seconds"] for row in rows if row["name"] in (stages.BUILT, stages.JUDGED, stages.DELIVERED))
    return Result(
        {
            "task": task,
            "phase": state.phase,
            "run": state.id,
            "status": state.tasks[task].status,
            "attempts": [
                {"attempt": number, "announced": at, "stages": [_row(row) for row in rows if row["attempt"] == number]}
                for number, at in announced.items()
            ],
            "worked_seconds": round(worked, 3),
            "waited_seconds": round(waited, 3),
        }
    )


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("task", "attempt")}


class Span(NamedTuple):
    """`key` is the same whenever a run is exported. Times are UTC. `error` is "" unless it failed."""

    key: str
    parent: str
    name: str
    start: str
    end: str
    attributes: Mapping[str, Any]
    error: str = ""


def spans_of(services: Services, name: str) -> tuple[str, list[Span]]:
    """Return the id of a run and its spans, each after its parent. What is still open ends now."""
    id = run_named(services, name)
    state = run_lookup.run_of(services, id)
    now = services.clock.now()
    parts = sorted(stages.of_run(services.log.events(run=id)), key=lambda one: (one.task, one.attempt, one.start))
    about = {"idumb.run": id, "idumb.phase": state.phase}
    facts = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": state.phase,
        "idumb.state": state.state,
    }
    error = state.reason or state.state if state.state == run.FAILED else ""
    whole = Span(
        id, "", f"invoke_workflow {state.phase}", state.started_at, state.changed_at, {**about, **facts}, error
    )
    rest = list(_parts(parts, id, about, now))
    return id, [whole._replace(end=max([whole.end, *(span.end for span in rest)])), *rest]


def _parts(parts: list[Stage], run: str, about: Mapping[str, Any], now: str) -> Iterator[Span]:
    for task, of_task in itertools.groupby(parts, lambda one: one.task):
        rows, key = list(of_task), f"{run}/{task}" if task else run
        if task:
            yield _around(rows, key, run, f"task {task}", {**about, "idumb.task": task}, now)
        for attempt, of_attempt in itertools.groupby(rows, lambda one: one.attempt):
            calls, parent = list(of_attempt), f"{key}/{attempt}" if task else run
            of = {**about, **({"idumb.task": task, "idumb.attempt": attempt} if task else {})}
            if task:
                yield _around(calls, parent, key, f"attempt {attempt}", of, now)
            for number, stage in enumerate(calls):
                yield _span(stage, f"{parent}/{attempt}.{number}", parent, of, now)


def _around(rows: list[Stage], key: str, parent: str, name: str, about: Mapping[str, Any], now: str) -> Span:
    """Return the span of a task or an attempt: it lasts as long as what it holds, and ends as the last of that."""
    last = max((row for row in rows if row.facts.get("outcome")), key=lambda row: row.end or now, default=rows[-1])
    ended = str(last.facts.get("outcome") or "")
    error = "" if ended in _ENDED_WELL else str(last.facts.get("reason") or ended)
    start, end = min(row.start for row in rows), max(row.end or now for row in rows)
    return Span(key, parent, name, start, end, {**about, "idumb.outcome": ended}, error)


def _span(stage: Stage, key: str, parent: str, about: Mapping[str, Any], now: str) -> Span:
    facts = stage.facts
    ended, name, more = facts.get("outcome"), stage.name, {}
    if facts.get("role") and facts.get("adapter"):
        name, more = f"invoke_agent {facts['binding']}", _of_agent(facts)
    own = {
        f"idumb.{name}": facts[name] for name in ("role", "outcome", "decision", "choice", "commit") if facts.get(name)
    }
    error = "" if ended in _ENDED_WELL else str(facts.get("reason") or facts.get("failure") or ended)
    failed = {"error.type": str(facts.get("failure") or ended)} if error else {}
    return Span(key, parent, name, stage.start, stage.end or now, {**about, **own, **more, **failed}, error)


def _of_agent(facts: Mapping[str, Any]) -> dict[str, Any]:
    model, adapter = str(facts.get("model") or ""), str(facts["adapter"])
    named = model.partition(":")[0] if ":" in model else adapter
    values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": _PROVIDERS.get(adapter, named),
        "gen_ai.agent.name": facts.get("binding"),
        "gen_ai.request.model": model,
        "gen_ai.usage.input_tokens": facts.get("tokens_in"),
        "gen_ai.usage.output_tokens": facts.get("tokens_out"),
        "idumb.cost_usd": facts.get("cost_usd"),
    }
    return {name: value for name, value in values.items() if value not in (None, "")}
