"""A plan of another tool before it is a plan of idumb: its tasks with the ids and marks that the tool gave them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field

from idumb import lazy_pattern
from idumb.domain import canonical_json, paths
from idumb.domain.plans.plan import UNPROVEN, Plan, Task
from idumb.lazy_dataclass import dataclass

SOURCE_ID = "x-source-id"
SOURCE_DONE = "x-source-done"
SOURCE_DIGEST = "x-source-digest"
INFERRED = "x-inferred"
ORDER = "Depends on: order of the list"
"""What is inferred if a source states no dependencies: each task waits for the one before it."""
_DONE = "marked as done in the source; idumb did not witness it"
_RISKY = lazy_pattern.compile(
    r"[ \t]*(?:#|<|`{3}|~{3}|>|\[|-{3}|={3}|[-=]+[ \t]*$|[-*+](?:[ \t]|$)|\d+[.)]|\*\*|__|id[ \t]*:"
    r"|\W{0,3}T[\w.]*-?\d)|[ ]{4}|\t"
)
_FIELD = lazy_pattern.compile(r"- \*\*([\w -]+):\*\*")
_CLOSING = lazy_pattern.compile(r"(?:^|(?<=\s))[#\s]+$")  # ends a heading; in `C#` it is a letter
_COMMENT = lazy_pattern.compile(r"<!--|-->")
_MARK = lazy_pattern.compile(r"^([ \t]*[-*+][ \t]+)(?:\[[^\[\]]\]|\(done\))[ \t]*", re.MULTILINE)
_BOX = lazy_pattern.compile(r"^(?:(?:[-+*]\s*)?\[[^\]]{0,3}\]\s*)+")
_NUMBER = lazy_pattern.compile(r"[\[(*_`]*AC[-_ ]?\d|\W*T\d[\w.]*-\d", re.IGNORECASE)  # of a criterion or a task
_WORDS = r"(?:check|keeps?|verify|human|opinion)\b"
# A dash, brackets or a colon with one of these words would be a proof.
_PROOFS = (
    (lazy_pattern.compile(rf"\s*(?:—|–|--|(?<=\s)-)\s+(?={_WORDS})", re.IGNORECASE), ": "),
    (lazy_pattern.compile(rf"--(?={_WORDS})", re.IGNORECASE), "-"),
    (lazy_pattern.compile(r"\(\s*(verify|human|opinion)\s*\)", re.IGNORECASE), r"\1"),
    (lazy_pattern.compile(r"\b(check|keeps?)\s*:(?=\s*(?:`|$))|(?<=\()\s*(check|keeps?)\s*:", re.IGNORECASE), r"\1\2"),
)
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
        """Return a digest of what the import takes from the source, except its mark of progress and its place."""
        about = _MARK.sub(r"\1", self.description)
        stated = [] if ORDER in self.inferred else list(self.depends_on)
        content = [self.title, about, stated, list(self.files), list(self.criteria), list(self.checks)]
        return canonical_json.digest({"task": content})[:16]


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The plan of another tool at `path`. `unread` lists what was not understood, as (path, line, text).

    `tag` is the one that was read, if the file has several lists of tasks.
    """

    kind: str
    path: str
    title: str
    goal: str
    tasks: tuple[SourceTask, ...]
    unread: tuple[tuple[str, int, str], ...] = ()
    tag: str = ""


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
    title = _line(source.title) or source.path
    head = [
        "---",
        "type: plan",
        f"phase: {json.dumps(placed.phase)}",
        f"plan: {json.dumps(placed.plan)}",
        f"title: {json.dumps(title, ensure_ascii=False)}",
        f"goal: {json.dumps(_line(source.goal) or title, ensure_ascii=False)}",
        "x-source:",
        f"  tool: {json.dumps(source.kind)}",
        f"  path: {json.dumps(source.path, ensure_ascii=False)}",
        *([f"  tag: {json.dumps(source.tag, ensure_ascii=False)}"] if source.tag else []),
        "---",
        "",
        f"# Phase {placed.phase}: {_heading(title)}",
        "",
        f"Imported by `idumb import`. Fields named under {INFERRED} are guesses: correct them.",
        "",
        "## Tasks",
        "",
    ]
    return (
        "\n".join(head).replace("\0", "") + "\n" + "\n".join(task_text(task, placed, exists) for task in source.tasks)
    )


def task_text(task: SourceTask, placed: Placed, exists: Callable[[str], bool]) -> str:
    """Return one task in idumb's format."""
    needed = _needed(task, placed)
    lines = [f"### {placed.ids[task.id]}: {_heading(task.title)}", ""]
    lines += [_described(task.description), ""] if task.description.strip() else []
    lines += ["- **Kind:** human-action"] if task.by_person else []
    lines.append(f"- **Depends on:** {', '.join(needed) or 'none'}")
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
        lines += [line for command in task.checks for line in _command(command)]
    lines += [f"- **Priority:** {task.priority}"] if task.priority != "normal" else []
    lines.append(f"- **{SOURCE_ID}:** {_COMMENT.sub('', _line(task.id))}")
    lines += [f"- **{SOURCE_DONE}:** {_DONE}"] if task.done else []
    lines += [f"- **{INFERRED}:** {'; '.join(task.inferred)}"] if task.inferred else []
    lines.append(f"- **{SOURCE_DIGEST}:** {_recorded(task, needed)}")
    return "\n".join([*lines, ""]).replace("\0", "")


def _recorded(task: SourceTask, needed: Sequence[str]) -> str:
    """Return the digest of a task and, if its order decides what it waits for (`needed`), of that."""
    order = canonical_json.digest({"after": list(needed)})[:8] if ORDER in task.inferred else ""
    return f"{task.digest()}-{order}".rstrip("-")


def _needed(task: SourceTask, placed: Placed) -> list[str]:
    ids = (placed.ids[id] for id in task.depends_on if id in placed.ids and id != task.id)
    return list(dict.fromkeys(ids))


def pairs(plan: Plan, source: SourcePlan) -> dict[str, SourceTask]:
    """Return what the source has now for each imported task of a plan, by the task's id in the plan."""
    now = {task.id: task for task in source.tasks}
    return {task.id: now[id] for task in plan.tasks if (id := task.extra.get(SOURCE_ID)) in now}


def updated(
    text: str,
    plan: Plan,
    source: SourcePlan,
    placed: Placed,
    exists: Callable[[str], bool],
    completed: Collection[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return an imported plan after its source changed, and what changed.

    Title, description, dependencies and marks follow the source. Everything else, above all files and checks, stays as
    it is in the plan. New tasks are added at the end. Tasks that are `completed`, and tasks that the source no longer
    has, stay as they are.
    """
    found = pairs(plan, source)
    newline = "\r\n" if "\r\n" in text else "\n"
    known = {task.id for task in found.values()}
    added = [task for task in source.tasks if task.id not in known]
    changes = [f"{placed.ids[task.id]} is new in the source" for task in reversed(added)]
    if added:
        blocks = "\n".join(task_text(task, placed, exists) for task in added).rstrip("\n").replace("\n", newline)
        at = _end_of_tasks(text, plan)
        text = text[:at] + newline * 2 + blocks + text[at:]
    for task in reversed(plan.tasks):
        current = found.get(task.id)
        what = _change(task, current, placed)
        if not what or (task.id in completed and current is not None and what != _CHANGED):
            continue
        stays = current is None or task.id in completed
        changes.append(f"{task.id} {what}{'; it stays as it is' if stays else ''}")
        if current is None or stays or task.span is None:
            continue
        block = text[task.span.start : task.span.end]
        renewed = _renewed(block, current, placed, exists).replace("\n", newline)
        text = text[: task.span.start] + renewed + text[task.span.end :]
    return text, tuple(reversed(changes))


_CHANGED = "changed in the source"


def _change(task: Task, current: SourceTask | None, placed: Placed) -> str:
    """Say how a task differs from what the source has now; "" if it does not."""
    if SOURCE_ID not in task.extra:
        return ""
    if current is None:
        return "is no longer in the source"
    digest, order = current.digest(), _recorded(current, _needed(current, placed))
    if str(task.extra.get(SOURCE_DIGEST, "")).partition("-")[0] != digest:
        return _CHANGED
    if current.done != (SOURCE_DONE in task.extra):
        return "has another mark in the source"
    if task.extra.get(SOURCE_DIGEST) != order or task.extra[SOURCE_ID] != current.id:
        return "has another place in the source"
    return ""


def _end_of_tasks(text: str, plan: Plan) -> int:
    """Return where a task can be added: behind the last task and its steps, before the section that follows."""
    last = max((task.span.end for task in plan.tasks if task.span is not None), default=len(text))
    following = re.compile(r"\n## ").search(text, max(last - 1, 0))
    return len(text[: following.start() if following else len(text)].rstrip("\r\n"))


def _renewed(block: str, current: SourceTask, placed: Placed, exists: Callable[[str], bool]) -> str:
    """Return the text of a task with what the source gives now, and the fields that the plan has. Lines end with LF."""
    fresh = task_text(current, placed, exists).rstrip("\n").split("\n")
    begin = next(index for index, line in enumerate(fresh) if _FIELD.match(line))
    kept = block.replace("\r\n", "\n").split("\n")
    first = next((index for index, line in enumerate(kept) if _FIELD.match(line)), len(kept))
    values = {match[1]: line for line in fresh[begin:] if (match := _FIELD.match(line))}
    fields: list[str] = []
    for line in kept[first:]:
        match = _FIELD.match(line)
        name = match[1] if match else ""
        if name == SOURCE_DONE:
            continue
        fields.append(values[name] if name in (SOURCE_ID, SOURCE_DIGEST, "Depends on") else line)
        if name == SOURCE_ID and SOURCE_DONE in values:
            fields.append(values[SOURCE_DONE])
    return "\n".join([*fresh[:begin], *fields])


def missing(task: SourceTask) -> tuple[str, ...]:
    """Return what a person must add to the task before `check-plan` passes."""
    if task.by_person:
        return ()
    return (*(("files",) if not task.files else ()), *(("a check",) if not task.checks else ()))


def still_missing(task: Task) -> tuple[str, ...]:
    """Return the same for a task of a plan, to which a person may have added it."""
    if task.is_human:
        return ()
    proven = task.verify or task.steps or any(criterion.proof != UNPROVEN for criterion in task.acceptance)
    return (*(("files",) if not task.files else ()), *(("a check",) if not proven else ()))


def _line(words: str) -> str:
    return " ".join(words.split())


def _heading(words: str) -> str:
    """Return a title as a heading can hold it."""
    line = _CLOSING.sub("", _COMMENT.sub("", _line(words)).strip())
    return line[:_LONGEST_TITLE] or "Task"


def _criterion(words: str) -> str:
    """Return the text of a criterion without what a plan would read as a box, an id or a proof."""
    line = _COMMENT.sub("", _line(words)).strip()
    line = _BOX.sub("", line) or "It is done"
    before = ""
    while line != before:  # a word without its brackets may stand behind a dash
        before = line
        for pattern, instead in _PROOFS:
            line = pattern.sub(instead, line)
    return f"Criterion {line}" if _NUMBER.match(line) else line


def _command(command: str) -> list[str]:
    """Return a command as a bullet, or as a fence if it has several lines."""
    if "\n" in command or "``" in command:
        fence = "`" * max(3, _longest_run(command) + 1)
        return ["", *(f"  {line}".rstrip() for line in (f"{fence}sh", *command.split("\n"), fence)), ""]
    mark = "``" if "`" in command else "`"
    pad = " " if command.startswith("`") or command.endswith("`") else ""
    return [f"  - {mark}{pad}{command}{pad}{mark}"]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _described(description: str) -> str:
    """Return a description as text; in a fence if a line of it could be read as data."""
    body = _COMMENT.sub("", description).strip("\n").rstrip()
    if not any(map(_RISKY.match, body.split("\n"))):
        return body
    mark = "`" * max(3, _longest_run(body) + 1)
    return f"{mark}text example\n{body}\n{mark}"
