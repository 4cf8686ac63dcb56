"""Values as they are written: Markdown bullets, YAML and JSON as one tree with places, for one reader of each field.

Of YAML 1.2, plans allow a subset: duplicate keys, anchors, aliases, merge keys, tags and second documents are errors.
Plain scalars keep their source text: `06.2` does not become a number, nor `no` a boolean. JSON is YAML.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from msgspec import Struct, field

from idumb.domain import whole_numbers
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Source

if TYPE_CHECKING:
    from idumb.markdown.syntax.blocks import Block

_MAX_DEPTH = 20
BULLET, TEXT, LIST, MAP = "bullet", "text", "list", "map"
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_SLOW = re.compile("[\x85\u2028\u2029]|\\\\u[dD][89a-fA-F]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Node(Struct):
    """A value: `text` on its line, `items` and `fences` below it; `strays` are the offsets of other content.

    In a map, each item is a key, whose only item is its value. `plain` is a YAML scalar without quotes,
    `json` a number, true, false or null of JSON.
    """

    kind: str
    text: Text
    start: int
    end: int
    items: list[Node] = field(default_factory=list)
    fences: list[Block] = field(default_factory=list)
    strays: list[int] = field(default_factory=list)
    plain: bool = False
    json: bool = False

    @property
    def value(self) -> str:
        return self.text.value

    @property
    def is_null(self) -> bool:
        return self.kind == TEXT and self.plain and self.value in ("", "null" if self.json else "")

    @property
    def pairs(self) -> list[tuple[Node, Node]]:
        """Return the keys of a map with their values."""
        return [(key, key.items[0]) for key in self.items]

    def texts(self) -> Iterator[Text]:
        """Yield the text on the line, then the text of each item."""
        if self.value:
            yield self.text
        for item in self.items:
            yield item.text

    def others(self, *, fences: bool, deep: bool) -> list[int]:
        """Return where something is below that is no bullet, nor one of the `fences` that may be there."""
        below = [at for item in self.items if deep for at in item.others(fences=fences, deep=True)]
        return [*self.strays, *(fence.start for fence in self.fences if not fences), *below]

    @property
    def is_none(self) -> bool:
        """Whether the value is `none`, `[]` or `-`."""
        if self.items:
            only = self.items[0]
            alone = len(self.items) == 1 and not self.value and not only.items
            return alone and only.value.casefold() in {"none", "[]"}
        return self.kind == LIST or self.value.casefold() in {"none", "[]", "-"}


def is_text(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == TEXT


def is_list(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == LIST


def is_map(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == MAP


def plain(node: Node) -> Any:
    """Return a YAML value as lists, dicts and texts."""
    if node.kind == MAP:
        return {key.value: plain(value) for key, value in node.pairs}
    return [plain(item) for item in node.items] if node.kind == LIST else node.value


def said(node: Node | None) -> str:
    """Return a value as one text, so that nothing in it is lost; "" for null.

    A mapping without an id is what YAML makes of an unquoted text with a colon.
    """
    if is_map(node):
        return said(find(node, "id")) or "; ".join(f"{key.value}: {said(value)}" for key, value in node.pairs)
    if is_list(node):
        return ", ".join(filter(None, map(said, node.items)))
    return "" if node is None or (node.plain and node.value in NULLS) else node.value.strip()


def find(node: Node | None, *keys: str) -> Node | None:
    """Return the value of a nested key; None without one."""
    pairs = [*path(node, keys)]
    return pairs[-1][1] if len(pairs) == len(keys) else None


def key_offset(node: Node, *keys: str) -> int:
    """Return the offset of a nested key, or of its nearest parent that exists."""
    return next((key.start for key, _ in reversed([*path(node, keys)])), 0)


def path(node: Node | None, keys: Sequence[str]) -> Iterator[tuple[Node, Node]]:
    """Yield each nested key with its value, up to the first key that is missing."""
    for name in keys:
        pair = next((pair for pair in node.pairs if pair[0].value == name), None) if is_map(node) else None
        if pair is None:
            return
        yield pair
        node = pair[1]


def as_bullets(node: Node) -> Node:
    """Return a YAML value in the form of bullets: `k: v` for a pair of texts, `k` with items for a longer value."""
    if node.kind == MAP:
        items = [_pair(key, as_bullets(value)) for key, value in node.pairs]
    else:
        items = [as_bullets(item) for item in node.items]
    text = Text(node.value.strip(), node.text.marks, literal=node.text.literal)
    return Node(node.kind, text, node.start, node.end, items, plain=node.plain)


def _pair(key: Node, value: Node) -> Node:
    if value.kind == TEXT:
        text = Text(f"{key.value}: {value.value}", [(0, key.start)], literal=True)
        return Node(TEXT, text, key.start, value.end, plain=value.plain)
    return Node(value.kind, key.text, key.start, value.end, value.items)


# YAML


class _Refused(Exception):
    """A form of YAML that ends the reading; it is reported."""


def read(text: Text, source: Source, owner: str) -> Node | None:
    """Return the document of a text; None if it is empty or invalid. Findings name the field `owner`."""
    from ruamel.yaml.error import YAMLError

    try:
        return _Reader(text, source, owner).document()
    except _Refused:
        pass
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        at = getattr(mark, "index", None) or getattr(error, "position", None)
        yaml = text.value
        at = min(at, len(yaml.rstrip("\n"))) if isinstance(at, int) else 0
        found = yaml.split("\n")[yaml.count("\n", 0, at)].strip(" \r").replace("\t", "\\t")
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
        source.report("yaml.unreadable", text.at(at), found, field=owner, why=why)
    return None


def read_json(text: Text, source: Source, owner: str) -> Node | None:
    """Do the same for JSON: what Python reads as JSON, YAML reads with places."""
    try:
        if text.value.strip():
            json.loads(text.value, parse_constant=_constant, parse_int=whole_numbers.parse_json_int)
    except RecursionError:
        source.report("plan.too-deep", text.at(0), field=owner)
        return None
    except ValueError as error:
        at = min(getattr(error, "pos", 0), max(len(text.value) - 1, 0))
        found = text.value[at : at + 60].partition("\n")[0].rstrip("\r")
        source.report("json.unreadable", text.at(at), found, field=owner, why=getattr(error, "msg", error))
        return None
    node = read(text, source, owner)
    nodes = [node] if node is not None else []
    while nodes:
        inner = nodes.pop()
        inner.json = inner.kind == TEXT and inner.plain
        nodes += inner.items
    return node


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _events(text: str) -> Iterator[Any]:
    # libyaml treats the line breaks of YAML 1.1 as line ends, and rejects escaped surrogates, which JSON writers
    # produce for names that are not UTF-8. Use the slow reader only for these texts.
    parser = None if _SLOW.search(text) else _libyaml()
    if parser is not None:
        return iter(parser(text).get_event, None)
    from ruamel.yaml import YAML

    return iter(YAML(typ="safe", pure=True).parse(text))


@functools.cache
def _libyaml() -> Callable[[str], Any] | None:
    """Return the parser of libyaml, which `YAML` wraps in a new class for each text; None where it is not installed."""
    try:
        from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
    except ImportError:
        return None
    parser: Callable[[str], Any] = CParser
    return parser


class _Reader:
    __slots__ = ("events", "owner", "source", "text")

    def __init__(self, text: Text, source: Source, owner: str) -> None:
        self.text, self.source, self.owner = text, source, owner
        self.events = _events(text.value)

    def document(self) -> Node | None:
        node, documents = None, 0
        for event in self.events:
            kind = event.__class__.__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise self.refused("yaml.second-document", event, "---")
            elif kind not in {"StreamStartEvent", "StreamEndEvent", "DocumentEndEvent", "CommentEvent"}:
                node = self.node(event, 0)
        return None if node is None or node.is_null else node

    def refused(self, code: str, event: Any, found: str = "") -> _Refused:
        self.source.report(code, self.text.at(event.start_mark.index), found, field=self.owner)
        return _Refused()

    def node(self, event: Any, depth: int) -> Node:
        kind = event.__class__.__name__
        if kind == "AliasEvent":
            raise self.refused("yaml.alias", event, f"*{event.anchor}")
        if event.anchor:
            raise self.refused("yaml.anchor", event, f"&{event.anchor}")
        if event.ctag is not None and event.tag and event.tag != "!":
            raise self.refused("yaml.tag", event, str(event.tag))
        begin, last = event.start_mark, event.end_mark
        start = self.text.at(begin.index)
        if kind == "ScalarEvent":
            end = start + last.index - begin.index if begin.line == last.line else self.text.at(last.index)
            value = event.value
            if "\0" in value:  # as an escape
                raise self.refused("plan.nul", event)
            if not value.isascii():  # escaped surrogate pairs, as JSON has them, become characters
                value = _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), value)
            text = Text(value, [(0, start + bool(event.style))])
            return Node(TEXT, text, start, end, plain=not event.style)
        if depth >= _MAX_DEPTH:
            raise self.refused("plan.too-deep", event)
        return self.collection(
            Node(LIST if kind == "SequenceStartEvent" else MAP, Text("", [(0, start)]), start, start), depth
        )

    def collection(self, node: Node, depth: int) -> Node:
        first: dict[str, int] = {}
        for event in self.events:
            if event.__class__.__name__ in {"SequenceEndEvent", "MappingEndEvent"}:
                node.end = self.text.at(event.end_mark.index)
                return node
            item = self.node(event, depth + 1)
            if node.kind == LIST:
                item.text.literal = True
                node.items.append(item)
                continue
            if item.kind != TEXT:
                raise self.refused("yaml.key", event)
            if item.plain and item.value == "<<":
                raise self.refused("yaml.merge", event, "<<")
            item.items = [self.node(next(self.events), depth + 1)]
            if item.value in first:
                line = self.source.line_number(first[item.value])
                self.source.report("yaml.duplicate-key", item.start, item.value, field=self.owner, first=line)
            else:
                first[item.value] = item.start
                node.items.append(item)
        raise AssertionError("the reader ends every collection")
