"""Draws the tasks of a contract and their dependencies as SVG: a column for each wave, an arrow for each dependency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, COLUMN, ROW, MARGIN = 168, 34, 220, 46, 12
"""Pixels: of a box, from one column or row to the next, and around the picture."""
_LABEL = 19
"""Characters of a title that fit into a box."""


def draw(
    waves: Sequence[Sequence[str]],
    dependencies: Mapping[str, Sequence[str]],
    titles: Mapping[str, str],
    statuses: Mapping[str, str],
) -> str:
    """Return an `<svg>` whose boxes link to `#<task>` and have their status as a class."""
    places = _places(waves, dependencies)
    wide = MARGIN * 2 + COLUMN * (len(waves) - 1) + WIDTH
    high = MARGIN * 2 + ROW * (max(map(len, waves), default=1) - 1) + HEIGHT
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
            places[task] = MARGIN + COLUMN * column, MARGIN + ROW * row
    return places


def _middle(rows: Sequence[int]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + WIDTH, start[1] + HEIGHT // 2, end[0], end[1] + HEIGHT // 2
    bend = (x1 + x2) // 2
    return f'<path class="edge" d="M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"/>'


def _box(task: str, title: str, status: str, place: tuple[int, int]) -> str:
    x, y = place
    label = title if len(title) <= _LABEL else f"{title[: _LABEL - 1]}…"
    tip = escape(f"{task}: {title}, {status}")
    return (
        f'<a href="#{escape(task)}"><g class="box {escape(status)}"><title>{tip}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x + 8}" y="{y + 14}" class="id">{escape(task)}</text>'
        f'<text x="{x + 8}" y="{y + 27}">{escape(label)}</text></g></a>'
    )
