"""Render the graph of a contract: as text for a terminal, as Mermaid for reports, and as SVG for the page of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.views import markup, phrases

_TITLE_WIDTH = 60
_WIDTH, _HEIGHT, _COLUMN, _ROW, _MARGIN = 168, 34, 220, 46, 12
"""Pixels: of a box, from one column or row to the next, and around the picture."""
_LABEL = 19
"""Characters of a title that fit into a box."""


def text(contract: Contract, statuses: Mapping[str, str] | None = None) -> str:
    """Return one line per task, grouped by wave. `statuses` maps id to status and adds a column."""
    waves = graph.waves(contract.dependencies, contract.order)
    edges = sum(len(contract.dependencies[task_id]) for task_id in contract.order)
    tasks, in_waves = phrases.counted(len(contract.order), "task"), phrases.counted(len(waves), "wave")
    lines = [f"Phase {contract.phase}: {tasks} in {in_waves}, {phrases.counted(edges, 'dependency', 'dependencies')}"]
    position = {task_id: i for i, task_id in enumerate(contract.order, 1)}
    for number, wave in enumerate(waves, 1):
        lines += ["", f"Wave {number}" + ("" if number > 1 else " (needs nothing)")]
        lines += [_text_line(contract, task_id, position[task_id], statuses or {}) for task_id in wave]
    return "\n".join(lines) + "\n"


def _text_line(contract: Contract, task_id: str, position: int, statuses: Mapping[str, str]) -> str:
    widest = len(str(len(contract.order)))
    title = phrases.clip(markup.one_line(contract.tasks[task_id].title), _TITLE_WIDTH)
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
    label = f"{_label_text(task_id)}: {_label_text(phrases.clip(markup.one_line(title), _LABEL_WIDTH))}"
    if status is None:
        return f'    {node}["{label}"]'
    return f'    {node}["{label}<br/>{status}"]:::{status}'


def _label_text(text: str) -> str:
    """Return foreign text for a quoted label, with quotes, tags, directives and Markdown escaped."""
    return markup.one_line(text).translate(_ENTITIES)


def svg(
    waves: Sequence[Sequence[str]],
    dependencies: Mapping[str, Sequence[str]],
    titles: Mapping[str, str],
    statuses: Mapping[str, str],
) -> str:
    """Return an `<svg>`: a column for each wave, an arrow for each dependency.

    Its boxes link to `#<task>` and have their status as a class.
    """
    places = _places(waves, dependencies)
    wide = _MARGIN * 2 + _COLUMN * (len(waves) - 1) + _WIDTH
    high = _MARGIN * 2 + _ROW * (max(map(len, waves), default=1) - 1) + _HEIGHT
    edges = [_edge(places[needed], places[task]) for task in places for needed in dependencies[task]]
    boxes = [_box(task, titles[task], statuses[task], place) for task, place in places.items()]
    return (
        f'<svg class="graph" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" role="img"'
        f' aria-label="Tasks and their dependencies">{"".join(edges)}{"".join(boxes)}</svg>'
    )


def _places(waves: Sequence[Sequence[str]], dependencies: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, int]]:
    """Return the upper left corner of each box. In a column, tasks follow the middle of what they depend on."""
    rows: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for column, wave in enumerate(waves):
        middle = {task: _middle([rows[d] for d in dependencies[task] if d in rows]) for task in wave}
        for row, task in enumerate(sorted(wave, key=lambda task: middle[task])):
            rows[task] = row
            places[task] = _MARGIN + _COLUMN * column, _MARGIN + _ROW * row
    return places


def _middle(rows: Sequence[int]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH, start[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    bend = (x1 + x2) // 2
    return f'<path class="edge" d="M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"/>'


def _box(task: str, title: str, status: str, place: tuple[int, int]) -> str:
    x, y = place
    label = title if len(title) <= _LABEL else f"{title[: _LABEL - 1]}…"
    tip = escape(f"{task}: {title}, {status}")
    return (
        f'<a href="#{escape(task)}"><g class="box {escape(status)}"><title>{tip}</title>'
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text x="{x + 8}" y="{y + 14}" class="id">{escape(task)}</text>'
        f'<text x="{x + 8}" y="{y + 27}">{escape(label)}</text></g></a>'
    )
