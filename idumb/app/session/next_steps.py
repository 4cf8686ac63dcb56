"""What a command reports after a run: the row of each task, what can be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from idumb.app.core import actions, open_attempt, schedule
from idumb.app.core.services import Services, checkpoint_path, fields
from idumb.app.worktree import preconditions
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.runs.run import RunState


def task_row(state: RunState, contract: Contract, task: str, statuses: Mapping[str, str]) -> dict[str, Any]:
    task_state = state.tasks.get(task)
    row: dict[str, Any] = {"id": task, "title": contract.tasks[task].title, "status": statuses[task]}
    if task_state is None:
        return row
    row |= {
        "attempts": task_state.progress.attempts,
        "attempt": task_state.attempt.number,
        "reason": task_state.reason,
        "seconds": round(task_state.progress.seconds, 3),
    }
    if task_state.checkpoint is not None:
        row |= {
            **fields(task_state.checkpoint, "commit", "git_hash", "snapshot", "files"),
            "checkpoint": checkpoint_path(state.phase, task),
        }
    if statuses[task] == outcome.BLOCKED:
        row["blocked_by"] = list(schedule.blockers(contract, statuses, task))
        row["reason"] = actions.why_blocked(contract, state, statuses, task)
        row["actions"] = actions.unblocking(contract, state, statuses, task)
    return row


def of_run(
    services: Services, contract: Contract, state: RunState, statuses: Mapping[str, str], first: str | None = None
) -> list[Action]:
    """Return what can be done about a run of the contract. `first` is the task that the command was about."""
    return [*actions.available(situation(services, contract, state, statuses, schedule.open_questions(state), first))]


def situation(
    services: Services,
    contract: Contract,
    state: RunState | None,
    statuses: Mapping[str, str],
    asked: Iterable[Mapping[str, Any]] = (),
    first: str | None = None,
) -> actions.Situation:
    """Return what the next steps of a phase depend on. `state` is that of a run of the contract."""
    opened = None if state is None or state.opened is None else state.opened.id
    now = actions.Situation(
        phase=contract.phase,
        standing=actions.READY if state is None else state.state,
        contract=contract,
        run=state,
        statuses=statuses,
        first=first,
        opened=opened,
        uncommitted=None if state is None else open_attempt.refused_commit(contract, state, services.settings),
        back=None if state is None else preconditions.way_back(services, state),
        restoring=None if state is None else actions.finishing(state),
        asked=tuple(question["subject"] for question in asked),
    )
    looked_at, settings = (*now.ready[:1], *now.failed), services.settings
    mine = (t for t in looked_at if contracts.in_editor(contract.plan_of[t], contract.tasks[t], settings))
    return replace(now, in_editor=frozenset(mine))
