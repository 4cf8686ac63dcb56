"""Undo the newest rollback, undo or run of this working tree. Undoing an undo restores its effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services
from idumb.app.history import restore, rollback
from idumb.app.history.compensation import Effects
from idumb.app.history.restore import Intent
from idumb.app.history.restore_conflicts import Target
from idumb.domain import wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import START, RunState
from idumb.domain.settings import COMMIT_TASK

UNDOABLE = ("rollback.completed", "undo.completed", "work.dropped", "attempt.started", "task.completed")
_OF_A_RUN = ("attempt.started", "task.completed")


def undo(services: Services, operation: str | None, *, yes: bool, accept_git: Sequence[str] = ()) -> Result:
    """Undo the newest rollback, undo or run of this working tree, or the named operation; `yes` needs a name.

    An undo that was cut short is finished. If the named operation is undone already, nothing changes.
    """
    state = _run_of(services, operation)
    with rollback.owned(services, restore.UNDO, state, accept_git) as (journal, contract, finished):
        event = _newest_undoable(services, state)
        if event is not None and _is_undo(event) and (finished or operation == event.payload["undone"]):
            return _repeat_answer(services, journal, contract, event)
        if event is None or operation not in (None, *_names(event)):
            raise _no_such(services, str(operation))  # another operation was finished first
        _require_same_tasks(services, state, event)
        return _undo(services, journal, contract, event, yes=yes and operation is not None)


def _names(event: Event) -> set[str | None]:
    """Return the operations that started, finished, or were undone by this."""
    return {event.operation, _operation(event), event.payload.get("undone")}


def _operation(event: Event) -> str:
    """Return the operation that the user knows: the one that started this, even if another one finished it."""
    return str(event.payload.get("operation", event.operation))


def _run_of(services: Services, operation: str | None) -> RunState:
    """Return the run with the newest undoable event, or the run whose newest one this operation is."""
    candidates = list(_undoable(services))
    if operation is None and not candidates:
        raise Refusal("undo.nothing", "There is nothing to undo in this working tree.", hint=Action("log"))
    if operation is None:
        return max(candidates, key=lambda row: row[0])[1]
    for _, state, event in candidates:
        intended = state.restoring or {"operation": None, "said": {}}
        restoring = {intended["operation"], intended["said"].get("undone")}
        if operation in restoring or (event is not None and operation in _names(event)):
            return state
    raise _no_such(services, operation)


def _no_such(services: Services, operation: str) -> Refusal:
    candidates = [(state, event) for _, state, event in _undoable(services) if event is not None]
    offered = [f"{_operation(event)} ({_describe(services, state, event)})" for state, event in candidates]
    return Refusal(
        "undo.no-such-operation",
        f"Operation {operation} cannot be undone now: only the newest run, rollback or undo of each phase can:"
        f" {'; '.join(offered) or 'there is none'}.",
        hint=Action("undo") if offered else Action("log"),
        details={"operations": [_operation(event) for _, event in candidates]},
    )


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
        "next": [Action("next"), Action("undo")],
    }
    return Result(data, warnings=warnings)


def _undo(services: Services, journal: Journal, contract: Contract, event: Event, *, yes: bool) -> Result:
    """Restore what the operation changed: one that dropped work changed no file.

    Of a run, roll back to before the first task that the operation attempted. `yes` confirms this operation.
    """
    state, base, name = journal.state, journal.state.base.tree, _operation(event)
    begun = services.log.events(operation=name, kind="operation.started", limit=1)
    command = next((f" ({start.payload['command']})" for start in begun), "")
    what = _describe(services, state, event)
    said = {"undone": name, "what": what}
    intent = Intent(
        restore.UNDO, f"undo of {what}", f"Undo: {what}", f"Idumb-Undo: {name}", said, yes,
        Action.of("undo", "--yes", "--operation", name), f"operation {name}{command}",
    )  # fmt: skip
    if event.kind in _OF_A_RUN:
        to = _task_before(services, state, event)
        trailer = f"Idumb-Rollback: {to}"
        intent = replace(intent, command=restore.ROLLBACK, trailer=trailer, fields={"to": to, **said})
        return rollback.carry_out(services, journal, contract, intent)
    p = {"paths": (), "before_tree": base, "after_tree": base, **event.payload}
    if event.seq < kept_runs.freed(services).get(state.id, 0):
        raise kept_runs.refusal(state)
    committed = _committed_then(services, state, name, p["before_tree"])
    target = Target(tuple(p["paths"]), p["before_tree"], p["after_tree"], tuple(p["tasks"]), committed)
    # Undo restores files, but not effects outside the files that commands undid.
    lost = (
        f"The effect of {task} outside the files was rolled back and is not repeated"
        for task in p.get("compensated") or ()
    )
    return rollback.restore_and_report(services, journal, contract, intent, target, Effects(warnings=tuple(lost)))


def _committed_then(services: Services, state: RunState, operation: str, tree: str) -> str | None:
    """Return the tree before the operation, with HEAD's version of what was uncommitted then; None if nothing was."""
    intended = next(iter(services.log.events(run=state.id, operation=operation, kind="rollback.intended")), None)
    if intended is None:
        return None
    head = services.history.tree_of(intended.payload["head"])
    uncommitted = intended.payload["uncommitted"]
    return services.trees.overlay(tree, head, uncommitted) if uncommitted and state.policy == COMMIT_TASK else None


def _require_same_tasks(services: Services, state: RunState, event: Event) -> None:
    """Refuse (`undo.amended`) if an amendment changed a task since."""
    if event.kind in _OF_A_RUN:
        return
    tasks = state.operations.get(_operation(event), {}).get("tasks", {})
    changed = [t for t, was in tasks.items() if t not in state.tasks or state.tasks[t].digest != was.digest]
    if changed:
        raise Refusal(
            "undo.amended",
            f"{_describe(services, state, event)} cannot be undone: an amendment changed {wording.listed(changed)}.",
            hint=Action.of("resume", state.phase),
            details={"phase": state.phase, "tasks": changed},
        )


def _describe(services: Services, state: RunState, event: Event) -> str:
    """Return what would be undone, with its phase."""
    if event.kind in _OF_A_RUN:
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
    """Return the last task with a checkpoint before the first attempt at any task that the operation worked on.

    Earlier commands may have attempted such a task: it waited for an answer, or it failed.
    """
    begun = (services.log.events(run=state.id, operation=event.operation, kind=kind) for kind in _OF_A_RUN)
    first = min(state.attempted.get(str(each.task), each.seq) for events in begun for each in events)
    return rollback.target_before(services, state, first)


def _undoable(services: Services) -> Iterator[tuple[int, RunState, Event | None]]:
    """Yield, for each phase, the sequence number of its newest undoable event, the run, and the event."""
    for state in run_lookup.latest_runs(services):
        event = _newest_undoable(services, state)
        seq = state.last_seq if state.restoring is not None else event.seq if event is not None else 0
        if seq:
            yield seq, state, event


def _newest_undoable(services: Services, state: RunState) -> Event | None:
    newest_by_kind = (
        event for kind in UNDOABLE for event in services.log.events(run=state.id, kind=kind, newest_first=True, limit=1)
    )
    return max(newest_by_kind, key=lambda event: event.seq, default=None)
