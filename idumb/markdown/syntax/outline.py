"""The headings and list items of a document, as CommonMark sees them, with their lines.

Comments and closed fences hold no tasks, as in plans of idumb. Lines count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from msgspec import Struct, field

from idumb.domain.finding import Finding
from idumb.markdown.syntax import blocks
from idumb.markdown.syntax.blocks import Block
from idumb.markdown.syntax.source import Source

_BOX = re.compile(r"\[([^\[\]])\][ \t]+(?=\S)")
_DONE = frozenset("xX✓✔")


class Entry(Struct):
    """A heading, or an item (`level` 0). `mark` is the character in its box, `text` its first line without the box.

    `end` is the line after its last one; that of a heading is the end of its section. `path` are the headings above it,
    `parent` the item around it, `siblings` whether another item of its list has a box.
    """

    line: int
    end: int
    text: str
    level: int = 0
    column: int = 0
    mark: str | None = None
    number: str = ""
    path: tuple[Entry, ...] = ()
    parent: Entry | None = None
    siblings: bool = False
    inner: list[Entry] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return self.mark in _DONE

    @property
    def around(self) -> Entry | None:
        """The nearest item with a box around it."""
        return next((above for above in self.above if above.mark is not None), None)

    @property
    def above(self) -> list[Entry]:
        return [] if self.parent is None else [self.parent, *self.parent.above]

    @property
    def is_boxless(self) -> bool:
        """Whether it has no box beside items with one, and is neither part of such an item nor their group."""
        alone = self.siblings and self.mark is None and self.around is None
        return alone and not any(inner.mark for inner in every(self.inner))

    @property
    def place(self) -> str:
        """The headings above it except the first, which is the title, and the items around it that have no box."""
        groups = [above.text for above in self.above if above.mark is None]
        return " / ".join([*(heading.text for heading in self.path[1:]), *reversed(groups)])


class Outline(Struct):
    """`hidden` are the lines of comments, `fenced` those of closed fences, `broken` what is wrong."""

    headings: list[Entry] = field(default_factory=list)
    by_line: dict[int, Entry] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    fenced: set[int] = field(default_factory=set)
    broken: tuple[Finding, ...] = ()
    lines: list[str] = field(default_factory=list)

    @property
    def items(self) -> Collection[Entry]:
        return self.by_line.values()

    @property
    def title(self) -> str:
        return next((heading.text for heading in self.headings if heading.level == 1), "")

    def text(self, start: int, end: int, column: int = 0, without: Collection[int] = ()) -> str:
        """Return lines without their indentation up to a column, comments and the blank lines around them."""
        rows = [self.lines[n - 1] for n in range(start, end) if n not in self.hidden and n not in without]
        return "\n".join(row[min(column, len(row) - len(row.lstrip(" \t"))) :] for row in rows).strip("\n")


def every(items: list[Entry]) -> Iterator[Entry]:
    for item in items:
        yield item
        yield from every(item.inner)


def span(entry: Entry) -> range:
    return range(entry.line, entry.end)


def read(source: Source, first: int) -> Outline:
    """Return the outline from line `first` (from 0) on."""
    source, outline = Source(source.text, source.path), Outline()
    _blocks(blocks.scan(source, first), outline, source, None)
    outline.lines = [source.cuts.get(n, line) for n, line in enumerate(source.lines)]
    outline.broken = source.sorted()
    never = min((f.line for f in outline.broken if f.code == "comment.never-closed"), default=len(source.lines) + 1)
    outline.hidden = {n + 1 for n in source.hidden if n + 1 < never}
    ends = [len(source.lines) + 1] * 7
    for heading in reversed(outline.headings):
        heading.end = min(ends[: heading.level + 1])
        ends[heading.level :] = [heading.line] * (7 - heading.level)
    return outline


def _blocks(found: list[Block], outline: Outline, source: Source, parent: Entry | None) -> None:
    for block in found:
        if block.kind == blocks.HEADING and parent is None:
            last = outline.headings[-1:]
            above = tuple(each for one in last for each in (*one.path, one) if each.level < block.level)
            outline.headings.append(Entry(block.line + 1, block.end_line + 1, block.text, block.level, path=above))
        elif block.kind == blocks.LIST:
            entries = [_item(item, outline, source, parent) for item in block.children]
            boxed = any(entry.mark is not None for entry in entries)
            for entry in entries:
                entry.siblings = boxed
        for fence in _fences(block) if block.kind != blocks.LIST else ():
            outline.fenced.update(range(fence.line + 1, fence.end_line + 1))


def _fences(block: Block) -> Iterator[Block]:
    """Yield a closed fence, and those of a quote, whose other content is no task."""
    if block.kind == blocks.FENCE and block.closed:
        yield block
    for inner in block.children if block.kind == blocks.QUOTE else ():
        yield from _fences(inner)


def _item(item: Block, outline: Outline, source: Source, parent: Entry | None) -> Entry:
    text = blocks.first_line(item).rstrip() if item.children and item.children[0].line == item.line else ""
    box = _BOX.match(text)
    entry = Entry(item.line + 1, item.end_line + 1, text[box.end() :] if box else text, 0, item.indent)
    heading = outline.headings[-1] if outline.headings else None
    entry.path = (*heading.path, heading) if heading is not None else ()
    entry.mark, entry.parent = box[1] if box else None, parent
    number = source.text[item.start : item.start + 10] if item.ordered else ""
    entry.number = number[: len(number) - len(number.lstrip("0123456789"))]
    outline.by_line.setdefault(entry.line, entry)
    if parent is not None:
        parent.inner.append(entry)
    _blocks(item.children, outline, source, entry)
    return entry
