"""Find the tasks of a plan: its sections, group headings and the four notations of tasks."""

from __future__ import annotations

import re
from dataclasses import field
from functools import cached_property

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import criteria, fields, labels, near_misses
from idumb.markdown.syntax.nodes import Block, Fence, Heading, Item, Items, Paragraph, YamlItem
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source

_ID = r"T[0-9A-Za-z][0-9A-Za-z._-]*-\d{2,}[a-z]?"
_HEADING = lazy_pattern.compile(rf"(?:Task\s+)?({_ID})\s*(?::|—|–|--|-(?=\s))\s*(.*)", re.DOTALL)
_PHASE_NUMBER = lazy_pattern.compile(r"T(\d{1,6}(?:\.\d{1,6})?)-\d{2,}[a-z]?\b")
_BOX = lazy_pattern.compile(rf"({_ID})(?:\s*(?::|—|–|--|-(?=\s))\s*|\s+|$)(.*)", re.DOTALL)

_TASKS = lazy_pattern.compile(r"\s*##\s+tasks\s*$", re.IGNORECASE)

HEADING = "heading"
CHECKLIST = "checklist"
FENCE = "fence"
LIST = "list"


@dataclass(slots=True)
class Draft:
    """A task of the document before its fields are read: its range, and the blocks that belong to it.

    `body` are the top-level blocks after its start.
    """

    notation: str
    id: str
    title: str
    start: int
    line: int
    body_line: int
    end_line: int = 0
    level: int = 7
    title_at: int = 0
    fence: Fence | None = None
    yaml: YamlItem | None = None
    item: Item | None = None
    body: list[Block] = field(default_factory=list)
    bad: bool = False  # already reported; suppress errors that would follow
    text_end: int | None = None  # line of the group heading that ends the task's text


@dataclass(slots=True)
class Outline:
    tasks: list[Draft]
    success: list[Item] | None = None
    success_line: int = 0


def read(document: list[Block], source: Source, phase: str | None, problems: Problems) -> Outline:
    return _Outliner(document, source, phase, problems).read()


class _Outliner:
    """Walks the top-level blocks once."""

    def __init__(self, document: list[Block], source: Source, phase: str | None, problems: Problems) -> None:
        self.document = document
        self.source = source
        self.phase = phase or None
        self.problems = problems
        self.checker = near_misses.checker(phase, problems)
        self.outline = Outline([])
        self.task: Draft | None = None
        self.section = ""
        self.tasks_line: int | None = None
        self.has_tasks = any(_section(b) == "tasks" for b in document)
        self.heading: Heading | None = None  # the last heading after the current task started that is not a task
        self.last: Block | None = None
        self.reported_lines: set[int] = set()

    def read(self) -> Outline:
        for block in self.document:
            self._block(block)
            self.last = block
        self._end(len(self.source.lines))
        return self.outline

    def _block(self, block: Block) -> None:
        if isinstance(block, Heading):
            self._heading(block)
        elif isinstance(block, Items):
            self._items(block)
        elif isinstance(block, Fence):
            self._fence(block)
        elif isinstance(block, YamlItem):
            self._yaml_item(block)
        else:
            self._keep(block)

    @property
    def _free(self) -> str:
        return self.checker.free

    @property
    def _boxes_count(self) -> bool:
        """Whether checkboxes are data in the current section."""
        return self.section in {"tasks", "success criteria"} or self._in_free_task

    @property
    def _in_criteria(self) -> bool:
        """Whether the current block is in the success criteria, outside any task."""
        return self.section == "success criteria" and self.task is None

    @property
    def _in_free_task(self) -> bool:
        """Whether the current block is in a task of a plan without a section `## Tasks`."""
        return not self.has_tasks and self.task is not None and self.task.text_end is None

    def _error(self, code: str, at: int, message: str, found: str, fix: str, accepted: str = "") -> None:
        accepted = accepted or f"### {self._free}: Title"
        self.checker.error(code, at, message, found, accepted, fix)

    # Blocks

    def _items(self, block: Items) -> None:
        owned = self.task is not None and self.task.text_end is None and self.heading is None
        labelled = [] if owned and not isinstance(self.last, Paragraph) else fields.known_in([block])
        if labelled and not self._behind_box(block, labelled[0][0]) and self._fields_of_no_task(labelled):
            return
        for item in block.children:
            self._item(item)

    def _behind_box(self, block: Items, field: Item) -> bool:
        """Whether a checklist task precedes the field in its list, so that the field should be indented below it."""
        if self.section != "tasks":
            return False
        texts = (_text_of(item) for item in block.children if item.line < field.line)
        boxes = ((text, criteria.BOX.match(text)) for text in texts)
        return any(box and self.checker.like_id(text[box.end() :]) for text, box in boxes)

    def _fields_of_no_task(self, labelled: list[tuple[Item, str]]) -> bool:
        """Report fields outside a task, at the line that should start one. Return whether it found any."""
        task, heading = self.task, self.heading
        if (self.section == "tasks" or not self.has_tasks) and self._titled_line():
            return True
        names = {name for _, name in labelled}
        if task is None and self.section != "tasks":
            if heading is None or self.section or (self.has_tasks and heading.level > 2):
                return False
            if not near_misses.like_section_of_task(heading.text, names, like_tasks=heading.level > 2):
                return False
        elif not near_misses.OF_TASKS.intersection(names) or (
            heading is None and not near_misses.like_task_fields(names)
        ):
            return False
        elif task is not None and (heading is None or not self._begins_another(task, labelled)):
            return False  # fields of this task; checklist and YAML tasks report theirs when they are read
        if heading is not None:
            self._no_id_heading(heading)
            return True
        item, name = labelled[0]
        message = f"{labels.SHOWN.get(name, name)} is in `## Tasks` but belongs to no task"
        fix = "write the heading of the task above this field"
        self._error("field.no-task", item.start, message, self.source.lines[item.line].strip(), fix)
        return True

    def _titled_line(self) -> bool:
        """Report the line above if it is a task heading without `#`. Return whether it is."""
        above = self.last
        if not isinstance(above, Paragraph):
            return False
        at, text = above.pieces[-1]
        if text.startswith("#") or not self.checker.like_titled(text):  # reported as a near miss of a heading
            return False
        self.checker.unread(at, text)
        return True

    @staticmethod
    def _begins_another(task: Draft, labelled: list[tuple[Item, str]]) -> bool:
        """Whether fields below a heading belong to a new task without an id, not to the task above.

        A task may have its fields below a deeper heading if it has none above it, and a single field anywhere.
        """
        if task.text_end is not None or task.notation != HEADING:
            return True
        if not near_misses.like_task_fields({name for _, name in labelled} - {"acceptance"}):
            return False
        first = next((b.line for b in task.body if isinstance(b, Heading)), 0)
        return bool(fields.known_in(b for b in task.body if b.line < first))

    def _no_id_heading(self, heading: Heading) -> None:
        if heading.line in self.reported_lines:
            return
        self.reported_lines.add(heading.line)
        message = "This heading has no task id, so the fields below it belong to no task"
        fix = f"write {'#' * max(heading.level, 3)} {self._free}: and the title in ## Tasks, or make the fields text"
        accepted = f"{'#' * max(heading.level, 3)} {self._free}: Title"
        self._error("task.heading-without-id", heading.start, message, heading.text, fix, accepted)

    def _keep(self, block: Block) -> None:
        if self.task:
            self.task.body.append(block)
        self.checker.check(block, boxes=self._boxes_count, top=True)

    def _heading(self, heading: Heading) -> None:
        self.heading = heading
        if heading.level <= 2:
            self._end(heading.line)
            self._open_section(heading)
            self.heading = None if self.section else heading
            if self.checker.like_task(heading.text):
                self._no_task_heading(heading)
            return
        if self.checker.like_task(heading.text):
            self._task_heading(heading)
            return
        if self.task and heading.level <= self.task.level and self.task.text_end is None:
            self.task.text_end = heading.line
        if self.task:
            self.task.body.append(heading)

    def _open_section(self, heading: Heading) -> None:
        self.section = _section(heading)
        if self.section == "tasks":
            if self.tasks_line is not None:
                self._second("plan.second-tasks-section", heading, "## Tasks", self.tasks_line)
            self.tasks_line = heading.line
        elif self.section == "success criteria":
            if self.outline.success is not None:
                self._second("plan.second-criteria", heading, "## Success criteria", self.outline.success_line)
            self.outline.success = []
            self.outline.success_line = heading.line

    def _second(self, code: str, heading: Heading, title: str, first: int) -> None:
        message = f"Duplicate section `{title}`, first used on line {first + 1}"
        fix = "move everything into one section"
        self._error(code, heading.start, message, heading.text, fix, f"one section `{title}`")

    def _task_heading(self, heading: Heading) -> None:
        m = _HEADING.fullmatch(heading.text)
        bad = not m or not self._valid(m[1])
        if bad or heading.indent or (self.has_tasks and self.section != "tasks"):
            self._no_task_heading(heading)
        if not m:
            m = re.match(r"([^\s:]*)[\s:]*(.*)", heading.text, re.DOTALL)
            assert m  # noqa: S101 (every text matches)
        at = heading.text_at + max(heading.text.rfind(m[2]), 0)
        draft = Draft(HEADING, m[1], m[2].strip(), heading.start, heading.line, heading.end_line, level=heading.level)
        draft.title_at = at
        draft.bad = bad
        self._begin(draft)

    def _valid(self, id: str) -> bool:
        return id.startswith("T") if self.phase is None else labels.is_task_id(id, self.phase)

    def _id_fix(self, text: str, colon: str = "") -> str:
        """Return how to correct an id. A phase such as `01-math` may only be the name of the folder."""
        form = f"{self.checker.prefix}, two or more digits, optionally a lower-case letter{colon} and a title"
        number = _PHASE_NUMBER.match(text)
        if number is None or not re.match(rf"0*{re.escape(number[1].lstrip('0'))}[-_][^\W\d]", self.phase or ""):
            return f"write {form}"
        return f"write `phase: {number[1]}` in the frontmatter, because {self.phase} is the folder, or write {form}"

    def _no_task_heading(self, heading: Heading) -> None:
        m = _HEADING.fullmatch(heading.text)
        at, text = heading.start, heading.text
        if heading.level <= 2:
            self._error("task.heading-level", at, "A task heading must have level 3 to 6", text, f"write ### {text}")
        elif not m and (near := re.match(rf"({_ID})\s+(.*)", text)) and self._valid(near[1]):
            fix = f"write {'#' * heading.level} {near[1]}: {near[2]}"
            self._error("task.no-colon", at, "A task heading needs a colon or a dash after the id", text, fix)
        elif not m or not self._valid(m[1]):
            fix = self._id_fix(text, ", a colon")
            self._error("task.bad-id", at, f"`{text}` looks like a task but has no valid id", text, fix)
        elif heading.indent:
            self._error("task.indented", at, "This task heading is indented", text, "start it in the first column")
        else:
            self._outside(at, text)

    @cached_property
    def _indented_section(self) -> int | None:
        """Return the line of an indented `## Tasks`, which Markdown may not read as a heading."""
        lines = enumerate(self.source.lines)
        return next((n for n, line in lines if line[:1] in {" ", "\t"} and _TASKS.match(line)), None)

    def _outside(self, at: int, text: str, message: str = "This task is outside the section `## Tasks`") -> None:
        fix = "move it into the section ## Tasks"
        if self._indented_section is not None:
            indentation = "tab" if "\t" in self.source.lines[self._indented_section] else "spaces"
            fix = f"remove the {indentation} before ## Tasks on line {self._indented_section + 1}"
        self._error("task.outside-section", at, message, text, fix)

    def _item(self, item: Item) -> None:
        text = _text_of(item)
        box = criteria.BOX.match(text)
        if box:
            self._box(item, text, box)
            return
        if near_misses.YAML_ID.match(text):
            self._outside(item.start, text, "This YAML task is outside `## Tasks`, or is nested too deeply")
        elif self._titled_item(item, text):
            self._look_inside(item)
            return
        elif criteria.BROKEN_BOX.match(text) and (self._boxes_count or self.checker.like_id(text.partition("]")[2])):
            criteria.broken_box(item.start, text[:60], self.checker)
        elif self._in_criteria and self.outline.success is not None and not item.ordered:
            self.outline.success.append(item)
            return
        if self.task:
            self.task.body.append(item)  # checked when fields are separated from the description
        else:
            self._look_inside(item)

    def _box(self, item: Item, text: str, box: re.Match[str]) -> None:
        rest = text[box.end() :]
        like = self.checker.like_id(rest)
        if self._in_criteria and self.outline.success is not None:
            self.outline.success.append(item)
            if item.ordered:
                self._numbered(item, text)
        elif self.section != "tasks":
            if like:
                self._outside(item.start, text)
            elif self._in_free_task:
                self._no_id(item, text)
            self._look_inside(item)
        elif like:
            self._box_task(item, rest, box)
        else:
            self._no_id(item, text)
            self._look_inside(item)

    def _titled_item(self, item: Item, text: str) -> bool:
        """Report a bullet that resembles a task. Return whether it does."""
        area = self.section == "tasks" or not self.has_tasks
        titled = self.checker.like_id(text) and fields.known_in(item.children)
        if not area or not (titled or self.checker.like_start(text)):
            return False
        self.checker.unread(item.start, text)
        return True

    def _look_inside(self, item: Item) -> None:
        for child in item.children:
            self.checker.check(child, boxes=self._boxes_count)

    def _numbered(self, item: Item, text: str) -> None:
        self._error(
            "box.numbered", item.start, "A checkbox must be in a bullet, not in a numbered list", text, "write - [ ]"
        )

    def _no_id(self, item: Item, text: str) -> None:
        fix = f"write - [ ] {self._free} and the title, or indent the checkbox below Acceptance"
        message = "This checkbox in `## Tasks` has no task id"
        self._error("task.box-without-id", item.start, message, text, fix, f"- [ ] {self._free} Title")

    def _box_task(self, item: Item, rest: str, box: re.Match[str]) -> None:
        m = _BOX.fullmatch(rest)
        bad = not m or not self._valid(m[1])
        if bad:
            message = f"`{rest}` looks like a task but has no valid id"
            self._error("task.bad-id", item.start, message, rest, self._id_fix(rest))
            m = m or re.match(r"(\S*)\s*(.*)", rest, re.DOTALL)
        if item.ordered:
            self._numbered(item, rest)
        if box[1] != " ":
            message = "This task is ticked, but plans do not record status"
            self.checker.warning("task.ticked", item.start, message, box[0].strip(), "write [ ]")
        assert m  # noqa: S101 (one of the two matched)
        draft = Draft(CHECKLIST, m[1], m[2].strip(), item.start, item.line, item.end_line, item=item)
        first = item.children[0]
        assert isinstance(first, Paragraph)  # noqa: S101 (it contains the checkbox)
        draft.title_at = first.pieces[0][0] + box.end() + m.start(2)
        draft.bad = bad
        self._begin(draft)

    def _fence(self, fence: Fence) -> None:
        if fence.info == "yaml task" and not fence.indent:
            if self.section != "tasks":
                self._outside(fence.start, fence.info)
            self._begin(Draft(FENCE, "", "", fence.start, fence.line, fence.end_line, fence=fence))
            return
        if fence.info in near_misses.STEP_FENCES and not fence.indent:
            if self.task:
                self.task.body.append(fence)
            else:
                message = "These steps are outside a task"
                self._error("steps.no-task", fence.start, message, fence.info, "move them into a task", "a task")
            return
        self._keep(fence)

    def _yaml_item(self, item: YamlItem) -> None:
        self._begin(Draft(LIST, "", "", item.start, item.line, item.end_line, yaml=item))

    def _begin(self, draft: Draft) -> None:
        self._end(draft.line)
        self.heading = None
        self.task = draft
        self.outline.tasks.append(draft)

    def _end(self, line: int) -> None:
        if self.task:
            self.task.end_line = line
            self.task = None


def _text_of(item: Item) -> str:
    """Return the first line of an item."""
    first = item.children[0] if item.children else None
    return first.pieces[0][1] if isinstance(first, Paragraph) else ""


def _section(block: Block) -> str:
    """Return `tasks` or `success criteria` if the block is that heading, otherwise an empty text."""
    if not isinstance(block, Heading) or block.level != 2:
        return ""
    text = " ".join(block.text.casefold().split())
    return text if text in {"tasks", "success criteria"} else ""
