"""The tools of steps, with a row for each argument, and the reader of steps in a fence or in a YAML task."""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from idumb.domain.plans.plan import Step
from idumb.markdown.syntax import record, tree
from idumb.markdown.syntax.source import STEP, Place, Source
from idumb.markdown.syntax.tree import Node, is_list, is_map

if TYPE_CHECKING:
    from idumb.markdown.syntax.blocks import Block

_FILLED = record.scalar("a text that is not empty", lambda text: text or None)
_NAME = record.EXACT.must
_MODE = record.choice("644", "755")._replace(accepted='"644" or "755"')
_WORDS = record.list_of(record.ANY, least=1)


def _base64(text: str) -> str | None:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return text


def _argv(node: Node, place: Place) -> tuple[str, ...]:
    argv: tuple[str, ...] = _WORDS.read(node, place)
    if argv[:1] == ("",):
        raise record.BadValue(node)
    return argv


_BASE64 = record.scalar("base64 text", _base64)
_ARGV = record.Key("a list of texts, of which the first is not empty", _argv)
TOOLS: Mapping[str, Mapping[str, record.Key]] = {
    "write_file": {"path": _NAME, "content": record.ANY, "content_base64": _BASE64, "mode": _MODE},
    "edit_file": {"path": _NAME, "find": _FILLED.must, "replace": record.ANY.must, "count": record.COUNT},
    "apply_patch": {"patch": _FILLED.must},
    "delete_file": {"path": _NAME},
    "move_file": {"from": _NAME, "to": _NAME},
    "make_directory": {"path": _NAME},
    "run": {"command": record.EXACT, "argv": _ARGV, "timeout": record.DURATION, "expect_exit": record.whole(0, 255)},
}
_ONE_OF = {"write_file": ("content", "content_base64"), "run": ("command", "argv")}
"""Of each pair of arguments, a step has exactly one."""

_NEXT = re.compile(r"[ \t]*(?:\n\s*|$)")
KEYS: dict[str, record.Key] = {
    "tool": record.choice(*TOOLS)._replace(required=True, code="unknown-tool"),
    "intent": record.EXACT.must,
    "arguments": record.NODE.must,
    "scope": _ARGV,
    "timeout": record.DURATION,
    "continue_on_error": record.BOOLEAN,
}


def from_fence(fence: Block, source: Source) -> tuple[Step, ...]:
    """Read the steps of a top-level fence."""
    body, place = body_of(fence, source)
    if fence.info.startswith("json") and body.lstrip()[:1] == "{":
        return _steps(_objects(body, place, source), fence.start, source)
    read = tree.read_json if fence.info.startswith("json") else tree.read
    node = read(body, place, source, "steps")
    return _steps(_items(node, source) if node is not None else iter(()), fence.start, source)


def body_of(fence: Block, source: Source) -> tuple[str, Callable[[int], int]]:
    """Return the text in a top-level fence, and a function from its indexes to source offsets."""
    return source.part(fence.line + 1, fence.end_line - fence.closed)


def from_nodes(node: Node, source: Source) -> tuple[Step, ...]:
    """Read the steps of a YAML task."""
    return _steps(_items(node, source), node.start, source)


def _items(node: Node, source: Source) -> Iterator[Node]:
    if is_list(node):
        yield from node.items
    else:
        source.report("steps.not-a-list", node.start, field="steps")


def _objects(body: str, place: Callable[[int], int], source: Source) -> Iterator[Node]:
    """Yield JSON objects, each of which starts on a line of its own."""
    decoder, at = json.JSONDecoder(), len(body) - len(body.lstrip())
    while at < len(body):
        try:
            end = decoder.raw_decode(body, at)[1]
        except (ValueError, RecursionError):
            end = len(body)  # read again below, where it is reported
        following = _NEXT.match(body, end)
        text = body[at : end if following else len(body)]
        node = tree.read_json(text, functools.partial(_moved, place, at), source, "steps")
        if node is None or following is None:
            return
        yield node
        at = following.end()


def _moved(place: Callable[[int], int], by: int, index: int) -> int:
    return place(by + index)


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
    given = record.record(entry, KEYS, place, "a step")
    node, tool = given.pop("arguments", None), given.get("tool", "")
    place.at = tree.find(entry, "arguments")[0]
    arguments = _arguments(tool, node, place) if tool and node else {}
    if len(source.findings) > before:
        return None
    return Step(index, arguments=arguments, line=source.place(entry.start)[0], **given)


def _arguments(tool: str, node: Node, place: Place) -> dict[str, Any]:
    if not is_map(node):
        place.report("step.not-a-mapping", node.start, subject="arguments")
        return {}
    given = record.record(node, TOOLS[tool], place, tool, noun="argument")
    names = {key.text.s for key, below in node.pairs if not below.is_null}
    pair = _ONE_OF.get(tool)
    if pair and (pair[0] in names) == (pair[1] in names):
        accepted = ", ".join(TOOLS[tool])
        fix = f"add {pair[0]}: or {pair[1]}:"
        words = {"owner": tool, "key": "` or `".join(pair), "accepted": accepted, "fix": fix}
        place.report("step.missing-argument", place.at, **words)
    return {name: list(one) if isinstance(one, tuple) else one for name, one in given.items()}
