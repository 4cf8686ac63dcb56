"""Separate the fields of a Markdown task from its description."""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import labels
from idumb.markdown.plans.near_misses import STEP_FENCES, NearMissChecker
from idumb.markdown.syntax.field_values import Value, content, first_text
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.nodes import Block, Fence, Item, Items, Paragraph
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source

_BOLD = lazy_pattern.compile(r"(\*\*|__)(.{1,60}?)(:?)\s*\1\s*(:?)\s*", re.DOTALL)
_PLAIN = lazy_pattern.compile(r"([^:`\n]{1,60}?)\s*:\s*")
_BOLD_LINE = lazy_pattern.compile(r"(\*\*|__)([^*_:\uff1a]{1,60}?)\s*(?:[:\uff1a]\s*)?\1")
_TRAILING = " \t:\uff1a"


@dataclass(slots=True)
class Label:
    """The label at the start of a bullet. `name` is None for an unknown label."""

    shown: str
    name: str | None
    colon: bool
    end: int


_LABEL = 200  # search a label (at most 60 characters) in this many characters


@dataclass(slots=True)
class Body:
    """The parts of a task's text. `taken` are the line ranges that are not description."""

    values: list[Value]
    steps: list[Fence]
    taken: list[tuple[int, int]]


def label_of(text: str) -> Label | None:
    """Return the label at the start of a bullet, known or not; None without text before a colon."""
    m = _BOLD.match(text)
    if m:
        shown = m[2].rstrip(_TRAILING)
        return Label(shown, labels.field_name(shown), bool(m[3] or m[4]), m.end())
    m = _PLAIN.match(text)
    if m:
        return Label(m[1], labels.field_name(m[1]), colon=True, end=m.end())
    head = re.split(r"[\uff1a]|\s[—–]\s", text[:_LABEL], maxsplit=1)[0].strip()
    name = labels.field_name(head) if len(head) <= 60 and (head == text or "\uff1a" in text) else None
    return Label(head, name, colon=False, end=len(text)) if name else None


def read(blocks: Iterable[Block], checker: NearMissChecker, *, fields_here: bool = True) -> Body:
    """Separate fields and steps from the description.

    With `fields_here` False, a known label is an error.
    """
    body = Body([], [], [])
    run: list[Item] = []
    for block in flattened(blocks):
        if isinstance(block, Item) and not block.ordered:
            run.append(block)
            continue
        if isinstance(block, Fence) and block.info in STEP_FENCES and block.top and not block.indent:
            body.steps.append(block)
            body.taken.append((block.line, block.end_line))
            continue
        _run(run, body, checker, fields_here=fields_here)
        run = []
        _other(block, checker)
    _run(run, body, checker, fields_here=fields_here)
    return body


def known_in(blocks: Iterable[Block]) -> list[tuple[Item, str]]:
    """Return the bullets that are fields, each with the canonical name of its label."""
    bullets = (block for block in flattened(blocks) if isinstance(block, Item) and not block.ordered)
    labelled = ((item, _first(item)[1]) for item in bullets)
    return [(item, label.name) for item, label in labelled if label and label.name and label.colon]


def flattened(blocks: Iterable[Block]) -> Iterable[Block]:
    for block in blocks:
        if isinstance(block, Items):
            yield from block.children
        else:
            yield block


def _run(run: list[Item], body: Body, checker: NearMissChecker, *, fields_here: bool) -> None:
    """Read a run of bullets: all are fields, or all are description."""
    labelled = [(item, *_first(item)) for item in run]
    problems = checker.problems
    has_field = any(label and label.name and label.colon for _, _, label in labelled)
    for item, text, label in labelled:
        boxes = not (label and label.name == "acceptance")
        for child in item.children:
            checker.check(child, boxes=boxes)
        if label and label.name and not label.colon:
            _no_colon(item, label, problems)
        elif has_field and not fields_here:
            if label and label.name:
                _misplaced(item, label, problems)
        elif has_field and label and label.name and label.colon:
            body.values.append(_value(item, text, label, problems))
            body.taken.append((item.line, item.end_line))
        elif has_field and text.s[:1] != "[":  # malformed checkboxes are reported separately
            _unknown(item, text, label, problems)


def _first(item: Item) -> tuple[Text, Label | None]:
    text, _ = first_text(item)
    return text, label_of(text.s)


def _value(item: Item, text: Text, label: Label, problems: Problems) -> Value:
    _, rest = first_text(item)
    bullets, fences, others = content(rest, problems.source)
    inline = text.part(label.end)
    end = problems.source.end_of(item.end_line - 1)
    start = inline.at(0) if inline.s else (bullets[0].start if bullets else min(text.at(len(text.s) - 1) + 1, end))
    name = label.name or ""
    return Value(label.shown, problems, name, item.start, inline, bullets, start, end, fences, others)


def _other(block: Block, checker: NearMissChecker) -> None:
    """Report what looks like a field in the description."""
    problems = checker.problems
    if isinstance(block, Item):
        for child in block.children:
            checker.check(child, boxes=True)
    if isinstance(block, Item) and block.ordered:
        text, label = _first(block)
        if label and label.name and label.colon:
            message = f"{label.shown} is in a numbered list"
            fix = f"write - **{label.shown}:** in a bullet"
            accepted = "- **Label:** value"
            problems.error(
                "field.numbered", block.start, message, field=label.shown, found=text.s, accepted=accepted, fix=fix
            )
    elif isinstance(block, Paragraph):
        for offset, line in block.pieces:
            m = _BOLD_LINE.match(line)
            name = labels.field_name(m[2]) if m else None
            if m and name:
                _no_bullet(offset, m[2], line, problems)


def _no_bullet(at: int, label: str, line: str, problems: Problems) -> None:
    message = f"{label} is bold but not in a bullet"
    fix = "write - before it"
    problems.error("field.no-bullet", at, message, field=label, found=line, accepted=f"- **{label}:** value", fix=fix)


def _no_colon(item: Item, label: Label, problems: Problems) -> None:
    message = f"{label.shown} has no colon after it"
    fix = f"write - **{label.shown}:**"
    accepted = f"- **{label.shown}:** value"
    problems.error(
        "field.no-colon", item.start, message, field=label.shown, found=label.shown, accepted=accepted, fix=fix
    )


def _misplaced(item: Item, label: Label, problems: Problems) -> None:
    message = f"{label.shown} belongs to no task"
    fix = "indent it below its task"
    accepted = "bullets below the checkbox of a task, or keys of a YAML task"
    Field(label.shown, problems).error("field.misplaced", item.start, message, label.shown, accepted, fix)


_STEPS = frozenset({"step", "steps"})


def _unknown(item: Item, text: Text, label: Label | None, problems: Problems) -> None:
    if label and label.colon:
        code, shown = "task.unknown-label", label.shown
        message = f"Unknown label `{shown}`"
    else:
        code, shown = "task.not-a-field", text.s
        message = f"`{shown}` is not a field, but is among the fields of a task"
    near = labels.nearest_label(shown[:60])
    fix = (
        f"did you mean `{near}`?" if near else "indent it if it is a value of the field above it, or rename it to x-…"
    )
    if shown.casefold() in _STEPS:
        fix = "write steps in a fence ```yaml steps below the fields, each as - {tool: …, intent: …, arguments: {…}}"
    Field("task", problems).error(code, item.start, message, shown, ", ".join(labels.SHOWN.values()), fix)


def lines_left(region: tuple[int, int], taken: list[tuple[int, int]], source: Source, dedent: int = 0) -> str:
    """Return the description lines of a region as written, without comments.

    Parts separated by removed lines become separate paragraphs.
    """
    parts: list[list[str]] = [[]]
    cut = sorted(taken)
    line, last = region
    while line < last:
        if cut and line >= cut[0][0]:
            line = max(line, cut.pop(0)[1])
            parts.append([])
            continue
        if line not in source.hidden:
            text = source.cuts.get(line, source.lines[line])
            parts[-1].append(_dedented(text, dedent))
        line += 1
    return "\n\n".join(filter(None, (_trimmed(part) for part in parts)))


def _dedented(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip(" \t"))) :] if width else line


def _trimmed(lines: list[str]) -> str:
    while lines and not lines[-1].strip():
        lines.pop()
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[first:])
