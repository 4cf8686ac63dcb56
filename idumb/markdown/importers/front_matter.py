"""The front matter of other tools' Markdown, with its lines; these tools do not write YAML strictly."""

from __future__ import annotations

import re

from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_HEAD = re.compile(r"---[ \t]*\n(?:[ \t]*\n)*((?:(?!---[ \t]*(?:\n|\Z)).*\n)*+)---[ \t]*(?:\n|\Z)")
# Values that YAML does not take without quotes, and that people and models write so.
_AT = re.compile(r"(?m)^(\s*(?:-\s+|[\w-]+:\s+))([@`%&*!]\S.*)$")
_UNQUOTED = re.compile(
    r"(?m)^([ \t]*(?:-[ \t]+)?[\w-]+:[ \t]+)((?:[`%&*!]|[^\s'\"\[{|>#][^\n]*?:[ \t])[^\n]*?)(?=[ \t]*$)"
)


@dataclass(frozen=True, slots=True)
class Front:
    """`last` is the line of its end, 0 without one; `node` is None if it cannot be read."""

    last: int = 0
    node: Node | None = None
    source: Source | None = None

    def value(self, name: str) -> Node | None:
        return of(self.node, name)

    def text(self, name: str) -> str:
        return text(self.node, name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a value as texts: a list, or one text."""
        return texts(self.value(name))

    def has(self, *names: str) -> bool:
        return all(self.value(name) is not None for name in names)

    def any(self, *names: str) -> bool:
        return not all(self.value(name) is None for name in names)

    def line(self, node: Node | None) -> int:
        return self.source.line_of(node.start) + 1 if self.source is not None and node is not None else 1


def of(node: Node | None, name: str) -> Node | None:
    """Return the value of a key."""
    return next((value for key, value in node.pairs if key.value == name), None) if is_map(node) else None


def text(node: Node | None, name: str) -> str:
    """Return a value that is one text; "" for another one."""
    value = of(node, name)
    return _said(value) if is_text(value) else ""


def texts(node: Node | None) -> tuple[str, ...]:
    rows = node.items if is_list(node) else [node] if is_text(node) else []
    return tuple(filter(None, (_said(row) for row in rows if is_text(row))))


def _said(node: Node) -> str:
    return "" if node.plain and node.value in _NULL else node.value.strip()


def read(text: str) -> Front:
    """Return the front matter of a text without a byte-order mark."""
    match = _HEAD.match(text)
    if match is None:
        return Front()
    last = text.count("\n", 0, match.end(1)) + 1
    before = text[: match.start(1)]
    quoted = _AT.sub(lambda line: f"{line[1]}{_quoted(line[2])}", match[1])  # Backlog.md writes `- @name`
    for yaml in (match[1], quoted, _UNQUOTED.sub(lambda line: f"{line[1]}{_quoted(line[2])}", quoted)):
        source = Source(before + yaml, "")
        node = tree.read(yaml, lambda index: index + len(before), source, "front matter")
        if is_map(node) and not any(f.code == "yaml.unreadable" for f in source.findings):
            return Front(last, node if _is_whole(node) else None, source)
    return Front(last)


def _is_whole(node: Node) -> bool:
    """Whether no text is half of a character, which escapes of YAML can name and no file can hold."""
    return not any("\ud800" <= char <= "\udbff" for char in node.value) and all(map(_is_whole, node.items))


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
