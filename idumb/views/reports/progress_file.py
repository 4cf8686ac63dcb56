"""`progress.json` of a phase: iDumb's lists, readable by its scripts, and where the run stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.domain import outcome
from idumb.domain.runs.run import RunState
from idumb.views import markup
from idumb.views.reports import run_status


def fields(state: RunState, where: Mapping[str, str]) -> dict[str, Any]:
    """Lists of task ids in execution order. `completed` holds the accepted ones too, so that a resume skips them."""
    current = run_status.of(where, outcome.RUNNING)
    return {
        "completed": list(run_status.of(where, *outcome.DONE)),
        "failed": list(run_status.of(where, outcome.FAILED)),
        "blocked": list(run_status.of(where, outcome.BLOCKED)),
        "started_at": state.started_at,
        "git_hash": state.git_hash or "no-git",
        "accepted": list(run_status.of(where, outcome.ACCEPTED)),
        "skipped": list(run_status.of(where, outcome.SKIPPED)),
        "waiting": list(run_status.of(where, outcome.WAITING)),
        "remaining": list(run_status.of(where, outcome.READY, outcome.PENDING)),
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
    """`statuses` are those of `schedule.statuses`; nothing but the log is asked."""
    return markup.json_text(fields(state, statuses))
