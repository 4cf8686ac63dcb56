"""Report text that looks like a task, a checkbox or a data fence but is not one.

Ignoring it would run a plan without one of its tasks and call it complete.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import criteria, labels
from idumb.markdown.plans.step_tools import TOOLS
from idumb.markdown.syntax.field_values import fence_text
from idumb.markdown.syntax.nodes import Block, Fence, Heading, Item, Items, Paragraph, Quote, Raw
from idumb.markdown.syntax.problems import Field, Problems

STEP_FENCES = ("yaml steps", "json steps")
DATA_FENCES = ("yaml task", *STEP_FENCES)
_FENCES_ACCEPTED = ", ".join(DATA_FENCES) + ", starting in the first column"
_NEAR_FENCES = {
    "yamltask": "yaml task",
    "yamltasks": "yaml task",
    "jsontask": "yaml task",
    "jsontasks": "yaml task",
    "yamlstep": "yaml steps",
    "yamlsteps": "yaml steps",
    "jsonstep": "json steps",
    "jsonsteps": "json steps",
}
LIKE_ID = lazy_pattern.compile(r"[\[(*_`~\s]*t\d[\w.]*-\d", re.IGNORECASE)
YAML_ID = lazy_pattern.compile(r"id:\s*[\"']?t\d", re.IGNORECASE)
_LINE_ID = lazy_pattern.compile(r"[\"']?id[\"']?\s*:\s*[\"']?(\S+)", re.IGNORECASE)
_TITLED = lazy_pattern.compile(r"(?:<\w+>)?\W*(\w\S*?)\s*(?::|—|–|--|-(?=\s))\s*\S")
_LIKE_TASK = lazy_pattern.compile(r"[\[(*_`~\s]*(?:t\d|task[\s\u00a0:#-]*t?\d)", re.IGNORECASE)
_LINE_HEADING = lazy_pattern.compile(r"#{1,6}[ \t]*(.*)")
_LINE_BOX = lazy_pattern.compile(r"(?:[-+*]|\d{1,9}[.)])[ \t]+(\[.*)")
_LINE_DEEP = lazy_pattern.compile(r"#{7,}[ \t]*(.*)")
_TAG = lazy_pattern.compile(r"<task[\s>]", re.IGNORECASE)
_TIGHT_BOX = lazy_pattern.compile(r"[-+*]\[[ xX]?\]")
_LINE_FENCE = lazy_pattern.compile(r"(?:`{3,}|~{3,}(?!~))([^`]*)$")

TASK = "yaml task"
STEPS = "yaml steps"
# First words of fences that may be meant as data, and whether any `id` in them makes them a task.
_LANGUAGES = {"yaml": True, "yml": True, **dict.fromkeys(("", "json", "task", "tasks", "step", "steps"), False)}
_KEY = lazy_pattern.compile(r"((?:-[ \t]+)*)[\"']?([A-Za-z_]\w*)[\"']?[ \t]*:(?:[ \t]+[\"']?([^\s\"']*)|$)")
_FLOW_ID = lazy_pattern.compile(r"[{,][ \t]*[\"']?id[\"']?[ \t]*:[ \t]*[\"']?([^\s\"',}]*)", re.IGNORECASE)
_FLOW_TOOL = lazy_pattern.compile(r"[{,][ \t]*[\"']?tool[\"']?[ \t]*:[ \t]*[\"']?(\w+)")
_CORE = frozenset({"depends_on", "files", "acceptance", "verify"})
OF_TASKS = _CORE | {"kind", "requirements", "tests", "preconditions", "postconditions", "rollback"}
_STEP = lazy_pattern.compile(r"[*_`\[(\s]*(?:step|item|part)[\s#:-]*\d", re.IGNORECASE)
_KEYS = frozenset({"id", "title", "description", "steps", *labels.FIELDS})


@dataclass(slots=True)
class NearMissChecker(Field):
    """Reports the near misses of one plan.

    `prefix` starts every task id of the plan, such as `T1-`; it is `T` if the phase is unknown.
    """

    prefix: str

    @property
    def free(self) -> str:
        """A free id for a new task of the plan."""
        return self.problems.source.free_id(self.prefix if len(self.prefix) > 1 else "T1-")

    def like_task(self, text: str) -> bool:
        """Whether a heading starts like a task heading."""
        return bool(_LIKE_TASK.match(text)) or text.startswith(self.prefix if len(self.prefix) > 1 else "\n")

    def like_id(self, text: str) -> bool:
        """Whether a text starts with something like a task id."""
        return bool(LIKE_ID.match(text)) or (len(self.prefix) > 1 and text.startswith(self.prefix))

    def like_titled(self, text: str) -> bool:
        """Whether a line is a task id, a colon or a dash, and a title."""
        titled = _TITLED.match(text)
        return titled is not None and self.like_task(text[titled.start(1) :])

    def check(self, block: Block, *, boxes: bool, top: bool = False) -> None:
        """Report what looks like data in a block of text.

        With `boxes`, every checkbox is a mistake. `top` means that the block is not in a list item.
        """
        for inner in walk(block):
            if isinstance(inner, Paragraph | Raw):
                for offset, text in inner.pieces:
                    self._line(offset, text.strip(), boxes=boxes, raw=isinstance(inner, Raw))
                if boxes:
                    self._unread(inner, first=top and inner is block)
            elif isinstance(inner, Heading):
                if self.like_task(inner.text):
                    self._nested(inner.start, inner.text)
            elif isinstance(inner, Fence):
                if not near_fence(inner.info, inner.start, self.problems) and boxes:
                    self._unread_fence(inner)
            elif isinstance(inner, Item):
                self._item(inner, boxes=boxes)

    def _item(self, item: Item, *, boxes: bool) -> None:
        first = item.children[0] if item.children else None
        if not isinstance(first, Paragraph):
            return
        text = first.pieces[0][1]
        if text[:1] == "[":
            self._box(item.start, text, boxes=boxes)
        elif YAML_ID.match(text):
            self._nested(item.start, text)

    def _line(self, offset: int, text: str, *, boxes: bool, raw: bool) -> None:
        if text[:1] == "#":
            heading = _LINE_HEADING.match(text)
            if heading and self.like_task(heading[1]):
                self._no_heading(offset, text)
        elif _TIGHT_BOX.match(text):
            if boxes or self.like_id(text.partition("]")[2].lstrip()):
                criteria.broken_box(offset, text[:60], self)
        elif raw and (fence := _LINE_FENCE.match(text)):
            near_fence(fence[1].strip(), offset, self.problems)
        elif raw and (box := _LINE_BOX.match(text)):
            self._box(offset, box[1], boxes=boxes)

    def _unread(self, block: Paragraph | Raw, *, first: bool) -> None:
        """Report lines that are tasks without their marker, and tasks in the tags of another tool.

        `first` includes the first line of the block.
        """
        for number, (offset, line) in enumerate(block.pieces):
            text = line.strip()
            if (number or first) and self.like_start(text):
                self.unread(offset, text)
            elif _TAG.match(text):
                message = "This task is in the tag format of GSD, which idumb does not read"
                fix = f"write it as ### {self.free}: and the title, with its fields below"
                self.error("task.foreign-tag", offset, message, text, f"### {self.free}: Title", fix)
        lines = [text.strip() for _, text in block.pieces]
        if isinstance(block, Paragraph) and not any(map(_LINE_ID.match, lines)) and like_yaml_task(lines):
            self.unread(*block.pieces[0])

    def like_start(self, text: str) -> bool:
        """Whether a line would start a task if one marker were added or removed."""
        yaml_id, deep, box = _LINE_ID.match(text), _LINE_DEEP.match(text), criteria.BOX.match(text)
        return bool(
            (yaml_id and self.like_id(yaml_id[1]))
            or (deep and self.like_task(deep[1]))
            or (box and self.like_id(text[box.end() :]))
        )

    def unread(self, at: int, text: str) -> None:
        message = f"`{text[:60]}` looks like a task but is not one"
        fix = "write the marker of a task before it, or put it in a fence `example`"
        accepted = f"### {self.free}: Title, - [ ] {self.free} Title or - id: {self.free}"
        self.error("task.unread", at, message, text, accepted, fix)

    def _unread_fence(self, fence: Fence) -> None:
        meant = in_fence(fence.info, fence_text(fence, self.problems.source).split("\n"), self.prefix)
        if meant is None:
            return
        content = "a task" if meant == TASK else "steps"
        message = f"This fence holds {content} but would be ignored"
        fix = f"write {fence.mark}{meant} in the first column, or {fence.mark}yaml example for an example"
        Field("fence", self.problems).error(
            "fence.unread", fence.start, message, fence.mark + fence.info, _FENCES_ACCEPTED, fix
        )

    def _no_heading(self, offset: int, text: str) -> None:
        message = "This looks like a task heading but is not a Markdown heading"
        fix = "start it in the first column, with one space after the #"
        self.error("task.not-a-heading", offset, message, text, f"### {self.free}: Title", fix)

    def _box(self, at: int, text: str, *, boxes: bool) -> None:
        box = criteria.BOX.match(text) or criteria.BROKEN_BOX.match(text)
        if box and (boxes or self.like_id(text[box.end() :])):
            message = "This checkbox is outside a task and would be ignored"
            fix = "make it a criterion, a task in the first column, or a bullet without a checkbox"
            accepted = "checkboxes of tasks in the first column, checkboxes of criteria under Acceptance"
            self.error("box.unexpected", at, message, text, accepted, fix)

    def _nested(self, at: int, text: str) -> None:
        message = "This task is inside a list or a quote"
        fix = "start it in the first column"
        self.error("task.nested", at, message, text, f"### {self.free}: Title in the first column", fix)


def checker(phase: str | None, problems: Problems) -> NearMissChecker:
    return NearMissChecker("task", problems, f"T{phase}-" if phase else "T")


def near_fence(info: str, at: int, problems: Problems) -> bool:
    """Report a fence whose info string resembles that of a data fence. Return whether it does."""
    meant = _NEAR_FENCES.get(re.sub(r"[\s_-]", "", info.casefold()).replace("yml", "yaml"))
    if meant is None:
        return False
    if info in DATA_FENCES:
        code, message, fix = "fence.misplaced", "This fence is indented or nested", "start it in the first column"
    else:
        code, message = "fence.near-miss", f"`{info}` looks like `{meant}`"
        fix = f"write {meant}, or use another word for an example"
    Field("fence", problems).error(code, at, message, info, _FENCES_ACCEPTED, fix)
    return True


def walk(block: Block) -> Iterator[Block]:
    """Yield the block and everything in it, in order."""
    stack = [block]
    while stack:
        current = stack.pop()
        yield current
        if isinstance(current, Items | Item | Quote):
            stack.extend(reversed(current.children))


def in_fence(info: str, lines: Iterable[str], prefix: str) -> str | None:
    """Return the data fence that this fence's content resembles: `yaml task`, `yaml steps`, or None.

    `prefix` starts the task ids of the plan. An `example` is always text.
    """
    words = re.findall(r"\w+", info.casefold())
    language = words[0] if words else ""
    if language not in _LANGUAGES or any("example" in word for word in words):
        return None
    keys, column = [], -1
    for line in lines:
        text = line.lstrip(" \t")
        if not text or text.startswith("#"):
            continue
        if text[0] in "{[-" and (meant := _in_flow(text, prefix)):
            return meant
        key = _KEY.match(text)
        at = len(line) - len(text) + len(key[1]) if key else -1
        if key and column in {-1, at}:
            column = at
            keys.append((key[2], key[3] or ""))
    return _meant(keys, prefix, any_id=_LANGUAGES[language])


def _in_flow(text: str, prefix: str) -> str | None:
    if (tool := _FLOW_TOOL.search(text)) and tool[1] in TOOLS and "arguments" in text:
        return STEPS
    id_match = _FLOW_ID.search(text)
    return TASK if id_match and _begins_like_id(id_match[1], prefix) else None


def _meant(keys: Collection[tuple[str, str]], prefix: str, *, any_id: bool) -> str | None:
    ids = [value for key, value in keys if key.casefold() == "id"]
    if any(_begins_like_id(value, prefix) for value in ids) or (ids and any_id):
        return TASK
    tools = [value for key, value in keys if key == "tool"]
    return STEPS if any(value in TOOLS for value in tools) and any(k == "arguments" for k, _ in keys) else None


def _begins_like_id(text: str, prefix: str) -> bool:
    return bool(re.match(r"t\d", text, re.IGNORECASE)) or (len(prefix) > 1 and text.startswith(prefix))


def like_section_of_task(heading: str, names: Collection[str], *, like_tasks: bool = False) -> bool:
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


def like_yaml_task(lines: Iterable[str]) -> bool:
    """Whether the lines of a paragraph are keys of a YAML task without its first line."""
    keys = {m[1] for line in lines if (m := re.match(r"([a-z_]+):(?:[ \t]|$)", line))}
    return len(keys & _KEYS) >= 2 and not keys.isdisjoint({"title", "depends_on", "acceptance"})
