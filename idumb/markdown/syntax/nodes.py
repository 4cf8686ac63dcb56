"""The blocks of a Markdown document.

`line` is the first line and `end_line` the line after the last, both from 0. A piece of text is `(offset, text)`.
"""

from __future__ import annotations

from dataclasses import field

from idumb.lazy_dataclass import dataclass

Piece = tuple[int, str]


@dataclass(slots=True)
class Heading:
    line: int
    end_line: int
    start: int
    level: int
    text: str
    text_at: int = 0
    indent: int = 0


@dataclass(slots=True)
class Paragraph:
    line: int
    end_line: int
    pieces: list[Piece]


@dataclass(slots=True)
class Fence:
    """`pieces` are the lines inside; top-level fences read them from the source when needed."""

    line: int
    end_line: int
    start: int
    indent: int
    mark: str
    info: str
    top: bool
    closed: bool = False
    pieces: list[Piece] = field(default_factory=list)


@dataclass(slots=True)
class Raw:
    """Indented code (`kind` is `code`) or an HTML block (`html`); never data."""

    line: int
    end_line: int
    kind: str
    pieces: list[Piece]


@dataclass(slots=True)
class Break:
    line: int
    end_line: int


@dataclass(slots=True)
class Item:
    """A list item; `start` is the offset of its marker, `column` that of its text."""

    line: int
    start: int
    marker: str
    column: int
    children: list[Block] = field(default_factory=list)

    @property
    def ordered(self) -> bool:
        return self.marker not in "-+*"

    @property
    def end_line(self) -> int:
        return max(self.line + 1, self.children[-1].end_line) if self.children else self.line + 1


@dataclass(slots=True)
class Items:
    """A list: consecutive items with one kind of marker."""

    line: int
    marker: str
    children: list[Item] = field(default_factory=list)

    @property
    def end_line(self) -> int:
        return self.children[-1].end_line


@dataclass(slots=True)
class Quote:
    line: int
    children: list[Block] = field(default_factory=list)

    @property
    def end_line(self) -> int:
        return self.children[-1].end_line if self.children else self.line + 1


@dataclass(slots=True)
class YamlItem:
    """An item of a bare YAML list, `- id: T1-01`, with its lines."""

    line: int
    end_line: int
    start: int


Block = Heading | Paragraph | Fence | Raw | Break | Items | Item | Quote | YamlItem
