"""Report text that looks like a task, a checkbox or a data fence but is not one.

Ignoring it would run a plan without one of its tasks and call it complete.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from idumb.markdown.plans.criteria import BOX, BROKEN_BOX
from idumb.markdown.plans.fields import ALONE, FIELDS
from idumb.markdown.plans.steps import FENCES, TOOLS
from idumb.markdown.syntax.blocks import FENCE, HEADING, ITEM, PARAGRAPH, RAW, Block, first_line
from idumb.markdown.syntax.source import Source

TASK_FENCE = "yaml task"
_NEAR_FENCE = re.compile(r"(yaml|json)(task|step)s?")  # without blanks: `yaml-tasks`
_LIKE_ID = re.compile(r"[\[(*_`~\s]*t\d[\w.]*-\d", re.IGNORECASE)  # `**t1-2`
YAML_ID = re.compile(r"id:\s*[\"']?t\d", re.IGNORECASE)  # `id: T1`
# `Task #2`, also behind a box, a number or a picture
_LIKE_TASK = re.compile(r"(?>(?:\[[ x]?\]|\d{1,3}[.)]|[\W_])*)(?:t\d|task[\s\u00a0:#-]*t?\d)", re.IGNORECASE)
_TITLED = re.compile(r"(?:<\w+>)?\W*(\w\S*?)\s*(?::|—|–|--|-(?=\s))\s*\S")  # `T1-01 — Title`

# Lines that would be data if they were elsewhere, or had one character more or less.
_LINE_ID = re.compile(r"[\"']?id[\"']?\s*:\s*[\"']?(\S+)", re.IGNORECASE)
_LINE_DEEP = re.compile(r"#{7,}[ \t]*(.*)")
_LINE_BOX = re.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]+(\[.*)")
_TIGHT_BOX = re.compile(r"[-+*]\[[ xX]?\]")  # `-[ ]`
_LINE_FENCE = re.compile(r"(?:`{3,}|~{3,}(?!~))([^`]*)$")
_TAG = re.compile(r"<task[\s>]", re.IGNORECASE)
_LINE_KEY = re.compile(r"([a-z_]+):(?:[ \t]|$)")

# First words of fences that may be meant as data, and whether any `id` in them makes them a task.
_LANGUAGES = {"yaml": True, "yml": True, **dict.fromkeys(("", "json", "task", "tasks", "step", "steps"), False)}
_KEY = re.compile(r"((?:-[ \t]+)*)[\"']?([A-Za-z_]\w*)[\"']?[ \t]*:(?:[ \t]+[\"']?([^\s\"']*)|$)")
_FLOW_ID = re.compile(r"[{,][ \t]*[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([^\s\"',}]*)", re.IGNORECASE)
_FLOW_TOOL = re.compile(r"[{,][ \t]*[\"']?tool[\"']?[ \t]*:[ \t]*[\"']?(\w+)")
_CORE = frozenset({"depends_on", "files", "acceptance", "verify"})
OF_TASKS = _CORE | {"kind", "requirements", "tests", "preconditions", "postconditions", "rollback"}
_STEP = re.compile(r"[*_`\[(\s]*(?:step|item|part)[\s#:-]*\d", re.IGNORECASE)
_KEYS = frozenset({*ALONE, *FIELDS})


class NearMisses(Struct):
    """Reports what looks like data in text that nothing has read.

    `prefix` starts every task id of the plan; without a phase, it is `T`.
    """

    source: Source
    prefix: str

    def report(self, code: str, at: int, found: str, *, field: str = "task", **words: Any) -> None:
        self.source.report(code, at, found, field=field, **words)

    # What a text looks like

    def _begins(self, text: str) -> bool:
        return len(self.prefix) > 1 and text.startswith(self.prefix)

    def like_task(self, text: str) -> bool:
        """Whether a heading starts like a task heading."""
        return bool(_LIKE_TASK.match(text)) or self._begins(text)

    def like_id(self, text: str) -> bool:
        """Whether a text starts with something like a task id."""
        return bool(_LIKE_ID.match(text)) or self._begins(text)

    def like_titled(self, text: str) -> bool:
        """Whether a line is a task id, a colon or a dash, and a title."""
        titled = _TITLED.match(text)
        return titled is not None and self.like_task(text[titled.start(1) :])

    def like_start(self, text: str) -> bool:
        """Whether a line would start a task if one marker were added or removed."""
        id, deep, box = _LINE_ID.match(text), _LINE_DEEP.match(text), BOX.match(text)
        return bool(
            (id and self.like_id(id[1]))
            or (deep and self.like_task(deep[1]))
            or (box and self.like_id(text[box.end() :]))
        )

    # Blocks

    def report_in(self, block: Block, *, boxes: bool, top: bool = False) -> None:
        """Report what looks like data in a block of text.

        With `boxes`, every checkbox is a mistake. `top` means that the block is not in a list item.
        """
        for inner in block.walk():
            if inner.kind in {PARAGRAPH, RAW}:
                self._lines(inner, boxes=boxes, first=top and inner is block)
            elif inner.kind == HEADING:
                if self.like_task(inner.text):
                    self.report("task.nested", inner.start, inner.text)
            elif inner.kind == FENCE:
                if not self.near_fence(inner.info, inner.start) and boxes:
                    self._unread_fence(inner)
            elif inner.kind == ITEM and (text := first_line(inner)):
                self._box(inner.start, text, boxes=boxes)
                if YAML_ID.match(text):
                    self.report("task.nested", inner.start, text)

    def _lines(self, block: Block, *, boxes: bool, first: bool) -> None:
        raw, lines = block.kind == RAW, [(at, text.strip()) for text, at in block.pieces]
        for number, (at, text) in enumerate(lines):
            self._line(at, text, boxes=boxes, raw=raw)
            if boxes and (number or first) and self.like_start(text):
                self.report("task.unread", at, text)
            elif boxes and _TAG.match(text):
                self.report("task.foreign-tag", at, text)
        if boxes and not raw and not any(_LINE_ID.match(text) for _, text in lines):
            keys = {m[1] for _, text in lines if (m := _LINE_KEY.match(text))} & _KEYS
            if len(keys) >= 2 and not keys.isdisjoint({"title", "depends_on", "acceptance"}):
                self.report("task.unread", block.pieces[0].at, block.pieces[0].text)

    def _line(self, at: int, text: str, *, boxes: bool, raw: bool) -> None:
        if text[:1] == "#":
            if self.like_task(text.lstrip("#").lstrip(" \t")):
                self.report("task.not-a-heading", at, text)
        elif _TIGHT_BOX.match(text):
            if boxes or self.like_id(text.partition("]")[2].lstrip()):
                self.report("box.malformed", at, text[:60])
        elif raw and (fence := _LINE_FENCE.match(text)):
            self.near_fence(fence[1].strip(), at)
        elif raw and (box := _LINE_BOX.match(text)):
            self._box(at, box[1], boxes=boxes)

    def _box(self, at: int, text: str, *, boxes: bool) -> None:
        box = BOX.match(text) or BROKEN_BOX.match(text)
        if box and (boxes or self.like_id(text[box.end() :])):
            self.report("box.unexpected", at, text)

    # Fences

    def near_fence(self, info: str, at: int) -> bool:
        """Report a fence whose info string resembles that of a data fence. Return whether it does."""
        m = _NEAR_FENCE.fullmatch(re.sub(r"[\s_-]", "", info.casefold()).replace("yml", "yaml"))
        if m is None:
            return False
        meant = TASK_FENCE if m[2] == "task" else f"{m[1]} steps"
        exact = info in (TASK_FENCE, *FENCES)
        self.report("fence.misplaced" if exact else "fence.near-miss", at, info, field="fence", meant=meant)
        return True

    def _unread_fence(self, fence: Block) -> None:
        meant = self.in_fence(fence.info, fence.content(self.source).split("\n"))
        if meant:
            found = fence.mark + fence.info
            self.report("fence.unread", fence.start, found, field="fence", meant=meant, mark=fence.mark)

    def in_fence(self, info: str, lines: list[str]) -> str:
        """Return the data fence that a fence's content resembles, or nothing. An `example` is always text."""
        words = re.findall(r"\w+", info.casefold())
        language = words[0] if words else ""
        if language not in _LANGUAGES or any("example" in word for word in words):
            return ""
        ids, tools, arguments, column = list[str](), set[str](), False, -1
        for line in lines:
            text = line.lstrip(" \t")
            if text[:1] in {"{", "[", "-"} and (meant := self._in_flow(text)):
                return meant
            key = _KEY.match(text)
            at = len(line) - len(text) + len(key[1]) if key else -1
            if key is None or column not in {-1, at}:
                continue
            column, name, value = at, key[2], key[3] or ""
            ids += [value] if name.casefold() == "id" else []
            tools |= {value} if name == "tool" else set()
            arguments |= name == "arguments"
        if any(map(self._like_value, ids)) or (ids and _LANGUAGES[language]):
            return TASK_FENCE
        return FENCES[0] if arguments and not tools.isdisjoint(TOOLS) else ""

    def _in_flow(self, text: str) -> str:
        if (tool := _FLOW_TOOL.search(text)) and tool[1] in TOOLS and "arguments" in text:
            return FENCES[0]
        id = _FLOW_ID.search(text)
        return TASK_FENCE if id and self._like_value(id[1]) else ""

    def _like_value(self, text: str) -> bool:
        return bool(re.match(r"t\d", text, re.IGNORECASE)) or self._begins(text)


def of_phase(phase: str | None, source: Source) -> NearMisses:
    return NearMisses(source, f"T{phase}-" if phase else "T")


def like_section_of_task(heading: str, names: Collection[str], *, like_tasks: bool) -> bool:
    """Whether a section resembles a task, by its heading and the fields right below it.

    `like_tasks` means that the heading has a level that tasks use.
    """
    if like_tasks and "acceptance" in names:
        return True
    if _STEP.match(heading):
        return not OF_TASKS.isdisjoint(names)
    core = _CORE.intersection(names)
    return len(core) >= 3 or ("acceptance" in core and len(core) >= 2)


def like_task_fields(names: Collection[str]) -> bool:
    """Whether fields below a deeper heading resemble a task of their own."""
    return "kind" in names or len(OF_TASKS.intersection(names)) >= 2
