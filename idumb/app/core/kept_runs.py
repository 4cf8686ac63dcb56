"""What idumb keeps of runs, and how it is freed: snapshots, checkpoints and transcripts, never plans and reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.services import Services, run_ref
from idumb.app.ports import RunStart
from idumb.domain.errors import Refusal
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import CLOSED, RunState

FREED = "snapshots.freed"
NAMES = "refs/idumb/worktrees/"
# refs/idumb/worktrees/main/runs/1f0c/T1-01/2/base
_NAME = re.compile(rf"{NAMES}([^/]+)/runs/([^/]+)/(.*)")
_RECORD = re.compile(r"(plans|reports)(-\d+)?")


def is_record(name: str) -> bool:
    """Return whether a name of a run stays when the run is freed: the log refers to plans and reports for ever."""
    return _RECORD.fullmatch(name) is not None


def freed(services: Services) -> Mapping[str, int]:
    """Return each freed run with the number of the event that says so: what the run kept before it may be gone."""
    return {run: event.seq for event in services.log.events(kind=FREED) for run in event.payload["runs"]}


def freed_before(freed: Mapping[str, int], ref: str, seq: int) -> bool:
    """Return whether the event `seq`, which gave an object the name `ref`, is older than the freeing of its run."""
    of_run = _NAME.fullmatch(ref)
    return of_run is not None and not is_record(of_run[3]) and seq < freed.get(of_run[2], 0)


def require_snapshots(services: Services, state: RunState, tasks: Iterable[str]) -> None:
    """Refusal `snapshots.freed` if what these tasks started from and left is no longer kept."""
    gone = freed(services)
    for task in tasks if gone else ():
        run = run_lookup.attempting_run(services, state, task)
        if run.attempted.get(task, 0) < gone.get(run.id, 0):
            raise refusal(run)


def refusal(run: RunState) -> Refusal:
    return Refusal(
        "snapshots.freed",
        f"The snapshots of run {run.number} of phase {run.phase} were freed (idumb archive, snapshot.keep), so idumb"
        " can neither restore nor compare its files.",
        hint="git log lists its commits; git revert undoes one",
        details={"run": run.id},
    )


def counts(services: Services) -> dict[str, Any]:
    """Return how many runs keep snapshots, how many of them newer ones replaced, and both in words; "" for none."""
    starts = services.log_files.starts()
    runs = {start.run for start in starts} - freed(services).keys()
    replaced = runs - _newest(starts)
    how = "idumb archive frees those of replaced runs" if replaced else "snapshot.keep (days) frees finished ones"
    words = f"Kept: the snapshots of {len(runs)} {'run' if len(runs) == 1 else 'runs'}; {how}" if runs else ""
    return {"runs": len(runs), "replaced": len(replaced), "words": words}


def with_snapshots(services: Services, runs: Collection[str] | None = None) -> list[RunStart]:
    """Return the runs of all working trees that keep snapshots or checkpoints, oldest first; only `runs` if given."""
    matches = map(_NAME.fullmatch, services.history.refs(NAMES))
    found = {match[2] for match in matches if match is not None and not is_record(match[3])}
    holders = (start for start in services.log_files.starts() if start.run in found)
    return [start for start in holders if runs is None or start.run in runs]


def outdated(services: Services) -> list[RunStart]:
    """Return the finished runs of this working tree that keep snapshots longer than `snapshot.keep` says.

    Runs stay from which a newer run took over tasks, if that run stays.
    """
    days = services.settings.snapshot.get("keep")
    if days is None:
        return []
    from datetime import datetime, timedelta  # `idumb status` must start fast

    since = datetime.fromisoformat(services.clock.now()) - timedelta(days=days)
    own = {start.run: start for start in services.log_files.starts() if start.worktree == services.worktree}
    holders = (start.run for start in with_snapshots(services) if start.run in own)
    newest_events = (next(iter(services.log.events(run=run, newest_first=True, limit=1))) for run in holders)
    aged = [str(event.run) for event in newest_events if datetime.fromisoformat(event.at) < since]
    old = {run for run in aged if is_finished(run_lookup.run_of(services, run))}
    newest = {start.phase: start for start in own.values()}.values()
    needed = live_runs((start for start in newest if start.run not in old), lambda run: carried_from(services, run))
    return [own[run] for run in own if run in old - needed]


def freed_event(runs: Iterable[RunStart]) -> NewEvent:
    """Return the event to record before `free`."""
    return NewEvent(FREED, {"runs": [start.run for start in runs]})


def free(services: Services, runs: Iterable[RunStart]) -> None:
    """Free what these runs keep, with their transcripts. If it is killed, the next call with the same runs finishes."""
    for start in runs:
        services.log_files.forget_transcripts(start.run, start.worktree)
        services.history.free(run_ref(services, start.run, "", start.worktree), is_record)


def is_finished(state: RunState) -> bool:
    return state.state in CLOSED and state.restoring is None and state.verified


def live_runs(starts: Iterable[RunStart], carried_from: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the newest run of each phase in each working tree, and the runs that they took over tasks from."""
    runs: set[str] = set()
    rest = list(_newest(starts))
    while rest:
        run = rest.pop()
        if run not in runs:
            runs.add(run)
            rest += carried_from(run)
    return runs


def _newest(starts: Iterable[RunStart]) -> set[str]:
    """Return the newest run of each phase in each working tree."""
    return set({(start.phase, start.worktree): start.run for start in starts}.values())


def carried_from(services: Services, run: str) -> set[str]:
    return {str(event.payload["from_run"]) for event in services.log.events(run=run, kind="task.carried")}
