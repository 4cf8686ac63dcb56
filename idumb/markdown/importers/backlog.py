"""Backlog.md: `backlog/tasks/back-12 - Title.md`, one task in each file."""

from __future__ import annotations

import posixpath
import re

from idumb.domain.plans.source_tasks import Need, SourcePlan, SourceTask, unproven
from idumb.markdown.importers import forms, front_matter, words
from idumb.markdown.importers.forms import References
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax import outline

KIND = "backlog"
_FINISHED = re.compile(r"done|completed?|closed|fertig", re.IGNORECASE)
_CRITERIA = re.compile(r"(?:acceptance criteria|definition of done)\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?:#\d+[ \t]+)+")
_PREFIX = re.compile(r"([a-z_]+)-(?=\d)", re.IGNORECASE)


def key(id: str) -> str:
    """Return an id as Backlog.md compares it: without case, without the zeros that fill it up."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", id.casefold())


def matches(file: SourceFile) -> bool:
    marked = re.search(r"<!-- (?:AC|SECTION:\w+):BEGIN -->", file.text) is not None
    return file.front.has("id", "title", "status") and (marked or file.front.any("assignee", "labels", "created_date"))


def is_task(file: SourceFile) -> bool:
    return file.front.has("id", "title")


def read(file: SourceFile, near: Near) -> SourcePlan:
    task = of_file(file, last_state(near("../config.y*ml")))
    return SourcePlan(KIND, file.path, task.title, task.title, (task,))


def last_state(files: list[SourceFile]) -> str:
    """Return the last status of the board, which means that a task is done."""
    boards = (front_matter.read(f"---\n{file.text.strip()}\n---\n").texts("statuses") for file in files)
    return next((states[-1].casefold() for states in boards if states), "")


def of_file(file: SourceFile, last: str = "") -> SourceTask:
    """Return the task of one file. Its sections are text, except those of criteria."""
    front, file.is_swept = file.front, True
    id, status = front.text("id"), front.text("status")
    prefix = _PREFIX.match(id)

    def full(text: str) -> str:  # Backlog.md takes a bare number too
        return f"{prefix[0]}{text}" if prefix is not None and text[:1].isdigit() else text

    file.references = References(rf"{re.escape(prefix[1])}-\d+(?:\.\d+)*" if prefix else r"\b(?!\d)\w+-\d+(?:\.\d+)*")
    done = bool(status) and (status.casefold() == last or _FINISHED.fullmatch(status) is not None)
    done = done or posixpath.basename(posixpath.dirname(file.path)) == "completed"
    criteria, without = _criteria(file, done=done)
    lines = {*range(front.last + 1, len(file.outline.lines) + 1)} - without
    file.carry(lines)
    about = file.outline.text(front.last + 1, len(file.outline.lines) + 1, 0, without)
    for name in ("status", "dependencies", "parent_task_id", "parent", "subtasks"):
        file.use_value(front.value(name))
    line = front.line(front.value("dependencies"))
    stated = tuple(Need(full(each), file.path, line) for each in front.texts("dependencies"))
    told = tuple(need for need in file.needs(lines, id, 0) if key(need.text) != key(id))
    named = front.texts("modified_files")
    priority = front.text("priority").lower()
    parent = front.text("parent_task_id") or front.text("parent") or (id.rpartition(".")[0] if "." in id else "")
    return SourceTask(
        id, front.text("title"), re.sub(r"\n{3,}", "\n\n", about), done, (*stated, *told), parent=full(parent),
        files=named or words.paths_in(about), criteria=unproven(criteria),
        priority=priority if priority in ("high", "low", "critical") else "normal",
        inferred=() if named else words.guessed(words.paths_in(about)), path=file.path,
        line=front.line(front.value("id")),
    )  # fmt: skip


def _criteria(file: SourceFile, *, done: bool) -> tuple[tuple[str, ...], set[int]]:
    """Return the criteria, and the lines of their sections. A ticked one of an open task is listed."""
    found: list[str] = []
    lines: set[int] = set()
    for heading in filter(lambda each: _CRITERIA.match(each.text), file.outline.headings):
        lines.add(heading.line)
        for item in file.outline.items:
            if not heading.line < item.line < heading.end or item.parent is not None or item.is_boxless:
                continue
            lines.update(outline.span(item))
            below = file.outline.text(item.line + 1, item.end)
            found.append(" ".join([_NUMBER.sub("", item.text, count=1), *below.split()]))
            file.carry(outline.span(item))
            if item.done and not done:
                file.used[item.line].discard(forms.BOX)
    return tuple(found), lines
