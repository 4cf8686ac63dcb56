"""Render `progress.json` of a phase: iDumb's lists for its scripts, and the state of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.domain import outcome
from idumb.domain.runs.run import RunState
from idumb.views import markup
from idumb.views.reports import run_status


def fields(state: RunState, where: Mapping[str, str]) -> dict[str, Any]:
    """Return lists of task ids in execution order. `completed` includes accepted tasks, so that a resume skips them."""
    current = run_status.with_status(where, outcome.RUNNING)
    return {
        "completed": list(run_status.with_status(where, *outcome.DONE)),
        "failed": list(run_status.with_status(where, outcome.FAILED)),
        "blocked": list(run_status.with_status(where, outcome.BLOCKED)),
        "started_at": state.started_at,
        "git_hash": state.git_hash or "no-git",
        "accepted": list(run_status.with_status(where, outcome.ACCEPTED)),
        "skipped": list(run_status.with_status(where, outcome.SKIPPED)),
        "waiting": list(run_status.with_status(where, outcome.WAITING)),
        "remaining": list(run_status.with_status(where, outcome.READY, outcome.PENDING)),
        "carried": [t for t in where if t in state.tasks and state.tasks[t].carried_from],
        "current": current[0] if current else None,
        "phase": state.phase,
        "run": state.id,
        "state": state.state,
        "reason": state.reason,
        "contract_hash": state.contract.hash,
        "updated_at": state.moved_at,
    }


def render(state: RunState, statuses: Mapping[str, str]) -> str:
    """Return the file; `statuses` come from `schedule.statuses`."""
    return markup.json_text(fields(state, statuses))
