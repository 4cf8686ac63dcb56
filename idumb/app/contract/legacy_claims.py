"""Tasks that an old iDumb reports as completed. The claims are history; nothing proves them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs import legacy
from idumb.domain.runs.run import RunState

EVENT = "legacy.imported"


def claims(services: Services, contract: Contract, state: RunState) -> frozenset[str]:
    """Tasks of a guided phase that an old iDumb calls completed, and that no run of this work tree has built.

    A person's own tasks are none of them, nor are those that a person wants built.
    """
    told = [row for name, row in by_phase(services).items() if plain(name) == plain(contract.phase)]
    done = {task for row in told for task in row["completed"]}
    wanted = {
        id
        for id, task in contract.tasks.items()
        if id in done and not task.is_human and STRICT not in (contract.plan_of(id).mode, state.mode)
    }
    built = _built(services, contract.phase) if wanted else frozenset()
    return frozenset(id for id in wanted - built if not legacy.is_to_be_built(state, id))


def _built(services: Services, phase: str) -> frozenset[str]:
    here = {run for run, of, worktree, _ in services.log_files.starts() if (of, worktree) == (phase, services.worktree)}
    begun = services.log.events(kind="attempt.started")
    return frozenset(str(event.task) for event in begun if event.run in here and not event.payload.get("adopted"))


def told_of(services: Services, phase: str, tasks: Collection[str]) -> dict[str, Any]:
    """An event that tells of these tasks alone, for the log of a rehearsal."""
    row = {"phase": phase, "completed": sorted(tasks)}
    return {**legacy.import_payload(()), "phases": [row], "files": [], "worktree": services.worktree}


def plain(phase: str) -> str:
    """`01` and `1` are one phase."""
    return ".".join(part.lstrip("0") or "0" for part in phase.split("."))


def by_phase(services: Services) -> dict[str, dict[str, Any]]:
    """What was taken over of each phase, by its number; later reports stand for earlier ones."""
    events = services.log.events(kind=EVENT)
    return {str(told["phase"]): dict(told) for event in events for told in event.payload["phases"]}
