"""Read the subset of YAML 1.2 that plans allow, as nodes with positions.

Duplicate keys, anchors, aliases, merge keys, tags and second documents are errors. Plain scalars keep their source
text: `06.2` does not become a number, nor `no` a boolean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax.problems import Problems, ReadError

MAX_DEPTH = 20
ACCEPTED = "plain YAML keys and values, each key once"
_LINE_BREAKS = lazy_pattern.compile("[\x85\u2028\u2029]")
_SURROGATE = lazy_pattern.compile(r"\\u[dD][89a-fA-F]")
_PAIR = lazy_pattern.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(slots=True)
class Scalar:
    value: str
    plain: bool
    start: int
    end: int

    @property
    def is_null(self) -> bool:
        return self.plain and not self.value


@dataclass(slots=True)
class Sequence:
    items: list[Node]
    start: int
    end: int = 0


@dataclass(slots=True)
class Mapping:
    pairs: list[tuple[Scalar, Node]] = field(default_factory=list)
    start: int = 0
    end: int = 0


Node = Scalar | Sequence | Mapping


def read(text: str, place: Callable[[int], int], problems: Problems, field: str) -> Node | None:
    """Return the document of `text`, or None if it is empty or invalid; `place` maps an index to a source offset."""
    from ruamel.yaml.error import YAMLError

    try:
        return _Reader(text, place, problems, field).document()
    except ReadError as refused:
        code, message, at, found, fix = refused.problem
        problems.error(code, place(at), message, field=field, found=found, accepted=ACCEPTED, fix=fix)
    except YAMLError as error:
        at = _mark_of(error, text)
        lines, number = text.split("\n"), text.count("\n", 0, at)
        words = _words_of(error)
        message = f"Invalid YAML: {words}"
        fix = "check the indentation, and quote values that contain a colon, a hash or a bracket"
        found = lines[number].strip(" \r").replace("\t", "\\t")
        problems.error("yaml.unreadable", place(at), message, field=field, found=found, accepted=ACCEPTED, fix=fix)
    return None


def _events(text: str) -> Iterator[Any]:
    # libyaml treats the line breaks of YAML 1.1 as line ends, and rejects escaped surrogates, which JSON writers
    # produce for names that are not UTF-8. Use the slow reader only for these texts.
    slow = _LINE_BREAKS.search(text) or _SURROGATE.search(text)
    parser = None if slow else _libyaml()
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


def _paired(value: str) -> str:
    """Combine escaped surrogate pairs, as JSON writes them, into characters."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), value)


class _Reader:
    __slots__ = ("events", "field", "place", "problems", "text")

    def __init__(self, text: str, place: Callable[[int], int], problems: Problems, field: str) -> None:
        self.text = text
        self.place = place
        self.problems = problems
        self.field = field
        self.events = _events(text)

    def document(self) -> Node | None:
        node: Node | None = None
        documents = 0
        for event in self.events:
            kind = event.__class__.__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    at = event.start_mark.index
                    raise ReadError(
                        "yaml.second-document", "A second YAML document starts here", at, "---", "remove it"
                    )
            elif kind not in {"StreamStartEvent", "StreamEndEvent", "DocumentEndEvent", "CommentEvent"}:
                node = self.node(event, 0)
        return None if isinstance(node, Scalar) and node.plain and not node.value else node

    def node(self, event: Any, depth: int) -> Node:
        kind = event.__class__.__name__
        at = event.start_mark.index
        if kind == "AliasEvent" or event.anchor or (event.ctag is not None and event.tag):
            self._refuse(event, kind, at)
        if kind == "ScalarEvent":
            value = event.value if event.value.isascii() else _paired(event.value)
            return Scalar(value, not event.style, self.place(at), self.place(event.end_mark.index))
        if depth >= MAX_DEPTH:
            raise ReadError("plan.too-deep", f"YAML is nested more than {MAX_DEPTH} levels deep", at, "", "nest less")
        if kind == "SequenceStartEvent":
            return self._sequence(at, depth)
        return self._mapping(at, depth)

    def _refuse(self, event: Any, kind: str, at: int) -> None:
        if kind == "AliasEvent":
            raise ReadError("yaml.alias", "YAML aliases are not allowed", at, f"*{event.anchor}", "write it out")
        if event.anchor:
            raise ReadError("yaml.anchor", "YAML anchors are not allowed", at, f"&{event.anchor}", "remove it")
        if getattr(event, "tag", None) and event.tag != "!":
            raise ReadError("yaml.tag", "YAML tags are not allowed", at, str(event.tag), "remove it")

    def _sequence(self, at: int, depth: int) -> Sequence:
        items: list[Node] = []
        for event in self.events:
            if event.__class__.__name__ == "SequenceEndEvent":
                return Sequence(items, self.place(at), self.place(event.end_mark.index))
            items.append(self.node(event, depth + 1))
        raise AssertionError("the reader ends every sequence")

    def _mapping(self, at: int, depth: int) -> Mapping:
        mapping = Mapping(start=self.place(at))
        start_by_key: dict[str, int] = {}
        for event in self.events:
            if event.__class__.__name__ == "MappingEndEvent":
                mapping.end = self.place(event.end_mark.index)
                return mapping
            key = self._key(event, depth)
            value = self.node(next(self.events), depth + 1)
            if key.value in start_by_key:
                duplicate_key(self.problems, key, start_by_key[key.value], self.field)
            else:
                start_by_key[key.value] = key.start
                mapping.pairs.append((key, value))
        raise AssertionError("the reader ends every mapping")

    def _key(self, event: Any, depth: int) -> Scalar:
        key = self.node(event, depth + 1)
        if not isinstance(key, Scalar):
            raise ReadError(
                "yaml.key", "A key must be a plain text", event.start_mark.index, "", "use a text as the key"
            )
        if key.plain and key.value == "<<":
            raise ReadError(
                "yaml.merge", "YAML merge keys are not allowed", event.start_mark.index, "<<", "write it out"
            )
        return key


def duplicate_key(problems: Problems, key: Scalar, first: int, field: str) -> None:
    """Report a duplicate key; `first` is the offset of its first use."""
    line = problems.source.place(first)[0]
    message = f"Duplicate key `{key.value}`, first used on line {line}"
    fix = "keep one of them"
    problems.error("yaml.duplicate-key", key.start, message, field=field, found=key.value, accepted=ACCEPTED, fix=fix)


def _mark_of(error: Any, text: str) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        return min(int(mark.index), len(text))
    position = getattr(error, "position", None)
    return min(int(position), len(text)) if isinstance(position, int) else 0


def _words_of(error: Any) -> str:
    words = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
    return str(words)
