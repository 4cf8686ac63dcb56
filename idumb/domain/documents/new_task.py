"""A task in a person's words, before it is part of a plan: title, files, and the command that proves it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from idumb.domain import amendment, paths
from idumb.domain.errors import InputError
from idumb.domain.plans import quick_plan
from idumb.domain.plans.plan import FILE_VERBS, FileClaim
from idumb.lazy_dataclass import dataclass

_SEPARATOR = re.compile(r",\s*")


@dataclass(frozen=True, slots=True)
class NewTask:
    """`files` is written as under Files in a plan; a path without a verb is modified if it exists, else created."""

    title: str
    files: str
    check: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A new task in its place in a plan: its id, the ids that it depends on, and what it does to which file."""

    id: str
    task: NewTask
    depends_on: tuple[str, ...]
    claims: tuple[FileClaim, ...]


def problem(task: NewTask) -> str | None:
    """Return why a task cannot be written as it is; None if it can."""
    if not task.title.strip():
        return "A task needs a title."
    if not task.check.strip():
        return f"The task {task.title!r} needs a command that proves it."
    if not task.check.isprintable():
        return f"The check of {task.title!r} must be one line without control characters."
    return None


def claims(text: str, exists: Callable[[str], bool]) -> tuple[FileClaim, ...]:
    """Read `create a.py, b.py, modify c.py`: a verb applies to the paths after it. `none` and "" declare no file.

    Raises InputError `amend.bad-claim` for a verb without a path.
    """
    return () if text.strip().casefold() in ("", "none") else tuple(_claims(text, exists))


def named(texts: Iterable[str], exists: Callable[[str], bool], at: Callable[[str], str]) -> tuple[FileClaim, ...]:
    """Return what may be done to named files; `at` returns the path of the repository that a path means.

    `create a.py, b.py` is read as in a plan. A path alone is modified if it exists, else created; behind a wildcard,
    and in a folder, anything may be done.
    """
    rows: list[FileClaim] = []
    for text in dict.fromkeys(texts):
        path = at(text)
        if text.partition(" ")[0] in FILE_VERBS and " " in text.strip() and not exists(path):
            read = claims(text, lambda path: exists(at(path)))
            rows += (replace(claim, path=at(claim.path), target=claim.target and at(claim.target)) for claim in read)
        elif paths.has_wildcard(path):
            rows += (FileClaim(verb, path) for verb in quick_plan.ANYTHING)
        else:
            rows.append(FileClaim("modify" if exists(path) else "create", path))
    return tuple(rows)


def _claims(text: str, exists: Callable[[str], bool]) -> Iterator[FileClaim]:
    verb = ""
    for part in _SEPARATOR.split(text.strip()):
        first = part.partition(" ")[0]
        if first in FILE_VERBS:
            verb = first
            yield amendment.parse_claim(part)
        elif verb == "move" or not part:
            raise _bad(text)
        else:
            path = part.strip("`")
            yield FileClaim(verb or ("modify" if exists(path) else "create"), path)


def _bad(text: str) -> InputError:
    return InputError(
        "amend.bad-claim",
        f"{text!r} does not name files: separate them by commas.",
        hint="write create, modify, delete, read or move before the paths, such as 'create a.py, modify b.py'",
    )


def placed(
    tasks: Sequence[NewTask],
    ids: Sequence[str],
    first_depends_on: tuple[str, ...],
    exists: Callable[[str], bool],
) -> tuple[Placed, ...]:
    """Return the tasks in order: each depends on the one before it, the first one on `first_depends_on`."""
    rows: list[Placed] = []
    created: set[str] = set()

    def exists_by_then(path: str) -> bool:
        return path in created or exists(path)

    for id, task in zip(ids, tasks, strict=True):
        depends_on = (rows[-1].id,) if rows else first_depends_on
        rows.append(Placed(id, task, depends_on, claims(task.files, exists_by_then)))
        created.update(claim.path for claim in rows[-1].claims if claim.verb == "create")
    return tuple(rows)
