"""Read steps: tool calls in a `yaml steps` or `json steps` fence, or under `steps` in a YAML task."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.plans.plan import Step
from idumb.markdown.plans import step_tools
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.nodes import Fence
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list

KEYS = ("tool", "intent", "arguments", "scope", "timeout", "continue_on_error")
_REQUIRED = ("tool", "intent", "arguments")
_JSON_LINE = lazy_pattern.compile(r"^- \{.*\}[ \t]*$", re.MULTILINE)
_FIRST = lazy_pattern.compile(r"\S")


class _Pairs(dict[str, Any]):
    """A JSON object that remembers a duplicate key."""

    twice: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    marked = _Pairs(values)
    earlier: set[str] = set()
    marked.twice = next(key for key, _ in pairs if key in earlier or earlier.add(key))  # type: ignore[func-returns-value]
    return marked


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_int=whole_numbers.parse_json_int)


def from_fence(fence: Fence, problems: Problems) -> tuple[Step, ...]:
    """Read the steps of a top-level fence."""
    body, place = body_of(fence, problems.source)
    entries = _json(body, place, problems) if fence.info.startswith("json") else _yaml(body, place, problems)
    return _steps(entries, fence.start, problems)


def body_of(fence: Fence, source: Source) -> tuple[str, Callable[[int], int]]:
    """Return the text in a top-level fence with LF line ends, and a function from its indexes to source offsets."""
    begin = source.starts[fence.line + 1] if fence.line + 1 < len(source.starts) else len(source.text)
    last = fence.end_line - 1 if fence.closed else fence.end_line
    end = source.starts[last] if last < len(source.starts) else len(source.text)
    body = source.text[begin:end]
    return _unfold(body, begin) if "\r" in body else (body, lambda index: begin + index)


def _unfold(body: str, begin: int) -> tuple[str, Callable[[int], int]]:
    """Convert CRLF to LF; the returned function still maps to source offsets."""
    from bisect import bisect_right

    lines = body.split("\r\n")
    bounds = [0]
    for line in lines:
        bounds.append(bounds[-1] + len(line) + 1)
    return "\n".join(lines), lambda index: begin + index + max(bisect_right(bounds, index) - 1, 0)


def from_nodes(node: Node, problems: Problems) -> tuple[Step, ...]:
    """Read the steps of a YAML task."""
    return _steps(_entries(node, problems), node.start, problems)


_Entry = tuple[int, Any]  # offset, and a plain value or a YAML node


def _steps(entries: Iterator[_Entry], at: int, problems: Problems) -> tuple[Step, ...]:
    valid = []
    count = 0
    for start, entry in entries:
        line = problems.source.place(start)[0]
        step = _step(count, entry, start, line, problems)
        count += 1
        if step:
            valid.append(step)
    if not count and not problems.any_error:
        problems.report("steps.empty", at, field="steps")
    return tuple(valid)


# Reading


def _json(body: str, place: Callable[[int], int], problems: Problems) -> Iterator[_Entry]:
    first = _FIRST.search(body)
    if first is None:
        return
    listed = first[0] == "["
    position = first.start() + listed
    try:
        while (position := _skip(body, position)) < len(body) and body[position] != "]":
            if body[position] != "{":
                raise ValueError("a step must be an object")
            value, end = _DECODER.raw_decode(body, position)
            yield place(position), value
            position = _after(body, end, listed=listed)
        if listed and (position >= len(body) or body[position + 1 :].strip()):
            raise ValueError("the list is not closed, or text follows it")
        if not listed and position < len(body):
            raise ValueError("unexpected closing bracket")
    except (ValueError, RecursionError) as error:
        at = place(min(getattr(error, "pos", position), max(len(body) - 1, 0)))
        shown = body[position : position + 60].partition("\n")[0]
        problems.report("json.unreadable", at, shown, field="steps", why=getattr(error, "msg", error))


def _skip(body: str, at: int) -> int:
    m = _FIRST.search(body, at)
    return m.start() if m else len(body)


def _after(body: str, end: int, *, listed: bool) -> int:
    """Return where the next object may start: after a comma in a list, otherwise on another line."""
    at = _skip(body, end)
    if listed:
        if body[at : at + 1] == ",":
            at = _skip(body, at + 1)
            if body[at : at + 1] == "]":
                raise ValueError("trailing comma in the list")
            return at
        if body[at : at + 1] == "]" or at == len(body):
            return at
        raise ValueError("a comma is missing between steps")
    if at < len(body) and "\n" not in body[end:at]:
        raise ValueError("write one object per line")
    return at


def _yaml(body: str, place: Callable[[int], int], problems: Problems) -> Iterator[_Entry]:
    """Read JSON lines as JSON, and everything between them as YAML."""
    position = 0
    for m in _JSON_LINE.finditer(body):
        value = _json_line(body, m.start() + 2, m.end())
        if value is None:
            continue
        yield from _yaml_part(body, position, m.start(), place, problems)
        yield place(m.start()), value
        position = m.end()
    yield from _yaml_part(body, position, len(body), place, problems)


def _json_line(body: str, begin: int, end: int) -> dict[str, Any] | None:
    try:
        value, stop = _DECODER.raw_decode(body, begin)
    except (ValueError, RecursionError):
        return None
    return value if not body[stop:end].strip(" \t") else None


def _yaml_part(body: str, begin: int, end: int, place: Callable[[int], int], problems: Problems) -> Iterator[_Entry]:
    part = body[begin:end]
    if not part.strip():
        return
    node = tree.read(part, lambda index: place(begin + index), problems, "steps")
    if node is not None:
        yield from _entries(node, problems)


def _entries(node: Node, problems: Problems) -> Iterator[_Entry]:
    if is_list(node):
        for item in node.items:
            yield item.start, item
        return
    problems.report("steps.not-a-list", node.start, field="steps")


# Checking

_Places = Callable[[str], int]
_OTHERS = {"intent": "name", "scope": "argv", "timeout": "seconds", "continue_on_error": "boolean"}


def _step(index: int, entry: Any, at: int, line: int, problems: Problems) -> Step | None:
    before, field = len(problems.findings), Field("steps", problems)
    mapping = _mapping(entry, at, "A step", field)
    if mapping is None:
        return None
    given, places = mapping
    for key in given:
        if key not in KEYS:
            field.report("step.unknown-key", places(key), key, KEYS)
    for key in _REQUIRED:
        if given.get(key) is None:
            field.report("step.missing-key", places(key) if key in given else at, key=key)
    tool = given.get("tool")
    known = isinstance(tool, str) and tool in step_tools.TOOLS
    if tool is not None and not known:
        field.report("step.unknown-tool", places("tool"), str(tool)[:80], tuple(step_tools.TOOLS))
    arguments = _arguments(str(tool), given.get("arguments"), places("arguments"), field) if known else None
    others = {
        key: _checked(key, kind, given[key], places(key), field)
        for key, kind in _OTHERS.items()
        if given.get(key) is not None
    }
    if arguments is None or len(problems.findings) > before:
        return None
    if "scope" in others:
        others["scope"] = tuple(others["scope"])
    return Step(index, str(tool), arguments=arguments, line=line, **others)


def _checked(key: str, kind: str, value: Any, at: int, field: Field) -> Any:
    check, accepted = step_tools.KINDS[kind]
    checked = check(value)
    if checked is None:
        shown = str(value)[:80] if isinstance(value, str | int | float | None) else ""
        field.report("step.bad-value", at, shown, key=key, accepted=accepted)
    return checked


def _mapping(entry: Any, at: int, subject: str, field: Field) -> tuple[dict[str, Any], _Places] | None:
    """Return plain values by key, and a function from keys to offsets; None, with a problem, if it is no mapping."""
    if isinstance(entry, Node) and entry.kind == tree.MAP:
        starts = {key.text.s: key.start for key in entry.items}
        return {key.text.s: _plain(value) for key, value in entry.pairs}, lambda key: starts.get(key, at)
    if not isinstance(entry, dict):
        field.report("step.not-a-mapping", at, subject=subject)
        return None
    twice = getattr(entry, "twice", None)
    if twice is not None:
        line = field.problems.source.line_of(at) + 1
        field.report("yaml.duplicate-key", at, twice, first=line)
        return None
    return entry, lambda _: at


def _plain(node: Node) -> Any:
    """Return texts as texts and maps as nodes, which keep their positions."""
    if node.kind == tree.MAP:
        return node
    if node.kind == tree.LIST:
        return [_plain(item) for item in node.items]
    if node.json:
        return _DECODER.decode(node.text.s)
    return None if node.is_null else step_tools.Plain(node.text.s) if node.plain else node.text.s


def _arguments(tool: str, entry: Any, at: int, field: Field) -> dict[str, Any] | None:
    if entry is None:
        return {}
    mapping = _mapping(entry, at, "arguments", field)
    if mapping is None:
        return None
    given, places = mapping
    shape = step_tools.TOOLS[tool]
    for key in given:
        if key not in shape:
            field.report("step.unknown-argument", places(key), key, tuple(shape), tool=tool)
    missing = [key for key, kind in shape.items() if key not in given and not kind.endswith("?")]
    pair = step_tools.ONE_OF.get(tool)
    if pair and (pair[0] in given) == (pair[1] in given):
        missing.append("` or `".join(pair))
    for key in missing:
        field.report("step.missing-argument", at, tool=tool, key=key, accepted=", ".join(shape))
    return {
        key: _checked(key, shape[key].rstrip("?"), value, places(key), field)
        for key, value in given.items()
        if key in shape
    }
