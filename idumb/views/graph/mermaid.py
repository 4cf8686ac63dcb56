"""Render the graph of a contract as Mermaid. Labels contain the status in words; colours only repeat it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.views import markup, quantities

_TITLE_WIDTH = 48
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


def render(contract: Contract, statuses: Mapping[str, str] | None = None, only: Collection[str] | None = None) -> str:
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
    label = f"{label_text(task_id)}: {label_text(quantities.clip(markup.one_line(title), _TITLE_WIDTH))}"
    if status is None:
        return f'    {node}["{label}"]'
    return f'    {node}["{label}<br/>{status}"]:::{status}'


def label_text(text: str) -> str:
    """Return foreign text for a quoted label, with quotes, tags, directives and Markdown escaped."""
    return markup.one_line(text).translate(_ENTITIES)
