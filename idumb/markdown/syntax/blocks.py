"""Split a document into blocks, line by line, as CommonMark does, plus comments and bare YAML items.

The scanner only decides where blocks start and end; `plans/` interprets them.
"""

from __future__ import annotations

import re

from idumb import lazy_pattern
from idumb.markdown.syntax import comments
from idumb.markdown.syntax.nodes import (
    Block,
    Break,
    Fence,
    Heading,
    Item,
    Items,
    Paragraph,
    Piece,
    Quote,
    Raw,
    YamlItem,
)
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source

MAX_NESTING = 20

_TAB_IN_PREFIX = lazy_pattern.compile(r"[ >\-+*\d.)#]*\t")
_PREFIX = frozenset(" >-+*0123456789.)#")
_SPECIAL = frozenset("#>`~<=-+*_0123456789")
_ATX = lazy_pattern.compile(r"#{1,6}(?=[ \t]|$)")
_SETEXT = lazy_pattern.compile(r"(=+|-+)[ \t]*$")
_BREAK = lazy_pattern.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_MARKER = lazy_pattern.compile(r"([-+*]|\d{1,9}[.)])(?= |$)")
_OPENING = lazy_pattern.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_YAML_ITEM = lazy_pattern.compile(r" {0,3}- id:(?:[ \t]|$)")
Leaf = Paragraph | Fence | Raw


def scan(source: Source, first: int, problems: Problems) -> list[Block]:
    """Return the top-level blocks from line `first` on, with comments removed from headings and paragraphs."""
    scanner = _Scanner(source, problems)
    line, total = first, len(source.lines)
    while line < total:
        line = scanner.line(line)
    scanner.finish()
    return scanner.root


def _untab(line: str) -> str:
    """Expand tabs in the structural prefix of a line to tab stops of four."""
    out: list[str] = []
    width = 0
    for at, c in enumerate(line):
        if c == "\t":
            pad = 4 - width % 4
            out.append(" " * pad)
            width += pad
        elif c in _PREFIX:
            out.append(c)
            width += 1
        else:
            return "".join(out) + line[at:]
    return "".join(out)


class _Scanner:
    """The scanner's state: open containers and the open leaf."""

    __slots__ = ("comment", "commented", "idx", "in_tasks", "leaf", "matched", "n", "problems", "root", "s", "shift",
                 "source", "stack")  # fmt: skip

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.root: list[Block] = []
        self.stack: list[Item | Quote] = []
        self.leaf: Leaf | None = None
        self.comment = -1  # offset of an open comment
        self.commented: list[Paragraph] = []
        self.in_tasks = False
        self.n = self.idx = self.matched = self.shift = 0
        self.s = ""

    # One line at a time

    def line(self, n: int) -> int:
        """Read line `n`. Return the line to read next."""
        raw = self.source.lines[n]
        self.n = n
        if self.comment >= 0:
            return self._continue_comment(raw)
        self.s, self.shift = raw, 0
        if "\t" in raw and _TAB_IN_PREFIX.match(raw):
            self.s = _untab(raw)
            self.shift = len(self.s) - len(raw)
        blank = not raw.strip(" \t")
        self._match_containers(blank=blank)
        leaf = self.leaf
        if leaf.__class__ is Fence and self.matched == len(self.stack):
            return self._continue_fence(raw)
        if "<!--" in raw and self._comment_line():
            return n + 1
        if leaf.__class__ is Raw and self.matched == len(self.stack) and self._continue_raw(blank=blank):
            return n + 1
        if blank:
            return self._blank_line()
        return self._open_blocks()

    def finish(self) -> None:
        if self.comment >= 0:
            message = "This comment is never closed"
            fix = "write --> at the end of a line"
            self.problems.error("comment.never-closed", self.comment, message, found="<!--", accepted="-->", fix=fix)
        self._close_leaf()
        for paragraph in self.commented:
            comments.cut(paragraph, self.source, self.problems)

    def _offset(self, idx: int) -> int:
        return self.source.starts[self.n] + max(idx - self.shift, 0)

    def _match_containers(self, *, blank: bool) -> None:
        s, idx, matched = self.s, 0, 0
        for container in self.stack:
            if container.__class__ is Item:
                offset = container.offset
                if blank:
                    if not container.children and self.leaf is None:
                        break
                elif s[idx : idx + offset].strip(" ") or len(s) < idx + offset:
                    break
                idx = min(idx + offset, len(s))
            else:
                rest = s[idx:].lstrip(" ")
                indent = len(s) - idx - len(rest)
                if indent > 3 or rest[:1] != ">":
                    break
                idx += indent + 1 + (rest[1:2] == " ")
            matched += 1
        self.idx, self.matched = idx, matched

    # Continuing leaves

    def _continue_fence(self, raw: str) -> int:
        fence = self.leaf
        assert isinstance(fence, Fence)  # noqa: S101 (the caller looked)
        rest = self.s[self.idx :]
        stripped = rest.lstrip(" ")
        if len(rest) - len(stripped) <= 3 and stripped.startswith(fence.mark):
            closing = stripped.rstrip(" \t")
            if closing == fence.mark[0] * len(closing):
                fence.closed = True
                self.leaf = None
                fence.end_line = self.n + 1
                return self.n + 1
        if raw[: self.idx] == self.s[: self.idx]:  # keep tabs after the containers
            rest = raw[self.idx :]
        cut = min(len(rest) - len(rest.lstrip(" ")), fence.indent)
        fence.pieces.append((self._offset(self.idx + cut), rest[cut:]))
        fence.end_line = self.n + 1
        return self.n + 1

    def _continue_raw(self, *, blank: bool) -> bool:
        leaf = self.leaf
        assert isinstance(leaf, Raw)  # noqa: S101 (the caller looked)
        rest = self.s[self.idx :]
        if leaf.kind == "code":
            if not blank and rest[:4].strip(" "):
                self.leaf = None
                return False
            if not blank:
                leaf.end_line = self.n + 1
                leaf.pieces.append((self._offset(self.idx), rest))
            return True
        if blank and not leaf.until:
            return False
        leaf.end_line = self.n + 1
        leaf.pieces.append((self._offset(self.idx), rest))
        if leaf.until and re.search(leaf.until, rest, re.IGNORECASE):
            self.leaf = None
        return True

    def _blank_line(self) -> int:
        if self.matched < len(self.stack):
            self._close_unmatched()
        if self.leaf.__class__ is not Raw or self.leaf.kind != "code":
            self._close_leaf()
        return self.n + 1

    # Comments

    def _continue_comment(self, raw: str) -> int:
        self.source.hidden.add(self.n)
        end = raw.find("-->")
        if end >= 0:
            self._end_comment(raw, end, self.comment)
        return self.n + 1

    def _end_comment(self, raw: str, end: int, begin: int) -> None:
        self.comment = -1
        comments.check_end(raw[end + 3 :], begin, self.problems)

    def _comment_line(self) -> bool:
        """Hide a line that starts with a comment. Return whether it does."""
        if self.leaf.__class__ is Raw and self.leaf.until:
            return False
        rest = self.s[self.idx :].lstrip(" \t")
        if not rest.startswith("<!--"):
            return False
        begin = self._offset(len(self.s) - len(rest))
        self.source.hidden.add(self.n)
        end = rest.find("-->", 4)
        if end < 0:
            self.comment = begin
        else:
            self._end_comment(rest, end, begin)
        return True

    # Opening blocks

    def _open_blocks(self) -> int:
        opened = False
        while True:
            rest = self.s[self.idx :]
            stripped = rest.lstrip(" ")
            indent = len(rest) - len(stripped)
            if not stripped:  # an empty item
                self._close_leaf()
                return self.n + 1
            if indent >= 4:
                return self._indented(rest, opened=opened)
            if stripped[0] not in _SPECIAL:
                break
            done = self._special(stripped, indent, opened=opened)
            if done is None:
                break
            if done:
                return done
            opened = True
        return self._text(stripped, indent, opened=opened)

    def _special(self, rest: str, indent: int, *, opened: bool) -> int | None:
        """Try each construct. Return the next line, 0 for an opened container, or None if none matches."""
        c = rest[0]
        if c == "#":
            return self._atx(rest, indent)
        if c in "`~":
            return self._open_fence(rest, indent)
        if c == "<":
            return self._html(rest, indent, opened=opened)
        if c == ">":
            return self._quote(rest, indent)
        if c in "=-" and not opened and self._setext(rest):
            return self.n + 1
        if c in "-*_" and _BREAK.match(rest):
            self._add(Break(self.n, self.n + 1))
            return self.n + 1
        return self._item(rest, indent, opened=opened)

    def _children(self) -> list[Block]:
        return self.stack[-1].children if self.stack else self.root

    def _add(self, block: Block) -> None:
        self._close_unmatched()
        self._close_leaf()
        self._children().append(block)

    def _close_unmatched(self) -> None:
        if self.matched < len(self.stack):
            self._close_leaf()
            del self.stack[self.matched :]

    def _close_leaf(self) -> None:
        if isinstance(self.leaf, Fence) and not self.leaf.closed:
            self._unclosed(self.leaf)
        self.leaf = None

    def _unclosed(self, fence: Fence) -> None:
        message = "This fence is never closed"
        fix = f"close it with {fence.mark} on a separate line, indented by at most three spaces"
        self.problems.error(
            "fence.never-closed", fence.start, message, found=fence.mark + fence.info, accepted=fence.mark, fix=fix
        )

    def _atx(self, rest: str, indent: int) -> int | None:
        m = _ATX.match(rest)
        if not m:
            return None
        text = _without_closing(rest[m.end() :].strip(" \t"))
        start = self.idx + indent
        text_at = self._offset(start + rest.find(text, m.end()))
        self._heading(m.end(), [(text_at, text)], self._offset(start), indent=indent)
        return self.n + 1

    def _heading(self, level: int, pieces: list[Piece], start: int, *, indent: int = 0, line: int = -1) -> None:
        paragraph = Paragraph(line, self.n + 1, pieces)
        if any("<!--" in text for _, text in pieces):
            comments.cut(paragraph, self.source, self.problems)
        text = " ".join(t.strip(" \t") for _, t in paragraph.pieces).strip(" \t")
        first = self.n if line < 0 else line
        self._add(Heading(first, self.n + 1, start, level, text, pieces[0][0], indent))
        if not self.stack and level <= 2:
            self.in_tasks = level == 2 and text.casefold() == "tasks"

    def _setext(self, rest: str) -> bool:
        paragraph = self.leaf
        if not isinstance(paragraph, Paragraph) or self.matched < len(self.stack):
            return False
        m = _SETEXT.match(rest)
        if not m:
            return False
        self._children().pop()
        self.leaf = None
        if self.commented and self.commented[-1] is paragraph:
            self.commented.pop()
        self._heading(1 if m[1][0] == "=" else 2, paragraph.pieces, paragraph.pieces[0][0], line=paragraph.line)
        return True

    def _open_fence(self, rest: str, indent: int) -> int | None:
        m = _OPENING.match(rest)
        if not m:
            return None
        mark, info = (m[1], m[2]) if m[1] else (m[3], m[4])
        top = self.matched == 0
        start = self._offset(self.idx + indent)
        fence = Fence(self.n, self.n + 1, start, indent, mark, info.strip(" \t"), top)
        self._add(fence)
        fence.top = not self.stack
        if fence.top:
            return self._jump(fence)
        self.leaf = fence
        return self.n + 1

    def _jump(self, fence: Fence) -> int:
        """Jump to the end of a top-level fence without scanning its lines."""
        lines = len(self.source.lines)
        if self.n + 1 < lines:
            closing = self.source.closing_fence(self.source.starts[self.n + 1], fence.mark)
            if closing is not None:
                fence.closed = True
                fence.end_line = self.source.line_of(closing) + 1
                return fence.end_line
        self._unclosed(fence)
        fence.end_line = lines
        return lines

    def _html(self, rest: str, indent: int, *, opened: bool) -> int | None:
        if rest.startswith("<!--"):  # after a list marker; a line that starts with a comment was handled before
            return None
        from idumb.markdown.syntax import html_blocks

        until = html_blocks.begins(rest, in_text=not opened and isinstance(self.leaf, Paragraph))
        if until is None:
            return None
        raw = Raw(self.n, self.n + 1, "html", [(self._offset(self.idx + indent), rest)], until)
        self._add(raw)
        if not until or not re.search(until, rest[2:], re.IGNORECASE):
            self.leaf = raw
        return self.n + 1

    def _quote(self, rest: str, indent: int) -> int | None:
        quote = Quote(self.n)
        if not self._push(quote, indent):
            return None
        self.idx += indent + 1 + (rest[1:2] == " ")
        return 0

    def _item(self, rest: str, indent: int, *, opened: bool) -> int | None:
        m = _MARKER.match(rest)
        if not m:
            return None
        marker = m[1]
        content = rest[len(marker) :]
        in_text = not opened and isinstance(self.leaf, Paragraph) and self.matched == len(self.stack)
        if in_text and (not content.strip(" \t") or (len(marker) > 1 and marker[:-1].lstrip("0") != "1")):
            return None
        if self.in_tasks and not self.matched and not opened and _YAML_ITEM.match(self.s):
            return self._yaml_item(indent)
        pad = len(content) - len(content.lstrip(" "))
        width = len(marker) + (1 if pad > 4 or not content.strip(" ") else pad)
        kind = marker if len(marker) == 1 else marker[-1]
        item = Item(self.n, self._offset(self.idx + indent), kind, indent + width, self.idx + indent + width)
        if not self._push(item, indent):
            return None
        self.idx = min(self.idx + indent + width, len(self.s))
        return 0

    def _push(self, container: Item | Quote, indent: int) -> bool:
        if len(self.stack[: self.matched]) >= MAX_NESTING:
            message = f"Lists and quotes are nested more than {MAX_NESTING} levels deep"
            accepted = f"at most {MAX_NESTING} levels"
            self.problems.error(
                "plan.too-deep", self._offset(self.idx + indent), message, accepted=accepted, fix="nest less"
            )
            return False
        self._close_unmatched()
        self._close_leaf()
        children = self._children()
        if isinstance(container, Item):
            last = children[-1] if children else None
            if not isinstance(last, Items) or last.marker != container.marker:
                last = Items(self.n, container.marker)
                children.append(last)
            last.children.append(container)
        else:
            children.append(container)
        self.stack.append(container)
        self.matched += 1
        return True

    def _yaml_item(self, indent: int) -> int:
        first, start = self.n, self._offset(self.idx + indent)
        end = self._yaml_end(first + 1, indent)
        self._add(YamlItem(first, end, start))
        return end

    def _yaml_end(self, line: int, indent: int) -> int:
        """Return the line after the item, which ends at the next item, heading or fence; skip comments."""
        lines = self.source.lines
        end = line
        while line < len(lines):
            text = lines[line].lstrip(" ")
            depth = len(lines[line]) - len(text)
            if text.strip(" \t"):
                if depth <= indent and (text.startswith("- ") or text == "-"):
                    break
                if depth < indent + 2 and (_ATX.match(text) or _OPENING.match(text)):
                    break
                if depth < indent + 2 and text.startswith("<!--"):
                    line = self._skip_comment(line, text)
                    continue
                end = line + 1
            line += 1
        return end

    def _skip_comment(self, line: int, text: str) -> int:
        self.n = line
        self.comment = self.source.starts[line]
        self._continue_comment(text[4:])
        while self.comment >= 0 and self.n + 1 < len(self.source.lines):
            self.n += 1
            self._continue_comment(self.source.lines[self.n])
        return self.n + 1

    def _indented(self, rest: str, *, opened: bool) -> int:
        if isinstance(self.leaf, Paragraph) and not opened:
            return self._continue(rest)
        code = Raw(self.n, self.n + 1, "code", [(self._offset(self.idx), rest)])
        self._add(code)
        self.leaf = code
        return self.n + 1

    def _text(self, stripped: str, indent: int, *, opened: bool) -> int:
        if isinstance(self.leaf, Paragraph) and not opened:  # lazily, too
            return self._continue(" " * indent + stripped)
        piece = (self._offset(self.idx + indent), stripped)
        paragraph = Paragraph(self.n, self.n + 1, [piece])
        self._add(paragraph)
        self.leaf = paragraph
        if "<!--" in stripped:
            self.commented.append(paragraph)
        return self.n + 1

    def _continue(self, rest: str) -> int:
        paragraph = self.leaf
        assert isinstance(paragraph, Paragraph)  # noqa: S101 (the callers looked)
        text = rest.lstrip(" \t")
        paragraph.pieces.append((self._offset(self.idx + len(rest) - len(text)), text))
        paragraph.end_line = self.n + 1
        if "<!--" in text and not (self.commented and self.commented[-1] is paragraph):
            self.commented.append(paragraph)
        return self.n + 1


def _without_closing(text: str) -> str:
    """Return the text of a heading without its closing `#`."""
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare != text and (not bare or bare[-1] in " \t") else text
