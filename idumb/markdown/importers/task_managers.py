"""Task managers: Backlog.md with one task in each file, task-master with one JSON file for all."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator

from idumb.domain.errors import InputError
from idumb.domain.plans.plan import FileClaim
from idumb.domain.plans.source_tasks import CHANGE, Need, SourcePlan, SourceTask, claims, unproven
from idumb.markdown import phases
from idumb.markdown.importers import signs
from idumb.markdown.importers.signs import References
from idumb.markdown.importers.source_file import Format, Near, SourceFile, Sources, ids, text, texts
from idumb.markdown.syntax import outline, tree
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map

# Backlog.md: `backlog/tasks/back-12 - Title.md`

_FINISHED = re.compile(r"done|completed?|closed|fertig", re.IGNORECASE)
_CRITERIA = re.compile(r"(?:acceptance criteria|definition of done)\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?:#\d+[ \t]+)+")
_PREFIX = re.compile(r"([a-z_]+)-(?=\d)", re.IGNORECASE)
_MOST_FILES = 10_000
_SHELVES = ("archive", "drafts")  # where Backlog.md keeps what nobody is to do
_DOCUMENTS = re.compile(r"(?:^|/)(?:docs|decisions|milestones)/")
_PRIORITIES = {"critical": "critical", "high": "high", "low": "low"}
_USUAL = ("to do", "in progress", "done")


def _is_backlog(file: SourceFile) -> bool:
    marked = re.search(r"<!-- (?:AC|SECTION:\w+):BEGIN -->", file.text) is not None
    is_usual = marked or any(map(file.front.has, ("assignee", "labels", "created_date")))
    return is_usual and file.front.has("id", "title", "status")


def _backlog(file: SourceFile, near: Near) -> SourcePlan:
    task = _of_file(file, _states(near))
    return SourcePlan(BACKLOG.kind, file.path, task.title, task.title, (task,) if task.id else ())


def backlog_folder(source: Sources) -> SourcePlan | None:
    """Return the tasks of a folder with one in each file; None if it has none."""
    names = [name for name in source.files if name.endswith(".md") and not name.startswith("../")]
    names = [name for name in names if not _DOCUMENTS.search(name)]
    if len(names) > _MOST_FILES:
        message = f"{source.path} has {len(names)} Markdown files; a phase can have {_MOST_FILES} tasks."
        raise InputError("import.unreadable", message, hint="Import a file, or a folder of fewer files")
    states = _states(source.near(""))
    tasks: list[SourceTask] = []
    for name in names:
        file = source.open(name)
        shelf = next((shelf for shelf in _SHELVES if f"/{shelf}/" in f"/{name}"), None)
        if file.front.last and file.front.node is None:
            file.note(1, "its front matter cannot be read")
        elif file.front.text("id") and file.front.text("title") and shelf is None:
            tasks.append(_of_file(file, states))
        elif file.front.has("id") or file.front.has("status") or "tasks" in file.path.split("/"):
            file.note(1, f"a task in {shelf}" if shelf else "no task: it has no id or no title")
    if not tasks:
        source.opened.clear()
        return None
    title = f"Tasks of {source.path}"
    ordered = tuple(sorted(tasks, key=lambda task: phases.natural(task.id)))
    return SourcePlan(BACKLOG.kind, source.path, title, title, ordered)


def _states(near: Near) -> tuple[str, ...]:
    """Return the statuses of the board; the last one means that a task is done. `backlog.config.yml` comes first."""
    files = sorted(near("*config.y*ml"), key=lambda file: not file.path.endswith("backlog.config.yml"))
    boards = (file.front.texts("statuses") for file in files)
    return next((tuple(map(str.casefold, states)) for states in boards if states), _USUAL)


def _of_file(file: SourceFile, states: tuple[str, ...]) -> SourceTask:
    """Return the task of one file. Its sections are text, except those of criteria."""
    front, file.lists_unread = file.front, True
    id, status = front.text("id"), front.text("status")
    prefix = _PREFIX.match(id)

    def full(text: str) -> str:  # Backlog.md takes a bare number too
        return f"{prefix[0]}{text}" if prefix is not None and text[:1].isdigit() else text

    file.references = References(rf"{re.escape(prefix[1])}-\d+(?:\.\d+)*" if prefix else r"\b(?!\d)\w+-\d+(?:\.\d+)*")
    done = status.casefold() == states[-1] or _FINISHED.fullmatch(status) is not None
    if status and not done and status.casefold() not in states:
        file.note(front.line(front.value("status")), f"the status {status} of {id}")
    done = done or posixpath.basename(posixpath.dirname(file.path)) == "completed"
    criteria, without = _criteria(file, done=done)
    lines = {*range(front.last + 1, len(file.outline.lines) + 1)} - without
    file.carry(lines)
    about = file.outline.text(front.last + 1, len(file.outline.lines) + 1, 0, without)
    for name in ("status", "dependencies", "parent_task_id", "parent", "subtasks"):
        file.use_value(front.value(name))
    line = front.line(front.value("dependencies"))
    stated = tuple(Need(full(each), file.path, line) for each in ids(front.value("dependencies")))
    told = file.needs(lines, id, 0)
    parts = tuple(map(full, ids(front.value("subtasks"))))
    named = front.texts("modified_files")
    found = () if named else signs.paths_in(about)
    parent = front.text("parent_task_id") or front.text("parent") or (id.rpartition(".")[0] if "." in id else "")
    return SourceTask(
        id, front.text("title"), re.sub(r"\n{3,}", "\n\n", about), done=done, needs=(*stated, *told),
        parent=full(parent), parts=parts, files=claims(named or found), acceptance=unproven(criteria),
        priority=_PRIORITIES.get(front.text("priority").lower(), "normal"),
        inferred=signs.inferred(found), path=file.path,
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
                file.used[item.line].discard(signs.BOX)
    return tuple(found), lines


BACKLOG = Format("backlog", signs.bare_id, _is_backlog, _backlog)


# task-master: `.taskmaster/tasks/tasks.json`, with or without tags. Subtasks become tasks before their parent.

_DONE = frozenset({"done", "completed"})
_STATES = _DONE | {"pending", "in-progress", "blocked", "review"}
_READ = ("status", "dependencies")


def _is_task_master(file: SourceFile) -> bool:
    is_json = file.text.lstrip().startswith("{") or file.path.endswith(".json")
    return is_json and re.search(r'"tasks"\s*:\s*\[', file.text) is not None


def task_master(file: SourceFile, _near: Near, tag: str = "") -> SourcePlan:
    """Read the tasks of a tag, by default of `master`, or the first with any. Raises ValueError for other JSON."""
    source = Source(file.text, file.path)
    root = tree.read_json(Text(file.text), source, "tasks")
    if not is_map(root) or source.any_error:
        problem = next(iter(source.findings), None)
        raise ValueError(f"line {problem.line}: {problem.message}" if problem else "it is not a JSON object")
    tags = {name.value: tasks for name, inner in root.pairs if is_list(tasks := tree.find(inner, "tasks"))}
    if tag and tag not in tags:
        raise ValueError(f"it has no tag {tag}" + (f", but {', '.join(tags)}" if tags else ""))
    tag = tag or max(tags, key=lambda name: (bool(tags[name].items), name == "master"), default="")
    rows = tags[tag] if tag else tree.find(root, "tasks")
    if not is_list(rows):
        raise ValueError("it has no list `tasks`")
    for name, tasks in tags.items():
        if name != tag and tasks.items:
            why = f"the tasks of the tag {name}; read them with --tag {shlex.quote(name)}"
            file.note(file.source.line_number(tasks.start), why)
    for holder in filter(is_map, (root, tree.find(root, tag))):
        for key, value in holder.pairs:
            if value is not rows and is_list(value) and any(map(is_map, value.items)):
                file.note(file.source.line_number(value.start), f"the list `{key.value}`")
    title = f"Tasks of task-master ({tag})" if tag else "Tasks of task-master"
    return SourcePlan(TASK_MASTER.kind, file.path, title, title, tuple(_tasks(file, rows, "")), (), tag)


def _tasks(file: SourceFile, rows: Node, parent: str) -> Iterator[SourceTask]:
    siblings = {_whole(text(row, "id"), parent) for row in rows.items} if parent else set()
    for row in rows.items:
        id = text(row, "id")
        if not id:
            file.note(file.source.line_number(row.start), f"a task without an id: {text(row, 'title') or row.value}")
            continue
        whole = _whole(id, parent)
        if is_list(parts := tree.find(row, "subtasks")):
            yield from _tasks(file, parts, whole)
        yield _task(file, row, whole, parent, siblings)


def _whole(id: str, parent: str) -> str:
    """Return an id in the list of a parent with that of the parent, which may be written before it."""
    return f"{parent}.{id}" if parent and not id.startswith(f"{parent}.") else id


def _task(file: SourceFile, row: Node, id: str, parent: str, siblings: set[str]) -> SourceTask:
    """Return a task or, with `parent`, a subtask, whose dependencies may be numbers of its siblings."""
    line = file.source.line_number(row.start)
    stated = ids(tree.find(row, "dependencies"))
    whole = (within if (within := _whole(each, parent)) in siblings else each for each in stated)
    files = tree.find(row, "relevantFiles")
    rows = files.items if is_list(files) else []
    named = [(text(each, "path") if is_map(each) else "".join(texts(each)), text(each, "action")) for each in rows]
    claimed = [FileClaim("read" if action == "reference" else CHANGE, path) for path, action in named if path]
    details = "\n\n".join(filter(None, (text(row, name) for name in ("description", "details", "testStrategy"))))
    status = (text(row, "status") or "pending").casefold().replace("_", "-")
    if status not in _STATES:
        file.note(line, f"the status {text(row, 'status')} of {id}")
    for key, value in row.pairs:
        said = ", ".join(texts(value))
        is_read = key.value in _READ or (key.value == "subtasks" and is_list(value))
        if not is_read and any(signs.in_front_matter(f"{key.value}: {said}")) and said != parent:
            file.note(file.source.line_number(key.start), f"{key.value} of {id}: {said}")
    found = () if claimed else signs.paths_in(details)
    return SourceTask(
        id, text(row, "title") or id, details, done=status in _DONE,
        needs=tuple(Need(each, file.path, line) for each in whole), parent=parent,
        files=tuple(claimed) or claims(found),
        acceptance=unproven(texts(tree.find(row, "acceptanceCriteria")) or texts(tree.find(row, "testStrategy"))),
        priority=_PRIORITIES.get(text(row, "priority"), "normal"),
        inferred=signs.inferred(found), path=file.path, line=line,
    )  # fmt: skip


TASK_MASTER = Format("task-master", str.strip, _is_task_master, task_master)
