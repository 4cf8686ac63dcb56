"""task-master: `.taskmaster/tasks/tasks.json`, with or without tags. Subtasks become tasks before their parent."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from idumb.domain.plans.source_tasks import Need, SourcePlan, SourceTask, unproven
from idumb.markdown.importers import words
from idumb.markdown.importers.front_matter import of, text, texts
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map

KIND = "task-master"
_FINISHED = frozenset({"done", "completed"})
_LEFT_OUT = frozenset({"cancelled", "deferred"})
_STATES = _FINISHED | _LEFT_OUT | {"pending", "in-progress", "blocked", "review"}
_PRIORITIES = {"critical": "critical", "high": "high", "low": "low"}


def key(id: str) -> str:
    return id.strip()


def matches(file: SourceFile) -> bool:
    return file.text.lstrip().startswith("{") and re.search(r'"tasks"\s*:\s*\[', file.text) is not None


def read(file: SourceFile, _near: Near, tag: str = "") -> SourcePlan:
    """Read the tasks of a tag, by default of `master` or else of the first one. Raises ValueError for other JSON."""
    source = Source(file.text, file.path)
    root = tree.read_json(file.text, lambda index: index, source, "tasks")
    if not is_map(root) or source.any_error:
        raise ValueError(source.findings[0].message if source.findings else "it is not a JSON object")
    tags = {name.value: tasks for name, inner in root.pairs if is_list(tasks := of(inner, "tasks"))}
    if tag and tag not in tags:
        raise ValueError(f"it has no tag {tag}" + (f", but {', '.join(tags)}" if tags else ""))
    tag = tag or ("master" if "master" in tags else next(iter(tags), ""))
    rows = tags[tag] if tag else of(root, "tasks")
    if not is_list(rows):
        raise ValueError("it has no list `tasks`")
    for name, tasks in tags.items():
        if name != tag:
            why = f"the tasks of the tag {name}; read them with --tag {shlex.quote(name)}"
            file.note(file.line_at(tasks.start), why)
    if tag and is_list(beside := of(root, "tasks")):
        file.note(file.line_at(beside.start), "the list `tasks` beside the tags")
    title = f"Tasks of task-master ({tag})" if tag else "Tasks of task-master"
    return SourcePlan(KIND, file.path, title, title, tuple(_tasks(file, rows, "")), (), tag)


def _tasks(file: SourceFile, rows: Node, parent: str) -> Iterator[SourceTask]:
    siblings = {text(row, "id") for row in rows.items} if parent else set()
    for row in rows.items:
        id = text(row, "id")
        if not id:
            file.note(file.line_at(row.start), f"a task without an id: {text(row, 'title') or row.value}")
            continue
        whole = f"{parent}.{id}" if parent else id
        if is_list(parts := of(row, "subtasks")):
            yield from _tasks(file, parts, whole)
        yield _task(file, row, whole, parent, siblings)


def _task(file: SourceFile, row: Node, id: str, parent: str, siblings: set[str]) -> SourceTask:
    """Return a task or, with `parent`, a subtask, whose dependencies may be numbers of its siblings."""
    line = file.line_at(row.start)
    needed = of(row, "dependencies")
    named = [text(each, "id") for each in needed.items if is_map(each)] if is_list(needed) else []
    named += texts(needed) if is_list(needed) else text(row, "dependencies").split(",")  # as people write it by hand
    whole = (f"{parent}.{each}" if each in siblings else each for each in map(str.strip, named) if each)
    files = of(row, "relevantFiles")
    paths = tuple(filter(None, (text(each, "path") for each in files.items))) if is_list(files) else ()
    details = "\n\n".join(filter(None, (text(row, name) for name in ("description", "details", "testStrategy"))))
    status = (text(row, "status") or "pending").casefold().replace("_", "-")
    if status not in _STATES:
        file.note(line, f"the status {text(row, 'status')} of {id}")
    skipped = (f"{status} in the source",) if status in _LEFT_OUT else ()
    return SourceTask(
        id, text(row, "title") or id, details, status in _FINISHED,
        tuple(Need(each, file.path, line) for each in whole), parent=parent, files=paths or words.paths_in(details),
        criteria=unproven(texts(of(row, "acceptanceCriteria")) or texts(of(row, "testStrategy"))),
        priority=_PRIORITIES.get(text(row, "priority"), "normal"),
        inferred=(*(() if paths else words.guessed(words.paths_in(details))), *skipped), path=file.path, line=line,
    )  # fmt: skip
