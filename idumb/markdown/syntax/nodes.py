"""The blocks of a Markdown document."""

from __future__ import annotations

from dataclasses import field

from idumb.lazy_dataclass import dataclass

Piece = tuple[int, str]
"""A text with its offset."""

HEADING, PARAGRAPH, FENCE, LIST, ITEM, QUOTE = "heading", "paragraph", "fence", "list", "item", "quote"
RAW, RULE, YAML_ITEM = "raw", "rule", "yaml item"
"""Indented code and HTML, which are never data; a line between paragraphs; an item of a bare YAML list, `- id: T1`."""


@dataclass(slots=True)
class Block:
    """`line` is the first line and `end_line` the line after the last, both from 0; `start` is an offset.

    - `mark`: that of a heading, fence or item; a list is consecutive items with one mark.
    - `indent`: the column of a heading or fence, or of the text of an item.
    - `pieces`: the lines of a text, and those inside a fence. `text`: those of a heading in one line.
    - `info`, `closed`: the words after the mark of a fence, and whether it ends. `top`: no other block is around it.
    """

    kind: str
    line: int
    end_line: int
    start: int
    mark: str = ""
    indent: int = 0
    level: int = 0
    text: str = ""
    info: str = ""
    closed: bool = False
    top: bool = False
    pieces: list[Piece] = field(default_factory=list)
    children: list[Block] = field(default_factory=list)

    @property
    def ordered(self) -> bool:
        return self.mark not in "-+*"
