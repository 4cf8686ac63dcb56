"""Tasks and plans of another format, before they become tasks and plans of a contract.

The readers of the formats make drafts; `tasks_of` turns them into tasks, with ids, claims and proofs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.domain.plans.plan import (
    BUILD,
    CHECK,
    HUMAN,
    HUMAN_KINDS,
    UNPROVEN,
    VERIFY,
    Criterion,
    FileClaim,
    Option,
    Span,
    Task,
)
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax.problems import Problems

Part = tuple[str, int]
"""A text and its offset."""

CHANGE = "change"
_MAY_CHANGE = frozenset({"", "new", "create", "created", "edit", "edits", "modify", "modified", "update", "updated"})
_NOTHING = lazy_pattern.compile(r"(?:n/?a|none|no files?|nothing|-+|—)(?:$|[\s.,:;(—–-])", re.IGNORECASE)
_BULLET = lazy_pattern.compile(r"^(?:[-*+]|\d+[.)])\s+")
_VERB = lazy_pattern.compile(
    r"(create|modify|delete|remove|read|inspect|edit|update|new|add|test)\s*:?\s+(?=\S)", re.IGNORECASE
)
# A word or two before a path in backticks, such as `Optional:` or `Create/Modify:`.
_LABEL = lazy_pattern.compile(r"\(?[A-Za-z][\w/, -]{0,40}[):]?\s+(?=`(?:[^`\s(]*/[^`\s(]*|[^`\s(]*\.[A-Za-z]\w{0,5})`)")
_VERBS = {"delete": "delete", "remove": "delete", "read": "read", "inspect": "read"}
_BETWEEN = lazy_pattern.compile(r"(?<=`)\s+(?:/|&|\+|and|or)\s+(?=`)")
_BACKWARD_NOTE = lazy_pattern.compile(r"\s*\)([^()]*)\(\s+")  # in brackets at the end of a text, read from its end
_REMARK = lazy_pattern.compile(r"(?<!\s)\s+(?:—|–|--?|#)\s")
_DELETED = frozenset({"delete", "deleted", "remove", "removed"})
_NUMBER = lazy_pattern.compile(r"[A-Za-z]{0,6}(\d+)([a-z]?)", re.ASCII)
_ABOUT = lazy_pattern.compile(r"(?<=\S)\s+(?:—|–|--)\s")
_TASK_ID = lazy_pattern.compile(r"T[\w.]+-\d{2,9}[a-z]?")
_is_protected = paths.cover(paths.ALWAYS_PROTECTED)
_PLACE = lazy_pattern.compile(r":\d+(?:-\d+)?$")


@dataclass(slots=True)
class CriterionDraft:
    """`proof` None: proven by the commands of the task if it has any."""

    text: str
    at: int
    proof: str | None = None
    command: str | None = None
    instructions: tuple[str, ...] = ()


@dataclass(slots=True)
class TaskDraft:
    """One task as its author wrote it.

    - `id`: the author's id, "" if the format has none. `depends_on` None: after the task before it.
    - `files` None: the task does not say which files it changes.
    - `commands`: executable checks.
    """

    start: int
    end: int
    title: str
    kind: str = BUILD
    id: str = ""
    description: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    files: list[Part] | None = None
    criteria: list[CriterionDraft] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    depends_on: list[Part] | None = None
    options: list[Option] = field(default_factory=list)
    estimate: int | None = None
    priority: str = "normal"
    notation: str = "heading"
    notes: list[str] = field(default_factory=list)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)


_KINDS = {
    "": BUILD,
    "auto": BUILD,
    "execute": BUILD,
    "tdd": BUILD,
    "checkpoint:human-verify": "human-verify",
    "checkpoint:decision": "decision",
    "checkpoint:human-action": "human-action",
}


def kind_of(type: str, at: int, problems: Problems) -> str:
    """Return the kind of a task from the type that its author wrote; an unknown one is reported."""
    kind = _KINDS.get(type.strip().casefold())
    if kind is not None:
        return kind
    kind = "human-action" if type.startswith("checkpoint") else BUILD
    problems.warning(
        "dialect.unknown-type",
        at,
        f"idumb does not know the task type `{type}` and reads the task as {kind}",
        field="type",
        found=type,
        fix="use " + ", ".join(name for name in _KINDS if name),
    )
    return kind


def tasks_of(
    drafts: Sequence[TaskDraft],
    prefix: str,
    problems: Problems,
    requirements: Iterable[str] = (),
    files_of_plan: Sequence[Part] = (),
) -> tuple[Task, ...]:
    """Return the tasks in document order. `prefix` begins the ids of tasks whose own id cannot serve."""
    ids = _ids(drafts, prefix)
    by_own = {own: id for draft, id in zip(drafts, ids, strict=True) if (own := draft.id.casefold())}
    tasks: list[Task] = []
    for draft, id in zip(drafts, ids, strict=True):
        before = (tasks[-1].id,) if tasks else ()
        needed = before if draft.depends_on is None else _dependencies(draft, by_own, problems)
        tasks.append(_task(draft, id, needed, tuple(requirements), files_of_plan, problems))
    return tuple(tasks)


def prefix(phase: str, plan: str) -> str:
    """Return how the ids of a plan's tasks begin: `T14-02` for plan 02 of phase 14; its third task is `T14-0203`."""
    numbers = []
    for piece in re.split(r"[._-]", plan):
        match = _NUMBER.fullmatch(piece)
        if match is None:
            return f"T{phase}-00"
        numbers.append(f"{match[1][-6:]:0>2}" + (f"{ord(match[2].lower()) - ord('a') + 51}" if match[2] else ""))
    return f"T{phase}-{''.join(numbers)}"


def _ids(drafts: Sequence[TaskDraft], prefix: str) -> list[str]:
    """Return the author's ids where all of them are task ids of the phase; otherwise number the tasks."""
    start = prefix.rpartition("-")[0] + "-"
    own = [draft.id for draft in drafts]
    pattern = re.compile(re.escape(start) + r"\d{2,9}[a-z]?", re.ASCII)
    if own and len(set(own)) == len(own) and all(pattern.fullmatch(id) for id in own):
        return own
    width = max(2, len(str(len(drafts))))
    return [f"{prefix}{number:0{width}d}" for number in range(1, len(drafts) + 1)]


def _dependencies(draft: TaskDraft, by_own: dict[str, str], problems: Problems) -> tuple[str, ...]:
    found: list[str] = []
    for text, at in draft.depends_on or ():
        known = by_own.get(text.casefold())
        if known is None and _TASK_ID.fullmatch(text):
            known = text  # of another plan of the phase, which knows its tasks
        if known is None:
            problems.error(
                "task.unknown-dependency",
                at,
                f"`{text}` is not a task of this plan",
                field="Depends on",
                found=text,
                accepted=", ".join(list(by_own)[:6]) or "none",
                fix="name a task of this plan, or write none",
            )
        elif known not in found:
            found.append(known)
    return tuple(found)


def _task(
    draft: TaskDraft,
    id: str,
    depends_on: tuple[str, ...],
    requirements: tuple[str, ...],
    files_of_plan: Sequence[Part],
    problems: Problems,
) -> Task:
    human = draft.kind in HUMAN_KINDS
    stated = draft.files if draft.files is not None else (list(files_of_plan) if files_of_plan and not human else None)
    files = None if stated is None else claims(stated, id, problems)
    criteria = _criteria(draft, problems, human=human)
    unproven = not human and all(c.proof == UNPROVEN for c in criteria)
    line = problems.source.line_of(draft.start) + 1
    return Task(
        id,
        draft.title,
        description="\n\n".join(filter(None, (text.strip("\n") for text in draft.description))),
        kind=draft.kind,
        requirements=requirements,
        depends_on=depends_on,
        files=files,
        acceptance=criteria,
        verify=tuple(draft.commands),
        # Nothing can prove it, so a further attempt is of no use: a person accepts the work or skips the task.
        on_failure="ask" if unproven else None,
        options=tuple(draft.options),
        estimate=draft.estimate,
        priority=draft.priority,
        references="\n\n".join(filter(None, draft.references)),
        notes="\n".join(draft.notes),
        extra={"x-source-id": draft.id} if draft.id and draft.id != id else {},
        notation=draft.notation,
        span=Span(draft.start, draft.end, line),
        spans={name: problems.source.span(*range) for name, range in draft.spans.items()},
    )


def _criteria(draft: TaskDraft, problems: Problems, *, human: bool) -> tuple[Criterion, ...]:
    unstated = [] if human else [CriterionDraft("The checks of this task pass", draft.start)]
    stated = draft.criteria or (unstated if draft.commands else [])
    if not stated and not human:
        stated = [CriterionDraft(draft.title, draft.start)]
    usual = HUMAN if human else VERIFY if draft.commands else UNPROVEN
    criteria = []
    for number, each in enumerate(stated, 1):
        line = problems.source.line_of(each.at) + 1
        span = Span(each.at, each.at, line)
        proof = each.proof or (CHECK if each.command else usual)
        criteria.append(Criterion(f"AC-{number}", each.text, proof, each.command, each.instructions, span))
    return tuple(criteria)


def claims(stated: Iterable[Part], task: str, problems: Problems) -> tuple[FileClaim, ...]:
    """Return the claims of paths separated by commas or lines. Unreadable ones are reported and not claimed."""
    found: dict[str, FileClaim] = {}
    for part in stated:
        for text, at in _split(part):
            claim = _claim(text, at, task, problems)
            if claim is not None:
                found.setdefault(claim.path, claim)
    return tuple(found.values())


def _split(part: Part) -> Iterable[Part]:
    text, start = part
    for match in re.finditer(r"[^\n]+", text):
        line, at = _ABOUT.split(match[0], maxsplit=1)[0], start + match.start()
        if _NOTHING.match(_BULLET.sub("", line.strip(), count=1)):
            continue
        line = _BETWEEN.sub(lambda found: ",".ljust(len(found[0])), line)
        if "(" not in line and "{" not in line:
            at_item = at
            for item in line.split(","):
                yield item, at_item
                at_item += len(item) + 1
            continue
        depth = begin = 0
        for index, char in enumerate(line + ","):
            depth += (char in "({") - (char in ")}")
            if (char == "," and depth <= 0) or index == len(line):
                yield line[begin:index], at + begin
                begin = index + 1


def _without_notes(text: str) -> tuple[str, list[str]]:
    """Return a line without a remark after a dash and without the notes in brackets at its end, and these notes."""
    remark, note = _REMARK.search(text), _BACKWARD_NOTE.match(text[::-1])
    if remark and not (note and len(text) - note.end() < remark.start()):
        text = text[: remark.start()]
    backward, notes, end = text[::-1], [], 0
    while note := _BACKWARD_NOTE.match(backward, end):
        notes.append(note[1][::-1].strip().casefold())
        end = note.end()
    return text[: len(text) - end], notes


def _claim(text: str, at: int, task: str, problems: Problems) -> FileClaim | None:
    at += len(text) - len(text.lstrip())
    path = _BULLET.sub("", text.strip(), count=1)
    if (
        not path
        or path.startswith("<!--")
        or path.strip("()").casefold() in _MAY_CHANGE
        or _NOTHING.fullmatch(path + " ")
    ):
        return None
    verb = CHANGE
    if stated := _VERB.match(path):
        verb = _VERBS.get(stated[1].lower(), CHANGE)
        path = path[stated.end() :]
    if label := _LABEL.match(path):
        path = path[label.end() :]
    quoted = re.match(r"\*{0,2}([`\"'])([^`\"']+)\1", path)
    rest = path[quoted.end() :] if quoted else path
    rest, notes = _without_notes(rest)
    if not _DELETED.isdisjoint(notes):
        verb = "delete"
    path = quoted[2] if quoted else rest.strip("*")
    path = _PLACE.sub("", path.strip()).removeprefix("./").rstrip(",;")
    problem = paths.problem(path) or ("contains a space" if re.search(r"\s", path) and not quoted else None)
    if problem is None and path.startswith(".") and _is_protected(path):
        problem = "belongs to idumb or git, and no task may write it"
    if problem is None and "/" not in path and not re.search(r"[.*]|^[A-Z][A-Za-z]*file$|^[A-Z]+$|^\w+$", path):
        problem = "does not look like a path"
    if problem is None:
        return FileClaim(verb, path)
    problems.warning(
        "dialect.unread-path",
        at,
        f"{task}: `{path}` {problem}, so the task does not declare it",
        field="files",
        found=text.strip(),
        fix="write paths of the repository, separated by commas",
    )
    return None
