"""The pictures of the page of a run: the graph of its tasks as SVG, and its attempts on a line of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from idumb.app.reading.report_page import Span

_WIDTH, _HEIGHT, _COLUMN, _ROW, _MARGIN = 168, 34, 220, 46, 12
"""Pixels: of a box, from one column or row to the next, and around the picture."""
_LABEL = 19
"""Characters of a title that fit into a box."""


def graph(
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


_LONG, _CUT = 0.05, 0.02
"""A pause longer than this part of the time at work is cut, and then as wide as this part of it."""


class Bar(NamedTuple):
    """An attempt from `left`, `width` wide, in percent of the line."""

    span: Span
    left: float
    width: float
    seconds: float


class Pause(NamedTuple):
    """A pause that was cut: where its mark is, in percent, and how long it was."""

    left: float
    seconds: float


def timeline(spans: Sequence[Span]) -> tuple[list[Bar], list[Pause]]:
    """Return the bars of attempts, and the pauses between them. Long pauses are cut to a mark."""
    moments = [(_seconds(span.start), _seconds(span.end or span.start)) for span in spans]
    if not moments:
        return [], []
    busy = list(_merged(moments))
    at_work = sum(end - start for start, end in busy) or 1.0
    width, offsets, cuts, gone = 0.0, [], [], busy[0][0]
    for start, end in busy:
        gap = start - gone
        if gap > at_work * _LONG:
            cuts.append((width, gap))
            gap = at_work * _CUT
        width += gap
        offsets.append((start, width - start))
        width, gone = width + end - start, end
    whole = 100.0 / (width or 1.0)

    def at(moment: float) -> float:
        return (moment + next(shift for start, shift in reversed(offsets) if start <= moment)) * whole

    bars = [
        Bar(span, round(at(start), 3), round(max((end - start) * whole, 0.15), 3), end - start)
        for span, (start, end) in zip(spans, moments, strict=True)
    ]
    return bars, [Pause(round(left * whole, 3), seconds) for left, seconds in cuts]


def _merged(moments: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the times at which at least one attempt worked."""
    start, end = min(moments)
    for begin, stop in sorted(moments):
        if begin > end:
            yield start, end
            start, end = begin, stop
        end = max(end, stop)
    yield start, end


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
