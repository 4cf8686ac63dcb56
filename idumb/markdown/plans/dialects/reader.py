"""Read a plan of GSD or of the first iDumb into a plan of the contract. Never raises on its input."""

from __future__ import annotations

import hashlib
import re

from idumb.app.ports.planning import ParsedPlan
from idumb.domain.plans.phase_ids import QUICK
from idumb.domain.plans.plan import HUMAN, Criterion, Plan
from idumb.markdown.plans import phase_names
from idumb.markdown.plans.dialects import checks, drafts, foreign_head, headed_tasks, tagged_tasks
from idumb.markdown.plans.dialects.drafts import Part, TaskDraft
from idumb.markdown.plans.dialects.foreign_head import Head
from idumb.markdown.syntax.source import Source

_FOLDER = re.compile(r"(?:^|/)\.planning/(phases|quick)/([^/]+)/")
_NUMBERS = r"(?:[A-Za-z]{1,6}-)?(\d+[A-Za-z]?(?:\.\d+)*)-(\d+[a-z]?(?:\.\d+)*)"
_FILE = re.compile(_NUMBERS + r"(?:[-_. ].*)?")
_NAMED = re.compile(r"(?:.*/)?PLAN[-_ ]?(\d+[a-z]?)(?:[-_ ].*)?")
_ABOUT = re.compile(r"\s+\([^()]*\)\s*$")
_ALONE = re.compile(r"\d+[a-z]?(?:\.\d+)*")
_NOT_ID = re.compile(r"[^0-9A-Za-z._-]+")
_LONGEST_ID = 40
# Texts of the whole plan that a builder of every task reads; the others are for people and for the other tool.
_SHARED = ("context", "interfaces", "threat_model", "constraints")
_OTHER_TEXTS = frozenset(
    {"objective", "execution_context", "verification", "success_criteria", "output", "tasks", "details", "summary"}
)


def read(data: bytes, path: str, dialect: str, source: Source) -> ParsedPlan:
    """Parse a plan in one of the dialects that `foreign_formats.dialect` recognizes."""
    head = foreign_head.read(source)
    draft = None
    if not any(f.code in ("plan.line-too-long", "plan.frontmatter-never-closed") for f in source.findings):
        draft = _plan(data, path, dialect, head, source)
    findings = source.sorted()
    return ParsedPlan(None if source.any_error else draft, findings, source.text, draft, dialect)


def _plan(data: bytes, path: str, dialect: str, head: Head, source: Source) -> Plan:
    phase = _phase(path, head, source)
    plan = _plan_id(path, head)
    begin = source.starts[head.end_line] if head.end_line < len(source.starts) else len(source.text)
    tasks, texts = _tasks(begin, head.end_line, source)
    if not tasks:
        source.report(
            "plan.no-tasks",
            begin if begin < len(source.text) else 0,
            accepted='<task type="auto"> … </task>, or headings such as ### Task 1: Title',
            fix="write its tasks in one of these forms, or convert it: idumb import PATH",
        )
    objective = head.texts.get("objective") or next((checks.block(t) for t, _ in texts.get("objective", ())), "")
    title = head.texts.get("title") or _heading(source, head.end_line) or _first_line(objective) or f"Plan {plan}"
    blocks = ((name, checks.block(text)) for name in _SHARED for text, _ in texts.get(name, ()))
    shared = [f"{name.capitalize()} of the plan:\n{text}" for name, text in blocks]
    for task in tasks:
        task.references = [*shared, *task.references]
    return Plan(
        path, hashlib.sha256(data).hexdigest(), phase, plan, title, head.texts.get("goal") or objective or title,
        depends_on=_depends_on(head, phase, source), requirements=head.requirements,
        success_criteria=tuple(head.criteria) or _success(texts, source), setup=tuple(head.setup), extra=head.extra,
        tasks=drafts.tasks_of(tasks, drafts.prefix(phase, plan), source, head.requirements, head.files),
        spans=head.spans, dialect=dialect, wave=head.wave,
    )  # fmt: skip


def _tasks(begin: int, first: int, source: Source) -> tuple[list[TaskDraft], dict[str, list[Part]]]:
    text = source.text
    task_name = tagged_tasks.task_tag(text)
    if task_name is None:
        return headed_tasks.read(first, source)
    tasks, texts = tagged_tasks.read(tagged_tasks.Tags(source), task_name, begin, len(text))
    for name in texts.keys() - _OTHER_TEXTS - set(_SHARED):
        known = ", ".join(_SHARED)
        source.report("dialect.unknown-tag", texts[name][0][1], f"<{name}>", accepted=known, then="does not read it")
    return tasks, texts


def _heading(source: Source, first: int) -> str:
    """Return the text of the first heading of level 1 before any other content."""
    lines = (line for line in source.lines[first : first + 20] if line.strip() and not line.startswith("<!--"))
    line = next(lines, "")
    return checks.short(line[2:].strip()) if line.startswith("# ") else ""


def _first_line(text: str) -> str:
    return checks.short(next((line.strip() for line in text.split("\n") if line.strip()), ""))


def _success(texts: dict[str, list[Part]], source: Source) -> tuple[Criterion, ...]:
    """Return the items of `<success_criteria>` as criteria that a person judges."""
    stated = [item for part in texts.get("success_criteria", ()) for item in checks.items(part)]
    rows = enumerate(stated, 1)
    return tuple(Criterion(f"AC-{n}", words, HUMAN, span=source.span(at, at)) for n, (words, at) in rows)


def _phase(path: str, head: Head, source: Source) -> str:
    """Return the phase of the plan's folder; without such a folder, the one that the plan or its name says."""
    stated = head.texts.get("phase", "")
    own = _number(stated)
    folder = _FOLDER.search(path)
    if folder is None:
        file = _FILE.fullmatch(path.rpartition("/")[2].removesuffix(".md"))
        return own or (file[1] if file else "") or _id(stated) or "0"
    if folder[1] == "quick":
        number = QUICK.number_in(folder[2])
        return QUICK.phase(number) if number is not None else _id(folder[2])
    phase = _number(folder[2]) or _id(folder[2])
    if own and not phase_names.same_phase(own, phase) and "phase" in head.spans:
        source.report("dialect.other-phase", head.spans["phase"].start, stated, field="phase", phase=phase)
    return phase


def _number(name: str) -> str:
    return phase_names.number(name) or phase_names.other_number(name) or ""


def _id(text: str) -> str:
    return _NOT_ID.sub("-", text).strip("-._")[:_LONGEST_ID]


def _plan_id(path: str, head: Head) -> str:
    """Return the number of the plan: from its file name `14-02-PLAN.md`, or as it says itself."""
    name = path.rpartition("/")[2].removesuffix(".md")
    file = _FILE.fullmatch(name)
    if file is not None:
        return _padded(file[2])
    stated = head.texts.get("plan", "")
    both = re.fullmatch(_NUMBERS, stated)
    bare = re.sub(r"[-_. ]*PLAN[-_. ]*", "-", name).strip("-")
    return _padded(both[2] if both else _id(stated) or _id(bare) or "01")


def _padded(number: str) -> str:
    return f"{number:0>2}" if _ALONE.fullmatch(number) else number


def _depends_on(head: Head, phase: str, source: Source) -> tuple[str, ...]:
    """Return the plans of the phase that must run first. What names no plan of the phase is reported."""
    plans: list[str] = []
    for stated, at in head.depends_on:
        for text in re.split(r"\s*,\s*", stated) if re.fullmatch(r"[\w.,\s-]+", stated) and "," in stated else [stated]:
            name = re.sub(r"[-_](?:PLAN|SUMMARY)$", "", _ABOUT.sub("", text).strip("`\"' ").removesuffix(".md"))
            name = named[1] if (named := _NAMED.fullmatch(name)) else name
            numbers = _FILE.fullmatch(name)
            if _ALONE.fullmatch(name):
                plans.append(_padded(name))
            elif numbers and phase_names.same_phase(numbers[1], phase):
                plans.append(_padded(numbers[2]))
            else:
                what = f"plan of phase {phase}"
                source.report("dialect.unread-dependency", at, text, field="depends_on", what=what)
    return tuple(dict.fromkeys(plans))
