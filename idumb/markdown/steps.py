"""Steps: declared tool calls in a `yaml steps` or `json steps` fence, or under `steps` in a YAML task."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from idumb.domain.finding import nearest
from idumb.domain.plan import Step
from idumb.markdown import scalars, yaml_nodes
from idumb.markdown.nodes import Fence
from idumb.markdown.problems import Problems

_KEYS = ("tool", "intent", "arguments", "scope", "timeout", "continue_on_error")
_REQUIRED = ("tool", "intent", "arguments")
_JSON_LINE = re.compile(r"^- \{.*\}[ \t]*$", re.MULTILINE)
_FIRST = re.compile(r"\S")

# Argument -> kind; a kind that ends in `?` is optional. What depends on other arguments is checked in `_together`.
TOOLS: dict[str, dict[str, str]] = {
    "write_file": {"path": "name", "content": "text?", "content_base64": "base64?", "mode": "mode?"},
    "edit_file": {"path": "name", "find": "filled", "replace": "text", "count": "count?"},
    "apply_patch": {"patch": "filled"},
    "delete_file": {"path": "name"},
    "move_file": {"from": "name", "to": "name"},
    "make_directory": {"path": "name"},
    "run": {"command": "name?", "argv": "argv?", "timeout": "seconds?", "expect_exit": "exit?"},
}
_ONE_OF = {"write_file": ("content", "content_base64"), "run": ("command", "argv")}
_ACCEPTED = {
    "name": "a text that is not empty",
    "filled": "a text that is not empty",
    "text": "a text",
    "base64": "base64 text",
    "mode": '"644" or "755"',
    "count": "a whole number from 1",
    "argv": "a list of texts",
    "seconds": scalars.DURATIONS + ", or whole seconds",
    "exit": "a whole number from 0 to 255",
    "boolean": "true or false",
}


class _Bad(Exception):
    """A step cannot be read; `at` is an offset."""

    def __init__(
        self, code: str, message: str, at: int, *, found: str = "", accepted: str = "", mend: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.at, self.found, self.accepted, self.mend = code, at, found, accepted, mend


class _Pairs(dict[str, Any]):
    """A JSON object; says when a key stood twice."""

    twice: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked = _Pairs(found)
    seen: set[str] = set()
    marked.twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def from_fence(fence: Fence, problems: Problems) -> tuple[Step, ...]:
    """The steps of a top-level fence."""
    source = problems.source
    begin = source.starts[fence.line + 1] if fence.line + 1 < len(source.starts) else len(source.text)
    last = fence.end_line - 1 if fence.closed else fence.end_line
    end = source.starts[last] if last < len(source.starts) else len(source.text)
    body = source.text[begin:end]
    if "\r" in body:
        body, place = _unfold(body, begin)
    else:
        place = _shifted(begin)
    entries = _json(body, place, problems) if fence.info.startswith("json") else _yaml(body, place, problems)
    return _steps(entries, fence.start, problems)


def _shifted(begin: int) -> Callable[[int], int]:
    return lambda index: begin + index


def _unfold(body: str, begin: int) -> tuple[str, Callable[[int], int]]:
    """The body with LF only; places are still those of the source."""
    from bisect import bisect_right

    lines = body.split("\r\n")
    bounds = [0]
    for line in lines:
        bounds.append(bounds[-1] + len(line) + 1)
    return "\n".join(lines), lambda index: begin + index + max(bisect_right(bounds, index) - 1, 0)


def from_nodes(node: yaml_nodes.Node, problems: Problems) -> tuple[Step, ...]:
    """The steps of a YAML task."""
    return _steps(_entries(node, problems), node.start, problems)


_Entry = tuple[int, Any]  # offset, and a plain value or a YAML node


def _steps(entries: Iterator[_Entry], at: int, problems: Problems) -> tuple[Step, ...]:
    found = []
    count = 0
    for start, entry in entries:
        line = problems.source.place(start)[0]
        step = _step(count, entry, start, line, problems)
        count += 1
        if step:
            found.append(step)
    if not count and not problems.any_error:
        problems.error("steps.empty", at, "there is no step", field="steps", accepted="a list of steps", mend="add one")
    return tuple(found)


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
                raise ValueError("a step is an object")
            value, end = _DECODER.raw_decode(body, position)
            yield place(position), value
            position = _after(body, end, listed=listed)
        if listed and (position >= len(body) or body[position + 1 :].strip()):
            raise ValueError("the list is not closed, or something follows it")
        if not listed and position < len(body):
            raise ValueError("a list is closed that was never opened")
    except (ValueError, RecursionError) as error:
        at = getattr(error, "pos", position)
        problems.error(
            "json.unreadable",
            place(min(at, max(len(body) - 1, 0))),
            f"this is not readable JSON: {getattr(error, 'msg', error)}",
            field="steps",
            found=body[position : position + 60].partition("\n")[0],
            accepted="a list of objects, or one object a line",
            mend="check quotes, commas and brackets",
        )


def _skip(body: str, at: int) -> int:
    m = _FIRST.search(body, at)
    return m.start() if m else len(body)


def _after(body: str, end: int, *, listed: bool) -> int:
    """Where the next object may begin: behind a comma in a list, on another line otherwise."""
    at = _skip(body, end)
    if listed:
        if body[at : at + 1] == ",":
            at = _skip(body, at + 1)
            if body[at : at + 1] == "]":
                raise ValueError("a comma stands before the end of the list")
            return at
        if body[at : at + 1] == "]" or at == len(body):
            return at
        raise ValueError("a comma is missing between steps")
    if at < len(body) and "\n" not in body[end:at]:
        raise ValueError("one object a line")
    return at


def _yaml(body: str, place: Callable[[int], int], problems: Problems) -> Iterator[_Entry]:
    """JSON lines as JSON, what lies between them as YAML."""
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
    problems.error(
        "steps.not-a-list", node.start, "steps are a list", field="steps", accepted="- tool: …", mend="begin it with -"
    )


# Checking


def _step(index: int, entry: Any, at: int, line: int, problems: Problems) -> Step | None:
    try:
        fields, places = _mapping(entry, at, "a step")
    except _Bad as bad:
        _report(bad, problems)
        return None
    found = [*_keys(fields, places, at), *_values(fields, places)]
    for one in found:
        _report(one, problems)
    return None if found else _made(index, fields, line)


def _report(bad: _Bad, problems: Problems) -> None:
    problems.error(bad.code, bad.at, str(bad), field="steps", found=bad.found, accepted=bad.accepted, mend=bad.mend)


def _values(fields: dict[str, Any], places: Callable[[str], int]) -> Iterator[_Bad]:
    tool = fields.get("tool")
    if isinstance(tool, str) and tool in TOOLS:
        if fields.get("arguments") is not None:
            yield from _argument_problems(tool, fields["arguments"], places("arguments"))
    elif tool is not None:
        near = nearest(str(tool), TOOLS)
        mend = f"did you mean {near}?" if near else "write a tool of the list"
        accepted = ", ".join(TOOLS)
        message = f"there is no tool `{tool}`" if isinstance(tool, str) else "the tool is not a text"
        yield _Bad("step.unknown-tool", message, places("tool"), found=str(tool)[:80], accepted=accepted, mend=mend)
    for key, kind in _OTHERS.items():
        if fields.get(key) is not None and (bad := _bad_value(key, kind, fields[key], places(key))) is not None:
            yield bad


_OTHERS = {"intent": "name", "scope": "argv", "timeout": "seconds", "continue_on_error": "boolean"}


def _made(index: int, fields: dict[str, Any], line: int) -> Step:
    given, _ = _mapping(fields["arguments"], 0, "arguments")
    shape = TOOLS[fields["tool"]]
    arguments = {key: _CHECKS[shape[key].rstrip("?")](value) for key, value in given.items()}
    others = {key: _CHECKS[kind](fields[key]) for key, kind in _OTHERS.items() if fields.get(key) is not None}
    if "scope" in others:
        others["scope"] = tuple(others["scope"])
    return Step(index, str(fields["tool"]), arguments=arguments, line=line, **others)


def _mapping(entry: Any, at: int, what: str) -> tuple[dict[str, Any], Callable[[str], int]]:
    """Keys and plain values, and where each key stands."""
    if isinstance(entry, yaml_nodes.Mapping):
        starts = {key.value: key.start for key, _ in entry.pairs}
        values = {key.value: _plain(value) for key, value in entry.pairs}
        return values, lambda key: starts.get(key, at)
    if isinstance(entry, dict):
        twice = getattr(entry, "twice", None)
        if twice is not None:
            raise _Bad("yaml.duplicate-key", f"the key `{twice}` stands here twice", at, found=twice, mend="keep one")
        return entry, lambda _: at
    raise _Bad("step.not-a-mapping", f"{what} is a mapping", at, accepted="tool, intent, arguments")


def _plain(node: yaml_nodes.Node) -> Any:
    """Texts stay texts; a mapping keeps its nodes, so that places are known."""
    if isinstance(node, yaml_nodes.Scalar):
        return None if node.is_null else _Plain(node.value) if node.plain else node.value
    if isinstance(node, yaml_nodes.Sequence):
        return [_plain(item) for item in node.items]
    return node


class _Plain(str):
    """A plain YAML scalar: its source text, which may also stand for a number."""

    __slots__ = ()


def _keys(fields: dict[str, Any], places: Callable[[str], int], at: int) -> Iterator[_Bad]:
    for key in fields:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            mend = f"did you mean {near}?" if near else "remove it"
            accepted = ", ".join(_KEYS)
            yield _Bad(
                "step.unknown-key", f"a step has no key `{key}`", places(key), found=key, accepted=accepted, mend=mend
            )
    for key in _REQUIRED:
        if fields.get(key) is None:
            place = places(key) if key in fields else at
            accepted = ", ".join(_REQUIRED)
            yield _Bad("step.missing-key", f"a step needs `{key}`", place, accepted=accepted, mend=f"add {key}")


def _argument_problems(tool: str, given: Any, at: int) -> Iterator[_Bad]:
    try:
        fields, places = _mapping(given, at, "arguments")
    except _Bad as bad:
        yield bad
        return
    shape = TOOLS[tool]
    accepted = ", ".join(shape)
    for key, value in fields.items():
        if key not in shape:
            near = nearest(key, shape)
            mend = f"did you mean {near}?" if near else "remove it"
            message = f"{tool} has no argument `{key}`"
            yield _Bad("step.unknown-argument", message, places(key), found=key, accepted=accepted, mend=mend)
        elif (wrong := _bad_value(key, shape[key].rstrip("?"), value, places(key))) is not None:
            yield wrong
    for key, kind in shape.items():
        if key not in fields and not kind.endswith("?"):
            yield _Bad("step.missing-argument", f"{tool} needs `{key}`", at, accepted=accepted, mend=f"add {key}")
    one_of = _ONE_OF.get(tool)
    if one_of and len(set(one_of) & set(fields)) != 1:
        message = f"{tool} needs exactly one of {one_of[0]} and {one_of[1]}"
        yield _Bad("step.missing-argument", message, at, accepted=" or ".join(one_of), mend="write one of them")


def _bad_value(key: str, kind: str, value: Any, at: int) -> _Bad | None:
    if _CHECKS[kind](value) is not None:
        return None
    accepted = _ACCEPTED[kind]
    found = str(value)[:80] if isinstance(value, str | int | float | None) else ""
    return _Bad(
        "step.bad-value", f"{key} is not {accepted}", at, found=found, accepted=accepted, mend=f"write {accepted}"
    )


def _text(value: Any) -> str | None:
    if isinstance(value, _Plain):
        return str.__str__(value)
    return value if isinstance(value, str) else None


def _filled(value: Any) -> str | None:
    return _text(value) or None


def _name(value: Any) -> str | None:
    text = _text(value)
    return text if text and text.strip() and "\0" not in text else None


def _base64(value: Any) -> str | None:
    import base64
    import binascii

    text = _text(value)
    try:
        base64.b64decode("".join((text or "*").split()), validate=True)
    except (binascii.Error, ValueError):
        return "" if text == "" else None
    return text


def _mode(value: Any) -> str | None:
    return _text(value) if value in {"644", "755"} else None


def _integer(value: Any) -> int | None:
    if isinstance(value, _Plain):
        return int(value) if value.isascii() and value.isdecimal() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    return number if (number := _integer(value)) and number > 0 else None


def _seconds(value: Any) -> int | None:
    text = _text(value)
    return (scalars.seconds(text) if text else None) or _count(value)


def _exit(value: Any) -> int | None:
    number = _integer(value)
    return number if number is not None and 0 <= number <= 255 else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, _Plain):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def _argv(value: Any) -> list[str] | None:
    if not isinstance(value, list) or not value:
        return None
    texts = [_text(item) for item in value]
    return [t for t in texts if t is not None] if None not in texts and texts[0] else None


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "name": _name,
    "filled": _filled,
    "text": _text,
    "base64": _base64,
    "mode": _mode,
    "count": _count,
    "argv": _argv,
    "seconds": _seconds,
    "exit": _exit,
    "boolean": _boolean,
}
