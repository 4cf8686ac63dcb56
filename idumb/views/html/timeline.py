"""Places the attempts of a run on a line of time, in percent. Long pauses are cut to a mark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from idumb.app.reading.report_page import Span

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


def place(spans: Sequence[Span]) -> tuple[list[Bar], list[Pause]]:
    """Return the bars of attempts, and the pauses between them."""
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
