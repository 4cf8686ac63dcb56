"""Write amendments into a plan without changing any byte of another field.

A field can be a list on one line, bullets or YAML. The amended field is written anew in each of these forms until the
parsed result contains exactly that change. If none does, the plan stays unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from idumb.domain import amendment
from idumb.domain.action import Action
from idumb.domain.amendment import Amendment
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import errors
from idumb.domain.plans import new_task
from idumb.domain.plans.plan import FileClaim, Plan, Span, Task, plain
from idumb.markdown.plans import plan_parser
from idumb.system import escaping

SECTION = "## Decisions"
MOST = 2000  # characters of one decision
_MARKUP = re.compile(r"[\\`*_\[\]<>#|~]")
_CLOSING_FENCE = re.compile(r"\s*\n {0,3}(`{3,}|~{3,})[ \t]*(?=\r?\n|\Z)")
_STEPS_FENCE = re.compile(r"\s*\n(`{3,}|~{3,})(?:yaml|json) steps[ \t]*\r?\n(?s:.*?)\n {0,3}\1[ \t]*(?=\r?\n|\Z)")
_BULLET = re.compile(r"[-*+][ \t]+")
_COMMENT = re.compile(r"<!--|(?:^|\s)#")


def amend(data: bytes, path: str, changes: Sequence[Amendment]) -> bytes:
    """Return the plan with the changes applied in order.

    Raises InputError: `plan.invalid` if the plan cannot be read, `amend.task-invalid` with findings if an added task is
    invalid, `amend.cannot-write` if the plan's notation has no place for a change. Raises Refusal `amend.foreign-plan`
    for a plan of another tool.
    """
    for change in changes:
        data = _amend(data, path, change)
    return data


def _amend(data: bytes, path: str, change: Amendment) -> bytes:
    read = plan_parser.parse(data, path)
    if read.plan is None:
        message, folder = f"{path} cannot be read.", path.rpartition("/")[0].rpartition("/")[2]
        raise InputError("plan.invalid", message, findings=read.findings, details={"phase": folder})
    text, plan = read.text, read.plan
    way = f"Edit {path}, then run idumb amend {plan.phase} --from-file"
    if plan.is_foreign:
        why = f"{path} is a plan of another tool, and idumb never changes its Markdown."
        raise Refusal("amend.foreign-plan", why, hint=way, details={"phase": plan.phase, "path": path})
    for candidate in _candidates(text, plan, change):
        edited = candidate.encode("utf-8")
        reparsed = plan_parser.parse(edited, path)
        if reparsed.plan is not None and _as_meant(plan, reparsed.plan, change):
            return edited
        if reparsed.plan is None and change.kind == amendment.ADD:
            words, hint = f"The new task for {path} is not valid.", Action.of("help", "plan-format")
            raise InputError("amend.task-invalid", words, findings=errors(reparsed.findings), hint=hint)
    words = f"This change cannot be written to {path} without changing something else."
    raise InputError("amend.cannot-write", words, hint=way)


def _candidates(text: str, plan: Plan, change: Amendment) -> Iterator[str]:
    if change.kind == amendment.ADD:
        yield from _added(text, plan, change.text)
    elif change.kind == amendment.DECIDE:
        yield from _decided(text, change)
    else:
        for task in (task for task in plan.tasks if task.id == change.task):
            if change.claim is not None:
                yield from _widened(text, task, change.claim)
            else:
                yield from _dropped(text, task, change.text)


def _as_meant(old: Plan, new: Plan, change: Amendment) -> bool:
    """Whether the new plan differs by exactly this change; added tasks are behind the others."""
    kept = new.tasks[: len(old.tasks)] if change.kind == amendment.ADD else new.tasks
    if change.kind == amendment.ADD and len(kept) == len(new.tasks):
        return False
    meant = tuple(_changed(task, change) for task in old.tasks)
    return bool(_content(old, meant, change) == _content(new, kept, change))


def _content(plan: Plan, tasks: Sequence[Task], change: Amendment) -> Any:
    """Return a plan without places. In a mapping of verbs, the order of the claims has no meaning."""
    content = plain(replace(plan, sha256="", tasks=tuple(tasks)))
    for task in content["tasks"]:
        if task["id"] == change.task and task["files"] is not None:
            task["files"].sort(key=lambda claim: (claim["verb"], claim["path"], claim["target"] or ""))
    return content


def _changed(task: Task, change: Amendment) -> Task:
    if task.id != change.task or change.kind not in (amendment.WIDEN, amendment.DROP):
        return task
    if change.claim is not None:
        return replace(task, files=(*(task.files or ()), change.claim))
    remaining = tuple(d for d in task.depends_on if d != change.text)
    return replace(task, depends_on=remaining)


def _added(text: str, plan: Plan, task: str) -> Iterator[str]:
    """Insert after the last task, its fence and its steps, before the blank lines that follow."""
    last = plan.tasks[-1].span
    end = last.start + len(text[last.start : last.end].rstrip())
    block = task.replace("\r\n", "\n").strip("\n")
    for fence in (_CLOSING_FENCE, _STEPS_FENCE):
        following = fence.match(text, end)
        end = following.end() if following else end
        tail = "" if text[end:].strip() or text[end:].startswith(("\n", "\r")) else "\n"
        yield edited(text, end, end, f"\n\n{block}{tail}")


def _decided(text: str, change: Amendment) -> Iterator[str]:
    """Append to the section at the end of the plan, or to a new one; an answer that the plan has is not repeated."""
    bullet = f"- **{_prose(change.task or 'Decided')}**: {_prose(change.text)}\n"
    if change.task is not None and bullet.rstrip() in text.splitlines():
        yield text
    end = len(text)
    broken = "" if text.endswith("\n") else "\n"
    heading = re.compile(rf"(?m)^{SECTION}[ \t]*\r?$")
    begun = [m.end() for m in heading.finditer(text)]
    if begun and not re.search(r"(?m)^#{1,2} ", text[begun[-1] :]):
        yield edited(text, end, end, broken + bullet)
    yield edited(text, end, end, f"{broken}\n{SECTION}\n\n{bullet}")


def _widened(text: str, task: Task, claim: FileClaim) -> Iterator[str]:
    claims = (*(task.files or ()), claim)
    written = [each.written for each in claims]
    if "files" not in task.spans:
        yield from _new_field(text, task, f"- **Files:** {written[0]}")
        return
    yield from _replaced(text, task.spans["files"], written, json.dumps(new_task.by_verb(claims), ensure_ascii=False))


def _replaced(text: str, span: Span, items: Sequence[str], yaml: str) -> Iterator[str]:
    """Write the items of a field anew: as bullets if it has them, on one line, or as YAML. Refuse to drop a comment."""
    value = text[span.start : span.end].rstrip()
    if _COMMENT.search(value):
        return
    forms, bullet = [", ".join(items) or "none", yaml], _BULLET.match(value)
    if bullet:
        gap = "\n" + text[_line_start(text, span.start) : span.start]
        forms.insert(0, gap.join(bullet[0] + item for item in items))
    for form in forms:
        yield edited(text, span.start, span.start + len(value), form)


def _new_field(text: str, task: Task, line: str) -> Iterator[str]:
    """Insert a new field before the criteria, with the same indentation."""
    anchor = task.spans.get("acceptance") or task.spans.get("depends_on")
    if anchor is None:
        return
    at = _line_start(text, anchor.start)
    while at > 0 and not re.match(r"[ \t]*[-*+] (\*\*|__)?[A-Z]", text[at:]):
        at = _line_start(text, at - 1)
    indent = re.match(r"[ \t]*", text[at:])
    yield edited(text, at, at, f"{indent[0] if indent else ''}{line}\n")


def _dropped(text: str, task: Task, dependency: str) -> Iterator[str]:
    if dependency not in task.depends_on:
        words, hint = f"{task.id} does not depend on {dependency}.", Action.of("show", task.id)
        raise InputError("amend.no-dependency", words, hint=hint, details={"task": task.id})
    remaining = [id for id in task.depends_on if id != dependency]
    yield from _replaced(text, task.spans["depends_on"], remaining, f"[{', '.join(remaining)}]")


def edited(text: str, start: int, end: int, new: str) -> str:
    """Return the text with a part replaced; with CRLF, if the text uses only that."""
    crlf = text.count("\r\n")
    new = new.replace("\n", "\r\n") if crlf and crlf == text.count("\n") else new
    return text[:start] + new + text[end:]


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _prose(text: str) -> str:
    """Return foreign text as one line of Markdown with all markup escaped."""
    shown = escaping.show(" ".join(text.split()))
    clipped = shown if len(shown) <= MOST else shown[: MOST - 1] + "…"
    return _MARKUP.sub(lambda m: "\\" + m[0], clipped)
