"""Cursor: `.cursor/plans/name.plan.md`, whose front matter lists `todos` with id, content and status."""

from __future__ import annotations

import re
from collections.abc import Callable

from idumb import lazy_pattern
from idumb.domain.plans.imported import ORDER, SourcePlan, SourceTask
from idumb.markdown.importers import boxes, metadata

KIND = "cursor"
_STATUS = lazy_pattern.compile(
    r"^(?P<dash>[ \t]*-[ \t]+)?(?P<indent>[ \t]*)(?P<key>[\w-]+):[ \t]*(?P<value>.*?)[ \t]*\r?$", re.MULTILINE
)
_WORD = lazy_pattern.compile(r"['\"]?([\w-]+)")


def matches(_path: str, text: str) -> bool:
    values, _ = metadata.read(text)
    todos = values.get("todos")
    return isinstance(todos, list) and any(isinstance(todo, dict) and "content" in todo for todo in todos)


def read(path: str, text: str, _sibling: Callable[[str], str | None]) -> SourcePlan:
    """Read the list `todos`; a todo without dependencies waits for the one before it."""
    values, body = metadata.read(text)
    tasks: list[SourceTask] = []
    todos = values.get("todos")
    for number, todo in enumerate(todos if isinstance(todos, list) else (), 1):
        if not isinstance(todo, dict) or not todo.get("content"):
            continue
        words, id = str(todo["content"]), str(todo.get("id") or number)
        stated = metadata.texts(todo, "dependencies")
        files = boxes.paths_in(words)
        status = str(todo.get("status", ""))
        inferred = (
            *([ORDER] if not stated else []),
            *(["Files: paths in the text"] if files else []),
            *(["cancelled in the source"] if status == "cancelled" else []),
        )
        before = (tasks[-1].id,) if tasks else ()
        done = status in ("completed", "done")
        tasks.append(SourceTask(id, words, "", done, stated or before, files, inferred=inferred))
    heading = re.search(r"^# (.+)$", body, re.MULTILINE)
    title = str(values.get("name") or (heading[1] if heading else path))
    return SourcePlan(KIND, path, title, str(values.get("overview") or title), tuple(tasks))
