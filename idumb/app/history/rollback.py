"""Rollback: restore the paths that tasks changed, and never overwrite a user's change."""

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
from idumb.domain import paths
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError
from idumb.domain.proof.evidence import BROKEN
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import START, RunState, TaskState


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
    with owned(services, restore.ROLLBACK, state, accept_git) as (journal, contract, _):
        flags = [word for name in past for word in ("--past", name)]
        confirming = Action.of("rollback", phase, "--to", task, *flags, "--yes")
        intent = intent_to(state.phase, task, yes=yes, confirming=confirming, past=tuple(past), then=tuple(then))
        return carry_out(services, journal, contract, intent)


@contextmanager
def owned(
    services: Services, command: str, state: RunState, accept_git: Sequence[str]
) -> Iterator[tuple[Journal, Contract, bool]]:
    """Own the working tree to restore what a run changed; tell whether a killed restore was finished first."""
    contract = loading.locked_contract(services, state)  # what ran: the plan may be edited or gone by now
    preconditions.require_guarded_files(services, state, accept_git)
    preconditions.require_repository(services)
    preconditions.require_branch(services, state)
    with operation.recorded(services, command, state) as journal:
        preconditions.accept_guarded_files(services, journal, accept_git)
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
        return _nothing(state, intent)
    kept_runs.require_snapshots(services, state, [task_state.id for task_state in undone])
    effects = compensation.effects(services, state, contract, undone, intent.past)
    past_and_compensated = {"past": list(effects.past), "compensated": list(effects.compensated)}
    intent = replace(intent, fields={**intent.fields, **past_and_compensated})
    return restore_and_report(services, journal, contract, intent, _target(services, undone), effects)


def restore_and_report(
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
        "paths": [path for path in target.paths if path not in done.not_restored],
        **fields(target, "tasks"),
        **fields(done, "commit", "kept"),
        **intent.fields,
        "next": [Action("next"), Action("undo")] if intent.operation else [Action("undo"), resume],
    }
    return Result(answer, warnings=warnings)


def _nothing(state: RunState, intent: Intent) -> Result:
    answer: dict[str, Any] = {"phase": state.phase, **intent.fields, "paths": [], "tasks": [], "commit": None}
    return Result({**answer, "next": [Action("next") if intent.operation else Action.of("resume", state.phase)]})


def finish_killed(services: Services, journal: Journal, contract: Contract) -> bool:
    """Record what killed attempts changed, and finish a killed restore; return whether there was one."""
    finished = restore.finish_interrupted(services, journal, contract) is not None
    killed = [t for t, task_state in journal.state.tasks.items() if task_state.attempt.running and t in contract.tasks]
    if not killed:
        return finished
    from idumb.app.core import run_context
    from idumb.app.engine import unfinished_attempts

    context = run_context.opened(services, journal, contract, run_context.RunRequest(contract.phase))
    for task in (contract.tasks[t] for t in killed):
        unfinished_attempts.record_interruption(context.continuing(task), task)
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
    return services.open_checkout().checked_out(base, other, seen) if other else base


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
    head = services.history.head_tree()
    target, expected = (services.trees.overlay_each(head, sources) for sources in (before, after))
    return Target(tuple(sorted(covered)), target, expected, tuple(k.id for k in undone))
