"""The tools of steps, with a type for each argument, and the reader of steps in a fence or in a YAML task."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from idumb.domain.plans.plan import Step
from idumb.markdown.syntax import tree, value_types
from idumb.markdown.syntax.source import STEP, Place, Source
from idumb.markdown.syntax.tree import Node, is_list, is_map
from idumb.markdown.syntax.value_types import ANY, BOOLEAN, COUNT, DURATION, EXACT, ValueType, choice, scalar

if TYPE_CHECKING:
    from idumb.markdown.syntax.blocks import Block
    from idumb.markdown.syntax.inline import Text

_FILLED = scalar("a text that is not empty", lambda text: text or None)
_NAME = EXACT.must
_MODE = choice("644", "755")._replace(accepted='"644" or "755"')
_WORDS = value_types.list_of(ANY, least=1)


def _base64(text: str) -> str | None:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return text


def _argv(node: Node, place: Place) -> tuple[str, ...]:
    argv: tuple[str, ...] = _WORDS.read(node, place)
    if argv[:1] == ("",):
        raise value_types.BadValue(node)
    return argv


_BASE64 = scalar("base64 text", _base64)
_ARGV = ValueType("a list of texts, of which the first is not empty", _argv)
TOOLS: Mapping[str, Mapping[str, ValueType]] = {
    "write_file": {"path": _NAME, "content": ANY, "content_base64": _BASE64, "mode": _MODE},
    "edit_file": {"path": _NAME, "find": _FILLED.must, "replace": ANY.must, "count": COUNT},
    "apply_patch": {"patch": _FILLED.must},
    "delete_file": {"path": _NAME},
    "move_file": {"from": _NAME, "to": _NAME},
    "make_directory": {"path": _NAME},
    "run": {"command": EXACT, "argv": _ARGV, "timeout": DURATION, "expect_exit": value_types.integer(0, 255)},
}
_ONE_OF = {"write_file": ("content", "content_base64"), "run": ("command", "argv")}
"""Of each pair of arguments, a step has exactly one."""

FENCES = ("yaml steps", "json steps")
_NEXT = re.compile(r"[ \t]*(?:\n\s*|$)")
KEYS: dict[str, ValueType] = {
    "tool": choice(*TOOLS)._replace(required=True, code="unknown-tool"),
    "intent": EXACT.must,
    "arguments": value_types.NODE.must,
    "scope": _ARGV,
    "timeout": DURATION,
    "continue_on_error": BOOLEAN,
}


def from_fence(fence: Block, source: Source) -> tuple[Step, ...]:
    """Read the steps of a top-level fence."""
    body = fence.body(source)
    if fence.info.startswith("json") and body.value.lstrip()[:1] == "{":
        return _steps(_objects(body, source), fence.start, source)
    read = tree.read_json if fence.info.startswith("json") else tree.read
    node = read(body, source, "steps")
    return _steps(_items(node, source) if node is not None else iter(()), fence.start, source)


def from_nodes(node: Node, source: Source) -> tuple[Step, ...]:
    """Read the steps of a YAML task."""
    return _steps(_items(node, source), node.start, source)


def _items(node: Node, source: Source) -> Iterator[Node]:
    if is_list(node):
        yield from node.items
    else:
        source.report("steps.not-a-list", node.start, field="steps")


def _objects(body: Text, source: Source) -> Iterator[Node]:
    """Yield JSON objects, each of which starts on a line of its own."""
    text, decoder = body.value, json.JSONDecoder()
    at = len(text) - len(text.lstrip())
    while at < len(text):
        try:
            end = decoder.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            end = len(text)  # read again below, where it is reported
        following = _NEXT.match(text, end)
        node = tree.read_json(body.range(at, end if following else len(text)), source, "steps")
        if node is None or following is None:
            return
        yield node
        at = following.end()


def _steps(entries: Iterator[Node], at: int, source: Source) -> tuple[Step, ...]:
    valid, count = [], 0
    for count, entry in enumerate(entries, 1):
        step = _step(count - 1, entry, source)
        if step:
            valid.append(step)
    if not count and not source.any_error:
        source.report("steps.empty", at, field="steps")
    return tuple(valid)


def _step(index: int, entry: Node, source: Source) -> Step | None:
    before, place = len(source.findings), Place("steps", source, kind=STEP)
    if not is_map(entry):
        place.report("step.not-a-mapping", entry.start, subject="A step")
        return None
    given = value_types.read_mapping(entry, KEYS, place, "a step")
    node, tool = given.pop("arguments", None), given.get("tool", "")
    place.at = tree.key_offset(entry, "arguments")
    arguments = _arguments(tool, node, place) if tool and node else {}
    if len(source.findings) > before:
        return None
    return Step(index, arguments=arguments, line=source.line_number(entry.start), **given)


def _arguments(tool: str, node: Node, place: Place) -> dict[str, Any]:
    if not is_map(node):
        place.report("step.not-a-mapping", node.start, subject="arguments")
        return {}
    given = value_types.read_mapping(node, TOOLS[tool], place, tool, noun="argument")
    names = {key.value for key, below in node.pairs if not below.is_null}
    pair = _ONE_OF.get(tool)
    if pair and (pair[0] in names) == (pair[1] in names):
        accepted = ", ".join(TOOLS[tool])
        fix = f"add {pair[0]}: or {pair[1]}:"
        words = {"owner": tool, "key": "` or `".join(pair), "accepted": accepted, "fix": fix}
        place.report("step.missing-argument", place.at, **words)
    return {name: list(one) if isinstance(one, tuple) else one for name, one in given.items()}
