"""Render the graph of a contract as SVG, for light and dark pages.

Each box contains the status in words; colours and dashes only repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.plans import graph
from idumb.views import markup, quantities
from idumb.views.graph import layout as graph_layout

_WIDTH, _HEIGHT = 220, 44
_ACROSS, _DOWN = _WIDTH + 70, _HEIGHT + 16
_MARGIN, _TOP = 24, 92
_TITLE_WIDTH = 32

# Status to colour on light pages, colour on dark pages, dashes of the outline.
_LOOKS = {
    outcome.COMPLETED: ("#1a7f37", "#3fb950", ""),
    outcome.ACCEPTED: ("#1a7f37", "#3fb950", "6 3"),
    outcome.FAILED: ("#b42318", "#ff7b72", ""),
    outcome.BLOCKED: ("#9a5b00", "#e3b341", "3 3"),
    outcome.RUNNING: ("#1f5fbf", "#79b8ff", ""),
    outcome.WAITING: ("#6b3fa0", "#d2a8ff", "8 3"),
    outcome.SKIPPED: ("#68727c", "#9aa4ae", "2 4"),
    outcome.OMITTED: ("#68727c", "#9aa4ae", "1 5"),
    outcome.READY: ("#1f5fbf", "#79b8ff", "4 2"),
    outcome.PENDING: ("#68727c", "#9aa4ae", ""),
}
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #1b1f24 }
.h { font-size: 18px; font-weight: 600 } .s, .w { font-size: 12px; fill: #57606a } .i { font-weight: 600 }
.page { fill: #ffffff } .box { fill: #f6f8fa; stroke: #68727c; stroke-width: 1.2 }
.line { fill: none; stroke: #8a949e; stroke-width: 1.3 } .head { fill: #8a949e }"""
_DARK = """\
text { fill: #e6edf3 } .s, .w { fill: #9aa4ae } .page { fill: #0d1117 } .box { fill: #161b22; stroke: #9aa4ae }
.line { stroke: #6e7883 } .head { fill: #6e7883 }"""


def render(contract: Contract, statuses: Mapping[str, str] | None = None) -> str:
    """Return the picture; `statuses` maps task id to status."""
    by_task = statuses or {}
    waves = graph.waves(contract.dependencies, contract.order)
    layout = graph_layout.place(waves, contract.dependencies)
    width = 2 * _MARGIN + max((c for c, _ in layout.at.values()), default=0) * _ACROSS + _WIDTH
    height = _TOP + layout.rows * _DOWN + _MARGIN
    lines = [*_opening(contract, by_task, max(width, 320), height), *_headings(waves, layout)]
    lines += [_line(points) for points in layout.lines]
    for task_id, (column, row) in layout.at.items():
        lines += _box(contract, task_id, by_task.get(task_id), _MARGIN + column * _ACROSS, _TOP + row * _DOWN)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _opening(contract: Contract, by_task: Mapping[str, str], width: float, height: float) -> list[str]:
    title = f"Phase {markup.xml(contract.phase)}: {quantities.counted(len(contract.order), 'task')}"
    return [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="title desc">'
        ),
        f'<title id="title">{title}</title>',
        f'<desc id="desc">Each box is a task; arrows lead from a task to those that need it. {_summed(by_task)}</desc>',
        f"<style>{_STYLE}\n{_status_style(0)}\n@media (prefers-color-scheme: dark) {{\n{_DARK}\n{_status_style(1)}\n}}",
        (
            '</style><defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        ),
        '<rect class="page" width="100%" height="100%"/>',
        f'<text class="h" x="{_MARGIN}" y="36">{title}</text>',
        f'<text class="s" x="{_MARGIN}" y="56">{_summed(by_task) or "no run yet"}</text>',
    ]


def _summed(by_task: Mapping[str, str]) -> str:
    values = list(by_task.values())
    return ", ".join(f"{values.count(status)} {status}" for status in _LOOKS if status in values)


def _status_style(scheme: int) -> str:
    """Return the styles of the light scheme (0, with dashes) or the dark scheme (1)."""
    rules = []
    for status, look in _LOOKS.items():
        dashes = "" if scheme else f"; stroke-dasharray: {look[2] or 'none'}"
        rules.append(f".{status} {{ stroke: {look[scheme]}{dashes} }} .{status}-b {{ fill: {look[scheme]} }}")
    return "\n".join(rules)


def _headings(waves: Sequence[Sequence[str]], layout: graph_layout.Layout) -> list[str]:
    return [
        f'<text class="w" x="{_MARGIN + first * _ACROSS}" y="{_TOP - 12}">Wave {number}: '
        f"{quantities.counted(len(wave), 'task')}</text>"
        for number, (wave, (first, _)) in enumerate(zip(waves, layout.columns, strict=True), 1)
    ]


def _line(points: Sequence[tuple[float, float]]) -> str:
    """Return a smooth path from the right of the first box to the left of the last, level at every bend."""
    last = len(points) - 1
    x, y = _corner(points[0])
    path = [f"M{x + _WIDTH:.0f} {y:.1f}"]
    x += _WIDTH
    for i, point in enumerate(points[1:], 1):
        left, to_y = _corner(point)
        middle = (x + left) / 2
        path.append(f"C{middle:.0f} {y:.1f} {middle:.0f} {to_y:.1f} {left:.0f} {to_y:.1f}")
        x, y = left, to_y
        if i < last:
            x += _WIDTH
            path.append(f"H{x:.0f}")
    return f'<path class="line" marker-end="url(#a)" d="{"".join(path)}"/>'


def _corner(point: tuple[float, float]) -> tuple[float, float]:
    """Return the left side and the middle height of the cell at (column, row)."""
    return _MARGIN + point[0] * _ACROSS, _TOP + point[1] * _DOWN + _HEIGHT / 2


def _box(contract: Contract, task_id: str, status: str | None, x: float, y: float) -> list[str]:
    title = markup.one_line(contract.tasks[task_id].title)
    shown = f"box {status}" if status else "box"
    band = f'<rect class="{status}-b" width="5" height="{_HEIGHT}" rx="2"/>' if status else ""
    word = f'<text class="s" x="{_WIDTH - 10}" y="18" text-anchor="end">{status}</text>' if status else ""
    return [
        (
            f'<g transform="translate({x:.0f} {y:.1f})"><title>{markup.xml(f"{task_id}: {title}")}</title>'
            f'<rect class="{shown}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>{band}'
        ),
        (
            f'<text class="i" x="14" y="18">{markup.xml(task_id)}</text>{word}'
            f'<text x="14" y="36">{markup.xml(quantities.clip(title, _TITLE_WIDTH))}</text></g>'
        ),
    ]
