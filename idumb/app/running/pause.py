"""Pause a run: after its current task if it is running, otherwise until `resume`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core import next_actions, previous_owner, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain.errors import Refusal
from idumb.domain.runs.run import ACTIVE, COMPLETED, PAUSED, RunState

ASKED = "asked"
PAUSED_NOW = "paused"
ALREADY = "paused already"

_RUNNING = frozenset({"execute-phase", "execute", "quick", "resume"})


def pause(services: Services, phase: str, *, why: str, by: str) -> Result:
    """Ask the process that runs the phase to stop after its task; without one, record that the run is paused.

    Refusal if the phase was never run, is complete, or another command has the working tree.
    """
    preconditions.require_initialised(services)
    state = run_lookup.named_run(services, phase)
    why = " ".join(why.split())
    if state.state == COMPLETED and state.restoring is None:
        raise Refusal(
            "pause.done",
            f"Run {state.number} of phase {state.phase} is complete, so it cannot be paused.",
            hint=f"idumb verify-work {state.phase}",
            details={"phase": state.phase},
        )
    holder = services.owner.holder()
    if holder is not None:
        return _ask_owner(services, state, holder, by, why)
    if state.state == PAUSED:
        return _result(state, ALREADY, None)
    return _record_pause(services, state, by, why)


def _ask_owner(services: Services, state: RunState, holder: Mapping[str, Any], by: str, why: str) -> Result:
    """Ask another process to pause. It checks for the request before each task."""
    if holder["command"] not in _RUNNING or state.state != ACTIVE:
        raise Refusal(
            "pause.other-work",
            f"Process {holder['pid']} ({holder['command']}) has this working tree, but does not run phase"
            f" {state.phase}.",
            hint="idumb status shows what is running",
            details=previous_owner.shown(holder),
        )
    services.owner.ask_to_pause(holder, by, why)
    return _result(state, ASKED, holder, reason=next_actions.said_by(by, why))


def _record_pause(services: Services, state: RunState, by: str, why: str) -> Result:
    with operation.owned(services, "pause") as owned:
        journal = owned.journal(state)
        journal.write(journal.event("run.paused", reason=next_actions.said_by(by, why), by=by, why=why))
    return _result(journal.state, PAUSED_NOW, None)


def _result(state: RunState, ended: str, holder: Mapping[str, Any] | None, *, reason: str = "") -> Result:
    choices = next_actions.for_paused(state)
    running = ended == ASKED
    return Result(
        {
            "ended": ended,
            "paused": not running,
            "reason": reason or state.reason,
            "run": state.id,
            "phase": state.phase,
            "owner": previous_owner.shown(holder),
            "choices": next_actions.rows(choices),
            "next": ["idumb status"] if running else [f"idumb resume {state.phase}"],
        }
    )
