"""Read strict JSON as nodes with positions; duplicate keys, NaN and Infinity are errors."""

from __future__ import annotations

from collections.abc import Callable
from json import decoder
from typing import Any

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax.problems import Problems, ReadError
from idumb.markdown.syntax.yaml_nodes import MAX_DEPTH, Mapping, Node, Scalar, Sequence, duplicate_key

_SPACE = lazy_pattern.compile(r"[ \t\r\n]*")
_LITERAL = lazy_pattern.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.+-])")
_SCAN: Callable[[str, int], tuple[str, int]] = vars(decoder)["scanstring"]  # not in the type stubs
_CONSTANTS = {"true": True, "false": False, "null": None}


@dataclass(slots=True)
class Literal(Scalar):
    """A number, true, false or null; `native` is its value."""

    native: Any = None


def read(text: str, place: Callable[[int], int], problems: Problems, field: str) -> Node | None:
    """Return the value of `text`, or None if it is empty or invalid; `place` maps an index to a source offset."""
    reader = _Reader(text, place, problems, field)
    try:
        return reader.document()
    except ReadError as refused:
        code, message, at, found, fix = refused.problem
    except ValueError as error:  # a string that is never closed, or has a bad escape or a control character
        at = min(int(getattr(error, "pos", reader.at)), max(len(text) - 1, 0))
        code, message = "json.unreadable", f"Invalid JSON: {getattr(error, 'msg', error)}"
        found, fix = _shown(text, at), "check quotes and escapes"
    problems.error(code, place(at), message, field=field, found=found, accepted="JSON", fix=fix)
    return None


def _whole(text: str, at: int) -> int:
    try:
        return whole_numbers.parse_json_int(text)
    except ValueError as problem:
        raise ReadError("json.unreadable", str(problem), at, text, "write a smaller number, or a text") from None


def _shown(text: str, at: int) -> str:
    return text[at : at + 60].partition("\n")[0].rstrip("\r")


class _Reader:
    __slots__ = ("at", "field", "place", "problems", "text")

    def __init__(self, text: str, place: Callable[[int], int], problems: Problems, field: str) -> None:
        self.text, self.place, self.problems, self.field = text, place, problems, field
        self.at = 0

    def document(self) -> Node | None:
        self._skip()
        if self.at == len(self.text):
            return None
        node = self._value(0)
        self._skip()
        if self.at < len(self.text):
            raise self._unexpected("the end", "remove everything after the first value")
        return node

    def _skip(self) -> str:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def _unexpected(self, expected: str, fix: str = "check quotes, commas and brackets") -> ReadError:
        shown = _shown(self.text, self.at)
        message = f"Invalid JSON: expected {expected}"
        return ReadError("json.unreadable", message, min(self.at, max(len(self.text) - 1, 0)), shown, fix)

    def _value(self, depth: int) -> Node:
        sign = self._skip()
        if sign == '"':
            return self._string()
        if depth >= MAX_DEPTH and sign in {"[", "{"}:
            raise ReadError(
                "plan.too-deep", f"JSON is nested more than {MAX_DEPTH} levels deep", self.at, "", "nest less"
            )
        if sign == "[":
            return self._sequence(depth)
        if sign == "{":
            return self._mapping(depth)
        return self._literal()

    def _string(self) -> Scalar:
        begin = self.at
        # Strict by default: no control characters.
        value, self.at = _SCAN(self.text, begin + 1)
        return Scalar(value, plain=False, start=self.place(begin), end=self.place(self.at))

    def _literal(self) -> Literal:
        begin, match = self.at, _LITERAL.match(self.text, self.at)
        if match is None:
            raise self._unexpected("a value", "put texts in double quotes; JSON has no NaN or Infinity")
        self.at = match.end()
        text = match[0]
        native = (
            _CONSTANTS[text] if text in _CONSTANTS else float(text) if match[1] or match[2] else _whole(text, begin)
        )
        value = "" if text == "null" else text
        return Literal(value, plain=True, start=self.place(begin), end=self.place(self.at), native=native)

    def _sequence(self, depth: int) -> Sequence:
        items: list[Node] = []
        begin = self.at
        self.at += 1
        if self._skip() != "]":
            while True:
                items.append(self._value(depth + 1))
                if not self._another("]"):
                    break
        self.at += 1
        return Sequence(items, self.place(begin), self.place(self.at))

    def _another(self, close: str) -> bool:
        """Consume a comma and return True, or stop at the closing bracket and return False."""
        sign = self._skip()
        if sign not in {",", close} or not sign:
            raise self._unexpected(f"a comma or {close}")
        if sign == ",":
            self.at += 1
            if self._skip() == close:
                raise self._unexpected("a value", "remove the trailing comma")
        return sign == ","

    def _mapping(self, depth: int) -> Mapping:
        mapping = Mapping(start=self.place(self.at))
        start_by_key: dict[str, int] = {}
        self.at += 1
        if self._skip() != "}":
            while True:
                self._pair(mapping, start_by_key, depth)
                if not self._another("}"):
                    break
        self.at += 1
        mapping.end = self.place(self.at)
        return mapping

    def _pair(self, mapping: Mapping, seen: dict[str, int], depth: int) -> None:
        if self._skip() != '"':
            raise self._unexpected("a key in double quotes")
        key = self._string()
        if self._skip() != ":":
            raise self._unexpected("a colon")
        self.at += 1
        value = self._value(depth + 1)
        if key.value not in seen:
            seen[key.value] = key.start
            mapping.pairs.append((key, value))
            return
        duplicate_key(self.problems, key, seen[key.value], self.field)
