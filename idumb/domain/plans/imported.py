"""A plan of another tool before it is a plan of idumb: its tasks with the ids and marks that the tool gave them."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from idumb.domain import canonical_json, paths
from idumb.domain.plans.plan import Plan

SOURCE_ID = "x-source-id"
SOURCE_DONE = "x-source-done"
SOURCE_DIGEST = "x-source-digest"
INFERRED = "x-inferred"
_DONE = "marked as done in the source; idumb did not witness it"
_RISKY = re.compile(r"[ \t]*(?:#|<|`{3}|~{3}|>|\[|-{3}|={3}|[-*+][ \t]|\d+[.)]|\*\*|__|id[ \t]*:)|[ ]{4}|\t")
_FIELD = re.compile(r"- \*\*([\w -]+):\*\*")
_COMMENT = re.compile(r"<!--|-->")
_MARK = re.compile(r"^([ \t]*[-*+][ \t]+)(?:\[[^\[\]]\]|\(done\))[ \t]*", re.MULTILINE)
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class SourceTask:
    """One task of another tool. `inferred` names what idumb guessed, with the reason.

    `depends_on` are ids of the source. `checks` are commands that the source marks as such.
    """

    id: str
    title: str
    description: str = ""
    done: bool = False
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    priority: str = "normal"
    by_person: bool = False
    inferred: tuple[str, ...] = ()

    def digest(self) -> str:
        """Return a digest of what the import takes from the source, except its mark of progress."""
        about = _MARK.sub(r"\1", self.description)
        content = [self.id, self.title, about, list(self.depends_on), list(self.files), list(self.criteria)]
        return canonical_json.digest({"task": [*content, list(self.checks)]})[:16]


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The plan of another tool at `path`. `unread` lists what was not understood, as (path, line, text)."""

    kind: str
    path: str
    title: str
    goal: str
    tasks: tuple[SourceTask, ...]
    unread: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """A source with tasks marked as done.

    - `files`: (path, text, text with the marks, ids whose marks change) of each file that changes.
    - `changed`: ids that are other tasks than the imported ones by now, or gone. `unclear`: ids of several tasks.
    """

    files: tuple[tuple[str, str, str, tuple[str, ...]], ...] = ()
    changed: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the plan goes, and the ids that its tasks have there, by their ids in the source."""

    phase: str
    plan: str
    ids: Mapping[str, str] = field(default_factory=dict)


def ids(phase: str, tasks: Sequence[SourceTask], own: Mapping[str, str], others: Iterable[str] = ()) -> dict[str, str]:
    """Return an id for every task: its `own` one, or the next number that is free beside those and `others`."""
    used = [int(match[1]) for id in (*own.values(), *others) if (match := re.search(r"-(\d+)[a-z]?$", id))]
    numbers = itertools.count(max(used, default=0) + 1)
    placed: dict[str, str] = {}
    for task in tasks:
        if task.id not in placed:
            placed[task.id] = own.get(task.id) or f"T{phase}-{next(numbers):02d}"
    return placed


def text(source: SourcePlan, placed: Placed, exists: Callable[[str], bool]) -> str:
    """Return the plan in idumb's format. `exists` says whether a file is there already."""
    head = [
        "---",
        "type: plan",
        f"phase: {json.dumps(placed.phase)}",
        f"plan: {json.dumps(placed.plan)}",
        f"title: {json.dumps(_line(source.title), ensure_ascii=False)}",
        f"goal: {json.dumps(_line(source.goal) or _line(source.title), ensure_ascii=False)}",
        "x-source:",
        f"  tool: {json.dumps(source.kind)}",
        f"  path: {json.dumps(source.path, ensure_ascii=False)}",
        "---",
        "",
        f"# Phase {placed.phase}: {_heading(source.title)}",
        "",
        f"Imported by `idumb import`. Fields named under {INFERRED} are guesses: correct them.",
        "",
        "## Tasks",
        "",
    ]
    return "\n".join(head) + "\n" + "\n".join(task_text(task, placed, exists) for task in source.tasks)


def task_text(task: SourceTask, placed: Placed, exists: Callable[[str], bool]) -> str:
    """Return one task in idumb's format."""
    needed = [placed.ids[id] for id in task.depends_on if id in placed.ids and id != task.id]
    lines = [f"### {placed.ids[task.id]}: {_heading(task.title)}", ""]
    lines += [_described(task.description), ""] if task.description.strip() else []
    lines += ["- **Kind:** human-action"] if task.by_person else []
    lines.append(f"- **Depends on:** {', '.join(dict.fromkeys(needed)) or 'none'}")
    files = [path for path in task.files if paths.problem(path) is None and "`" not in path]
    if files:
        lines.append("- **Files:**")
        lines += [
            f"  - {'modify' if exists(path) or paths.has_wildcard(path) else 'create'} `{path}`" for path in files
        ]
    lines.append("- **Acceptance:**")
    lines += [f"  - [ ] {_criterion(words)}" for words in task.criteria or (task.title,)]
    if task.checks:
        lines.append("- **Verify:**")
        lines += [f"  - {_code(command)}" for command in task.checks if "\n" not in command]
    lines += [f"- **Priority:** {task.priority}"] if task.priority != "normal" else []
    lines.append(f"- **{SOURCE_ID}:** {task.id}")
    lines += [f"- **{SOURCE_DONE}:** {_DONE}"] if task.done else []
    lines += [f"- **{INFERRED}:** {'; '.join(task.inferred)}"] if task.inferred else []
    lines.append(f"- **{SOURCE_DIGEST}:** {task.digest()}")
    return "\n".join([*lines, ""])


def moved(plan: Plan, source: SourcePlan) -> dict[str, str]:
    """Return the tasks of a plan that the source has under another id, with that id.

    Formats without ids number their tasks. An item above them would give each the files and checks of its neighbour.
    """
    titles = {task.id: _heading(task.title) for task in source.tasks}
    counts = Counter(titles.values())
    ids = {title: id for id, title in titles.items() if counts[title] == 1}
    return {
        task.id: ids[task.title]
        for task in plan.tasks
        if (id := task.extra.get(SOURCE_ID)) is not None
        and task.title in ids
        and ids[task.title] != id
        and titles.get(id) != task.title
    }


def updated(
    text: str, plan: Plan, source: SourcePlan, placed: Placed, exists: Callable[[str], bool]
) -> tuple[str, tuple[str, ...]]:
    """Return an imported plan after its source changed, and what changed.

    Title, description, dependencies and marks follow the source. Everything else, above all files and checks, stays as
    it is in the plan. New tasks are added at the end; tasks that the source no longer has stay.
    """
    by_id = {task.id: task for task in source.tasks}
    changes: list[str] = []
    for task in reversed(plan.tasks):
        current = by_id.pop(task.extra.get(SOURCE_ID, ""), None)
        if current is None:
            changes += [f"{task.id} is no longer in the source; it stays"] if SOURCE_ID in task.extra else []
            continue
        same = task.extra.get(SOURCE_DIGEST) == current.digest()
        if task.span is None or (same and current.done == (SOURCE_DONE in task.extra)):
            continue
        block = text[task.span.start : task.span.end]
        text = text[: task.span.start] + _renewed(block, current, placed, exists) + text[task.span.end :]
        changes.append(f"{task.id} changed in the source" if not same else f"{task.id}: its mark changed in the source")
    added = [task for task in source.tasks if task.id in by_id]
    changes += [f"{placed.ids[task.id]} is new in the source" for task in added]
    blocks = "\n".join(task_text(task, placed, exists) for task in added)
    at = max((task.span.end for task in plan.tasks if task.span is not None), default=len(text))
    at = len(text.rstrip("\n")) if not plan.tasks or at >= len(text.rstrip("\n")) else _end_of_tasks(text)
    return (text[:at] + "\n\n" + blocks.rstrip("\n") + text[at:] if added else text), tuple(reversed(changes))


def _end_of_tasks(text: str) -> int:
    """Return where the section of the tasks ends."""
    section = text.find("\n## Tasks")
    following = re.compile(r"\n## ").search(text, section + 1)
    return len(text[: following.start()].rstrip("\n")) if following else len(text.rstrip("\n"))


def _renewed(block: str, current: SourceTask, placed: Placed, exists: Callable[[str], bool]) -> str:
    """Return the text of a task with what the source gives now, and the fields that the plan has."""
    fresh = task_text(current, placed, exists).rstrip("\n").split("\n")
    begin = next(index for index, line in enumerate(fresh) if _FIELD.match(line))
    kept = block.split("\n")
    first = next((index for index, line in enumerate(kept) if _FIELD.match(line)), len(kept))
    values = {match[1]: line for line in fresh[begin:] if (match := _FIELD.match(line))}
    fields: list[str] = []
    for line in kept[first:]:
        match = _FIELD.match(line)
        name = match[1] if match else ""
        if name == SOURCE_DONE:
            continue
        fields.append(values[name] if name in (SOURCE_DIGEST, "Depends on") else line)
        if name == SOURCE_ID and SOURCE_DONE in values:
            fields.append(values[SOURCE_DONE])
    return "\n".join([*fresh[:begin], *fields])


def missing(task: SourceTask) -> tuple[str, ...]:
    """Return what a person must add to the task before `check-plan` passes."""
    if task.by_person:
        return ()
    return (*(("files",) if not task.files else ()), *(("a check",) if not task.checks else ()))


def _line(words: str) -> str:
    return " ".join(words.split())


def _heading(words: str) -> str:
    """Return a title as a heading can hold it."""
    line = _COMMENT.sub("", _line(words)).strip().rstrip("#").strip()
    return line[:_LONGEST_TITLE] or "Task"


def _criterion(words: str) -> str:
    """Return the text of a criterion; a dash with `check` or `human` after it would be a proof."""
    line = _COMMENT.sub("", _line(words)).strip() or "It is done"
    line = re.sub(r"^\[.?\]\s*", "", line)
    return re.sub(r"(—|–|--?)(\s+)(?=(?:check|keeps|verify|human|opinion)\b)", r"\2", line)


def _code(command: str) -> str:
    mark = "``" if "`" in command else "`"
    pad = " " if command.startswith("`") or command.endswith("`") else ""
    return f"{mark}{pad}{command}{pad}{mark}"


def _described(description: str) -> str:
    """Return a description as text; in a fence if a line of it could be read as data."""
    body = _COMMENT.sub("", description).strip("\n").rstrip()
    if not any(map(_RISKY.match, body.split("\n"))):
        return body
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}text example\n{body}\n{mark}"
