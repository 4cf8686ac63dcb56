"""The blocks of a document, split as CommonMark does (markdown-it-py), plus comments and bare YAML items.

The blocks say where they start and end; `plans/` interprets them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block
from msgspec import Struct, field

from idumb.markdown.syntax import inline, tree
from idumb.markdown.syntax.inline import Piece, Text, joined
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node

if TYPE_CHECKING:
    from markdown_it.token import Token

HEADING, PARAGRAPH, FENCE, LIST, ITEM, QUOTE = "heading", "paragraph", "fence", "list", "item", "quote"
RAW, RULE, YAML_ITEM = "raw", "rule", "yaml item"
"""Indented code and HTML, which are never data; a line between paragraphs; an item of a bare YAML list, `- id: T1`."""


class Block(Struct):
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

    def walk(self) -> Iterator[Block]:
        """Yield the block and everything in it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def body(self, source: Source) -> Text:
        """Return the text of a fence that is not nested."""
        return source.part(self.line + 1, self.end_line - self.closed)

    def content(self, source: Source) -> str:
        """Return the lines of a fence, nested or not."""
        if self.top:
            return "\n".join(source.lines[self.line + 1 : self.end_line - self.closed])
        return "\n".join(piece.text for piece in self.pieces)


def scan(source: Source, first: int) -> list[Block]:
    """Return the top-level blocks from line `first` on, with comments removed from headings and paragraphs."""
    state = _State(source, first)
    _MD.block.tokenize(state, 0, state.lineMax)
    return _Tree(state).blocks(0)


def first_line(item: Block) -> str:
    first = item.children[0] if item.children else None
    return first.pieces[0].text if first and first.kind == PARAGRAPH else ""


def first_text(item: Block) -> tuple[Text, list[Block]]:
    """Return the first paragraph of an item as one line, and the blocks after it."""
    if item.children and item.children[0].kind == PARAGRAPH:
        return joined(item.children[0].pieces), item.children[1:]
    return Text("", [(0, item.start)]), item.children


def value_of(item: Block, starts: list[int], skipped: int = 0) -> Node:
    """Return a list item as a value, without the first characters of its text; `starts` are those of the lines."""
    text, rest = first_text(item)
    node = Node(tree.BULLET, text.part(skipped) if skipped else text, item.start, item.start)
    for block in rest:
        if block.kind == LIST and not block.ordered:
            node.items += [value_of(inner, starts) for inner in block.children]
        elif block.kind == FENCE:
            node.fences.append(block)
        else:
            node.strays.append(starts[block.line])
    return node


# The library's parser, with rules of our own

_MAX_NESTING = 20
_MOST_LEVELS = 100  # of the library, whose lists have two levels each; plans have fewer, so idumb reports its own limit
_YAML_ITEM = re.compile(r" {0,3}- id:(?:[ \t]|$)")
_ENDS_YAML = re.compile(r"#{1,6}(?:[ \t]|$)|`{3,}[^`]*$|~{3,}")
_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])([ \t]*)")
_COMMENT = re.compile(r"<!--.*?-->")
_RAW = frozenset({"fence", "code_block", "html_block"})
_KINDS = {
    **dict.fromkeys(("bullet_list", "ordered_list"), LIST),
    **dict.fromkeys(("code_block", "html_block"), RAW),
    "heading": HEADING, "paragraph": PARAGRAPH, "fence": FENCE, "list_item": ITEM,
    "blockquote": QUOTE, "hr": RULE, "yaml_item": YAML_ITEM,
}  # fmt: skip


class _State(StateBlock):
    """The state of the library's parser, which also hides comments and notes where the text of each block is.

    A comment that starts a line ends no block around it. So its lines become blank when the parser asks whether they
    are, which it does not inside a fence.
    """

    def __init__(self, source: Source, first: int) -> None:
        self.source, self.first = source, first
        self.raw = source.lines[first:]
        super().__init__("\n".join(self.raw), _MD, {}, [])
        self.begins = list(self.bMarks)
        begun = ((n, line) for n, line in enumerate(self.raw) if "<!--" in line)
        self.comments = {n for n, line in begun if line.lstrip(" \t>").startswith("<!--")}
        self.heading: Token | None = None  # the last one of level 1 or 2 outside lists and quotes
        self.pieces: list[Piece] = []

    def offset(self, line: int, index: int) -> int:
        """Return the offset in the source of an index of the parsed text."""
        return self.source.starts[self.first + line] + index - self.begins[line]

    def isEmpty(self, line: int) -> bool:  # noqa: N802 (the library calls it)
        if line in self.comments and line >= self.line:
            self.hide(line)
        return super().isEmpty(line)

    def skipEmptyLines(self, from_pos: int) -> int:  # noqa: N802
        while from_pos < self.lineMax and self.isEmpty(from_pos):
            from_pos += 1
        return from_pos

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:  # noqa: ARG002, FBT001, N802, N803
        """Note the lines of a block, without the indentation of its containers.

        The library asks for those of a raw block after it pushed its token, for those of any other before.
        """
        pieces = []
        for n in range(begin, end):
            first, columns = self.bMarks[n], 0
            at, text = first, first + self.tShift[n]
            while at < self.eMarks[n] and columns < indent and (at < text or self.src[at] in " \t"):
                columns += 4 - (columns + self.bsCount[n]) % 4 if self.src[at] == "\t" else 1
                at += 1
            pieces.append(Piece(self.src[at : self.eMarks[n]], self.offset(n, at)))
        self.pieces = pieces
        if self.tokens and self.tokens[-1].type in _RAW and not self.tokens[-1].meta:
            self.tokens[-1].meta = {"pieces": pieces, "closed": self.line > end}
        return "\n".join(piece.text for piece in pieces)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        if ttype == "list_item_open":
            at = self.bMarks[self.line] + self.tShift[self.line]
            marker = _MARKER.match(self.src, at)
            width = len(marker[0].rstrip()) if marker else 1
            pad = len(marker[1].expandtabs(4)) if marker else 1
            empty = marker is None or marker.end() >= self.eMarks[self.line]
            column = self.sCount[self.line] + width + (1 if empty or pad > 4 else pad)
            token.meta = {"start": self.offset(self.line, at), "column": column}
        elif ttype == "heading_open" and token.level == 0 and tag in {"h1", "h2"}:
            self.heading = token
        elif ttype == "inline":
            token.meta = {"pieces": self.pieces}
        return token

    @property
    def in_tasks(self) -> bool:
        if self.heading is None or self.heading.tag != "h2" or self.heading.map is None:
            return False
        title = self.raw[self.heading.map[0]] if self.heading.markup[:1] == "#" else self.raw[self.heading.map[1] - 2]
        return _COMMENT.sub("", title).strip(" \t#").casefold() == "tasks"

    def hide(self, line: int) -> int:
        """Make the lines of a comment blank. Return the line after it."""
        source, raw = self.source, self.raw
        at = raw[line].find("<!--")
        begin, last, end = source.starts[self.first + line] + at, line, raw[line].find("-->", at + 4)
        while end < 0 and last + 1 < len(raw):
            last += 1
            end = raw[last].find("-->")
        for n in range(line, last + 1):
            self.comments.discard(n)
            source.hidden.add(self.first + n)
            if n < len(self.bMarks):
                self.bMarks[n], self.tShift[n], self.sCount[n] = self.eMarks[n], 0, 0
        if end < 0:
            self.source.report("comment.never-closed", begin, "<!--")
        elif rest := _COMMENT.sub("", raw[last][end + 3 :]).strip(" \t"):
            self.source.report("comment.text-after", begin, rest)
        return last + 1


def _yaml_item(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """A rule of the parser: in `## Tasks`, an item of a bare YAML list, to the next item, heading or fence."""
    assert isinstance(state, _State)  # noqa: S101 (`scan` is the only caller)
    if state.blkIndent or not _YAML_ITEM.match(state.raw[line]) or not state.in_tasks:
        return False
    if silent:
        return True
    lines = state.raw
    indent, last, n = len(lines[line]) - len(lines[line].lstrip(" ")), line + 1, line + 1
    while n < end:
        text = lines[n].lstrip(" ")
        depth = len(lines[n]) - len(text)
        if text.strip(" \t"):
            if depth <= indent and (text.startswith("- ") or text == "-"):
                break
            if depth < indent + 2 and _ENDS_YAML.match(text):
                break
            if depth < indent + 2 and text.startswith("<!--"):
                n = state.hide(n)
                continue
            last = n + 1
        n += 1
    state.line = last
    state.push("yaml_item", "", 0).map = [line, last]
    return True


def _html(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """A rule of the parser: HTML, but no comments; those that start a line inside HTML are hidden."""
    assert isinstance(state, _State)  # noqa: S101 (`scan` is the only caller)
    if state.src.startswith("<!--", state.bMarks[line] + state.tShift[line]) or not html_block(
        state, line, end, silent
    ):
        return False
    if not silent and (until := state.line) and state.isEmpty(min(until, state.lineMax)):
        for n in range(line + 1, until):
            if n in state.comments:
                state.line = max(state.hide(n), until)
    return True


_MD = MarkdownIt("commonmark", {"maxNesting": _MOST_LEVELS}).disable("reference")
_MD.block.ruler.before("list", "yaml_item", _yaml_item, {"alt": ["paragraph", "blockquote", "list"]})
_MD.block.ruler.at("html_block", _html, {"alt": ["paragraph", "reference", "blockquote"]})


class _Tree:
    """Turns the tokens of the parser into blocks."""

    def __init__(self, state: _State) -> None:
        self.source, self.first = state.source, state.first
        self.tokens: Iterator[Token] = iter(state.tokens)

    def blocks(self, depth: int) -> list[Block]:
        """Return the blocks up to the end of the container; `depth` counts the items and quotes around them."""
        blocks: list[Block] = []
        for token in self.tokens:
            if token.nesting < 0:
                break
            block, last = self._block(token, depth), blocks[-1] if blocks else None
            if last is not None and last.kind == block.kind == LIST and last.mark == block.mark:
                last.children += block.children
                last.end_line = block.end_line
            else:
                blocks.append(block)
        return blocks

    def _block(self, token: Token, depth: int) -> Block:
        kind = _KINDS[token.type.removesuffix("_open")]
        line, end = (n + self.first for n in token.map or (0, 0))
        block = Block(kind, line, end, self.source.starts[line], token.markup, top=depth == 0)
        if kind in {LIST, ITEM, QUOTE}:
            self._container(block, token, depth)
        elif kind in {HEADING, PARAGRAPH}:
            inner = next(self.tokens)
            next(self.tokens)  # its end
            self._texts(block, inner)
            block.level = int(token.tag[1:]) if kind == HEADING else 0
        elif kind == FENCE:
            self._fence(block, token)
        elif kind == RAW:
            block.pieces = [piece for piece in token.meta["pieces"] if piece.text.strip(" \t")]
        elif kind == YAML_ITEM:
            text = self.source.lines[line]
            block.start += len(text) - len(text.lstrip(" "))
        return block

    def _container(self, block: Block, token: Token, depth: int) -> None:
        if block.kind == ITEM:
            block.start, block.indent = token.meta["start"], token.meta["column"]
        if block.kind != LIST and depth == _MAX_NESTING:
            self.source.report("plan.too-deep", block.start)
        block.children = self.blocks(depth + (block.kind != LIST))
        block.end_line = block.children[-1].end_line if block.children else block.line + 1

    def _texts(self, block: Block, inner: Token) -> None:
        """Read the lines of a heading or paragraph."""
        pieces = inner.meta["pieces"]
        block.pieces = [Piece(bare := text.lstrip(" \t"), at + len(text) - len(bare)) for text, at in pieces]
        if block.mark[:1] == "#":
            line = self.source.lines[block.line]
            block.indent = line.find("#")
            at = block.start + line.find(inner.content, block.indent + len(block.mark))
            block.pieces, block.start = [Piece(inner.content, at)], block.start + block.indent
        else:
            block.start = block.pieces[0].at
        _cut_comments(block, self.source)
        if block.kind == HEADING:
            block.text = " ".join(piece.text.strip(" \t") for piece in block.pieces).strip(" \t")

    def _fence(self, block: Block, token: Token) -> None:
        block.indent = self.source.lines[block.line].find(block.mark)  # it may follow the marker of an item
        block.start += block.indent
        block.info, block.closed, block.pieces = token.info.strip(" \t"), token.meta["closed"], token.meta["pieces"]
        if not block.closed:
            self.source.report("fence.never-closed", block.start, block.mark + block.info, accepted=block.mark)
            block.end_line = len(self.source.lines) if block.top else block.end_line


def _cut_comments(paragraph: Block, source: Source) -> None:
    """Remove the comments from a paragraph or heading."""
    if not any("<!--" in piece.text for piece in paragraph.pieces):
        return
    ranges, unclosed = inline.cut_comments(paragraph.pieces)
    if unclosed is not None:
        source.report("comment.inside-line", unclosed, "<!--")
    for number, ((text, offset), cuts) in enumerate(zip(paragraph.pieces, ranges, strict=True)):
        n = source.line_index(offset)
        column = offset - source.starts[n]
        line = source.cuts.get(n, source.lines[n])
        if cuts:
            source.cuts[n] = _without(line, [(column + begin, column + end) for begin, end in cuts])
            paragraph.pieces[number] = Piece(_without(text, cuts), offset)


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    for begin, end in reversed(cuts):
        text = text[:begin] + text[end:]
    return text
