"""Read tasks that are Markdown: headings such as `### Task 1: Title` and `### T1-001: Title`, and checklists.

GSD counts such headings as tasks in plans without tags; the first iDumb and GSD-2 write them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field

from idumb import lazy_pattern
from idumb.domain.plans.plan import GSD_2
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans.dialects import labels, titles
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
_BOX = lazy_pattern.compile(r"[-*+][ \t]+\[([ xX])\][ \t]+(.*)")
_BOX_TASK = lazy_pattern.compile(rf"(?:\*\*)?(?:Task[ \t]+)?({_T_ID}|\d+(?:\.\d+)+)(?:{_DASH}|[ \t]+)(.+)")
_ITEM = lazy_pattern.compile(r"[ \t]{0,3}- id:[ \t]*[\"']?([\w.-]+)[\"']?[ \t]*$")
_SECTION = lazy_pattern.compile(
    r"(?:\d+[.)][ \t]*)?(?:tasks?|implementation tasks|task breakdown|task list)\b", re.IGNORECASE
)
_CODE = lazy_pattern.compile(r"(?<![ \t])[ \t]*`(est|time):[^`]*`", re.IGNORECASE)
_KIND = lazy_pattern.compile(
    r"\((auto|tdd|execute|checkpoint:[\w-]+)\b[^()]*\)[ \t]*(?:(?::|—|–|-)[ \t]*)?", re.IGNORECASE
)
_SUCCESS = lazy_pattern.compile(r"(?:overall )?success criteria\b|must-haves\b", re.IGNORECASE)
_GOAL = lazy_pattern.compile(r"(?:goal|objective|what this builds)\b", re.IGNORECASE)


@dataclass(slots=True)
class _Reading:
    """The document while its lines are read. `level` is that of the heading of the current task, 7 for a box."""

    problems: Problems
    dialect: str
    kinds: Callable[[str, int], str]
    tasks: list[TaskDraft] = field(default_factory=list)
    texts: dict[str, list[Part]] = field(default_factory=dict)
    body: list[Line] = field(default_factory=list)
    level: int = 0
    section: str = ""
    section_level: int = 0
    in_tasks: bool = False


def read(
    text: str, begin: int, dialect: str, problems: Problems, kinds: Callable[[str, int], str]
) -> tuple[list[TaskDraft], dict[str, list[Part]]]:
    """Return the tasks in document order, and the texts of the sections for the goal and the success criteria."""
    rows, unclosed = labels.lines(text[begin:], begin)
    if unclosed is not None:
        mark = rows[unclosed].text.strip()
        problems.report("fence.never-closed", rows[unclosed].at, mark, accepted=mark[:3])
    reading = _Reading(problems, dialect, kinds)
    for row in rows:
        may_start = row.text[:1] == "#" or (reading.in_tasks and not 0 < reading.level < 7)
        if row.fenced or not may_start or not _starts(reading, row):
            reading.body.append(row)
    _finish(reading)
    return reading.tasks, reading.texts


def _starts(reading: _Reading, row: Line) -> bool:
    """Whether a heading or an item starts a task or a section; what came before is then complete."""
    if heading := labels.heading(row.text):
        level, title = heading
        return _heading(reading, row, level, title.strip())
    box, item = _BOX.match(row.text), _ITEM.match(row.text)
    if box and (named := _BOX_TASK.match(box[2])):
        ticked = box[1] != " "
        _begin(reading, row, 7, named[1], named[2])
        if ticked:
            reading.problems.warning(
                "task.ticked", row.at, "Plans hold no status: idumb does not read this mark as done",
                found=row.text.strip()[:60], fix="idumb import keeps such marks as history",
            )  # fmt: skip
        return True
    if item:
        _begin(reading, row, 7, item[1], "")
        return True
    if box:
        reading.problems.warning(
            "dialect.stray-text", row.at, "This checkbox has no id of a task, so it is text", found=row.text.strip(),
            fix="write an id such as T01 before the title if it is a task",
        )  # fmt: skip
    return False


def _heading(reading: _Reading, row: Line, level: int, title: str) -> bool:
    bare = title.strip("*_ ")
    inside = 0 < reading.level < level and reading.level < 7
    task = None if inside else _named(reading, level, bare)
    if task is not None:
        _begin(reading, row, level, *task)
        return True
    if inside:
        return False
    _finish(reading)
    reading.section, reading.section_level = bare, level
    if level <= 2:
        reading.in_tasks = _SECTION.match(bare) is not None
    elif _SECTION.fullmatch(bare):
        reading.in_tasks = True
    return True


def _named(reading: _Reading, level: int, title: str) -> tuple[str, str] | None:
    """Return id and title of a task heading."""
    match = _NAMED.fullmatch(title) or _ID.fullmatch(title)
    if match and (level > 1 or reading.dialect == GSD_2) and not title.startswith("S"):
        return match[1], match[2]
    numbered = _NUMBERED.fullmatch(title) if reading.in_tasks and level > 2 else None
    return (numbered[1], numbered[2]) if numbered else None


def _begin(reading: _Reading, row: Line, level: int, id: str, title: str) -> None:
    _finish(reading)
    kind = _KIND.match(title)
    words = _CODE.sub("", title[kind.end() :] if kind else title)
    draft = TaskDraft(row.at, row.at, titles.clean(words) or id, id=id.strip("."))
    draft.kind = reading.kinds(kind[1].lower(), row.at) if kind else draft.kind
    draft.spans["title"] = (row.at, row.at + len(row.text))
    reading.tasks.append(draft)
    reading.level = level


def _finish(reading: _Reading) -> None:
    """Complete the task or section whose lines have been read."""
    body, reading.body = reading.body, []
    if reading.level:
        draft = reading.tasks[-1]
        while body and body[-1].text.strip() in ("", "---"):
            body.pop()
        draft.end = body[-1].at + len(body[-1].text) if body else draft.end
        text = titles.block("\n".join(row.text for row in body))
        draft.description += [text] if text else []
        labels.read(draft, body, reading.problems, reading.kinds)
        reading.level = 0
    elif body and reading.section:
        part = ("\n".join(row.text for row in body), body[0].at)
        if _SUCCESS.match(reading.section):
            reading.texts.setdefault("success_criteria", []).append(part)
        elif _GOAL.match(reading.section):
            reading.texts.setdefault("objective", []).append(part)
