"""Undo the newest rollback, undo or run of this working tree. Undoing an undo restores its effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from idumb.app.contract import loading
from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.history import restore, rollback
from idumb.app.history.compensation import Effects
from idumb.app.history.restore import Intent
from idumb.app.history.restore_conflicts import Target
from idumb.app.session import operation
from idumb.app.worktree import exposed_secrets, preconditions
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import START, RunState
from idumb.domain.settings import COMMIT_TASK
from idumb.lazy_dataclass import dataclass

UNDOABLE = ("rollback.completed", "undo.completed", "work.dropped", "attempt.started")
_ENDS = ("attempt.finished", "attempt.interrupted", "checkpoint.recorded")
_BOOKKEEPING = {"operation.started", "operation.finished"}
_RECORDS = {
    *_BOOKKEEPING,
    "guarded.accepted",
    "decision.answered",
    "reports.committed",
    "history.recorded",
}
_YES = "idumb undo --yes"
_VERIFY = "verify-work"
_REPORT = "report"


@dataclass(frozen=True, slots=True)
class Request:
    """Options of `undo`. `operation` names the operation to undo; None is the newest one."""

    yes: bool
    operation: str | None = None
    accept_git: Sequence[str] = ()
    tell: Callable[[str], None] | None = None


def undo(services: Services, request: Request) -> Result:
    """Undo the newest rollback, undo or run of this working tree, or the named operation.

    Refusal `undo.other-operation` if `yes` is set and the newest operation is another one.
    """
    preconditions.require_initialised(services)
    candidate = newest(services) if request.operation is None else _find_operation(services, request.operation)
    if candidate is None:
        raise _nothing()
    state, _ = candidate
    contract = loading.require_contract(services, state.phase)
    preconditions.require_guarded(services, state, request.accept_git)
    preconditions.require_repository(services)
    preconditions.require_branch(services, state)
    begun = {event.operation for event in rollback.killed_commands(services, state) if _is_undo_command(event)}
    pending = set() if state.restoring is None else {state.restoring["operation"]}
    with operation.owned(services, restore.UNDO) as owned:
        journal = owned.journal(state)
        preconditions.accept_guarded(services, journal, request.accept_git)
        rollback.finish_killed(services, journal, contract)
        event = _newest_undoable(services, state)
        if event is None:
            raise _nothing()
        if _is_finished_undo(begun | pending, event):
            return _repeat_answer(services, journal, contract, event)
        _require_same_tasks(services, state, event)
        word = _confirmation(services, state, event, request, owned.operation)
        if event.kind == "attempt.started":
            return _undo_run(services, journal, contract, event, word)
        return _undo_restore(services, journal, contract, event, word)


def _nothing() -> Refusal:
    return Refusal("undo.nothing", "There is nothing to undo in this working tree.", hint="idumb log")


def _confirmation(
    services: Services, state: RunState, event: Event, request: Request, own: str
) -> restore.Confirmation:
    """Return how the user confirms this undo. `own` is the operation that asks."""
    if request.operation is not None and not _belongs_to_operation(event, request.operation):
        raise _no_such(services, request.operation)  # a later operation was finished first
    last = _newest_operation(services, own, state.id)
    short = request.operation is None and (last is None or _belongs(services, last, event))
    command = _YES if short else f"{_YES} --operation {_operation(event)}"
    if request.yes and request.operation is None and not short:
        raise _other_operation(services, state, event, last, command)
    return restore.Confirmation(request.yes, command, operation=_operation_name(services, event), tell=request.tell)


def _belongs_to_operation(event: Event, operation: str) -> bool:
    """Return whether the operation started or finished this."""
    return operation in (event.operation, _operation(event))


def _operation(event: Event) -> str:
    """Return the operation that the user knows: the one that started this, even if another one finished it."""
    return str(event.payload.get("operation", event.operation))


def _operation_name(services: Services, event: Event) -> str:
    """Return the operation of the event, with its command if the log has it."""
    operation = _operation(event)
    begun = services.log.events(operation=operation, kind="operation.started", limit=1)
    command = next((f" ({start.payload['command']})" for start in begun), "")
    return f"operation {operation}{command}"


def _newest_operation(services: Services, own: str, run: str) -> Event | None:
    """Return the start event of the newest command in this working tree that changed something, except `own`.

    A verification of `run`, the run to undo, only judges what would be undone, and `report --write` only
    writes what the log has.
    """
    for begun in services.log.events(kind="operation.started", newest_first=True):
        if (
            begun.payload.get("worktree") == services.worktree
            and begun.operation != own
            and begun.payload["command"] != _REPORT
            and not _is_verification(services, begun, run)
            and _changed_something(services, begun)
        ):
            return begun
    return None


def _is_verification(services: Services, begun: Event, run: str) -> bool:
    """Return whether this operation verified the run, and did nothing about another one."""
    if begun.payload["command"] != _VERIFY:
        return False
    return {event.run for event in services.log.events(operation=begun.operation)} <= {None, run}


def _changed_something(services: Services, begun: Event) -> bool:
    """Return whether an operation may have changed anything. Rollback and undo record their intent before a change."""
    events = tuple(services.log.events(operation=begun.operation))
    kinds = {event.kind for event in events}
    if _is_undo_command(begun):
        return not kinds.isdisjoint(UNDOABLE)
    if not kinds <= _BOOKKEEPING:
        return True
    ended = [event for event in events if event.kind == "operation.finished"]
    if not ended:
        return bool(begun.payload["command"] != restore.ROLLBACK)
    return any(event.payload["error"] is None for event in ended)


def _belongs(services: Services, last: Event, event: Event) -> bool:
    """Return whether the newest operation is that of the event, repeated it, or ended its attempt, as submit does."""
    if _belongs_to_operation(event, last.operation) or _repeats(services, last, event):
        return True
    if event.kind != "attempt.started":
        return False
    begun = services.log.events(run=event.run, operation=event.operation, kind="attempt.started")
    tried = {(started.task, started.attempt) for started in begun}
    ended = (e for e in services.log.events(run=event.run, operation=last.operation) if e.kind in _ENDS)
    return any((e.task, e.attempt) in tried for e in ended)


def _repeats(services: Services, last: Event, event: Event) -> bool:
    """Return whether the newest operation repeated the rollback of the event, which was killed at its very end.

    All files were restored then, so the repetition wrote records only. No command of the run ended in between.
    """
    if event.kind != "rollback.completed" or _is_undo(event) or last.run != event.run:
        return False
    kinds = {written.kind for written in services.log.events(operation=last.operation)}
    ended = services.log.events(run=event.run, kind="operation.finished", after=event.seq, limit=1)
    return last.payload["command"] == restore.ROLLBACK and kinds <= _RECORDS and all(e.seq > last.seq for e in ended)


def _find_operation(services: Services, operation: str) -> tuple[RunState, Event | None]:
    """Return the run whose newest undoable event belongs to this operation; a later one of the run would block it."""
    for _, state, event in _undoable(services):
        if event is not None and _belongs_to_operation(event, operation):
            return state, event
    raise _no_such(services, operation)


def _no_such(services: Services, operation: str) -> Refusal:
    candidates = [(state, event) for _, state, event in _undoable(services) if event is not None]
    offered = [f"{_operation(event)} ({_describe(services, state, event)})" for state, event in candidates]
    return Refusal(
        "undo.no-such-operation",
        f"Operation {operation} cannot be undone now: only the newest run, rollback or undo of each phase can.",
        hint=f"idumb undo --operation ID, where ID is one of: {'; '.join(offered)}" if offered else "idumb log",
        details={"operations": [_operation(event) for _, event in candidates]},
    )


def _other_operation(services: Services, state: RunState, event: Event, last: Event | None, command: str) -> Refusal:
    """Return the refusal: `--yes` confirms the undo of the newest operation only, and this would undo another one."""
    newer = "" if last is None else f" Your newest operation is {_described(services, last)}; it cannot be undone."
    description, operation = _describe(services, state, event), _operation(event)
    return Refusal(
        "undo.other-operation",
        f"Nothing was changed: this would undo {description} ({_operation_name(services, event)}).{newer}",
        hint=command,
        details={
            "what": f"Undo {description}",
            "phase": state.phase,
            "operation": operation,
            "newest": None if last is None else last.operation,
            "command": command,
        },
    )


def _described(services: Services, begun: Event) -> str:
    """Return an operation in words."""
    runs = (e.run for e in services.log.events(operation=begun.operation) if e.run is not None)
    run = next(runs, None)
    phase = f" of phase {run_lookup.run_of(services, run).phase}" if run is not None else ""
    return f"{begun.payload['command']}{phase} (operation {begun.operation})"


def _is_undo_command(begun: Event) -> bool:
    return bool(begun.payload["command"] == restore.UNDO)


def _is_finished_undo(operations: set[str], event: Event) -> bool:
    """Return whether the event ends an undo that was killed or failed midway; running undo again only finishes it.

    Several may have been killed, one of them while it finished another.
    """
    return _is_undo(event) and not operations.isdisjoint({event.operation, event.payload.get("operation")})


def _is_undo(event: Event) -> bool:
    """Return whether the event is an undo. The undo of a run is recorded as a rollback with `what`."""
    return event.kind == "undo.completed" or (event.kind == "rollback.completed" and "what" in event.payload)


def _repeat_answer(services: Services, journal: Journal, contract: Contract, event: Event) -> Result:
    p = event.payload
    warnings = restore.publish_reports(services, journal, contract, p["tasks"])
    data = {
        "undone": p.get("undone"),
        "what": p.get("what", "what was undone before"),
        "phase": journal.state.phase,
        "paths": list(p["paths"]),
        "tasks": list(p["tasks"]),
        "commit": p["commit"],
        "kept": p["before"],
        "next": ["idumb next", "idumb undo"],
    }
    return Result(data, warnings=warnings)


def _undo_restore(
    services: Services, journal: Journal, contract: Contract, event: Event, word: restore.Confirmation
) -> Result:
    """Restore what the operation changed; one that dropped work changed no file."""
    state, base = journal.state, journal.state.base.tree
    p = {"paths": (), "before_tree": base, "after_tree": base, **event.payload}
    if event.seq < kept_runs.freed(services).get(state.id, 0):
        raise kept_runs.refusal(state)
    description = _describe(services, state, event)
    undone = p.get("operation", event.operation)
    trees = (p["before_tree"], p["after_tree"])
    target = Target(
        exposed_secrets.names_in(services, p["paths"], *trees),
        p["before_tree"],
        p["after_tree"],
        tuple(p["tasks"]),
        f"undo of {description}",
        _committed_then(services, state, undone, p["before_tree"]),
    )
    intent = Intent(
        restore.UNDO, f"Undo: {description}", f"Idumb-Undo: {undone}", {"undone": undone, "what": description}
    )
    # Undo restores files, but not effects outside the files that commands undid.
    lost = (
        f"The effect of {task} outside the files was rolled back and is not repeated"
        for task in p.get("compensated") or ()
    )
    data = {"undone": undone, "what": description, "next": ["idumb next", "idumb undo"]}
    effects = Effects(warnings=tuple(lost))
    return rollback.restore_and_report(services, journal, contract, target, intent, word, effects, data)


def _committed_then(services: Services, state: RunState, operation: str, tree: str) -> str | None:
    """Return the tree before the operation, with HEAD's version of what was uncommitted then; None if nothing was."""
    intended = next(iter(services.log.events(run=state.id, operation=operation, kind="rollback.intended")), None)
    if intended is None:
        return None
    head = services.history.tree_of(intended.payload["head"])
    uncommitted = exposed_secrets.names_in(services, intended.payload["uncommitted"], tree, head)
    return services.trees.overlay(tree, head, uncommitted) if uncommitted and state.policy == COMMIT_TASK else None


def _require_same_tasks(services: Services, state: RunState, event: Event) -> None:
    """Refuse (`undo.amended`) if an amendment changed a task since."""
    if event.kind == "attempt.started":
        return
    tasks = state.operations.get(_operation(event), {}).get("tasks", {})
    changed = [t for t, was in tasks.items() if t not in state.tasks or state.tasks[t].digest != was.digest]
    if changed:
        raise Refusal(
            "undo.amended",
            f"{_describe(services, state, event)} cannot be undone: an amendment changed {wording.listed(changed)}.",
            hint=f"idumb resume {state.phase} runs it again; idumb check-plan {state.phase} --diff",
            details={"phase": state.phase, "tasks": changed},
        )


def _describe(services: Services, state: RunState, event: Event) -> str:
    """Return what would be undone, with its phase."""
    if event.kind == "attempt.started":
        to = _task_before(services, state, event)
        return f"run {state.number} of phase {state.phase}" + (f" after {to}" if to != START else "")
    done, p = event.kind.split(".")[0], event.payload
    if event.kind == "work.dropped":
        what = f"phase {state.phase}" if p["whole"] else f"{p['tasks'][0]} of phase {state.phase}"
        return f"drop of {what}"
    if done == restore.UNDO or "what" in p:
        return f"undo of {p.get('what', p.get('undone', 'an operation'))}"
    return f"rollback of phase {state.phase} to {p['to']}"


def _task_before(services: Services, state: RunState, event: Event) -> str:
    """Return the last task that was done before the operation of the event attempted its first task."""
    first = next(iter(services.log.events(run=state.id, operation=event.operation, kind="attempt.started", limit=1)))
    done_before = [
        (k.checkpoint.seq, k.id)
        for _, k in rollback.first_attempts(services, state)
        if k.checkpoint and k.checkpoint.seq < first.seq and state.tasks[k.id].status in outcome.DONE
    ]
    return max(done_before)[1] if done_before else START


def _undo_run(
    services: Services, journal: Journal, contract: Contract, event: Event, word: restore.Confirmation
) -> Result:
    """Roll back to before the first task that the operation attempted."""
    to, description = _task_before(services, journal.state, event), _describe(services, journal.state, event)
    intent = Intent(restore.ROLLBACK, f"Undo: {description}", f"Idumb-Rollback: {to}", {"to": to, "what": description})
    result = rollback.carry_out(services, journal, contract, intent, f"undo of {description}", word)
    data = {**result.data, "what": description, "undone": event.operation, "next": ["idumb next", "idumb undo"]}
    return dataclasses.replace(result, data=data)


def newest(services: Services) -> tuple[RunState, Event | None] | None:
    """Return the run with the newest undoable event or an interrupted restore."""
    best = max(_undoable(services), key=lambda row: row[0], default=None)
    return None if best is None else best[1:]


def _undoable(services: Services) -> Iterator[tuple[int, RunState, Event | None]]:
    """Yield, for each phase, the sequence number of its newest undoable event, the run, and the event."""
    for phase in services.log.phases():
        state = run_lookup.latest_run(services, phase)
        if state is None:
            continue
        event = _newest_undoable(services, state)
        seq = state.last_seq if state.restoring is not None else event.seq if event is not None else 0
        if seq:
            yield seq, state, event


def _newest_undoable(services: Services, state: RunState) -> Event | None:
    newest_by_kind = (
        event for kind in UNDOABLE for event in services.log.events(run=state.id, kind=kind, newest_first=True, limit=1)
    )
    return max(newest_by_kind, key=lambda event: event.seq, default=None)
