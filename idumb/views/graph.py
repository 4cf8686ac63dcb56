"""Render the graph of a contract: as text for a terminal, and as Mermaid for a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.views import markup, quantities

_TITLE_WIDTH = 60


def text(contract: Contract, statuses: Mapping[str, str] | None = None) -> str:
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
        lines += [_text_line(contract, task_id, position[task_id], statuses or {}) for task_id in wave]
    return "\n".join(lines) + "\n"


def _edges(contract: Contract) -> int:
    return sum(len(contract.dependencies[task_id]) for task_id in contract.order)


def _text_line(contract: Contract, task_id: str, position: int, statuses: Mapping[str, str]) -> str:
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


_LABEL_WIDTH = 48
_ENTITIES = str.maketrans({c: f"#{ord(c)};" for c in '#"<>&`%{}|\\;'})

# Fill, line and text are given together, so that both light and dark pages stay readable.
_CLASSES = {
    outcome.COMPLETED: "fill:#d7f0dd,stroke:#1a7f37,color:#0b2e13",
    outcome.ACCEPTED: "fill:#d7f0dd,stroke:#1a7f37,color:#0b2e13,stroke-dasharray:5 3",
    outcome.FAILED: "fill:#ffdcd7,stroke:#b42318,color:#4a0d06,stroke-width:3px",
    outcome.BLOCKED: "fill:#fde8c8,stroke:#9a5b00,color:#3d2400,stroke-dasharray:3 3",
    outcome.RUNNING: "fill:#dbe9ff,stroke:#1f5fbf,color:#0a2347,stroke-width:3px",
    outcome.WAITING: "fill:#efe1ff,stroke:#6b3fa0,color:#2b1347",
    outcome.SKIPPED: "fill:#eceff1,stroke:#68727c,color:#2c3238,stroke-dasharray:2 4",
    outcome.OMITTED: "fill:#ffffff,stroke:#68727c,color:#68727c,stroke-dasharray:2 4",
    outcome.READY: "fill:#ffffff,stroke:#1f5fbf,color:#1b1f24",
    outcome.PENDING: "fill:#ffffff,stroke:#68727c,color:#1b1f24",
}


def mermaid(contract: Contract, statuses: Mapping[str, str] | None = None, only: Collection[str] | None = None) -> str:
    """Return a `flowchart TD` with an arrow from each task to its dependents. `only` omits all other tasks."""
    status_of = statuses or {}
    ids = [task_id for task_id in contract.order if only is None or task_id in only]
    nodes = {task_id: f"n{i}" for i, task_id in enumerate(ids)}
    lines = ["flowchart TD"]
    lines += [_node(nodes[i], i, contract.tasks[i].title, status_of.get(i)) for i in ids]
    lines += [
        f"    {nodes[needed]} -->{_branch(contract, needed, i)} {nodes[i]}"
        for i in ids
        for needed in contract.dependencies[i]
        if needed in nodes
    ]
    used = {status_of[i] for i in ids if i in status_of}
    lines += [f"    classDef {name} {style}" for name, style in _CLASSES.items() if name in used]
    return "\n".join(lines) + "\n"


def _branch(contract: Contract, condition: str, task_id: str) -> str:
    """Return the label of an arrow from a condition to a step that it chooses; "" for other arrows."""
    flow = contract.tasks[condition].flow
    if flow is None or task_id not in (*flow.then, *flow.otherwise):
        return ""
    return "|true|" if task_id in flow.then else "|false|"


def _node(node: str, task_id: str, title: str, status: str | None) -> str:
    label = f"{label_text(task_id)}: {label_text(quantities.clip(markup.one_line(title), _LABEL_WIDTH))}"
    if status is None:
        return f'    {node}["{label}"]'
    return f'    {node}["{label}<br/>{status}"]:::{status}'


def label_text(text: str) -> str:
    """Return foreign text for a quoted label, with quotes, tags, directives and Markdown escaped."""
    return markup.one_line(text).translate(_ENTITIES)
