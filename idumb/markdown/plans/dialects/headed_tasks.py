"""Read tasks that are Markdown: headings such as `### Task 1: Title` and `### T1-001: Title`.

GSD counts such headings as tasks in plans without tags; the first iDumb writes them.
"""

from __future__ import annotations

import re

from idumb import lazy_pattern
from idumb.markdown.plans.dialects import checks, drafts, labels
from idumb.markdown.plans.dialects.drafts import Part, TaskDraft
from idumb.markdown.plans.dialects.labels import Line
from idumb.markdown.syntax.problems import Problems

_DASH = r"[ \t]*(?:[:.)]|—|–|--?)[ \t]*"
_T_ID = r"T(?:[\w.]*-\d+|[\w.]*\d)[a-z]?"
_NAMED = lazy_pattern.compile(
    rf"Task[ \t]+((?:[\w.-]*-)?(?:[^\W\d]|\.)*\d[\w.]*)(?:{_DASH}|[ \t]+|$)(.*)", re.IGNORECASE
)
_ID = lazy_pattern.compile(rf"\[?({_T_ID})\]?(?:{_DASH}|[ \t]+)(.+)")
_NUMBERED = lazy_pattern.compile(r"(\d+(?:\.\d+)*)(?:[.):]|[ \t]*[—–-])?[ \t]+(.+)")
_STEP = lazy_pattern.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\][ \t]")
_STRAY = lazy_pattern.compile(r"[-*+][ \t]+\[[ xX]\][ \t]|[ \t]{0,3}- id:")
_SECTION = lazy_pattern.compile(
    r"(?:\d+[.)][ \t]*)?(?:tasks?|implementation tasks|task breakdown|task list)\b", re.IGNORECASE
)
_CODE = lazy_pattern.compile(r"(?<![ \t])[ \t]*`(est|time):[^`]*`", re.IGNORECASE)
_KIND = lazy_pattern.compile(
    r"\((auto|tdd|execute|checkpoint:[\w-]+)\b[^()]*\)[ \t]*(?:(?::|—|–|-)[ \t]*)?", re.IGNORECASE
)
_SECTIONS = {
    "success_criteria": lazy_pattern.compile(r"(?:overall )?success criteria\b|must-haves\b", re.IGNORECASE),
    "objective": lazy_pattern.compile(r"(?:goal|objective|what this builds)\b", re.IGNORECASE),
}


class _Reading:
    """The document while its lines are read. `level` is that of the heading of the current task."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.tasks: list[TaskDraft] = []
        self.texts: dict[str, list[Part]] = {}
        self.body: list[Line] = []
        self.level = 0
        self.section = ""
        self.in_tasks = False

    def line(self, row: Line) -> None:
        """Read a line: a heading may start a task or a section; what came before is then complete."""
        heading = None if row.fenced else labels.heading(row.text)
        if heading is not None and self._heading(row, heading[0], heading[1].strip()):
            return
        if self.in_tasks and not self.level and not row.fenced and _STRAY.match(row.text):
            self.problems.report("dialect.stray-text", row.at, row.text.strip())
        self.body.append(row)

    def _heading(self, row: Line, level: int, title: str) -> bool:
        bare = title.strip("*_ ")
        if 0 < self.level < level:
            return False
        task = self._named(level, bare)
        if task is not None:
            self._begin(row, level, *task)
            return True
        self.finish()
        self.section = bare
        if level <= 2:
            self.in_tasks = _SECTION.match(bare) is not None
        elif _SECTION.fullmatch(bare):
            self.in_tasks = True
        return True

    def _named(self, level: int, title: str) -> tuple[str, str] | None:
        """Return id and title of a task heading."""
        match = _NAMED.fullmatch(title) or _ID.fullmatch(title)
        if match and level > 1:
            return match[1], match[2]
        numbered = _NUMBERED.fullmatch(title) if self.in_tasks and level > 2 else None
        return (numbered[1], numbered[2]) if numbered else None

    def _begin(self, row: Line, level: int, id: str, title: str) -> None:
        self.finish()
        kind = _KIND.match(title)
        words = _CODE.sub("", title[kind.end() :] if kind else title)
        draft = TaskDraft(row.at, row.at, checks.clean(words) or id, id=id.strip("."))
        draft.kind = drafts.kind_of(kind[1].lower(), row.at, self.problems) if kind else draft.kind
        draft.spans["title"] = (row.at, row.at + len(row.text))
        self.tasks.append(draft)
        self.level = level

    def finish(self) -> None:
        """Complete the task or section whose lines have been read."""
        body, self.body = self.body, []
        if self.level:
            self._finish_task(self.tasks[-1], body)
            self.level = 0
        elif body and self.section:
            part = ("\n".join(row.text for row in body), body[0].at)
            name = next((name for name, pattern in _SECTIONS.items() if pattern.match(self.section)), "")
            self.texts.setdefault(name, []).append(part)

    def _finish_task(self, draft: TaskDraft, body: list[Line]) -> None:
        while body and body[-1].text.strip() in ("", "---"):
            body.pop()
        draft.end = body[-1].at + len(body[-1].text) if body else draft.end
        text = checks.block("\n".join(row.text for row in body))
        draft.description += [text] if text else []
        criteria = labels.read(draft, body, self.problems)
        steps = [box[1] for row in body if not row.fenced and row.at not in criteria and (box := _STEP.match(row.text))]
        draft.done = bool(steps) and " " not in steps
        if draft.done:
            fix = "idumb import keeps such marks as history"
            self.problems.report("task.ticked", draft.start, draft.title[:60], fix=fix)


def read(first: int, problems: Problems) -> tuple[list[TaskDraft], dict[str, list[Part]]]:
    """Return the tasks in document order, and the texts of the sections for the goal and the success criteria."""
    reading = _Reading(problems)
    for row in labels.lines(problems.source, first, problems):
        reading.line(row)
    reading.finish()
    return reading.tasks, reading.texts
