"""Where fields stand, kept small: a span is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from idumb.domain.plans.plan import Span
from idumb.markdown.syntax.source import Source


class Spans(Mapping[str, Span]):
    """Field names to spans. Reads like a dict of `Span`."""

    __slots__ = ("_ranges", "_source")

    def __init__(self, ranges: dict[str, tuple[int, int]], source: Source) -> None:
        self._ranges = ranges
        self._source = source

    def __getitem__(self, name: str) -> Span:
        start, end = self._ranges[name]
        return Span(start, end, self._source.place(start)[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __repr__(self) -> str:
        return repr(dict(self))
