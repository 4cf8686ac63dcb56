"""Finds runs, by phase in any spelling or by id, and where the work of their tasks is: which commit, which paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from msgspec import Struct

from idumb.app.core import actions
from idumb.app.core.questions import Deviations
from idumb.app.core.services import Services
from idumb.domain import outcome
from idumb.domain.action import Action
from idumb.domain.errors import InputError, Interrupted, Refusal
from idumb.domain.plans import phase_ids
from idumb.domain.proof import ledger
from idumb.domain.runs.event import Event
from idumb.domain.runs.replay import replay
from idumb.domain.runs.run import RunState, TaskState
from idumb.domain.settings import COMMIT_TASK


def why_stopped(services: Services, interrupted: Interrupted) -> str:
    """The reason of a stop: `idumb stop` records its user before it sends a signal."""
    asked = services.owner.stop_request()
    return actions.stopped_by(asked.by, asked.why) if asked else f"stopped by {interrupted.signal_name}"


def latest_run(services: Services, phase: str) -> RunState | None:
    run = services.log.latest_run(phase)
    return None if run is None else replay(services.log.events(run=run))


def latest_runs(services: Services) -> Iterator[RunState]:
    """Yield the newest run of each phase in this working tree."""
    return (state for phase in services.log.phases() if (state := latest_run(services, phase)) is not None)


def recorded_phase(services: Services, name: str) -> str | None:
    """Return the phase as its runs spell it: `1` for `01` and `01-name`, the id of a step plan for its path.

    None if it never ran. Reads no plan, because the plan may be half edited or gone.
    """
    names = services.log.phases()
    return name if name in names else next((one for one in names if services.plans.same_phase(one, name)), None)


def newest_run(services: Services, name: str) -> RunState | None:
    """Return the newest run of a phase in any spelling; None if it never ran."""
    phase = recorded_phase(services, name)
    return None if phase is None else latest_run(services, phase)


def last_event(services: Services, kind: str, run: str, task: str | None = None) -> Event | None:
    """Return the newest event of a kind, of a run or of one of its tasks."""
    return next(iter(services.log.events(run=run, task=task, kind=kind, newest_first=True, limit=1)), None)


def commit_of_reports(services: Services, state: RunState) -> str | None:
    """Return the newest commit of the run's reports: a command may have been killed before it recorded it."""
    rows = services.history.trailers_since(state.base.commit)
    return next((commit for commit, t in rows if "Idumb-Reports" in t and t.get("Idumb-Run") == state.id), None)


def last_ledger(services: Services, run: str, task: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of files and symbols that the last attempt at a task changed, also of an interrupted one."""
    events = (last_event(services, kind, run, task) for kind in ("attempt.finished", "attempt.interrupted"))
    newest = max((event for event in events if event is not None), key=lambda event: event.seq, default=None)
    return () if newest is None else tuple(newest.payload.get("ledger", ()))


def deviations(services: Services, run: str, task: str) -> Deviations:
    """Return the deviations of the last attempt at a task."""
    lines = [line for line in last_ledger(services, run, task) if "symbol" not in line]
    undeclared, protected = (
        tuple(line["path"] for line in lines if line["status"] == status)
        for status in (ledger.UNDECLARED, ledger.PROTECTED)
    )
    return Deviations(undeclared, protected)


def run_of(services: Services, run: str) -> RunState:
    return replay(services.log.events(run=run))


def require_run(services: Services, phase: str) -> RunState:
    state = latest_run(services, phase)
    if state is None:
        services.plans.phase_folder(phase)  # refuses an unknown phase first
        hint = phase_ids.run_command(phase)
        raise Refusal("run.none", f"Phase {phase} has no run in this working tree.", hint=hint)
    return state


def named_run(services: Services, name: str) -> RunState:
    """Return the newest run of a phase in any spelling; Refusal `run.none` if it never ran."""
    return require_run(services, recorded_phase(services, name) or name)


def attempting_run(
    services: Services, state: RunState, task: str, load: Callable[[str], RunState] | None = None
) -> RunState:
    """Return the run with the attempts of a task. For a carried task, this is an earlier run, which `load` reads."""
    task_state = state.tasks.get(task)
    while task_state is not None and task_state.carried_from is not None and task not in state.attempted:
        run = task_state.carried_from
        state = run_of(services, run) if load is None else load(run)
        task_state = state.tasks.get(task)
    return state


def require_task(tasks: Container[str], task: str, phase: str, words: str | None = None) -> None:
    """Refuse a task that is none of the phase, or of a run (`words`)."""
    if task not in tasks:
        message = f"{words or f'Phase {phase}'} has no task {task}."
        raise InputError("task.unknown", message, hint=Action.of("graph", phase), details={"phase": phase})


def find_task(task: str) -> tuple[str, str]:
    """Return (phase, id) of a task id in any case: ("1", "T1-01") for `t1-01`. A step's id is case-sensitive."""
    steps = phase_ids.step_plan_of_task(task)
    if steps is not None:
        return steps, task
    match = re.fullmatch(r"[Tt]([QqWw]?)([0-9][0-9A-Za-z.]*)-([0-9]{2,}[a-z]?)", task)
    if match is None:
        raise InputError("task.bad-id", f"{task!r} is not a task id, such as T1-01.", hint=Action("status"))
    phase = match[1].upper() + match[2]
    return phase, f"T{phase}-{match[3]}"


FILES = "worktree"
"""The path of the files in a hidden checkpoint."""


class Place(Struct, frozen=True):
    """Where work is: a commit. Else `paths` of the hidden checkpoint `snapshot`, on the commit `head`."""

    commit: str | None
    snapshot: str | None = None
    head: str | None = None
    paths: tuple[str, ...] = ()


def commit_of(task: TaskState) -> str | None:
    """Return the commit that has the work of a task."""
    return task.accepted_commit or (task.checkpoint.commit if task.checkpoint is not None else None)


def place_of_task(state: RunState, task: TaskState) -> Place | None:
    """Return where the work of a task is; None if neither a commit nor a checkpoint has it.

    A completed task that changed nothing, or that a person built, is in the commit that was HEAD after it.
    """
    kept = task.checkpoint
    head = kept.git_hash if kept is not None and state.policy == COMMIT_TASK else None
    commit = commit_of(task) or head
    if commit is not None:
        return Place(commit)
    if kept is None:
        return None
    return Place(None, kept.snapshot, kept.git_hash, _paths_until(state, kept.seq))


def _paths_until(state: RunState, seq: int) -> tuple[str, ...]:
    """Return the paths of the tasks that were completed until an event and that no commit has."""
    done = (task for task in state.tasks.values() if task.status in outcome.DONE)
    kept = ((task, task.checkpoint) for task in done if task.checkpoint is not None)
    touched = {path for task, one in kept if one.seq <= seq and not one.commit for path in task.work.touched}
    return tuple(sorted(touched))


def place_of_run(services: Services, state: RunState) -> Place | None:
    """Return where the work of all completed tasks of a run is: its newest commit or checkpoint."""
    done = [task for task in state.tasks.values() if task.status in outcome.DONE]
    kept = sorted((t for t in done if t.checkpoint), key=lambda t: t.checkpoint.seq if t.checkpoint else 0)
    place = place_of_task(state, kept[-1]) if kept else None
    for commit in filter(None, (task.accepted_commit for task in done)):
        if place is None or place.commit is None or services.history.descends(place.commit, commit):
            place = Place(commit)
    return place


def left_paths(state: RunState) -> frozenset[str]:
    """Return the paths that the tasks of a run left in their checkpoints."""
    return frozenset(p for t in state.tasks.values() if t.checkpoint is not None for p in t.checkpoint.files)


def has_changed(services: Services, run: str, tree: str, path: str) -> bool:
    """Return whether a run changed a path: in a task, perhaps of an earlier run, or since it started.

    False before the first run.
    """
    state = run_of(services, run)
    if path in left_paths(state):
        return True
    if not state.base.tree:
        return False
    try:
        base = services.history.tree_of(state.base.commit)
    except KeyError:  # the user rewrote history, and git removed the commit
        return True
    return services.trees.entry(base, path) != services.trees.entry(tree, path)


def phase_or_task(name: str) -> tuple[str, str | None]:
    """Return (phase, id) of a task, or (phase, None) for any other name."""
    try:
        return find_task(name)
    except InputError:
        return name, None
