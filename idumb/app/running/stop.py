"""Stop the owner of this working tree from another terminal: now, after its task, or by force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Result, Services
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain.action import Action
from idumb.domain.errors import Refusal
from idumb.domain.runs.run import ACTIVE, RunState
from idumb.domain.runs.run import INTERRUPTED as RUN_INTERRUPTED

ELSEWHERE = "elsewhere"

NOTHING = "nothing ran"
INTERRUPTED = "interrupted"
FINISHED = "finished by itself"
KILLED = "killed"
FENCED = "fenced off"
ASKED = "stops after its task"

_RUNNING = frozenset({"execute-phase", "execute", "quick", "resume"})

_LOOKED_AT = 50


def stop(services: Services, *, after_task: bool, force: bool, why: str, by: str) -> Result:
    """Ask the owner of this working tree to stop, and wait until it has released it. Not with `after_task`.

    With `force`, kill a local owner that does not answer, and fence off an owner on another machine.
    """
    holder, why = services.owner.holder(), " ".join(why.split())
    if holder is None:
        return _result(None, NOTHING, None)
    who, details = f"Process {holder.get('pid', '?')} ({holder.get('command', '?')})", preconditions.shown_owner(holder)
    if after_task:  # the owner looks for the request before each task
        if holder["command"] not in _RUNNING:
            words = f"{who} has this working tree, but runs no tasks."
            raise Refusal("stop.no-tasks", words, hint=Action("stop"), details=details)
        services.owner.ask_to_stop_after_task(holder, by, why)
        return _result(holder, ASKED, None)
    if holder["standing"] == ELSEWHERE:
        if not force:
            raise Refusal(
                "lock.elsewhere",
                f"Process {holder.get('pid', '?')} on {holder.get('host', 'another machine')} has owned this working"
                f" tree since {holder.get('since', '?')}, and cannot be reached from here.",
                hint="Run idumb stop there. If that process has ended, run idumb stop --force here",
                details=details,
            )
        return _result(holder, FENCED, _fence_off(services, by, why))
    if services.owner.ask(holder, by, why):
        run = _interrupted(services, holder)
        return _result(holder, INTERRUPTED if run else FINISHED, run, _checkpoint(services, holder) if run else None)
    if not force:
        words = f"{who} was asked to stop, but still has the working tree."
        raise Refusal("stop.no-answer", words, hint=Action.of("stop", "--force"), details=details)
    services.owner.end(holder)
    return _result(holder, KILLED, _fence_off(services, by, why))


def _fence_off(services: Services, by: str, why: str) -> RunState | None:
    """Take the working tree, so that the log refuses the old owner's token, and record its runs as interrupted."""
    stopped = None
    with operation.owned(services, "stop", force=True) as owned:
        for state in run_lookup.latest_runs(services):
            if state.state != ACTIVE:
                continue
            services.open_checks(services.here, state.id).end_processes()
            journal = owned.journal(state)
            reason = actions.stopped_by(by, why)
            journal.append("run.interrupted", reason=reason, by="stop", forced=True)
            stopped = journal.state
    return stopped


def _interrupted(services: Services, holder: Mapping[str, Any]) -> RunState | None:
    """Return the run that this owner recorded as interrupted; None if it recorded none."""
    for event in services.log.events(kind="run.interrupted", newest_first=True, limit=_LOOKED_AT):
        if event.fence == holder.get("fence") and event.run is not None:
            return run_lookup.run_of(services, event.run)
    return None


def _checkpoint(services: Services, holder: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the checkpoint of the attempt that this owner interrupted; None if no attempt was running."""
    for event in services.log.events(kind="checkpoint.recorded", newest_first=True, limit=_LOOKED_AT):
        if event.fence == holder.get("fence") and event.payload["status"] == RUN_INTERRUPTED:
            names = ("ref", "snapshot", "files")
            return {"task": event.task, "attempt": event.attempt} | {name: event.payload[name] for name in names}
    return None


def _result(
    holder: Mapping[str, Any] | None, ended: str, run: RunState | None, kept: Mapping[str, Any] | None = None
) -> Result:
    return Result(
        {
            "stopped": ended in (INTERRUPTED, KILLED, FENCED),
            "ended": ended,
            "forced": ended in (KILLED, FENCED),
            "owner": preconditions.shown_owner(holder),
            "run": run.id if run else None,
            "phase": run.phase if run else None,
            "checkpoint": kept,
            "next": [Action("status") if ended == ASKED else Action.of("resume", run.phase) if run else Action("next")],
        }
    )
