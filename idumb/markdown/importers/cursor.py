"""Cursor: `.cursor/plans/name.plan.md`, whose front matter lists `todos` with id, content and status."""

from __future__ import annotations

from idumb.domain.plans.source_tasks import ORDER, Need, SourcePlan, SourceTask
from idumb.markdown.importers import words
from idumb.markdown.importers.front_matter import of, text, texts
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.syntax.tree import Node, is_list

KIND = "cursor"
key = str
_STATES = {"completed": True, "done": True, **dict.fromkeys(("pending", "in_progress", "todo", ""), False)}


def matches(file: SourceFile) -> bool:
    return any(of(todo, "content") is not None for todo in _todos(file))


def _todos(file: SourceFile) -> list[Node]:
    todos = file.front.value("todos")
    return todos.items if is_list(todos) else []


def read(file: SourceFile, _near: Near) -> SourcePlan:
    """Read the list `todos`; a todo without dependencies waits for the one before it."""
    front, tasks = file.front, list[SourceTask]()
    for number, todo in enumerate(_todos(file), 1):
        title, status, needed = text(todo, "content"), text(todo, "status"), of(todo, "dependencies")
        if not title:
            file.note(front.line(todo), f"todo {number}, which has no content")
            continue
        for value in (of(todo, "status"), needed):
            file.use_value(value)
        if status not in _STATES:
            file.note(front.line(of(todo, "status")), f"the status {status} of todo {number}: {title}")
        needs = tuple(Need(each, file.path, front.line(needed)) for each in texts(needed))
        files = words.paths_in(title)
        said = [f"{status} in the source"] if status == "cancelled" else []
        tasks.append(
            SourceTask(
                text(todo, "id") or str(number), title, "", _STATES.get(status, False), needs,
                (len(tasks) - 1,) if tasks and not needs else (), files=files,
                inferred=(*([] if needs else [ORDER]), *words.guessed(files), *said), path=file.path,
                line=front.line(todo),
            )
        )  # fmt: skip
    title = front.text("name") or file.outline.title or file.path
    return SourcePlan(KIND, file.path, title, front.text("overview") or title, tuple(tasks))
