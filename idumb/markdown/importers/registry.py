"""The formats that `idumb import` reads, the most specific first, and what every one of them has in common."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from idumb.domain.action import Action
from idumb.domain.errors import InputError
from idumb.domain.plans import source_tasks
from idumb.domain.plans.source_tasks import SourcePlan, SourceTask
from idumb.markdown.importers import (
    backlog,
    checklist,
    cursor,
    gsd,
    openspec,
    spec_kit,
    spec_kitty,
    task_master,
)
from idumb.markdown.importers.source_file import Near, SourceFile
from idumb.markdown.plans import phase_names


class Format(Protocol):
    """A module for one format. `key` is equal for ids that the tool equates."""

    KIND: str

    def key(self, id: str, /) -> str: ...

    def matches(self, file: SourceFile, /) -> bool: ...

    def read(self, file: SourceFile, near: Near, /) -> SourcePlan: ...


FORMATS: tuple[Format, ...] = (task_master, spec_kitty, cursor, backlog, spec_kit, openspec, gsd, checklist)
KINDS = (*(each.KIND for each in FORMATS), "claude")
_MOST_FILES = 10_000
_SHELVES = ("archive", "drafts")  # where Backlog.md keeps what nobody is to do
# What a folder of a tool is imported from.
_FILES = ("tasks.md", "tasks/tasks.json", "tasks.json", "tasks", "PLAN.md", "TODO.md")


class Source:
    """The file or folder at `path`: `files` are its texts by name, "" for the file itself; `opened` are those read."""

    def __init__(self, path: str, files: Mapping[str, str]) -> None:
        self.path, self.files = path, files
        self.folder = posixpath.dirname(path) if "" in files else path
        self.opened: dict[str, SourceFile] = {}

    def open(self, name: str) -> SourceFile:
        if name not in self.opened:
            path = posixpath.normpath(posixpath.join(self.folder, name)) if name else self.path
            self.opened[name] = SourceFile(path, self.files[name])
        return self.opened[name]

    def near(self, folder: str) -> Near:
        """Return a function that opens the files beside one in a folder."""
        return lambda pattern: [
            self.open(n) for n in sorted(self.files) if fnmatch.fnmatchcase(n, f"{folder}{pattern}")
        ]


def read(path: str, files: Mapping[str, str], kind: str | None, tag: str = "") -> SourcePlan:
    """Read the file at `path`, or the folder: `files` are their texts by name, "" for the file itself.

    `tag` chooses one of several lists in a file. InputError `import.unknown-format` if no format fits,
    `import.unreadable` if the file is damaged or has no such list.
    """
    return opened(Source(path, files), kind, tag)


def opened(source: Source, kind: str | None = None, tag: str = "") -> SourcePlan:
    """Do the same for a source, which then knows what was used."""
    names = [name for name in ("", *_FILES) if name in source.files]
    if not names and kind in (None, backlog.KIND) and (tasks := _one_in_each_file(source)):
        title = f"Tasks of {source.path}"
        return _finished(source, SourcePlan(backlog.KIND, source.path, title, title, tasks), backlog)
    plans = names[:1] or sorted((name for name in source.files if name.endswith("PLAN.md")), key=phase_names.natural)
    if len(plans) == 1:
        return _read(source, plans[0], kind, tag)
    why = f"has {len(plans)} plans: import one of them" if plans else "names no plan of a known tool"
    raise _unknown(source.path, why)


def _one_in_each_file(source: Source) -> tuple[SourceTask, ...]:
    """Return the tasks of a folder with one in each file."""
    names = [name for name in source.files if name.endswith(".md") and not name.startswith("../")]
    if len(names) > _MOST_FILES:
        message = f"{source.path} has {len(names)} Markdown files; a phase can have {_MOST_FILES} tasks."
        raise InputError("import.unreadable", message, hint="Import a file, or a folder of fewer files")
    last = backlog.last_state(source.near("")("config.y*ml") or source.near("../")("config.y*ml"))
    tasks: list[SourceTask] = []
    for name in names:
        file = source.open(name)
        shelf = next((shelf for shelf in _SHELVES if f"/{shelf}/" in f"/{name}"), None)
        if file.front.last and file.front.node is None:
            file.note(1, "its front matter cannot be read")
        elif backlog.is_task(file) and shelf is None:
            tasks.append(backlog.of_file(file, last))
        elif file.front.any("id", "status"):
            file.note(1, f"a task in {shelf}" if shelf else "no task: it has no id or no title")
    return tuple(sorted(tasks, key=lambda task: phase_names.natural(task.id)))


def _read(source: Source, name: str, kind: str | None, tag: str) -> SourcePlan:
    file = source.open(name)
    found = format_of(file, kind)
    file.is_swept = found is not task_master
    if tag and found is not task_master:
        raise _unknown(file.path, "has no tags: only files of task-master have", hint="Omit --tag")
    folder = posixpath.dirname(name)
    near = source.near(folder + "/" if folder else "")
    try:
        plan = task_master.read(file, near, tag) if tag else found.read(file, near)
    except ValueError as problem:
        raise _damaged(file.path, str(problem)) from problem
    if not plan.tasks:
        raise _unknown(file.path, "has no tasks that idumb can read")
    return _finished(source, plan, found)


def _finished(source: Source, plan: SourcePlan, found: Format) -> SourcePlan:
    """Return the plan with what each task waits for, and with what was not read.

    InputError for a text that no file can hold: escapes of JSON and YAML can name half of a character.
    """
    try:
        texts = [text for task in plan.tasks for text in (task.id, task.title, task.description)]
        texts += [criterion.text for task in plan.tasks for criterion in task.criteria]
        "".join([plan.title, *texts]).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise _damaged(plan.path, "a text has half of a surrogate pair") from problem
    plan = source_tasks.resolved(plan, found.key)
    unread = (row for file in source.opened.values() for row in file.unread())
    return replace(plan, unread=tuple(sorted((*plan.unread, *unread), key=lambda row: row[:2])))


def _damaged(path: str, why: str) -> InputError:
    return InputError("import.unreadable", f"{path} cannot be read: {why}", hint=Action.of("import", "--help"))


def format_of(file: SourceFile, kind: str | None) -> Format:
    """Return the format of a file; InputError `import.unknown-format` if none fits."""
    wanted = "checklist" if kind == "claude" else kind
    for each in FORMATS:
        if wanted == each.KIND or (wanted is None and each.matches(file)):
            return each
    raise _unknown(file.path, "is in no format that idumb imports")


def tool(path: str, text: str) -> str | None:
    """Return the tool whose format a text has, if idumb can only import it."""
    file = SourceFile(path, text)
    return next((each.KIND for each in FORMATS if each not in (gsd, checklist) and each.matches(file)), None)


def _unknown(path: str, why: str, hint: str = f"Name the format: --from {'|'.join(KINDS)}") -> InputError:
    return InputError("import.unknown-format", f"{path} {why}.", hint=hint)
