"""Backlog.md: `backlog/tasks/back-12 - Title.md`, one task in each file."""

from __future__ import annotations

import re
from collections.abc import Callable

from idumb import lazy_pattern
from idumb.domain.plans.imported import SourcePlan, SourceTask
from idumb.markdown.importers import boxes, metadata

KIND = "backlog"
_FINISHED = lazy_pattern.compile(r"done|completed?|closed|fertig", re.IGNORECASE)
_STATUS = lazy_pattern.compile(r"^status:[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)


def matches(_path: str, text: str) -> bool:
    values, _ = metadata.read(text)
    if not {"id", "title", "status"} <= values.keys():
        return False
    if {"assignee", "labels", "created_date"} & values.keys():
        return True
    return re.search(r"<!-- (?:AC|SECTION:\w+):BEGIN -->", text) is not None


def task(text: str) -> SourceTask | None:
    """Return the task of one file; None if it is none."""
    values, body = metadata.read(text)
    if not {"id", "title"} <= values.keys():
        return None
    criteria = _between("AC", body) or _headed("Acceptance Criteria", body)
    found = [re.sub(r"^(?:#\d+[ \t]+)+", "", box.text) for box in boxes.read(criteria).boxes]
    described = [_between(f"SECTION:{name}", body) for name in ("DESCRIPTION", "PLAN", "NOTES")]
    about = "\n\n".join(part.strip("\n") for part in described if part.strip()) or _headed("Description", body)
    named = metadata.texts(values, "modified_files")
    files = named or boxes.paths_in(about)
    priority = str(values.get("priority", "")).lower()
    return SourceTask(
        str(values["id"]), str(values["title"]), about, _FINISHED.fullmatch(str(values.get("status", ""))) is not None,
        metadata.texts(values, "dependencies"), files, tuple(found),
        priority=priority if priority in ("high", "low", "critical") else "normal",
        inferred=("Files: paths in the text",) if files and not named else (),
    )  # fmt: skip


def read(path: str, text: str, _sibling: Callable[[str], str | None]) -> SourcePlan:
    found = task(text)
    tasks = (found,) if found is not None else ()
    title = found.title if found is not None else path
    return SourcePlan(KIND, path, title, title, tasks)


def _between(mark: str, body: str) -> str:
    begin, end = f"<!-- {mark}:BEGIN -->", f"<!-- {mark}:END -->"
    at = body.find(begin)
    to = body.find(end, at)
    return body[at + len(begin) : to] if -1 < at < to else ""


def _headed(title: str, body: str) -> str:
    match = re.search(rf"^## {title}\b[^\n]*\n(.*?)(?=^## |\Z)", body, re.MULTILINE | re.DOTALL)
    return match[1].strip("\n") if match else ""
