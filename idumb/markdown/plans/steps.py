"""Read steps: tool calls in a `yaml steps` or `json steps` fence, or under `steps` in a YAML task."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.finding import did_you_mean
from idumb.domain.plans.plan import Step
from idumb.markdown.plans import step_tools
from idumb.markdown.syntax import yaml_nodes
from idumb.markdown.syntax.nodes import Fence
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source

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


def from_nodes(node: yaml_nodes.Node, problems: Problems) -> tuple[Step, ...]:
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
        problems.error(
            "steps.empty", at, "There are no steps", field="steps", accepted="a list of steps", fix="add one"
        )
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
        at = getattr(error, "pos", position)
        message = f"Invalid JSON: {getattr(error, 'msg', error)}"
        shown = body[position : position + 60].partition("\n")[0]
        accepted = "a list of objects, or one object per line"
        offset = place(min(at, max(len(body) - 1, 0)))
        fix = "check quotes, commas and brackets"
        Field("steps", problems).error("json.unreadable", offset, message, shown, accepted, fix)


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
    node = yaml_nodes.read(part, lambda index: place(begin + index), problems, "steps")
    if node is not None:
        yield from _entries(node, problems)


def _entries(node: yaml_nodes.Node, problems: Problems) -> Iterator[_Entry]:
    if isinstance(node, yaml_nodes.Sequence):
        for item in node.items:
            yield item.start, item
        return
    message = "Steps must be a list"
    fix = "start each step with -"
    problems.error("steps.not-a-list", node.start, message, field="steps", accepted="- tool: …", fix=fix)


# Checking


def _step(index: int, entry: Any, at: int, line: int, problems: Problems) -> Step | None:
    before = len(problems.findings)
    field = Field("steps", problems)
    mapping = _mapping(entry, at, "A step", field)
    if mapping is None:
        return None
    fields, places = mapping
    _check_keys(fields, places, at, field)
    tool = _tool(fields.get("tool"), places, field)
    arguments = _arguments(tool, fields.get("arguments"), places("arguments"), field) if tool else {}
    if arguments is None:
        return None
    others = _others(fields, places, field)
    if tool and len(problems.findings) == before:
        return Step(index, tool, arguments=arguments, line=line, **others)
    return None


def _tool(tool: Any, places: Callable[[str], int], field: Field) -> str | None:
    if isinstance(tool, str) and tool in step_tools.TOOLS:
        return str(tool)
    if tool is not None:
        fix = did_you_mean(str(tool), step_tools.TOOLS, "use a tool from the list")
        message = f"Unknown tool `{tool}`" if isinstance(tool, str) else "The tool must be a text"
        accepted = ", ".join(step_tools.TOOLS)
        field.error("step.unknown-tool", places("tool"), message, str(tool)[:80], accepted, fix)
    return None


_OTHERS = {"intent": "name", "scope": "argv", "timeout": "seconds", "continue_on_error": "boolean"}


def _others(fields: dict[str, Any], places: Callable[[str], int], field: Field) -> dict[str, Any]:
    values = {}
    for key, kind in _OTHERS.items():
        if (value := fields.get(key)) is not None:
            values[key] = _checked(key, kind, value, places(key), field)
    if values.get("scope") is not None:
        values["scope"] = tuple(values["scope"])
    return values


def _checked(key: str, kind: str, value: Any, at: int, field: Field) -> Any:
    check, accepted = step_tools.KINDS[kind]
    checked = check(value)
    if checked is None:
        shown = str(value)[:80] if isinstance(value, str | int | float | None) else ""
        field.error("step.bad-value", at, f"{key} must be {accepted}", shown, accepted, f"write {accepted}")
    return checked


def _mapping(entry: Any, at: int, subject: str, field: Field) -> tuple[dict[str, Any], Callable[[str], int]] | None:
    """Return plain values by key, and a function from keys to offsets; None, with a problem, if it is no mapping."""
    if isinstance(entry, yaml_nodes.Mapping):
        starts = {key.value: key.start for key, _ in entry.pairs}
        values = {key.value: _plain(value) for key, value in entry.pairs}
        return values, lambda key: starts.get(key, at)
    if not isinstance(entry, dict):
        field.error("step.not-a-mapping", at, f"{subject} must be a mapping", accepted="tool, intent, arguments")
        return None
    twice = getattr(entry, "twice", None)
    if twice is not None:
        field.error("yaml.duplicate-key", at, f"Duplicate key `{twice}`", twice, yaml_nodes.ACCEPTED, "keep one")
        return None
    return entry, lambda _: at


def _plain(node: yaml_nodes.Node) -> Any:
    """Return texts as texts and mappings as nodes, which keep their positions."""
    from idumb.markdown.syntax import json_nodes

    if isinstance(node, json_nodes.Literal):
        return node.native
    if isinstance(node, yaml_nodes.Scalar):
        return None if node.is_null else step_tools.Plain(node.value) if node.plain else node.value
    if isinstance(node, yaml_nodes.Sequence):
        return [_plain(item) for item in node.items]
    return node


def _check_keys(fields: dict[str, Any], places: Callable[[str], int], at: int, field: Field) -> None:
    for key in fields:
        if key not in KEYS:
            fix = did_you_mean(key, KEYS, "remove it")
            field.error("step.unknown-key", places(key), f"Unknown key `{key}` in a step", key, ", ".join(KEYS), fix)
    for key in _REQUIRED:
        if fields.get(key) is None:
            place = places(key) if key in fields else at
            message = f"This step has no `{key}`"
            field.error("step.missing-key", place, message, "", ", ".join(_REQUIRED), f"add {key}")


def _arguments(tool: str, entry: Any, at: int, field: Field) -> dict[str, Any] | None:
    if entry is None:
        return {}
    mapping = _mapping(entry, at, "arguments", field)
    if mapping is None:
        return None
    fields, places = mapping
    shape = step_tools.TOOLS[tool]
    accepted = ", ".join(shape)
    checked = {}
    for key, value in fields.items():
        if key in shape:
            checked[key] = _checked(key, shape[key].rstrip("?"), value, places(key), field)
            continue
        fix = did_you_mean(key, shape, "remove it")
        message = f"Unknown argument `{key}` of {tool}"
        field.error("step.unknown-argument", places(key), message, key, accepted, fix)
    for key, kind in shape.items():
        if key not in fields and not kind.endswith("?"):
            message = f"{tool} needs the argument `{key}`"
            field.error("step.missing-argument", at, message, "", accepted, f"add {key}")
    one_of = step_tools.ONE_OF.get(tool)
    if one_of and (one_of[0] in fields) == (one_of[1] in fields):
        message = f"{tool} needs exactly one of {one_of[0]} and {one_of[1]}"
        field.error("step.missing-argument", at, message, "", " or ".join(one_of), "write one of them")
    return checked
