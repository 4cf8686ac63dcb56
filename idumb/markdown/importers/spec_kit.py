"""spec-kit: `specs/001-feature/tasks.md`, a checklist in phases, with ids and `[P]` for what can run in parallel."""

from __future__ import annotations

import re

from idumb.domain.plans.source_tasks import SourcePlan, SourceTask
from idumb.markdown.importers.forms import References
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax.outline import Entry

KIND = "spec-kit"
key = str.casefold
_ID = r"T-?\d{3,}(?:[._]?[0-9A-Za-z]+|-(?!T?\d{3})[0-9A-Za-z]+)*"
_REFERENCES = References(_ID)
_TASK = re.compile(
    rf"[*_~`(\[]*(?P<id>{_ID})(?![\w])[*_~`)\]]*[.:]?[*_]*(?:[ \t]+(?:[-—–:][ \t]+)?|$)"
    r"(?P<marks>(?:\[[^\]]{1,12}\]\s*)*)[*_]*\s*(?P<title>.*)"
)
_PARALLEL = re.compile(r"\[\s*[pP]\s*\]")
_ORDER = "Depends on: order, phases and [P]"


def matches(file: SourceFile) -> bool:
    return "Work Package WP" not in file.text and any(map(_named, file.outline.items))


def _named(item: Entry) -> bool:
    return item.mark is not None and _TASK.match(item.text) is not None


def read(file: SourceFile, _near: Near) -> SourcePlan:
    """Read the tasks. A phase waits for the phase before it; in a phase, tasks with `[P]` wait for the same tasks.

    Phases are the sections of the highest level that divides the tasks, whatever they are called.
    """
    file.references = _REFERENCES
    items = {item.line: item for item in file.outline.items if _named(item)}
    level = next((level for level in range(1, 7) if len({_phase(each, level) for each in items.values()}) > 1), 0)
    tasks: list[SourceTask] = []
    waits: tuple[int, ...] = ()  # what the next task waits for
    group: list[int] = []  # tasks that run in parallel
    before: int | None = None
    for place, item in enumerate(items.values()):
        match = _TASK.match(item.text)
        assert match is not None  # noqa: S101 - `items` are those that match
        parallel = _PARALLEL.search(item.text) is not None
        if _phase(item, level) != before or not parallel:
            waits, group = (tuple(group) or waits), []
        before = _phase(item, level)
        group.append(place)
        about = f"{item.place} {match['marks'].strip()}".strip()
        tasks.append(file.task(item, match["id"], match["title"].strip(), about, waits, _ORDER, items.keys()))
        if not parallel:
            waits, group = (place,), []
    title = file.outline.title.removeprefix("Tasks: ") or file.path
    return SourcePlan(KIND, file.path, title, title, tuple(tasks))


def _phase(item: Entry, level: int) -> int:
    """Return the line of the section that an item is in."""
    return max((heading.line for heading in item.path if heading.level <= level), default=0)
