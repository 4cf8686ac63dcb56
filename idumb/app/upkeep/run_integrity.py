"""`idumb debug validate` and `replay`: whether the events of a run make sense, and give the state that is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import asdict

from idumb.app.contract import loading
from idumb.app.core import attempt, run_lookup
from idumb.app.core.services import Result, Services
from idumb.app.reading import debugging
from idumb.app.upkeep.doctor_log import Look
from idumb.domain import errors, health
from idumb.domain.action import Action
from idumb.domain.runs import replay, run, transitions
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState


def validate(services: Services, name: str) -> Result:
    """Check the events of a run: their chain, their order, their payloads, and the objects that they name."""
    id = debugging.find_run(services, name)
    chain = services.log.verify()
    faults = [] if chain.broken_at is None else [_fault(chain.broken_at, "", chain.why)]
    count = 0 if faults else sum(1 for _ in services.log.events(run=id))
    if not faults:
        faults = [*_faults(services, id), *_lost(services, id)] if count else [_fault(None, "", "it has no event")]
    data = {"run": id, "events": count, "faults": faults, "head": chain.head}
    if not faults:
        return Result(data)
    first = faults[0]
    place = f"event {first['event']}: " if first["kind"] and first["event"] else ""  # the chain's own words name it
    words = f"The events of run {id} are not valid: {place}{first['why']}"
    return Result(data, errors.EXIT_FAILED, (), ("audit.run-invalid", words, Action("doctor")))


def _fault(event: int | None, kind: str, why: str) -> dict[str, Any]:
    return {"event": event, "kind": kind, "why": why}


def _faults(services: Services, id: str) -> Iterator[dict[str, Any]]:
    """Yield each event that may not be where it is; the first one that cannot be read is the last."""
    state, contract, version = RunState(), None, 0
    for event in services.log.events(run=id):
        try:
            why = transitions.fault(state, event)
            if why:
                yield _fault(event.seq, event.kind, why)
            replay.apply(state, event)
            if state.contract.version != version:
                contract, version = loading.find_locked_contract(services, state), state.contract.version
            task = None if contract is None else contract.tasks.get(event.task or "")
            if contract is not None and task is not None and "record" in event.payload:
                attempt.loaded(event.payload["record"], task, contract.plan_of[task.id], 0.0)
        except replay.UNREADABLE as problem:
            yield _fault(event.seq, event.kind, f"its payload cannot be read: {replay.lacking(problem)}")
            return


def _lost(services: Services, id: str) -> Iterator[dict[str, Any]]:
    """Yield what the run kept in git and that is no longer there."""
    for symptom in Look(services).refs():
        if symptom.state != health.OK and f"/runs/{id}/" in symptom.path:
            yield _fault(None, symptom.path, symptom.found)


class _Said(NamedTuple):
    """A value that is recorded beside the events before it, and the same value rebuilt from them."""

    event: Event
    what: str
    recorded: Any
    rebuilt: Any


def rebuilt(services: Services, name: str) -> Result:
    """Rebuild the state of a run event by event, and compare it with each place that recorded a part of it."""
    id = debugging.run_named(services, name)
    state, events, said = RunState(), 0, list[_Said]()
    for event in services.log.events(run=id):
        try:
            said += _said(services, state, event)
            replay.apply(state, event)
        except replay.UNREADABLE as problem:
            raise replay.unreadable(event, problem) from problem
        events += 1
    wrong = [
        {**one._asdict(), "event": one.event.seq, "kind": one.event.kind} for one in said if one.recorded != one.rebuilt
    ]
    data = {"run": id, "phase": state.phase, "events": events, "compared": len(said), "differences": wrong}
    if not wrong:
        return Result(data)
    first = wrong[0]
    words = f"From event {first['event']} on, {first['what']} is not what the events give."
    return Result(data, errors.EXIT_FAILED, (), ("audit.differs", words, Action("doctor")))


def _said(services: Services, before: RunState, event: Event) -> Iterator[_Said]:
    """Yield what an event records of the state before it: the process that wrote it had this state in memory."""
    p = event.payload
    if event.kind == "task.failed":
        yield _Said(event, f"attempts of {event.task}", p["attempts"], before.tasks[event.task or ""].progress.attempts)
    elif event.kind == "task.carried":
        origin = run_lookup.run_of(services, p["from_run"]).tasks.get(event.task or "")
        kept = None if origin is None or origin.checkpoint is None else asdict(origin.checkpoint)
        recorded = {**p["checkpoint"], "files": tuple(p["checkpoint"]["files"])}
        yield _Said(event, f"checkpoint of {event.task}", recorded, kept)
    elif event.kind == "run.started":
        start = next(one for one in services.log_files.starts() if one.run == event.run)
        again = run.run_id(p["contract_hash"], p["base_commit"], p["number"], start.worktree)
        yield _Said(event, "id", event.run, again)
        yield _Said(event, "phase", start.phase, p["phase"])
