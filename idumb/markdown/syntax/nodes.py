"""The blocks of a Markdown document, as far as a plan needs them.

`line` is the first line and `end_line` the one behind the last, both from 0. A piece of text is `(offset, text)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
    """`pieces` are the lines inside; for a fence at the top level they are read from the source when needed."""

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
    """Indented code (`kind` code) or an HTML block (html): shown or hidden, never data."""

    line: int
    end_line: int
    kind: str
    pieces: list[Piece]
    until: str = ""


@dataclass(slots=True)
class Break:
    line: int
    end_line: int


@dataclass(slots=True)
class Item:
    """A list item. `offset` is the width a line must be indented to belong to it; `start` is its marker."""

    line: int
    start: int
    marker: str
    offset: int
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
    """A list: items of one kind of marker."""

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
    """An item of a bare YAML list, `- id: T1-01`, with the lines that belong to it."""

    line: int
    end_line: int
    start: int
    indent: int


@dataclass(slots=True)
class Canonical:
    """A whole task in its most common shape, `match` of its lines; `fence` holds its steps (see `canonical`)."""

    line: int
    end_line: int
    match: re.Match[str]
    fence: Fence | None


Block = Canonical | Heading | Paragraph | Fence | Raw | Break | Items | Item | Quote | YamlItem
