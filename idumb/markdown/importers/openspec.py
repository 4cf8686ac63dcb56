"""OpenSpec: `openspec/changes/NAME/tasks.md`, numbered groups of boxes such as `- [ ] 1.2 Text`."""

from __future__ import annotations

import re

from idumb.domain.plans.source_tasks import ORDER, SourcePlan, SourceTask
from idumb.markdown.importers import words
from idumb.markdown.importers.forms import References
from idumb.markdown.importers.source_file import Near, SourceFile

KIND = "openspec"
key = str.casefold
_ID = r"\d+(?:\.\d+[a-z]?)+(?:-\d+)?"
_REFERENCES = References(_ID, named=False)
_GROUP = re.compile(r"\d+\. ")
_TASK = re.compile(rf"[*_`\[]*({_ID}|\d+(?=[.)][*_]*\s))(?!\w)[*_`\]]*[.):]?[*_`]*\s+(\S.*)", re.IGNORECASE)
_CHANGE = re.compile(r"openspec/changes/(?:archive/(?:\d{4}-\d\d-\d\d-)?)?([^/]+)/")


def matches(file: SourceFile) -> bool:
    if not (_CHANGE.search(file.path) or any(_GROUP.match(heading.text) for heading in file.outline.headings)):
        return False
    return any(item.mark is not None and _TASK.match(item.text) for item in file.outline.items)


def read(file: SourceFile, near: Near) -> SourcePlan:
    """Read the boxes in order: each task waits for the one before it. A box without a number is named by its words.

    A box without a number inside another one is text. OpenSpec counts boxes in code fences too, so these are listed.
    """
    file.references, file.sees_fences = _REFERENCES, True
    boxes = (item for item in file.outline.items if item.mark is not None)
    items = {item.line: item for item in boxes if item.around is None or _TASK.match(item.text)}
    tasks: list[SourceTask] = []
    for place, item in enumerate(items.values()):
        match = _TASK.match(item.text)
        id, title = (match[1], match[2]) if match is not None else (words.name(item.text), item.text)
        about = item.path[-1].text if item.path else ""
        after = (place - 1,) if place else ()
        tasks.append(file.task(item, id, title, about, after, ORDER, items.keys()))
    change = _CHANGE.search(file.path)
    title = change[1].replace("-", " ") if change else file.path
    why = next((_why(proposal.text) for proposal in near("proposal.md")), "")
    return SourcePlan(KIND, file.path, title, why or title, tuple(tasks))


def _why(proposal: str) -> str:
    """Return the first paragraph under `## Why`."""
    section = re.search(r"^## Why[ \t]*\n+(.+?)(?:\n[ \t]*\n|\n#|\Z)", proposal, re.MULTILINE | re.DOTALL)
    return section[1] if section else ""
