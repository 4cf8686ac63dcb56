"""Tasks that an old iDumb reports as completed. The claims are history; nothing proves them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs import legacy
from idumb.domain.runs.run import RunState

IMPORTED = "legacy.imported"


def claims(services: Services, contract: Contract, state: RunState) -> frozenset[str]:
    """Tasks of a guided phase that an old iDumb calls completed and that no run of this working tree built.

    Tasks for a person, and tasks that the user wants built, are excluded.
    """
    imported = [row for name, row in by_phase(services).items() if normalized(name) == normalized(contract.phase)]
    done = {task for row in imported for task in row["completed"]}
    claimed = {
        id
        for id, task in contract.tasks.items()
        if id in done and not task.is_human and STRICT not in (contract.plan_of(id).mode, state.mode)
    }
    built = _built(services, contract.phase) if claimed else frozenset()
    return frozenset(id for id in claimed - built if not state.is_to_be_built(id))


def _built(services: Services, phase: str) -> frozenset[str]:
    here = {
        run
        for run, started_phase, worktree, _ in services.log_files.starts()
        if (started_phase, worktree) == (phase, services.worktree)
    }
    begun = services.log.events(kind="attempt.started")
    return frozenset(str(event.task) for event in begun if event.run in here and not event.payload.get("adopted"))


def import_payload(services: Services, phase: str, tasks: Collection[str]) -> dict[str, Any]:
    """Return the payload of an import event with only these tasks, for the log of a dry run."""
    row = {"phase": phase, "completed": sorted(tasks)}
    return {**legacy.import_payload(()), "phases": [row], "files": [], "worktree": services.worktree}


def normalized(phase: str) -> str:
    """Normalize a phase number: `01` and `1` are the same phase."""
    return ".".join(part.lstrip("0") or "0" for part in phase.split("."))


def by_phase(services: Services) -> dict[str, dict[str, Any]]:
    """Return the imported history by phase number; later imports replace earlier ones."""
    events = services.log.events(kind=IMPORTED)
    return {str(row["phase"]): dict(row) for event in events for row in event.payload["phases"]}
