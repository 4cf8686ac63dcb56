"""Read tasks that are Markdown: headings such as `### Task 1: Title` and `### T1-001: Title`.

GSD counts such headings as tasks in plans without tags; the first iDumb writes them.
"""

from __future__ import annotations

import re
from itertools import pairwise

from idumb.markdown.plans.dialects import checks, drafts, labels
from idumb.markdown.plans.dialects.drafts import Part, TaskDraft
from idumb.markdown.plans.dialects.labels import Line
from idumb.markdown.syntax.source import Source

_DASH = r"[ \t]*(?:[:.)]|—|–|--?)[ \t]*"
_T_ID = r"T(?:[\w.]*-\d+|[\w.]*\d)[a-z]?"
_NAMED = re.compile(rf"Task[ \t]+((?:[\w.-]*-)?(?:[^\W\d]|\.)*\d[\w.]*)(?:{_DASH}|[ \t]+|$)(.*)", re.IGNORECASE)
_ID = re.compile(rf"\[?({_T_ID})\]?(?:{_DASH}|[ \t]+)(.+)")
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)(?:[.):]|[ \t]*[—–-])?[ \t]+(.+)")
_STEP = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\][ \t]")
_STRAY = re.compile(r"[-*+][ \t]+\[[ xX]\][ \t]|[ \t]{0,3}- id:")
_SECTION = re.compile(r"(?:\d+[.)][ \t]*)?(?:tasks?|implementation tasks|task breakdown|task list)\b", re.IGNORECASE)
_KIND = re.compile(r"\((auto|tdd|execute|checkpoint:[\w-]+)\b[^()]*\)[ \t]*(?:(?::|—|–|-)[ \t]*)?", re.IGNORECASE)
_SECTIONS = {
    "success_criteria": re.compile(r"(?:overall )?success criteria\b|must-haves\b", re.IGNORECASE),
    "objective": re.compile(r"(?:goal|objective|what this builds)\b", re.IGNORECASE),
}


def read(first: int, source: Source) -> tuple[list[TaskDraft], dict[str, list[Part]]]:
    """Return the tasks in document order, and the texts of the sections for the goal and the success criteria.

    Headings below that of a task belong to it.
    """
    document, rows = labels.outlined(source, first)
    tasks: list[TaskDraft] = []
    texts: dict[str, list[Part]] = {}
    in_tasks, until = False, 0
    for heading, following in pairwise([*document.headings, None]):
        if heading is None or heading.line < until:
            continue
        title = heading.text.strip("*_ ")
        named = _named(title, heading.level, in_tasks=in_tasks)
        if named is not None:
            until = heading.end
            tasks.append(_task(rows[heading.line - first - 1 : until - first - 1], *named, source))
            continue
        in_tasks = bool(_SECTION.match(title)) if heading.level <= 2 else in_tasks or bool(_SECTION.fullmatch(title))
        body = rows[heading.line - first : following.line - first - 1 if following is not None else len(rows)]
        for row in body:
            if in_tasks and not row.fenced and _STRAY.match(row.text):
                source.report("dialect.stray-text", row.at, row.text.strip())
        if body:
            name = next((name for name, pattern in _SECTIONS.items() if pattern.match(title)), "")
            texts.setdefault(name, []).append(("\n".join(row.text for row in body), body[0].at))
    return tasks, texts


def _named(title: str, level: int, *, in_tasks: bool) -> tuple[str, str] | None:
    """Return id and title of a task heading."""
    match = _NAMED.fullmatch(title) or _ID.fullmatch(title)
    if match and level > 1:
        return match[1], match[2]
    numbered = _NUMBERED.fullmatch(title) if in_tasks and level > 2 else None
    return (numbered[1], numbered[2]) if numbered else None


def _task(rows: list[Line], id: str, title: str, source: Source) -> TaskDraft:
    """Return the task whose heading is the first of these lines."""
    head, *body = rows
    while body and body[-1].text.strip() in ("", "---"):
        body.pop()
    last = body[-1] if body else head
    kind = _KIND.match(title)
    words = checks.clean(title[kind.end() :] if kind else title)
    draft = TaskDraft(head.at, last.at + len(last.text), words or id, id=id.strip("."))
    draft.kind = drafts.kind_of(kind[1].lower(), head.at, source) if kind else draft.kind
    draft.spans["title"] = (head.at, head.at + len(head.text))
    text = checks.block("\n".join(row.text for row in body))
    draft.description += [text] if text else []
    criteria = labels.read(draft, body, source)
    steps = [box[1] for row in body if not row.fenced and row.at not in criteria and (box := _STEP.match(row.text))]
    draft.done = bool(steps) and " " not in steps
    if draft.done:
        fix = "idumb import keeps such marks as history"
        source.report("task.ticked", draft.start, draft.title[:60], fix=fix)
    return draft
