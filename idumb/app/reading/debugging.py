"""`idumb debug`: the state of a run at an event, two runs side by side, and the times of a task."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup, schedule
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.reading import stages
from idumb.domain.action import Action
from idumb.domain.consent import envelope as envelopes
from idumb.domain.errors import InputError, Refusal, StoreError
from idumb.domain.runs import replay, spending
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent

_SETTINGS = ("mode", "policy", "branch", "reports")


def run_named(services: Services, name: str) -> str:
    """Return the id of a run that has events: of the newest one of a phase, or of the one whose id begins so."""
    run = find_run(services, name)
    if not any(services.log.events(run=run, limit=1)):
        words = f"the event log is damaged: run {run} has no event"
        raise StoreError("store.corrupt", words, hint=Action.of("debug", "validate", run))
    return run


def find_run(services: Services, name: str) -> str:
    phase = run_lookup.recorded_phase(services, name)
    ids = [run for run, *_ in services.log_files.starts() if name and run.startswith(name)] if phase is None else []
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
    try:
        statuses = schedule.statuses(loading.locked_contract(services, state), state)
    except (InputError, Refusal):  # its plan is not kept any more
        statuses = {}
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
    row = dataclasses.asdict(spent)
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
    for stage in stages.of_run(_about(events, task)):
        took = stages.seconds(stage.start, stage.end or now)
        rows.append({**dataclasses.asdict(stage), "seconds": took, "is_open": not stage.end})
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


def _about(events: list[Event], task: str) -> Iterator[Event]:
    return (event for event in events if event.task == task or event.kind == "run.resumed")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("task", "attempt")}
