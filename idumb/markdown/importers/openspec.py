"""OpenSpec: `openspec/changes/NAME/tasks.md`, numbered groups of boxes such as `- [ ] 1.2 Text`."""

from __future__ import annotations

import re
from collections.abc import Callable

from idumb import lazy_pattern
from idumb.domain.plans.imported import ORDER, SourcePlan, SourceTask
from idumb.markdown.importers import boxes

KIND = "openspec"
_LINE = lazy_pattern.compile(r"\n[ \t]*[-*] \[[ xX]\] \**\d+\.\d+")
_GROUP = lazy_pattern.compile(r"\n## \d+\. ")
_TASK = lazy_pattern.compile(r"\**(\d+(?:\.\d+)+[a-z]?)\**[.):]?\s+(.+)")
_CHANGE = lazy_pattern.compile(r"openspec/changes/(?:archive/(?:\d{4}-\d\d-\d\d-)?)?([^/]+)/")


def matches(path: str, text: str) -> bool:
    if not boxes.has_plain(text) or not (_CHANGE.search(path) or _GROUP.search("\n" + text)):
        return False
    return _LINE.search("\n" + text) is not None


def read(path: str, text: str, sibling: Callable[[str], str | None]) -> SourcePlan:
    """Read the boxes, which OpenSpec counts inside code fences too. Each task waits for the one before it."""
    tasks: list[SourceTask] = []
    unread: list[tuple[str, int, str]] = []
    for box in boxes.read(text, fences=True).boxes:
        match = _TASK.fullmatch(box.text)
        if match is None or match[1] in {task.id for task in tasks[-1:]}:
            unread.append((path, box.line, box.text))
            continue
        files = boxes.paths_in(box.text)
        inferred = (ORDER, *(("Files: paths in the text",) if files else ()))
        before = (tasks[-1].id,) if tasks else ()
        about = "\n".join(filter(None, (" / ".join(box.headings[-1:]), "\n".join(box.below).strip("\n"))))
        tasks.append(SourceTask(match[1], match[2], about, box.done, before, files, inferred=inferred))
    change = _CHANGE.search(path)
    title = change[1].replace("-", " ") if change else path
    return SourcePlan(KIND, path, title, _why(sibling("proposal.md") or "") or title, tuple(tasks), tuple(unread))


def _why(proposal: str) -> str:
    """Return the first paragraph under `## Why`."""
    section = re.search(r"^## Why[ \t]*\r?\n+(.+?)(?:\r?\n[ \t]*\r?\n|\r?\n#|\Z)", proposal, re.MULTILINE | re.DOTALL)
    return section[1] if section else ""
