"""Render the graph of a contract as text: execution order, waves, dependencies and status."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.domain import wording
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.views import markup, quantities

_TITLE_WIDTH = 60


def render(contract: Contract, statuses: Mapping[str, str] | None = None) -> str:
    """Return one line per task, grouped by wave. `statuses` maps id to status and adds a column."""
    waves = graph.waves(contract.dependencies, contract.order)
    lines = [
        (
            f"Phase {contract.phase}: {quantities.counted(len(contract.order), 'task')} in "
            f"{quantities.counted(len(waves), 'wave')}, "
            f"{quantities.counted(_edges(contract), 'dependency', 'dependencies')}"
        )
    ]
    position = {task_id: i for i, task_id in enumerate(contract.order, 1)}
    for number, wave in enumerate(waves, 1):
        lines += ["", f"Wave {number}" + ("" if number > 1 else " (needs nothing)")]
        lines += [_line(contract, task_id, position[task_id], statuses or {}) for task_id in wave]
    return "\n".join(lines) + "\n"


def _edges(contract: Contract) -> int:
    return sum(len(contract.dependencies[task_id]) for task_id in contract.order)


def _line(contract: Contract, task_id: str, position: int, statuses: Mapping[str, str]) -> str:
    widest = len(str(len(contract.order)))
    title = quantities.clip(markup.one_line(contract.tasks[task_id].title), _TITLE_WIDTH)
    status = f"{statuses[task_id]:<9}  " if task_id in statuses else ""
    needed = contract.dependencies[task_id]
    needs = f"  <- {wording.listed(needed, 8)}" if needed else ""
    return f"  {position:>{widest}}. {status}{task_id}  {title}{needs}{_branches(contract, task_id)}"


def _branches(contract: Contract, task_id: str) -> str:
    """Return what a condition chooses: the steps that run if it is true, and those that run if it is false."""
    flow = contract.tasks[task_id].flow
    if flow is None or flow.condition is None:
        return ""
    false = f", false: {wording.listed(flow.otherwise, 8)}" if flow.otherwise else ""
    return f"  (true: {wording.listed(flow.then, 8)}{false})"
