"""Plain checklists and the plan files of Claude Code: Markdown with boxes, or with numbered steps under a heading."""

from __future__ import annotations

import re
from collections import Counter

from idumb.domain.plans.source_tasks import ORDER, SourcePlan, SourceTask
from idumb.markdown.importers import forms, words
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax.outline import Entry

KIND = "checklist"
key = str
_STEP = re.compile(
    r"[*_]*(?:(?:Step|Task|Phase)[ \t]+(?P<id>\d+(?:\.\d+)*)(?:[.):]|[ \t]*[—–-])|(?P<bare>\d+(?:\.\d+)*)[.):])"
    r"[*_]*[ \t]+(?P<title>\S.*)",
    re.IGNORECASE,
)
_OWN_ID = re.compile(r"[*_`]*([A-Za-z]{1,5}-?\d+(?:\.\d+)*)[*_`]*[:.)—–][*_`]*[ \t]+(\S.*)")
_STEPS = re.compile(r"(?:implementation|steps|tasks|plan|todo|to do|changes)", re.IGNORECASE)


def matches(file: SourceFile) -> bool:
    return any(item.mark is not None for item in file.outline.items) or len(_steps(file)) > 1


def read(file: SourceFile, _near: Near) -> SourcePlan:
    """Read boxes that are in no other box as tasks; without boxes, numbered steps. Each waits for the one before it."""
    file.headings = True
    top = [item for item in file.outline.items if item.mark is not None and item.around is None]
    steps = _steps(file)
    lines = {entry.line for _, _, entry in steps} if not top else {each.line for item in top for each in item.path}
    numbered = {item.line for item in file.outline.items if item.number and item.parent is None}
    file.candidates = numbered if not top else {item.line for _, _, item in steps if not item.level}
    for part in (*file.outline.headings, *file.outline.items):
        if part.line in lines or (not top and any(heading.line in lines for heading in part.path)):
            file.use(part.line, forms.TASK)
    rows = _named(top) or [(id, item.text, item) for id, item in zip(_ids(top), top, strict=True)] or _numbered(steps)
    tasks: list[SourceTask] = []
    for place, (id, title, entry) in enumerate(rows):
        tasks.append(file.task(entry, id, title, entry.place if top else "", (place - 1,) if place else (), ORDER))
    title = file.outline.title or file.path
    return SourcePlan(KIND, file.path, title, title, tuple(tasks))


def _named(top: list[Entry]) -> list[tuple[str, str, Entry]]:
    """Return (id, title, entry) of items that all begin with ids of their own, such as `**T01: Title**`; else none."""
    named = [(match, item) for item in top if (match := _OWN_ID.match(item.text)) is not None]
    rows = [(match[1], match[2].replace("**", ""), item) for match, item in named]
    return rows if len({id for id, _, _ in rows}) == len(top) else []


def _ids(top: list[Entry]) -> list[str]:
    """Return ids from the words of the items; an item that moves keeps its own. Equal items have that of their heading.

    Items of the same words under the same heading get numbers.
    """
    names = [words.name(item.text) for item in top]
    repeated = Counter(names)
    ids: list[str] = []
    counts: Counter[str] = Counter()
    for name, item in zip(names, top, strict=True):
        id = f"{words.name(item.path[-1].text)}-{name}" if repeated[name] > 1 and item.path else name
        counts[id] += 1
        ids.append(id if counts[id] == 1 else f"{id}-{counts[id]}")
    return ids


def _numbered(steps: list[tuple[str, str, Entry]]) -> list[tuple[str, str, Entry]]:
    """Return (id, title, entry) of the steps; of equal numbers, the later ones get their place too."""
    counts: Counter[str] = Counter()
    rows = []
    for number, (id, title, entry) in enumerate(steps, 1):
        counts[id] += 1
        rows.append((id if counts[id] == 1 else f"{id}-{number}", title.replace("**", "").strip("* "), entry))
    return rows


def _steps(file: SourceFile) -> list[tuple[str, str, Entry]]:
    """Return (number, title, entry) of numbered headings, or of the numbered items of sections for steps.

    Without a section whose heading says so, the only numbered list is the one.
    """
    found: list[tuple[str, str, Entry]] = []
    end = 0
    for heading in file.outline.headings:
        step = _STEP.match(heading.text) if 1 < heading.level < 5 and heading.line >= end else None
        if step is not None:
            found.append((step["id"] or step["bare"], step["title"], heading))
            end = heading.end
    items = [item for item in file.outline.items if item.number and item.parent is None and item.text]
    named = [item for item in items if item.path and _STEPS.search(item.path[-1].text)]
    chosen = named or (items if len({item.path[-1:] and item.path[-1].line for item in items}) == 1 else [])
    return found or [(item.number, item.text, item) for item in chosen]
