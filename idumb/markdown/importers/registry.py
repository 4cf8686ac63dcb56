"""The formats that `idumb import` reads, the most specific first."""

from __future__ import annotations

import fnmatch
import functools
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from idumb.domain.errors import InputError
from idumb.domain.plans.imported import SourcePlan, SourceTask
from idumb.markdown.importers import (
    backlog,
    checklist,
    cursor,
    gsd,
    metadata,
    openspec,
    spec_kit,
    spec_kitty,
    task_master,
)

Sibling = Callable[[str], str | None]


class Format(Protocol):
    """A module for one format."""

    KIND: str

    def matches(self, path: str, text: str, /) -> bool: ...

    def read(self, path: str, text: str, sibling: Sibling, /) -> SourcePlan: ...


FORMATS: tuple[Format, ...] = (task_master, spec_kitty, cursor, backlog, spec_kit, openspec, gsd, checklist)
KINDS = (*(each.KIND for each in FORMATS), "claude")
_MOST_FILES = 10_000
_NO_VALUES = "its front matter cannot be read"
# What a folder of a tool is imported from.
_FILES = ("tasks.md", "tasks/tasks.json", "tasks.json", "tasks", "PLAN.md", "TODO.md")


def read(path: str, files: Mapping[str, str], kind: str | None, tag: str = "") -> SourcePlan:
    """Read the file at `path`, or the folder: `files` are their texts by name, "" for the file itself.

    `tag` chooses one of several lists in a file. InputError `import.unknown-format` if no format fits,
    `import.unreadable` if the file is damaged or has no such list.
    """
    if "" in files:
        return _read(path, files[""], kind, functools.partial(_first, files, ""), tag)
    for name in _FILES:
        if name in files:
            folder = posixpath.dirname(name)
            near = folder + "/" if folder else ""
            return _read(below(path, name), files[name], kind, functools.partial(_first, files, near), tag)
    tasks = _one_in_each_file(path, files) if kind in (None, backlog.KIND) else []
    if tasks:
        title = f"Tasks of {path}"
        ordered = tuple(sorted(tasks, key=lambda task: _natural(task.id)))
        return _checked(SourcePlan(backlog.KIND, path, title, title, ordered, _unread(path, files)))
    names = sorted((name for name in files if name.endswith("PLAN.md")), key=_natural)
    if len(names) == 1:
        return _read(below(path, names[0]), files[names[0]], kind, lambda _: None, tag)
    raise _unknown(
        path, "names no plan of a known tool" if not names else f"has {len(names)} plans: import one of them"
    )


def below(folder: str, name: str) -> str:
    """Return the path of a file in a folder; without `name`, the folder's own."""
    return posixpath.normpath(posixpath.join(folder, name))


def _one_in_each_file(path: str, files: Mapping[str, str]) -> list[SourceTask]:
    names = [name for name in files if name.endswith(".md")]
    if len(names) > _MOST_FILES:
        message = f"{path} has {len(names)} Markdown files, more than the {_MOST_FILES} tasks that a phase can have."
        raise InputError("import.unreadable", message, hint="Import a file, or a folder of fewer files")
    return [task for name in names if (task := backlog.task(files[name]))]


def _unread(path: str, files: Mapping[str, str]) -> tuple[tuple[str, int, str], ...]:
    """Return the files of a folder that would be tasks if their front matter could be read."""
    names = (name for name in files if name.endswith(".md") and files[name].startswith("---"))
    return tuple((below(path, name), 1, _NO_VALUES) for name in names if not metadata.read(files[name])[0])


def _read(path: str, text: str, kind: str | None, sibling: Sibling, tag: str) -> SourcePlan:
    found = format_of(path, text, kind)
    text = text.replace("\r\n", "\n")
    if tag and found is not task_master:
        raise _unknown(path, "has no tags: only files of task-master have", hint="Omit --tag")
    try:
        source = task_master.read(path, text, sibling, tag) if tag else found.read(path, text, sibling)
    except ValueError as problem:
        raise _damaged(path, str(problem)) from problem
    if not source.tasks:
        raise _unknown(path, "has no tasks that idumb can read")
    return _checked(source)


def _checked(source: SourcePlan) -> SourcePlan:
    """Return the plan with distinct ids. InputError for a text that no file can hold.

    Escapes of JSON and YAML can name half of a character.
    """
    try:
        words = "\0".join([source.title, source.goal, *(_words(task) for task in source.tasks)])
        words.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise _damaged(source.path, "a text has half of a surrogate pair") from problem
    return _distinct(source)


def _damaged(path: str, why: str) -> InputError:
    return InputError("import.unreadable", f"{path} cannot be read: {why}", hint="idumb import --help")


def _words(task: SourceTask) -> str:
    lists = (task.depends_on, task.files, task.criteria, task.checks)
    return "\0".join([task.id, task.title, task.description, *(words for each in lists for words in each)])


def _distinct(source: SourcePlan) -> SourcePlan:
    """Return the plan with ids that differ: of several tasks with one id, the later ones get a number."""
    if len({task.id for task in source.tasks}) == len(source.tasks):
        return source
    counts: Counter[str] = Counter()
    tasks = []
    for task in source.tasks:
        counts[task.id] += 1
        number = counts[task.id]
        tasks.append(task if number == 1 else replace(task, id=f"{task.id}~{number}"))
    repeated = tuple((source.path, 1, f"the id {id} of {n} tasks") for id, n in counts.items() if n > 1)
    return replace(source, tasks=tuple(tasks), unread=(*source.unread, *repeated))


def format_of(path: str, text: str, kind: str | None) -> Format:
    """Return the format of a file; InputError `import.unknown-format` if none fits."""
    wanted = "checklist" if kind == "claude" else kind
    for each in FORMATS:
        if wanted == each.KIND or (wanted is None and each.matches(path, text)):
            return each
    raise _unknown(path, "is in no format that idumb imports")


def _first(files: Mapping[str, str], folder: str, pattern: str) -> str | None:
    """Return the first text whose name in a folder fits the pattern."""
    names = (name for name in sorted(files) if fnmatch.fnmatchcase(name.removeprefix(folder), pattern))
    return next((files[name] for name in names), None)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part[:9]), "") if part.isdecimal() else (0, part) for part in re.findall(r"\d+|\D+", name)]


def _unknown(path: str, why: str, hint: str = f"Name the format: --from {'|'.join(KINDS)}") -> InputError:
    return InputError("import.unknown-format", f"{path} {why}.", hint=hint)
