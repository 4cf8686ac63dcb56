"""Find the tasks of a plan: its sections, group headings and the four notations of tasks."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from idumb.markdown.plans import criteria, near_misses, steps
from idumb.markdown.plans.criteria import BOX, BROKEN_BOX
from idumb.markdown.plans.fields import FIELDS, label_of
from idumb.markdown.plans.values import is_task_id
from idumb.markdown.syntax import blocks
from idumb.markdown.syntax.blocks import Block
from idumb.markdown.syntax.source import Source

_DASH = r"(?::|—|–|--|-(?=\s))"
_ID = r"T[0-9A-Za-z][0-9A-Za-z._-]*-\d{2,}[a-z]?"
_HEADING = re.compile(rf"(?:Task\s+)?({_ID})\s*{_DASH}\s*(.*)", re.DOTALL)
_CRITERIA = re.compile(r"success[\W_]*criteria", re.IGNORECASE)  # in a heading that is not that of the section
_BOX_TASK = re.compile(rf"({_ID})(?:\s*{_DASH}\s*|\s+|$)(.*)", re.DOTALL)
_WITHOUT_COLON = re.compile(rf"({_ID})\s+(.*)")

HEADING, CHECKLIST, FENCE, LIST = "heading", "checklist", "fence", "list"


class TaskDraft(Struct):
    """A task in progress: first its range and the blocks after its start, then what its fields say.

    `values` are keyword arguments of `Task`, `spans` the ranges of fields, `end` is the offset of its end. Findings
    name `called` instead of its id.
    """

    notation: str
    id: str
    title: str
    start: int
    line: int = 0
    body_line: int = 0
    end_line: int = 0
    level: int = 7
    title_at: int = 0
    fence: Block | None = None
    yaml: Block | None = None
    item: Block | None = None
    body: list[Block] = field(default_factory=list)
    bad: bool = False  # already reported; suppress errors that would follow
    text_end: int | None = None  # line of the group heading that ends the task's text
    end: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    criteria: list[criteria.CriterionDraft] | None = None
    called: str = ""


class TaskFinder:
    """Walks the top-level blocks once."""

    def __init__(self, phase: str | None, source: Source) -> None:
        self.source, self.phase = source, phase or None
        self.near_misses = near_misses.of_phase(phase, source)
        self.tasks: list[TaskDraft] = []
        self.success: list[Block] | None = None
        self.sections: dict[str, int] = {}  # the lines of `tasks` and `success criteria`
        self.has_tasks = False
        self.task: TaskDraft | None = None
        self.section = ""
        self.heading: Block | None = None  # the last heading after the current task started that is not a task
        self.last: Block | None = None
        self.reported: set[int] = set()  # lines of headings

    def read(self, document: list[Block]) -> None:
        self.has_tasks = any(_section(block) == "tasks" for block in document)
        for block in document:
            self._block(block)
            self.last = block
        self._end(len(self.source.lines))

    def _block(self, block: Block) -> None:
        if block.kind == blocks.HEADING:
            self._heading(block)
        elif block.kind == blocks.LIST:
            if not self._report_unowned_fields(block):
                for item in block.children:
                    self._item(item)
        elif block.kind == blocks.FENCE and block.info in (near_misses.TASK_FENCE, *steps.FENCES) and not block.indent:
            self._fence(block)
        elif block.kind == blocks.YAML_ITEM:
            self._begin(TaskDraft(LIST, "", "", block.start, block.line, block.end_line, yaml=block))
        else:
            if self.task:
                self.task.body.append(block)
            self.near_misses.report_in(block, boxes=self._boxes_count, top=True)

    @property
    def _boxes_count(self) -> bool:
        """Whether checkboxes are data in the current section."""
        return self.section in {"tasks", "success criteria"} or self._in_free_task

    @property
    def _in_free_task(self) -> bool:
        """Whether the current block is in a task of a plan without a section `## Tasks`."""
        return not self.has_tasks and self.task is not None and self.task.text_end is None

    def _begin(self, draft: TaskDraft) -> None:
        self._end(draft.line)
        self.heading, self.task = None, draft
        self.tasks.append(draft)

    def _end(self, line: int) -> None:
        if self.task:
            self.task.end_line, self.task = line, None

    def _valid(self, id: str) -> bool:
        return id.startswith("T") if self.phase is None else is_task_id(id, self.phase)

    # Headings

    def _heading(self, heading: Block) -> None:
        like = self.near_misses.like_task(heading.text)
        self.heading = heading
        if heading.level <= 2:
            self._end(heading.line)
            self.section = _section(heading)
            if self.section in self.sections:
                code = "plan.second-tasks-section" if self.section == "tasks" else "plan.second-criteria"
                first = self.sections[self.section] + 1
                self.near_misses.report(code, heading.start, heading.text, first=str(first))
            if self.section:
                self.sections[self.section] = heading.line
                self.heading = None
            if self.section == "success criteria":
                self.success = []
            if like:
                self._no_task_heading(heading)
        elif like:
            self._task_heading(heading)
        elif self.task:
            if heading.level <= self.task.level and self.task.text_end is None:
                self.task.text_end = heading.line
            self.task.body.append(heading)

    def _task_heading(self, heading: Block) -> None:
        m = _HEADING.fullmatch(heading.text)
        bad = not m or not self._valid(m[1])
        if bad or heading.indent or (self.has_tasks and self.section != "tasks"):
            self._no_task_heading(heading)
        m = m or re.match(r"([^\s:]*)[\s:]*(.*)", heading.text, re.DOTALL)
        assert m  # noqa: S101 (every text matches)
        draft = TaskDraft(HEADING, m[1], m[2].strip(), heading.start, heading.line, heading.end_line)
        draft.title_at = heading.pieces[0].at + max(heading.text.rfind(m[2]), 0)
        draft.level, draft.bad = heading.level, bad
        self._begin(draft)

    def _no_task_heading(self, heading: Block) -> None:
        m, at, text = _HEADING.fullmatch(heading.text), heading.start, heading.text
        near = _WITHOUT_COLON.match(text)
        if heading.level <= 2:
            self.near_misses.report("task.heading-level", at, text)
        elif not m and near and self._valid(near[1]):
            self.near_misses.report("task.no-colon", at, text, fix=f"write {'#' * heading.level} {near[1]}: {near[2]}")
        elif not m or not self._valid(m[1]):
            self._bad_id(at, text, ", a colon")
        elif heading.indent:
            self.near_misses.report("task.indented", at, text)
        else:
            self.near_misses.report("task.outside-section", at, text)

    def _bad_id(self, at: int, text: str, colon: str = "") -> None:
        form = f"{self.near_misses.prefix}, two or more digits, optionally a lower-case letter{colon} and a title"
        self.near_misses.report("task.bad-id", at, text, form=form)

    # Items

    def _item(self, item: Block) -> None:
        text = blocks.first_line(item)
        box, in_criteria = BOX.match(text), self.section == "success criteria" and self.task is None
        if box and self.section == "tasks" and self.near_misses.like_id(text[box.end() :]):
            self._box_task(item, text[box.end() :], box)
            return
        reported = "" if box else self._near_miss(item, text)
        if in_criteria and item.ordered:
            self.near_misses.report("box.numbered", item.start, text)
        elif box and not in_criteria:
            self._box(item, text, box)
        if in_criteria and self.success is not None and (box or not (item.ordered or reported)):
            self.success.append(item)
        elif self.task and not box and reported != "task.unread":
            self.task.body.append(item)  # checked when fields are separated from the description
        else:
            for child in item.children:
                self.near_misses.report_in(child, boxes=self._boxes_count)

    def _box(self, item: Block, text: str, box: re.Match[str]) -> None:
        """Report a checkbox that is neither a task nor a success criterion."""
        if self.near_misses.like_id(text[box.end() :]):
            self.near_misses.report("task.outside-section", item.start, text)
        elif self.section == "tasks" or self._in_free_task:
            self.near_misses.report("task.box-without-id", item.start, text)
        elif criteria.has_command(text) or (self.heading is not None and _CRITERIA.search(self.heading.text)):
            self.near_misses.report("box.unexpected", item.start, text)

    def _near_miss(self, item: Block, text: str) -> str:
        """Report a bullet that looks like a task or a checkbox. Return the code."""
        if near_misses.YAML_ID.match(text):
            self.near_misses.report("task.outside-section", item.start, text)
            return "task.outside-section"
        if self._unread(item, text):
            self.near_misses.report("task.unread", item.start, text)
            return "task.unread"
        if BROKEN_BOX.match(text) and (self._boxes_count or self.near_misses.like_id(text.partition("]")[2])):
            self.near_misses.report("box.malformed", item.start, text[:60])
            return "box.malformed"
        return ""

    def _unread(self, item: Block, text: str) -> bool:
        """Whether a bullet where tasks are resembles one."""
        titled = self.near_misses.like_id(text) and any(b.kind == blocks.LIST and _fields_of(b) for b in item.children)
        return (self.section == "tasks" or not self.has_tasks) and (titled or self.near_misses.like_start(text))

    def _box_task(self, item: Block, rest: str, box: re.Match[str]) -> None:
        m = _BOX_TASK.fullmatch(rest)
        bad = not m or not self._valid(m[1])
        if bad:
            self._bad_id(item.start, rest)
        if item.ordered:
            self.near_misses.report("box.numbered", item.start, rest)
        if box[1] != " ":
            self.near_misses.report("task.ticked", item.start, box[0].strip())
        m = m or re.match(r"(\S*)\s*(.*)", rest, re.DOTALL)
        first = item.children[0]
        assert m  # noqa: S101 (every text matches)
        at = first.pieces[0].at + box.end() + m.start(2)
        draft = TaskDraft(CHECKLIST, m[1], m[2].strip(), item.start, item.line, item.end_line, title_at=at, item=item)
        draft.bad = bad
        self._begin(draft)

    def _fence(self, fence: Block) -> None:
        if fence.info == near_misses.TASK_FENCE:
            if self.section != "tasks":
                self.near_misses.report("task.outside-section", fence.start, fence.info)
            self._begin(TaskDraft(FENCE, "", "", fence.start, fence.line, fence.end_line, fence=fence))
        elif self.task:
            self.task.body.append(fence)
        else:
            self.near_misses.report("steps.no-task", fence.start, fence.info)

    # Fields that belong to no task

    def _report_unowned_fields(self, block: Block) -> bool:
        """Report fields outside a task, at the line that should start one. Return whether it found any."""
        owned = self.task is not None and self.task.text_end is None and self.heading is None
        found = [] if owned and not (self.last and self.last.kind == blocks.PARAGRAPH) else _fields_of(block)
        if not found or self._behind_box(block, found[0][0]):
            return False
        task, heading, names = self.task, self.heading, {name for _, name in found}
        if (self.section == "tasks" or not self.has_tasks) and self._report_titled_line():
            return True
        if task is None and self.section != "tasks":
            deep = heading is not None and heading.level > 2
            if heading is None or self.section or (self.has_tasks and deep):
                return False
            if not near_misses.like_section_of_task(heading.text, names, like_tasks=deep):
                return False
        elif near_misses.OF_TASKS.isdisjoint(names) or (heading is None and not near_misses.like_task_fields(names)):
            return False
        elif task is not None and (heading is None or not self._begins_another(task, names)):
            return False  # fields of this task; checklist and YAML tasks report theirs when they are read
        if heading is None:
            item, name = found[0]
            label = FIELDS[name].labels[0] if name in FIELDS else name
            self.near_misses.report("field.no-task", item.start, self.source.lines[item.line].strip(), label=label)
        elif heading.line not in self.reported:
            self.reported.add(heading.line)
            marks = "#" * max(heading.level, 3)
            self.near_misses.report("task.heading-without-id", heading.start, heading.text, marks=marks)
        return True

    def _behind_box(self, block: Block, field: Block) -> bool:
        """Whether a checklist task precedes the field in its list, so that the field should be indented below it."""
        before = [blocks.first_line(item) for item in block.children if item.line < field.line]
        boxed = [text[box.end() :] for text in before if (box := BOX.match(text))]
        return self.section == "tasks" and any(map(self.near_misses.like_id, boxed))

    def _report_titled_line(self) -> bool:
        """Report the line above if it is a task heading without `#`. Return whether it is."""
        above = self.last
        if above is None or above.kind != blocks.PARAGRAPH:
            return False
        text, at = above.pieces[-1]
        if text.startswith("#") or not self.near_misses.like_titled(text):  # reported as a near miss of a heading
            return False
        self.near_misses.report("task.unread", at, text)
        return True

    @staticmethod
    def _begins_another(task: TaskDraft, names: set[str]) -> bool:
        """Whether fields below a heading belong to a new task without an id, not to the task above.

        A task may have its fields below a deeper heading if it has none above it, and a single field anywhere.
        """
        if task.text_end is not None or task.notation != HEADING:
            return True
        first = next((b.line for b in task.body if b.kind == blocks.HEADING), 0)
        above = [b for b in task.body if b.line < first and b.kind == blocks.ITEM and not b.ordered]
        return near_misses.like_task_fields(names - {"acceptance"}) and any(
            label_of(blocks.first_text(b)[0].value).field for b in above
        )


def _fields_of(block: Block) -> list[tuple[Block, str]]:
    """Return the bullets of a list that are fields, each with the name of its field."""
    bullets = [] if block.ordered else block.children
    labelled = [(item, label_of(blocks.first_text(item)[0].value).field) for item in bullets]
    return [(item, name) for item, name in labelled if name]


def _section(block: Block) -> str:
    """Return `tasks` or `success criteria` if the block is that heading, otherwise an empty text."""
    if block.kind != blocks.HEADING or block.level != 2:
        return ""
    text = " ".join(block.text.casefold().split())
    return text if text in {"tasks", "success criteria"} else ""
