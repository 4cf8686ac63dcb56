"""Undo: the newest rollback, undo or run of this work tree, taken back; undoing an undo brings its effect back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app import place, restoring, rollback, session
from idumb.app.journal import Journal
from idumb.app.restoring import Intent, Target
from idumb.app.result import Result
from idumb.app.services import Services, run_ref
from idumb.domain import listing, outcome
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.event import Event
from idumb.domain.run import START, RunState

UNDOABLE = ("rollback.completed", "undo.completed", "attempt.started")


def undo(services: Services, *, yes: bool, accept_git: Sequence[str] = ()) -> Result:
    """Undo the newest rollback, undo or run of this work tree."""
    place.require_initialised(services)
    found = newest(services)
    if found is None:
        raise Refusal("undo.nothing", "There is nothing to undo in this work tree.", hint="idumb log")
    state = found[0]
    contract = restoring.contract_of(services, state.phase)
    place.require_guarded(services, state, accept_git)
    place.require_repository(services)
    place.require_branch(services, state)
    begun = {event.operation for event in rollback.killed_commands(services, state) if _says_undo(event)}
    pending = set() if state.restoring is None else {state.restoring["operation"]}
    with session.owned(services, restoring.UNDO) as owned:
        journal = owned.journal(state)
        place.accept_guarded(services, journal, accept_git)
        rollback.finish_killed(services, journal, contract)
        event = _newest_of(services, state)
        if event is not None and _finished(begun | pending, event):
            return _said_again(services, journal, contract, event)
        if event is None:
            raise Refusal("undo.nothing", "There is nothing to undo in this work tree.", hint="idumb log")
        if event.kind == "attempt.started":
            return _undo_run(services, journal, contract, event, yes=yes)
        return _undo_restore(services, journal, contract, event, yes=yes)


def _says_undo(begun: Event) -> bool:
    return bool(begun.payload["command"] == restoring.UNDO)


def _finished(operations: set[str], event: Event) -> bool:
    """Whether the event ends an undo that was killed, or that failed halfway: to say undo again is to have it finished.

    Several may have been killed, one while it finished another.
    """
    return _is_undo(event) and not operations.isdisjoint({event.operation, event.payload.get("operation")})


def _is_undo(event: Event) -> bool:
    """Undoing a run is recorded as a rollback, which says what was undone."""
    return event.kind == "undo.completed" or (event.kind == "rollback.completed" and "what" in event.payload)


def _said_again(services: Services, journal: Journal, contract: Contract, event: Event) -> Result:
    p = event.payload
    warnings = restoring.publish_all(services, journal, contract, p["tasks"])
    data = {
        "undone": p.get("undone"),
        "what": p.get("what", "what was undone before"),
        "phase": journal.state.phase,
        "paths": list(p["paths"]),
        "tasks": list(p["tasks"]),
        "commit": p["commit"],
        "kept": run_ref(services, journal.state.id, f"operations/{p['operation']}/before"),
        "next": ["idumb next", "idumb undo"],
    }
    return Result(data, warnings=warnings)


def _undo_restore(services: Services, journal: Journal, contract: Contract, event: Event, *, yes: bool) -> Result:
    state, p = journal.state, event.payload
    what = event.kind.split(".")[0] + (f" to {p['to']}" if "to" in p else "")
    _require_same_tasks(state, str(p.get("operation", event.operation)), what)
    target = Target(
        tuple(p["paths"]),
        p["before_tree"],
        p["after_tree"],
        tuple(p["tasks"]),
        f"undo of {what}",
        removed_folders=tuple(p.get("made_folders", ())),
        made_folders=tuple(p.get("removed_folders", ())),
    )
    restoring.confirm(services, target, yes=yes, command="idumb undo --yes")
    before = restoring.keep_present(services, journal, target)
    undone = p.get("operation", event.operation)
    intent = Intent(restoring.UNDO, f"Undo: {what}", f"Idumb-Undo: {undone}", {"undone": undone, "what": what})
    done = restoring.put_back(services, journal, contract, target, before, intent)
    warnings = restoring.publish_all(services, journal, contract, target.tasks)
    judged = restoring.invariants(services, state, contract)
    more = {"undone": undone, "what": what, "next": ["idumb next", "idumb undo"]}
    data = restoring.answer(done, target, state, judged, **more)
    return Result(
        data, warnings=(*_not_made_again(p), *restoring.left_alone(done), *warnings, *restoring.broken(judged))
    )


def _require_same_tasks(state: RunState, operation: str, what: str) -> None:
    """What was done under a text that an amendment changed since is not done under the new one."""
    known = state.operations.get(operation, {}).get("tasks", {})
    changed = [t for t, was in known.items() if t not in state.tasks or state.tasks[t].digest != was.digest]
    if changed:
        raise Refusal(
            "undo.amended",
            f"{what} cannot be undone: an amendment changed {listing.listed(changed)} since.",
            hint=f"idumb resume {state.phase} does it anew; idumb plan-diff {state.phase}",
            details={"phase": state.phase, "tasks": changed},
        )


def _not_made_again(undone: Mapping[str, Any]) -> tuple[str, ...]:
    """Files come back; what commands took back outside of them does not."""
    tasks = undone.get("compensated") or ()
    return tuple(f"The effect of {task} outside the files was taken back and is not made again" for task in tasks)


def _undo_run(services: Services, journal: Journal, contract: Contract, event: Event, *, yes: bool) -> Result:
    """Undoing a run is going back to before the tasks that its operation tried first."""
    state = journal.state
    first = next(iter(services.log.events(run=state.id, operation=event.operation, kind="attempt.started", limit=1)))
    done_before = [
        (k.checkpoint.seq, k.id)
        for _, k in rollback.attempts(services, state)
        if k.checkpoint and k.checkpoint.seq < first.seq and state.tasks[k.id].status in outcome.DONE
    ]
    to = max(done_before)[1] if done_before else START
    what = f"run {state.number} of phase {state.phase}" + (f" after {to}" if to != START else "")
    intent = Intent(restoring.ROLLBACK, f"Undo: {what}", f"Idumb-Rollback: {to}", {"to": to, "what": what})
    found = rollback.carry_out(
        services, journal, contract, intent, f"undo of {what}", yes=yes, command="idumb undo --yes"
    )
    data = {**found.data, "what": what, "undone": event.operation, "next": ["idumb next", "idumb undo"]}
    return dataclasses.replace(found, data=data)


def newest(services: Services) -> tuple[RunState, Event | None] | None:
    """The phase run that has the newest undoable event, or a restore that was ended in the middle."""
    best: tuple[int, RunState, Event | None] | None = None
    for phase in services.runs.phases():
        state = session.latest_run(services, phase)
        if state is None:
            continue
        event = _newest_of(services, state)
        seq = state.last_seq if state.restoring is not None else event.seq if event is not None else 0
        if seq and (best is None or seq > best[0]):
            best = (seq, state, event)
    return None if best is None else best[1:]


def _newest_of(services: Services, state: RunState) -> Event | None:
    found = (
        event for kind in UNDOABLE for event in services.log.events(run=state.id, kind=kind, newest_first=True, limit=1)
    )
    return max(found, key=lambda event: event.seq, default=None)
