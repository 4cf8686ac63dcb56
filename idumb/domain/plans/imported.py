"""Write the tasks of another tool as a plan of idumb, and follow its changes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from idumb.domain import canonical_json, paths, wording
from idumb.domain.plans.plan import HUMAN, SOURCE_DIGEST, SOURCE_DONE, UNPROVEN, Criterion, FileClaim, Plan, Task
from idumb.domain.plans.source_tasks import CHANGE, DONE, SOURCE_ID, SourcePlan, SourceTask, unproven

INFERRED = "x-inferred"
_FENCE = re.compile(r"^(`{3,})text example[ \t]*\r?\n(?s:.*?)^\1(?=[ \t]*\r?$)", re.MULTILINE)
_CLOSING = re.compile(r"(?:^|(?<=\s))[#\s]+$")  # ends a heading; in `C#` it is a letter
_COMMENT = re.compile(r"<!--|-->")
_BOX = re.compile(r"^(?:(?:[-+*]\s*)?\[[^\]]{0,3}\](?!\()\s*)+")
_NUMBER = re.compile(r"[\[(*_`]*AC[-_ ]?\d|\W*T\d[\w.]*-\d", re.IGNORECASE)  # of a criterion or a task
_WORDS = r"(?:check|keeps?|verify|human|opinion)\b"
# A dash, brackets or a colon with one of these words would be a proof.
_PROOFS = (
    (re.compile(rf"\s*(?:—|–|--|(?<=\s)-)\s+(?={_WORDS})", re.IGNORECASE), ": "),
    (re.compile(rf"--(?={_WORDS})", re.IGNORECASE), "-"),
    (re.compile(r"\(\s*(verify|human|opinion)\s*\)", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(check|keeps?)\s*:(?=\s*(?:`|$))|(?<=\()\s*(check|keeps?)\s*:", re.IGNORECASE), r"\1\2"),
)
_LONGEST_TITLE = 200


class Target(Struct, frozen=True):
    """Where the plan goes, and the ids that its tasks have there, by their ids in the source.

    `exists` says whether a file is there already.
    """

    phase: str
    plan: str
    ids: Mapping[str, str]
    exists: Callable[[str], bool]


def ids(phase: str, tasks: Sequence[SourceTask], own: Mapping[str, str], others: Iterable[str] = ()) -> dict[str, str]:
    """Return an id for every task: its `own` one, or the next number that is free beside those and `others`."""
    used = [int(match[1]) for id in (*own.values(), *others) if (match := re.search(r"-(\d+)[a-z]?$", id))]
    numbers = itertools.count(max(used, default=0) + 1)
    by_source: dict[str, str] = {}
    for task in tasks:
        if task.id not in by_source:
            by_source[task.id] = own.get(task.id) or f"T{phase}-{next(numbers):02d}"
    return by_source


def text(source: SourcePlan, target: Target) -> str:
    """Return the plan in idumb's format."""
    title = wording.one_line(source.title) or source.path
    head = {"phase": target.phase, "plan": target.plan, "title": title, "goal": wording.one_line(source.goal) or title}
    origin = {"tool": source.kind, "path": source.path, **({"tag": source.tag} if source.tag else {})}
    lines = ["---", "type: plan", *(f"{name}: {_quoted(words)}" for name, words in head.items())]
    lines += ["x-source:", *(f"  {name}: {_quoted(words)}" for name, words in origin.items()), "---", ""]
    lines += [f"# Phase {target.phase}: {_heading(title)}", ""]
    about = f"Imported by `idumb import`. Fields named under {INFERRED} are guesses: correct them."
    lines += [about, "", "## Tasks", ""]
    lines += [task_text(task, target) for task in source.tasks]
    criteria = [f"- [ ] {criterion(each.text)}{_proof(each)}" for each in source.criteria]
    lines += ["## Success criteria", "", *criteria, ""] if criteria else []
    return "\n".join(lines).replace("\0", "")


def _quoted(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


def _proof(criterion: Criterion) -> str:
    """Return what is behind the text of a criterion; a command of several lines can only be read by a person."""
    if criterion.command and "\n" not in criterion.command:
        return f" — check: {wording.code(criterion.command)}"
    return f" — {HUMAN if criterion.command else criterion.proof}" if criterion.proof != UNPROVEN else ""


def task_text(task: SourceTask, target: Target) -> str:
    """Return one task in idumb's format."""
    needed = _needed(task, target)
    lines = [f"### {target.ids[task.id]}: {_heading(task.title)}", ""]
    lines += [about, ""] if (about := _about(task)) else []
    lines += [f"- **Kind:** {task.kind}"] if task.is_human else []
    lines.append(f"- **Depends on:** {', '.join(needed) or 'none'}")
    lines += ["- **Files:**"] if task.files else []
    lines += [f"  - {_claim(claim, target).written}" for claim in task.files or ()]
    criteria = task.acceptance or unproven([task.title])
    lines += ["- **Acceptance:**", *(f"  - [ ] {criterion(each.text)}{_proof(each)}" for each in criteria)]
    lines += ["- **Verify:**"] if task.verify else []
    lines += [line for command in task.verify for line in _command(command)]
    lines += ["- **Options:**"] if task.options else []
    lines += [f"  - {each.id}: {_COMMENT.sub('', each.text)}" for each in task.options]
    lines += [f"- **Estimate:** {task.estimate // 60}m"] if task.estimate is not None else []
    lines += [f"- **Priority:** {task.priority}"] if task.priority != "normal" else []
    lines += [f"- **Notes:** {wording.one_line(task.notes)}"] if task.notes else []
    lines.append(f"- **{SOURCE_ID}:** {_COMMENT.sub('', wording.one_line(task.id))}")
    lines += [f"- **{SOURCE_DONE}:** {DONE}"] if task.done else []
    lines += [f"- **{INFERRED}:** {'; '.join(task.inferred)}"] if task.inferred else []
    lines.append(f"- **{SOURCE_DIGEST}:** {_recorded(task, needed)}")
    return "\n".join([*lines, ""]).replace("\0", "")


def _claim(claim: FileClaim, target: Target) -> FileClaim:
    if claim.verb != CHANGE:
        return claim
    exists = target.exists(claim.path) or paths.has_wildcard(claim.path)
    return FileClaim("modify" if exists else "create", claim.path)


def _recorded(task: SourceTask, needed: Sequence[str]) -> str:
    """Return the digest of a task, and of what it waits for."""
    return f"{task.digest()}-{canonical_json.digest({'after': list(needed)})[:8]}"


def _needed(task: SourceTask, target: Target) -> list[str]:
    ids = (target.ids[id] for id in task.depends_on if id in target.ids and id != task.id)
    return list(dict.fromkeys(ids))


def pairs(plan: Plan, source: SourcePlan) -> dict[str, SourceTask]:
    """Return what the source has now for each imported task of a plan, by the task's id in the plan.

    The tool may write its ids in another way by now.
    """
    before = {task.id: id for task in plan.tasks if (id := task.extra.get(SOURCE_ID))}
    now = {task.id: task for task in source.tasks}
    others = {source.key(id): task for id, task in now.items() if id not in before.values()}
    found = {task: now.get(id) or others.get(source.key(id)) for task, id in before.items()}
    return {task: current for task, current in found.items() if current is not None}


def updated(
    text: str, plan: Plan, source: SourcePlan, target: Target, completed: Collection[str] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return an imported plan after its source changed, and what changed.

    Title, description, dependencies and marks follow the source. Everything else, above all files and checks, stays as
    it is in the plan. New tasks are added at the end. Tasks that are `completed`, and tasks that the source no longer
    has, stay as they are.
    """
    found = pairs(plan, source)
    newline = wording.line_end(text)
    known = {task.id for task in found.values()}
    added = [task for task in source.tasks if task.id not in known]
    changes = [f"{target.ids[task.id]} is new in the source" for task in reversed(added)]
    if added:
        blocks = "\n".join(task_text(task, target) for task in added).rstrip("\n").replace("\n", newline)
        at = _end_of_tasks(text, plan)
        text = text[:at] + newline * 2 + blocks + text[at:]
    for task in reversed(plan.tasks):
        current = found.get(task.id)
        what = _change(task, current, target)
        if not what or (task.id in completed and current is not None and what != _CHANGED):
            continue
        stays = current is None or task.id in completed
        changes.append(f"{task.id} {what}{'; it stays as it is' if stays else ''}")
        if current is not None and not stays:
            text = _renewed(text, task, current, target, newline)
    return text, tuple(reversed(changes))


_CHANGED = "changed in the source"


def _change(task: Task, current: SourceTask | None, target: Target) -> str:
    """Say how a task differs from what the source has now; "" if it does not."""
    recorded = str(task.extra.get(SOURCE_DIGEST, ""))
    if SOURCE_ID not in task.extra:
        return ""
    if current is None:
        return "is no longer in the source"
    if recorded.partition("-")[0] != current.digest():
        return _CHANGED
    if current.done != (SOURCE_DONE in task.extra):
        return "has another mark in the source"
    return "" if recorded == _recorded(current, _needed(current, target)) else "has another place in the source"


def _end_of_tasks(text: str, plan: Plan) -> int:
    """Return where a task can be added: behind the last task and its steps, before the section that follows."""
    last = max((task.span.end for task in plan.tasks), default=len(text))
    following = re.compile(r"\n## ").search(text, max(last - 1, 0))
    return len(text[: following.start() if following else len(text)].rstrip("\r\n"))


def _renewed(text: str, task: Task, current: SourceTask, target: Target, newline: str) -> str:
    """Return the plan with what the source gives now in one task: its title, the fence below it and fields of ours."""
    needed, spans = _needed(current, target), task.spans
    begin, last = spans["title"].start, min(span.start for name, span in spans.items() if name != "title")
    end = begin + len(text[begin:last].partition("\n")[0].rstrip())
    about, fence = _about(current), _FENCE.search(text, end, last)
    edits = [(begin, end, _heading(current.title))]
    edits.append((*fence.span(), about) if fence else (end, end, f"\n\n{about}" if about else ""))
    for name, value in {"depends_on": ", ".join(needed) or "none", SOURCE_DIGEST: _recorded(current, needed)}.items():
        edits += [(spans[name].start, spans[name].end, value)] if name in spans else []
    own = spans[SOURCE_ID if current.done else SOURCE_DONE] if current.done != (SOURCE_DONE in spans) else None
    if own is not None:
        begin, end = text.rfind("\n", 0, own.start) + 1, text.find("\n", own.end) + 1 or len(text)
        before = text[begin : own.start]
        line = f"\n{before[: len(before) - len(before.lstrip())]}- **{SOURCE_DONE}:** {DONE}"
        edits.append((own.end, own.end, line) if current.done else (begin, end, ""))
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new.replace("\n", newline) + text[end:]
    return text


def _about(task: SourceTask) -> str:
    return wording.fenced(_COMMENT.sub("", task.description), "text example")


def missing(task: Task) -> tuple[str, ...]:
    """Return what a person must add to the task before `check-plan` passes."""
    if task.is_human or task.is_history:
        return ()
    proven = task.verify or task.steps or any(criterion.proof != UNPROVEN for criterion in task.acceptance)
    return (*(("files",) if not task.files else ()), *(("a check",) if not proven else ()))


def _heading(words: str) -> str:
    """Return a title as a heading can hold it."""
    line = _CLOSING.sub("", _COMMENT.sub("", wording.one_line(words)).strip())
    return line[:_LONGEST_TITLE] or "Task"


def criterion(words: str) -> str:
    """Return the text of a criterion without what a plan would read as a box, an id or a proof."""
    line = _BOX.sub("", _COMMENT.sub("", wording.one_line(words)).strip()) or "It is done"
    before = ""
    while line != before:  # a word without its brackets may stand behind a dash
        before = line
        for pattern, instead in _PROOFS:
            line = pattern.sub(instead, line)
    return f"Criterion {line}" if _NUMBER.match(line) else line


def _command(command: str) -> list[str]:
    """Return a command as a bullet, or as a fence if it has several lines."""
    if "\n" not in command and "``" not in command:
        return [f"  - {wording.code(command)}"]
    return ["", *(f"  {line}".rstrip() for line in wording.fenced(command, "sh").split("\n")), ""]
