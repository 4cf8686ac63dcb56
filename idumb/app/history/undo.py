"""Undo: the newest rollback, undo or run of this work tree, taken back; undoing an undo brings its effect back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services, run_ref
from idumb.app.history import restoring, rollback
from idumb.app.history.restoring import Intent, Target
from idumb.app.session import operation
from idumb.app.worktree import exposed_secrets, preconditions
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import START, RunState

UNDOABLE = ("rollback.completed", "undo.completed", "attempt.started")
_ENDS = ("attempt.finished", "attempt.interrupted", "checkpoint.recorded")
_BOOKKEEPING = {"operation.started", "operation.finished"}
_YES = "idumb undo --yes"


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """Flags of `undo`. `operation` names the one to undo; without it, it is the newest that can be undone."""

    yes: bool
    operation: str | None = None
    accept_git: Sequence[str] = ()
    tell: Callable[[str], None] | None = None


def undo(services: Services, request: Request) -> Result:
    """Undo the newest rollback, undo or run of this work tree, or the operation that is named.

    Refusal `undo.other-operation` where `yes` is said and the newest operation is another one.
    """
    preconditions.require_initialised(services)
    found = newest(services) if request.operation is None else _named(services, request.operation)
    if found is None:
        raise _nothing()
    state, _ = found
    contract = loading.require_contract(services, state.phase)
    preconditions.require_guarded(services, state, request.accept_git)
    preconditions.require_repository(services)
    preconditions.require_branch(services, state)
    begun = {event.operation for event in rollback.killed_commands(services, state) if _says_undo(event)}
    pending = set() if state.restoring is None else {state.restoring["operation"]}
    with operation.owned(services, restoring.UNDO) as owned:
        journal = owned.journal(state)
        preconditions.accept_guarded(services, journal, request.accept_git)
        rollback.finish_killed(services, journal, contract)
        event = _newest_of(services, state)
        if event is None:
            raise _nothing()
        if _finished(begun | pending, event):
            return _said_again(services, journal, contract, event)
        _require_same_tasks(services, state, event)
        word = _word(services, state, event, request, owned.operation)
        if event.kind == "attempt.started":
            return _undo_run(services, journal, contract, event, word)
        return _undo_restore(services, journal, contract, event, word)


def _nothing() -> Refusal:
    return Refusal("undo.nothing", "There is nothing to undo in this work tree.", hint="idumb log")


def _word(services: Services, state: RunState, event: Event, request: Request, own: str) -> restoring.Word:
    """How a person agrees to undo this. `own` is the operation that asks."""
    if request.operation is not None and not _is_of(event, request.operation):
        raise _no_such(services, request.operation)  # something else was finished first, and came after it
    last = _newest_operation(services, own)
    short = request.operation is None and (last is None or _belongs(services, last, event))
    command = _YES if short else f"{_YES} --operation {_operation(event)}"
    if request.yes and request.operation is None and not short:
        raise _other_operation(services, state, event, last, command)
    return restoring.Word(request.yes, command, operation=_by(services, event), tell=request.tell)


def _is_of(event: Event, operation: str) -> bool:
    """Whether the operation began this, or finished it."""
    return operation in (event.operation, _operation(event))


def _operation(event: Event) -> str:
    """The operation that a person would name: the one that announced it, where another one finished it."""
    return str(event.payload.get("operation", event.operation))


def _by(services: Services, event: Event) -> str:
    """The operation of the event, and its command where the log still has its start."""
    operation = _operation(event)
    begun = services.log.events(operation=operation, kind="operation.started", limit=1)
    command = next((f" ({one.payload['command']})" for one in begun), "")
    return f"operation {operation}{command}"


def _newest_operation(services: Services, own: str) -> Event | None:
    """The start of the newest writing command of this work tree that did something; `own` does not count."""
    for begun in services.log.events(kind="operation.started", newest_first=True):
        if begun.payload.get("worktree") == services.worktree and begun.operation != own and _did(services, begun):
            return begun
    return None


def _did(services: Services, begun: Event) -> bool:
    """Whether the operation may have changed anything. Rollback and undo announce first what they change."""
    events = tuple(services.log.events(operation=begun.operation))
    kinds = {event.kind for event in events}
    if _says_undo(begun):
        return not kinds.isdisjoint(UNDOABLE)
    if not kinds <= _BOOKKEEPING:
        return True
    ended = [event for event in events if event.kind == "operation.finished"]
    if not ended:
        return bool(begun.payload["command"] != restoring.ROLLBACK)
    return any(event.payload["error"] is None for event in ended)


def _belongs(services: Services, last: Event, event: Event) -> bool:
    """Whether the newest operation is the one of the event, or ended an attempt that this one began, as submit does."""
    if _is_of(event, last.operation):
        return True
    if event.kind != "attempt.started":
        return False
    begun = services.log.events(run=event.run, operation=event.operation, kind="attempt.started")
    tried = {(one.task, one.attempt) for one in begun}
    ended = (e for e in services.log.events(run=event.run, operation=last.operation) if e.kind in _ENDS)
    return any((e.task, e.attempt) in tried for e in ended)


def _named(services: Services, operation: str) -> tuple[RunState, Event | None]:
    """The run whose newest undoable event is of this operation; later ones of the same run would be in its way."""
    known = (one for one in _undoable(services) if one[2] is not None and _is_of(one[2], operation))
    found = next(known, None)
    if found is None:
        raise _no_such(services, operation)
    return found[1:]


def _no_such(services: Services, operation: str) -> Refusal:
    known = [(state, event) for _, state, event in _undoable(services) if event is not None]
    ways = [f"{_operation(event)} ({_what(services, state, event)})" for state, event in known]
    return Refusal(
        "undo.no-such-operation",
        f"Operation {operation} cannot be undone now: only the newest run, rollback or undo of each phase can.",
        hint=f"idumb undo --operation ID, with one of: {'; '.join(ways)}" if ways else "idumb log",
        details={"operations": [_operation(event) for _, event in known]},
    )


def _other_operation(services: Services, state: RunState, event: Event, last: Event | None, command: str) -> Refusal:
    """`--yes` is a word about what was done last, and undo would take back something else."""
    newer = "" if last is None else f" Your newest operation is {_described(services, last)}; it cannot be undone."
    what, operation = _what(services, state, event), _operation(event)
    return Refusal(
        "undo.other-operation",
        f"Nothing was done: this would undo {what} ({_by(services, event)}).{newer}",
        hint=command,
        details={
            "what": f"Undo {what}",
            "phase": state.phase,
            "operation": operation,
            "newest": None if last is None else last.operation,
            "command": command,
        },
    )


def _described(services: Services, begun: Event) -> str:
    """An operation as a person knows it."""
    runs = (e.run for e in services.log.events(operation=begun.operation) if e.run is not None)
    run = next(runs, None)
    of = f" of phase {run_lookup.run_of(services, run).phase}" if run is not None else ""
    return f"{begun.payload['command']}{of} (operation {begun.operation})"


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


def _undo_restore(
    services: Services, journal: Journal, contract: Contract, event: Event, word: restoring.Word
) -> Result:
    state, p = journal.state, event.payload
    what = _what(services, state, event)
    trees = (p["before_tree"], p["after_tree"])
    target = Target(
        exposed_secrets.names_in(services, p["paths"], *trees),
        p["before_tree"],
        p["after_tree"],
        tuple(p["tasks"]),
        f"undo of {what}",
        removed_folders=exposed_secrets.folders_in(services, p.get("made_folders", ()), *trees),
        made_folders=exposed_secrets.folders_in(services, p.get("removed_folders", ()), *trees),
    )
    restoring.confirm(services, target, word)
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


def _require_same_tasks(services: Services, state: RunState, event: Event) -> None:
    """What was done under a text that an amendment changed since is not done under the new one."""
    if event.kind == "attempt.started":
        return
    known = state.operations.get(_operation(event), {}).get("tasks", {})
    changed = [t for t, was in known.items() if t not in state.tasks or state.tasks[t].digest != was.digest]
    if changed:
        raise Refusal(
            "undo.amended",
            f"{_what(services, state, event)} cannot be undone: an amendment changed {wording.listed(changed)} since.",
            hint=f"idumb resume {state.phase} runs it again; idumb plan-diff {state.phase}",
            details={"phase": state.phase, "tasks": changed},
        )


def _not_made_again(undone: Mapping[str, Any]) -> tuple[str, ...]:
    """Files come back; what commands took back outside of them does not."""
    tasks = undone.get("compensated") or ()
    return tuple(f"The effect of {task} outside the files was taken back and is not made again" for task in tasks)


def _what(services: Services, state: RunState, event: Event) -> str:
    """What would be undone, with its phase."""
    if event.kind == "attempt.started":
        to = _before(services, state, event)
        return f"run {state.number} of phase {state.phase}" + (f" after {to}" if to != START else "")
    done, p = event.kind.split(".")[0], event.payload
    if done == restoring.UNDO or "what" in p:
        return f"undo of {p.get('what', p.get('undone', 'an operation'))}"
    return f"rollback of phase {state.phase} to {p['to']}"


def _before(services: Services, state: RunState, event: Event) -> str:
    """The task after which the operation of the event tried its first one."""
    first = next(iter(services.log.events(run=state.id, operation=event.operation, kind="attempt.started", limit=1)))
    done_before = [
        (k.checkpoint.seq, k.id)
        for _, k in rollback.attempts(services, state)
        if k.checkpoint and k.checkpoint.seq < first.seq and state.tasks[k.id].status in outcome.DONE
    ]
    return max(done_before)[1] if done_before else START


def _undo_run(services: Services, journal: Journal, contract: Contract, event: Event, word: restoring.Word) -> Result:
    """Undoing a run is going back to before the tasks that its operation tried first."""
    to, what = _before(services, journal.state, event), _what(services, journal.state, event)
    intent = Intent(restoring.ROLLBACK, f"Undo: {what}", f"Idumb-Rollback: {to}", {"to": to, "what": what})
    found = rollback.carry_out(services, journal, contract, intent, f"undo of {what}", word)
    data = {**found.data, "what": what, "undone": event.operation, "next": ["idumb next", "idumb undo"]}
    return dataclasses.replace(found, data=data)


def newest(services: Services) -> tuple[RunState, Event | None] | None:
    """The phase run that has the newest undoable event, or a restore that was ended in the middle."""
    best = max(_undoable(services), key=lambda one: one[0], default=None)
    return None if best is None else best[1:]


def _undoable(services: Services) -> Iterator[tuple[int, RunState, Event | None]]:
    """Of each phase: where its newest undoable event stands in the log, the run, and the event."""
    for phase in services.runs.phases():
        state = run_lookup.latest_run(services, phase)
        if state is None:
            continue
        event = _newest_of(services, state)
        seq = state.last_seq if state.restoring is not None else event.seq if event is not None else 0
        if seq:
            yield seq, state, event


def _newest_of(services: Services, state: RunState) -> Event | None:
    found = (
        event for kind in UNDOABLE for event in services.log.events(run=state.id, kind=kind, newest_first=True, limit=1)
    )
    return max(found, key=lambda event: event.seq, default=None)
