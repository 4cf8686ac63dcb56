"""spec-kit: `specs/001-feature/tasks.md`, a checklist in phases, with ids and `[P]` for what can run in parallel."""

from __future__ import annotations

import re
from collections.abc import Callable

from idumb import lazy_pattern
from idumb.domain.plans.imported import SourcePlan, SourceTask
from idumb.markdown.importers import boxes

KIND = "spec-kit"
_LINE = lazy_pattern.compile(r"\n- \[[ xX]\] \**T\d{3,}[a-z]?\b")
_TASK = lazy_pattern.compile(r"\**(T\d{3,}[a-z]?|TXXX)\**:?\s*((?:\[[^\]]{1,12}\]\s*)*)\**\s*(.*)")
_ID = lazy_pattern.compile(r"T\d{3,}[a-z]?")
_NEEDS = lazy_pattern.compile(
    r"\(?(?:depends on|requires|after)\s+((?:T\d{3,}[a-z]?(?:\s*(?:,|and|&)\s*)?)+)\)?", re.IGNORECASE
)


def matches(_path: str, text: str) -> bool:
    return boxes.has_plain(text) and _LINE.search("\n" + text) is not None and "Work Package WP" not in text


def read(path: str, text: str, _sibling: Callable[[str], str | None]) -> SourcePlan:
    """Read the tasks. A phase waits for the phase before it; in a phase, tasks with `[P]` wait for the same tasks."""
    checklist = boxes.read(text)
    tasks: list[SourceTask] = []
    unread: list[tuple[str, int, str]] = []
    waits: tuple[str, ...] = ()  # what the next task waits for
    group: list[str] = []  # tasks that run in parallel
    section = phase = place = ""
    headings: tuple[str, ...] = ()
    for box in checklist.boxes:
        match = _TASK.fullmatch(box.text)
        if match is None or match[1] == "TXXX":
            unread.append((path, box.line, box.text))
            continue
        id, marks, title = match[1], match[2], match[3]
        if box.headings is not headings:
            headings = box.headings
            phase = next((name for name in headings if re.match(r"Phase \d", name)), "")
            place = " / ".join(headings[1:])
        if phase != section or "[P]" not in marks:
            waits, group = (tuple(group) or waits), []
        section = phase
        named = _NEEDS.finditer(title) if _ID.search(title) else ()
        stated = [t for found in named for t in _ID.findall(found[1])]
        group.append(id)
        files = boxes.paths_in(title)
        inferred = (
            *(["Depends on: order, phases and [P]"] if not stated else []),
            *(["Files: paths in the text"] if files else []),
        )
        below = "\n".join(box.below).strip("\n")
        about = "\n\n".join(filter(None, (f"{place} {marks.strip()}".strip(" "), below)))
        tasks.append(SourceTask(id, title or id, about, box.done, tuple(stated) or waits, files, inferred=inferred))
        if "[P]" not in marks:
            waits, group = (id,), []
    title = next((name for level, name, _ in checklist.headings if level == 1), path)
    return SourcePlan(
        KIND, path, title.removeprefix("Tasks: "), title.removeprefix("Tasks: "), tuple(tasks), tuple(unread)
    )
