"""Rollback and undo: restore the paths that tasks or a rollback changed, and never overwrite a user's change.

Undoing an undo restores its effect.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from idumb.app.contract import changed_contract, loading
from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services, fields
from idumb.app.history import compensation, restore
from idumb.app.history.compensation import Effects
from idumb.app.history.restore import Intent
from idumb.app.history.restore_conflicts import Target
from idumb.app.session import operation
from idumb.app.worktree import exposed_secrets, preconditions
from idumb.domain import paths, wording
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.proof.evidence import BROKEN
from idumb.domain.runs.event import Event, NewEvent
from idumb.domain.runs.run import START, RunState, TaskState
from idumb.domain.settings import COMMIT_TASK


def rollback(
    services: Services,
    phase: str,
    to: str | None,
    *,
    yes: bool,
    past: Sequence[str] = (),
    accept_git: Sequence[str] = (),
    then: Sequence[NewEvent] = (),
) -> Result:
    """Roll back to the checkpoint after task `to` or to the start of the run; record `then` together with the result.

    `past` are irreversible tasks whose effects outside the files the user accepts to keep.
    """
    state = run_lookup.named_run(services, phase)
    changed_contract.require_not_dropped(state)
    task = checked_target(state, to)
    if not attempted_after(services, state, task) and not killed_commands(services, state):
        return _nothing(state, task)
    with _owned(services, restore.ROLLBACK, state, accept_git) as (journal, contract, _):
        flags = [word for name in past for word in ("--past", name)]
        confirming = Action.of("rollback", phase, "--to", task, *flags, "--yes")
        intent = intent_to(state.phase, task, yes=yes, confirming=confirming, past=tuple(past), then=tuple(then))
        return carry_out(services, journal, contract, intent)


@contextmanager
def _owned(
    services: Services, command: str, state: RunState, accept_git: Sequence[str]
) -> Iterator[tuple[Journal, Contract, bool]]:
    """Own the working tree to restore what a run changed; tell whether a killed restore was finished first."""
    contract = loading.locked_contract(services, state)  # what ran: the plan may be edited or gone by now
    preconditions.require_guarded(services, state, accept_git)
    preconditions.require_repository(services)
    preconditions.require_branch(services, state)
    with operation.owned(services, command) as owned:
        journal = owned.journal(state)
        preconditions.accept_guarded(services, journal, accept_git)
        yield journal, contract, finish_killed(services, journal, contract)


def intent_to(phase: str, target: str, **more: Any) -> Intent:
    """Return the intent to roll back to this target."""
    words = f"phase {phase} to {target}"
    subject, trailer = f"Roll back {words}", f"Idumb-Rollback: {target}"
    return Intent(restore.ROLLBACK, f"rollback of {words}", subject, trailer, {"to": target}, **more)


def carry_out(services: Services, journal: Journal, contract: Contract, intent: Intent) -> Result:
    """Roll back the tasks attempted after the target, within a command that owns the working tree."""
    state, to = journal.state, str(intent.fields["to"])
    undone = attempted_after(services, state, to)
    if not undone:
        restore.publish_reports(services, journal, contract, [t for t, k in state.tasks.items() if k.attempt.number])
        return _nothing(state, to)
    kept_runs.require(services, state, [task_state.id for task_state in undone])
    effects = compensation.effects(services, state, contract, undone, intent.past)
    past_and_compensated = {"past": list(effects.past), "compensated": list(effects.compensated)}
    intent = replace(intent, fields={**intent.fields, **past_and_compensated})
    return _restore(services, journal, contract, intent, _target(services, undone), effects)


def _restore(
    services: Services, journal: Journal, contract: Contract, intent: Intent, target: Target, effects: Effects
) -> Result:
    """Confirm, take a snapshot, run rollback commands, restore the paths, and check the invariants."""
    restore.confirm(services, intent, target, effects.facts)
    before = restore.keep_present(services, journal, intent, target)
    compensation.run(services, journal, contract, effects)
    done = restore.restore_paths(services, journal, contract, intent, target, before)
    warnings = (*effects.warnings, *restore.skipped_warnings(done))
    warnings += restore.publish_reports(services, journal, contract, target.tasks)
    invariants = restore.check_invariants(services, journal.state, contract)
    warnings += tuple(f"{e.subject} no longer holds: {e.text} ({e.result})" for e in invariants if e.result in BROKEN)
    resume = Action.of("resume", journal.state.phase)
    answer = {
        "phase": journal.state.phase,
        "invariants": [e.as_dict() for e in invariants],
        **fields(target, "paths", "tasks"),
        **fields(done, "commit", "kept"),
        **intent.fields,
        "next": [Action("next"), Action("undo")] if intent.operation else [Action("undo"), resume],
    }
    return Result(answer, warnings=warnings)


def _nothing(state: RunState, to: str) -> Result:
    answer: dict[str, Any] = {"phase": state.phase, "to": to, "paths": [], "tasks": [], "commit": None}
    return Result({**answer, "next": [Action.of("resume", state.phase)]})


def killed_commands(services: Services, state: RunState) -> tuple[Event, ...]:
    """Return the start events of the run's newest commands that were killed."""
    newest = run_lookup.last_event(services, "operation.finished", state.id)
    after = 0 if newest is None else newest.seq
    return tuple(services.log.events(run=state.id, kind="operation.started", after=after))


def finish_killed(services: Services, journal: Journal, contract: Contract) -> bool:
    """Record what killed attempts changed, and finish a killed restore; return whether there was one."""
    finished = restore.finish_interrupted(services, journal, contract) is not None
    killed = [t for t, task_state in journal.state.tasks.items() if task_state.attempt.running and t in contract.tasks]
    if not killed:
        return finished
    from idumb.app.core import run_context
    from idumb.app.engine import unfinished_attempts

    context = run_context.opened(services, journal, contract)
    for task in killed:
        unfinished_attempts.record_interruption(context, contract.tasks[task])
    context.workspace.keep()
    return finished


def checked_target(state: RunState, to: str | None) -> str:
    """Return the target as the plan spells it. InputError if it has no checkpoint, or if none is named."""
    if to == START:
        return to
    kept = [task.id for task in state.tasks.values() if task.checkpoint is not None]
    match = next((id for id in kept if to is not None and id.casefold() == to.casefold()), None)
    if match is None:
        known = ", ".join((START, *kept))
        missing = f"Run {state.number} of phase {state.phase} has no checkpoint of {to}; it has: {known}."
        raise InputError(
            "rollback.no-checkpoint",
            f"Name the checkpoint to return to: {known}." if to is None else missing,
            hint=Action.of("rollback", state.phase, "--to", START),
            details={"phase": state.phase},
        )
    return match


def attempted_after(services: Services, state: RunState, to: str) -> tuple[TaskState, ...]:
    """Return tasks attempted after the checkpoint, in the order of their first attempt.

    Those carried from earlier runs of the phase are included.
    """
    order, last = first_attempts(services, state), -1
    if to != START:
        checkpoint = next(task_state.checkpoint for _, task_state in order if task_state.id == to)
        last = checkpoint.seq if checkpoint else 0
    return tuple(task_state for seq, task_state in order if seq > last)


def target_before(services: Services, state: RunState, started: int) -> str:
    """Return the last task with a checkpoint before this event, or the start of the run."""
    order = first_attempts(services, state)
    kept = [k.id for seq, k in order if seq < started and k.checkpoint is not None and k.checkpoint.seq < started]
    return kept[-1] if kept else START


def first_attempts(services: Services, state: RunState) -> list[tuple[int, TaskState]]:
    """Return (sequence number of the first attempt, task) for each task, oldest first.

    A carried task was attempted in the run that executed it.
    """
    load = functools.cache(functools.partial(run_lookup.run_of, services))
    rows = [(seq, state.tasks[task]) for task, seq in state.attempted.items()]
    for task, task_state in state.tasks.items():
        if task_state.carried_from and task_state.checkpoint is not None and task not in state.attempted:
            origin = run_lookup.attempting_run(services, state, task, load)
            rows += [(origin.attempted[task], origin.tasks[task])] if task in origin.attempted else []
    return sorted(rows, key=lambda item: item[0])


def _touched_paths(task_state: TaskState) -> tuple[str, ...]:
    """Return the paths that a task touched, except idumb's own files and secret names, which no rollback writes."""
    kept = (path for path in task_state.work.touched if not paths.matches_any(path, paths.OWN_FILES))
    return tuple(path for path in kept if not exposed_secrets.is_redacted(path))


def _in_tree_of_user(services: Services, task_state: TaskState, base: str, paths: Sequence[str]) -> str:
    """Return what a task started from, with the bytes that these files had in the user's working tree."""
    trees = services.trees
    seen = [trees.tree_at(snapshot) for snapshot in task_state.work.snapshots]
    other = [path for path in paths if trees.entry(base, path) != trees.entry(seen[0], path)] if seen else paths
    return services.open_checkout().raw(base, other, seen) if other else base


def _target(services: Services, undone: Sequence[TaskState]) -> Target:
    """Return, for each path, its state before the first task that touched it, and after the last one."""
    covered: set[str] = set()
    before, after = list[tuple[str, list[str]]](), list[tuple[str, tuple[str, ...]]]()
    for task_state in undone:
        touched = _touched_paths(task_state)
        fresh = [p for p in touched if p not in covered]
        covered.update(fresh)
        if fresh and task_state.work.base:
            before.append((_in_tree_of_user(services, task_state, task_state.work.base, fresh), fresh))
        if touched and task_state.work.left_tree:
            after.append((task_state.work.left_tree, touched))
    head = services.history.tree_of(services.history.head().commit)
    target, expected = (services.trees.overlay_each(head, sources) for sources in (before, after))
    return Target(tuple(sorted(covered)), target, expected, tuple(k.id for k in undone))


# Undo


UNDOABLE = ("rollback.completed", "undo.completed", "work.dropped", "attempt.started", "task.completed")
_OF_A_RUN = ("attempt.started", "task.completed")


def undo(services: Services, operation: str | None, *, yes: bool, accept_git: Sequence[str] = ()) -> Result:
    """Undo the newest rollback, undo or run of this working tree, or the named operation; `yes` needs a name.

    An undo that was cut short is finished. If the named operation is undone already, nothing changes.
    """
    state = _run_of(services, operation)
    with _owned(services, restore.UNDO, state, accept_git) as (journal, contract, finished):
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
        f"Operation {operation} cannot be undone now: only the newest run, rollback or undo of each phase can.",
        hint=f"idumb undo --operation ID, where ID is one of: {'; '.join(offered)}" if offered else Action("log"),
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
        return carry_out(services, journal, contract, intent)
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
    return _restore(services, journal, contract, intent, target, Effects(warnings=tuple(lost)))


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
    return target_before(services, state, first)


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
