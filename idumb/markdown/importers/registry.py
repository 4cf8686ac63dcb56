"""The formats that `idumb import` reads, the most specific first; what they have in common; the files that it opens."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from idumb.domain import wording
from idumb.domain.action import Action
from idumb.domain.errors import InputError
from idumb.domain.plans import source_tasks
from idumb.domain.plans.source_tasks import SourcePlan
from idumb.markdown import phases
from idumb.markdown.importers import task_managers
from idumb.markdown.importers.agent_plans import CHECKLIST, CURSOR, GSD
from idumb.markdown.importers.source_file import Format, SourceFile, Sources
from idumb.markdown.importers.spec_tools import OPENSPEC, SPEC_KIT, SPEC_KITTY
from idumb.markdown.importers.task_managers import BACKLOG, TASK_MASTER
from idumb.markdown.syntax.source import decoded

_FORMATS = (TASK_MASTER, SPEC_KITTY, CURSOR, BACKLOG, SPEC_KIT, OPENSPEC, GSD, CHECKLIST)
KINDS = (*(each.kind for each in _FORMATS), "claude")
# What a folder of a tool is imported from.
_PLAN = re.compile(r"PLAN\.md\Z|\Atasks/.*\.md\Z")
_FILES = ("tasks.md", "tasks/tasks.json", "tasks.json", "tasks", "PLAN.md", "TODO.md")


def read(path: str, files: Mapping[str, str], kind: str | None, tag: str = "") -> SourcePlan:
    """Read the file at `path`, or the folder: `files` are their texts by name, "" for the file itself.

    `tag` chooses one of several lists in a file. InputError `import.unknown-format` if no format fits,
    `import.unreadable` if the file is damaged or has no such list.
    """
    return opened(Sources(path, files), kind, tag)


def opened(source: Sources, kind: str | None = None, tag: str = "") -> SourcePlan:
    """Do the same for a source, which then knows what was used."""
    names = [name for name in ("", *_FILES, "wps.yaml") if name in source.files]
    if not names and kind in (None, BACKLOG.kind) and (plan := task_managers.backlog_folder(source)):
        return _finished(source, plan, BACKLOG)
    known = (name for name in source.files if _PLAN.search(name) or posixpath.basename(name) in _FILES)
    every = sorted(known, key=lambda name: ("archive/" in name, phases.natural(name)))
    plans = names[:1] or [name for name in every if "/" not in name] or every
    if len(plans) == 1:
        plan = _read(source, plans[0], kind, tag)
        others = (posixpath.normpath(f"{source.path}/{name}") for name in every if name not in {"", *source.opened})
        rows = ((path, 1, "a file of its own; import it alone") for path in others if plans != [""])
        return replace(plan, unread=(*plan.unread, *rows))
    why = f"has {len(plans)} plans: {wording.listed(plans)}" if plans else "names no plan of a known tool"
    raise _unknown(source.path, why, posixpath.join(source.path, plans[0] if plans else "FILE"))


def _read(source: Sources, name: str, kind: str | None, tag: str) -> SourcePlan:
    file = source.open(name)
    if file.front.text("type") == "plan" and file.front.has("title", "goal"):
        words, hint = f"{file.path} is a plan of idumb.", Action.of("check-plan", file.path)
        raise InputError("import.unknown-format", words, hint=hint)
    found = _format_of(file, kind)
    file.lists_unread = found is not TASK_MASTER
    if tag and found is not TASK_MASTER:
        raise _unknown(file.path, "has no tags: only files of task-master have", file.path)
    folder = posixpath.dirname(name)
    near = source.near(folder + "/" if folder else "")
    try:
        plan = task_managers.task_master(file, near, tag) if tag else found.read(file, near)
    except ValueError as problem:
        raise _damaged(file.path, str(problem)) from problem
    if not plan.tasks:
        raise _unknown(file.path, "has no tasks that idumb can read")
    return _finished(source, plan, found)


def _finished(source: Sources, plan: SourcePlan, found: Format) -> SourcePlan:
    """Return the plan with what each task waits for, and with what was not read.

    InputError for a text that no file can hold: escapes of JSON and YAML can name half of a character.
    """
    try:
        texts = [text for task in plan.tasks for text in (task.id, task.title, task.description)]
        texts += [criterion.text for task in plan.tasks for criterion in task.acceptance]
        "".join([plan.title, *texts]).encode()
    except UnicodeEncodeError as problem:
        raise _damaged(plan.path, "a text has half of a surrogate pair") from problem
    plan = source_tasks.resolved(plan, found.key)
    unread = (row for file in source.opened.values() for row in file.unread())
    return replace(plan, unread=tuple(sorted((*plan.unread, *unread), key=lambda row: row[:2])))


def _damaged(path: str, why: str) -> InputError:
    return InputError("import.unreadable", f"{path} cannot be read: {why}", hint=Action.of("import", "--help"))


def _format_of(file: SourceFile, kind: str | None) -> Format:
    """Return the format of a file; InputError `import.unknown-format` if none fits."""
    wanted = "checklist" if kind == "claude" else kind
    for each in _FORMATS:
        if wanted == each.kind or (wanted is None and each.matches(file)):
            return each
    raise _unknown(file.path, "is in no format that idumb imports")


def foreign_tool(path: str, text: str) -> str | None:
    """Return the tool whose format a text has, if idumb can only import it."""
    file = SourceFile(path, text)
    return next((each.kind for each in _FORMATS if each not in (GSD, CHECKLIST) and each.matches(file)), None)


def _unknown(path: str, why: str, way: str = "") -> InputError:
    """Return the error for a path; without another path as a `way`, it asks for the format."""
    words = f"{path} {why}." if way else f"{path} {why}. KIND is one of {', '.join(KINDS)}."
    hint = Action.of("import", way) if way else Action.of("import", path, "--from", "KIND")
    return InputError("import.unknown-format", words, hint=hint)


# The files of a source in the working tree

_BOARDS = ("../config.y*ml", *("../" * up + "backlog.config.yml" for up in range(1, 5)))
_KITTY = ("tasks/**/*.md", "wps.yaml", "meta.json", "status.json", "*.jsonl", "../*.jsonl")
_BESIDE = ("proposal.md", ".openspec.yaml", "*SUMMARY.md", *_KITTY, "config.y*ml", *_BOARDS)


class FilesOnDisk(UserDict[str, str]):
    """The texts by name, "" for the file itself. A file is read when it is asked for, and as a whole.

    `read` returns the bytes of a file, or at least one more than a plan may have. A file that is larger, is not UTF-8
    or has a merge conflict is refused with InputError `import.unreadable`: a part of it would be imported as the whole.
    Raises OSError if a folder cannot be listed.
    """

    def __init__(self, root: str, path: str, read: Callable[[str], bytes]) -> None:
        super().__init__()
        self._read = read
        whole = os.path.join(root, path)
        folder = path if os.path.isdir(whole) else posixpath.dirname(path)
        names = _below(whole) if os.path.isdir(whole) else _neighbours(os.path.join(root, folder) if folder else root)
        self.data = {name: posixpath.join(folder, name) for name in names}
        self.data |= {} if os.path.isdir(whole) else {"": path}

    def __getitem__(self, name: str) -> str:
        path = self.data[name]
        source = decoded(self._read(path), path)
        for wrong in source.findings:
            hint = f"{wrong.fix[:1].upper()}{wrong.fix[1:]}, then import it again"
            raise InputError("import.unreadable", f"{wrong.place}: {wrong.message}.", hint=hint)
        return source.text


def _below(whole: str) -> Iterator[str]:
    """Yield the names of the files below a folder that a tool may write, without hidden folders."""
    for folder, folders, names in os.walk(whole, onerror=_fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = os.path.relpath(folder, whole).replace(os.sep, "/")
        for name in sorted(names):
            if name.endswith((".md", ".json", ".jsonl", ".yml", ".yaml")):
                yield name if below == "." else f"{below}/{name}"
    yield from (name for pattern in _BOARDS for name in glob.glob(pattern, root_dir=whole))


def _neighbours(folder: str) -> Iterator[str]:
    """Yield the names of the files beside one that say more about its plan."""
    for pattern in _BESIDE:
        yield from sorted(glob.glob(pattern, root_dir=folder, recursive=True))


def _fail(problem: OSError) -> None:
    raise problem
