"""A task in a person's words, before it is part of a plan: title, files, and the command that proves it.

Quick plans have one such task. The phase of the third is `Q3`, its task `TQ3-01`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from idumb.domain import paths, wording
from idumb.domain.errors import InputError
from idumb.domain.plans.phase_ids import QUICK
from idumb.domain.plans.plan import FILE_VERBS, FileClaim

_SEPARATOR = re.compile(r",\s*(?![^{}]*\})")  # not in src/{a,b}.py
QUICK_PLAN = "01-PLAN.md"
LONGEST_TITLE = 100
_LONGEST_SLUG = 40
ANYTHING = ("create", "modify", "delete")
ANYWHERE = tuple(FileClaim(verb, "**") for verb in ANYTHING)
"""The claims of a task without named files; a person reviews its changes."""


class NewTask(Struct, frozen=True):
    """`files` is written as under Files in a plan; a path without a verb is modified if it exists, else created."""

    title: str
    files: str
    check: str


class PlacedTask(Struct, frozen=True):
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
    read = () if text.strip().casefold() in ("", "none") else _claims(text)
    return tuple(claim if claim.verb else replace(claim, verb=_verb(exists(claim.path))) for claim in read)


def named(texts: Iterable[str], exists: Callable[[str], bool], at: Callable[[str], str]) -> tuple[FileClaim, ...]:
    """Return what may be done to named files; `at` returns the path of the repository that a path means.

    `a.py, create b.py` is read as in a plan, unless it is the name of a file. A path alone is modified if it exists,
    else created; behind a wildcard, and in a folder, anything may be done.
    """
    rows: list[FileClaim] = []
    for text in dict.fromkeys(texts):
        for claim in [FileClaim("", text)] if exists(at(text)) else _claims(text):
            path, target = at(claim.path), claim.target and at(claim.target)
            any_verb = ANYTHING if paths.has_wildcard(path) else (_verb(exists(path)),)
            rows += (FileClaim(verb, path, target) for verb in ([claim.verb] if claim.verb else any_verb))
    return tuple(rows)


def _verb(exists: bool) -> str:  # noqa: FBT001
    return "modify" if exists else "create"


def parse_claim(text: str) -> FileClaim:
    """Parse `modify src/x.py` or `move a to b`. Raises InputError `amend.bad-claim` for anything else."""
    verb, _, rest = text.strip().partition(" ")
    return _claim(verb, rest, text)


def _claims(text: str) -> Iterator[FileClaim]:
    """Yield the claims; the verb of a path alone is ""."""
    verb = ""
    for part in _SEPARATOR.split(text.strip()):
        first, _, rest = part.partition(" ")
        verb, rest = (first, rest) if first in FILE_VERBS else (verb, part)
        yield _claim(verb, rest, text) if verb or not part else FileClaim("", part.strip("`"))


def _claim(verb: str, words: str, text: str) -> FileClaim:
    path, _, target = words.partition(" to ") if verb == "move" else (words, "", "")
    path, target = path.strip().strip("`"), target.strip().strip("`")
    if verb not in FILE_VERBS or not path or (verb == "move") != bool(target):
        raise InputError(
            "amend.bad-claim", f"{text!r} does not name files: write a verb and a path, with commas between several.",
            hint=f"write {', '.join(FILE_VERBS)} before the paths, such as 'create a.py, modify b.py' or 'move a to b'",
        )  # fmt: skip
    return FileClaim(verb, path, target or None)


def placed(
    tasks: Sequence[NewTask], ids: Sequence[str], first_depends_on: tuple[str, ...], exists: Callable[[str], bool]
) -> tuple[PlacedTask, ...]:
    """Return the tasks in order: each depends on the one before it, the first one on `first_depends_on`."""
    rows: list[PlacedTask] = []
    created: set[str] = set()

    def exists_by_then(path: str) -> bool:
        return path in created or exists(path)

    for id, task in zip(ids, tasks, strict=True):
        depends_on = (rows[-1].id,) if rows else first_depends_on
        rows.append(PlacedTask(id, task, depends_on, claims(task.files, exists_by_then)))
        created.update(claim.path for claim in rows[-1].claims if claim.verb == "create")
    return tuple(rows)


class QuickRequest(Struct, frozen=True):
    """A quick plan: one task that a person describes on the command line.

    `files` is None if no files were named. `check` is the command that proves the task, `builder`
    the name of a binding; None for the configuration's builder.
    """

    words: str
    files: tuple[FileClaim, ...] | None = None
    check: str | None = None
    builder: str | None = None

    @property
    def title(self) -> str:
        """The words on one line, truncated to the length of a heading."""
        return wording.short(" ".join(self.words.split()), LONGEST_TITLE)


def quick_folder(number: int, words: str) -> str:
    """Return the folder of the plan, relative to the repository's root: `.planning/quick/003-fix-the-typo`."""
    import unicodedata  # only quick plans need it

    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    slug = "-".join(re.findall("[a-z0-9]+", plain))[:_LONGEST_SLUG].strip("-")
    return QUICK.folder(number, slug)


def quick_text(phase: str, request: QuickRequest) -> str:
    """Return the text of the plan. It depends on the request alone, so that you can approve it before it is written."""
    task: dict[str, object] = {"id": f"T{phase}-01", "title": request.title}
    if " ".join(request.words.split()) != request.title:
        task["description"] = request.words.strip()
    task["files"] = by_verb(ANYWHERE if request.files is None else request.files)
    task["acceptance"] = _acceptance(request)
    if request.builder is not None:
        task["builder"] = request.builder
    return plan_text({"phase": phase, "plan": "01", "title": request.title, "goal": request.title}, [task])


def _acceptance(request: QuickRequest) -> list[dict[str, object]]:
    done = f"It is done: {request.title}"
    checked: list[dict[str, object]] = [{"text": done, "check": request.check}] if request.check else []
    if request.files is None:
        return [*checked, {"text": f"What changed is what should change: {request.title}", "human": True}]
    words = "Something changed, and only in the declared files; nothing proves more"
    return checked or [{"text": words, "changed": True}]


def plan_text(head: Mapping[str, str], tasks: Iterable[Mapping[str, object]]) -> str:
    """Return the text of a plan with these keys and tasks, which are YAML.

    A JSON value is valid YAML, so no word of a person becomes syntax.
    """
    lines = ["---", "type: plan", *_yaml(head), "---", "", "## Tasks"]
    for task in tasks:
        lines += ["", "```yaml task", *_yaml(task), "```"]
    return "\n".join([*lines, ""])


def _yaml(values: Mapping[str, object]) -> Iterator[str]:
    return (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def by_verb(files: Iterable[FileClaim]) -> dict[str, list[str]]:
    """Return claims as a YAML task has them."""
    claims: dict[str, list[str]] = {}
    for claim in files:
        claims.setdefault(claim.verb, []).append(claim.paths if claim.target else claim.path)
    return claims
