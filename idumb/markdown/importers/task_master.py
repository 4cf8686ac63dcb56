"""task-master: `.taskmaster/tasks/tasks.json`, with or without tags. Subtasks become tasks before their parent."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from idumb.domain import canonical_json
from idumb.domain.plans.imported import SourcePlan, SourceTask
from idumb.markdown.importers import boxes

KIND = "task-master"
_FINISHED = frozenset({"done", "completed"})
_LEFT_OUT = frozenset({"cancelled", "deferred"})
_PRIORITIES = {"critical": "critical", "high": "high", "low": "low"}


def matches(_path: str, text: str) -> bool:
    return text.lstrip("\ufeff \r\n\t").startswith("{") and re.search(r'"tasks"\s*:\s*\[', text) is not None


def read(path: str, text: str, _sibling: Callable[[str], str | None], tag: str = "") -> SourcePlan:
    """Read the tasks of a tag, by default of `master` or else of the first one. Raises ValueError for other JSON."""
    tag, rows = _tagged(text, tag)
    others = [name for name in _tags(text) if name != tag]
    unread = [(path, 1, f"the tasks of the tag {name}; read them with --tag {shlex.quote(name)}") for name in others]
    tasks: list[SourceTask] = []
    for row in rows:
        id = str(row.get("id", ""))
        subtasks = [each for each in _list(row, "subtasks") if isinstance(each, dict)]
        tasks += [_task(each, f"{id}.{each.get('id')}", id) for each in subtasks]
        tasks.append(_task(row, id, "", tuple(f"{id}.{each.get('id')}" for each in subtasks)))
    kept = [task for task in tasks if task.id]
    title = f"Tasks of task-master ({tag})" if tag else "Tasks of task-master"
    return SourcePlan(KIND, path, title, title, tuple(kept), tuple(unread), tag)


def _tags(text: str) -> list[str]:
    value = canonical_json.decode(text.lstrip("\ufeff"))
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as json reports damage
    return [name for name, inner in value.items() if isinstance(inner, dict) and isinstance(inner.get("tasks"), list)]


def _tagged(text: str, wanted: str) -> tuple[str, list[Mapping[str, Any]]]:
    value = canonical_json.decode(text.lstrip("\ufeff"))
    tags = _tags(text)
    if wanted and wanted not in tags:
        raise ValueError(f"it has no tag {wanted}" + (f", but {', '.join(tags)}" if tags else ""))
    tag = wanted or ("master" if "master" in tags else tags[0] if tags else "")
    rows = value[tag]["tasks"] if tag else value.get("tasks")
    if not isinstance(rows, list):
        raise ValueError("it has no list `tasks`")  # noqa: TRY004 - as json reports damage
    return tag, [row for row in rows if isinstance(row, dict)]


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    return value if isinstance(value, list) else []


def _task(row: Mapping[str, Any], id: str, parent: str, subtasks: tuple[str, ...] = ()) -> SourceTask:
    """Return a task or, with `parent`, a subtask, whose dependencies may be numbers of its siblings."""
    needed = [str(each) for each in _list(row, "dependencies")]
    if parent:
        needed = [each if "." in each else f"{parent}.{each}" for each in needed]
    named = [
        str(each.get("path")) for each in _list(row, "relevantFiles") if isinstance(each, dict) and each.get("path")
    ]
    details = "\n\n".join(str(row[name]) for name in ("description", "details", "testStrategy") if row.get(name))
    files = tuple(named) or boxes.paths_in(details)
    stated = row.get("acceptanceCriteria") or row.get("testStrategy") or []
    criteria = stated if isinstance(stated, list) else [stated]
    status = str(row.get("status", "pending"))
    guessed = ("Files: paths in the text",) if files and not named else ()
    skipped = (f"{status} in the source",) if status in _LEFT_OUT else ()
    return SourceTask(
        id, str(row.get("title") or id), details, status in _FINISHED, (*needed, *subtasks), files,
        tuple(str(each) for each in criteria if str(each).strip()), (),
        _PRIORITIES.get(str(row.get("priority")), "normal"), inferred=(*guessed, *skipped),
    )  # fmt: skip
