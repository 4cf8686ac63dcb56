"""From a task in the document to a `Task`: each field read by its reader, and what must hold of the task as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from idumb.domain import plan
from idumb.domain.plan import Span, Task
from idumb.markdown import (
    blocks,
    canonical,
    claims,
    criteria,
    fields,
    labels,
    outline,
    scalars,
    steps,
    structured,
    yaml_nodes,
)
from idumb.markdown.entries import Value
from idumb.markdown.inline import Text
from idumb.markdown.lookalikes import Looker
from idumb.markdown.nodes import Block, Canonical, Fence
from idumb.markdown.outline import Draft
from idumb.markdown.problems import Problems
from idumb.markdown.spans import Spans

_YAML_ONLY = ("id", "title", "description", "steps")


@dataclass(slots=True)
class Context:
    """What the tasks of one plan share."""

    phase: str | None
    strict: bool
    requirements: Iterable[str]
    invariants: Iterable[str]
    problems: Problems
    common: canonical.Shared

    @property
    def looker(self) -> Looker:
        return Looker(f"T{self.phase}-" if self.phase else "T", self.problems)


@dataclass(slots=True)
class Reading:
    """A task while it is read: keyword arguments of `Task`, and the places of its fields."""

    notation: str
    id: str
    title: str
    start: int
    end: int
    line: int
    bad: bool = False
    given: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    acceptance: Value | None = None


def read(draft: Draft, context: Context) -> list[Task]:
    """One task, or several where a YAML fence holds a list."""
    if draft.notation in {outline.FENCE, outline.LIST}:
        return _from_yaml(draft, context)
    if draft.canonical:
        return [_from_canonical(draft, draft.canonical, context)]
    return [_from_markdown(draft, context)]


def _from_canonical(draft: Draft, block: Canonical, context: Context) -> Task:
    source = context.problems.source
    found = canonical.read(block, context.common)
    if found is None:
        _, *body = blocks.expand(source, block, context.problems)
        draft.body[:0] = body
        return _from_markdown(draft, context)
    given, ranges = found
    m = block.match
    end = m.end(4) - 1
    if draft.body:
        _group(draft.body, context.looker)
    if block.fence:
        end = source.end_of(block.fence.end_line - 1)
        ranges["steps"] = (block.fence.start, end)
        given["steps"] = steps.from_fence(block.fence, context.problems)
    span = Span(draft.start, end, draft.line + 1)
    return Task(draft.id, draft.title, span=span, spans=Spans(ranges, source), **given)


# Markdown


def _from_markdown(draft: Draft, context: Context) -> Task:
    problems = context.problems
    source = problems.source
    reading = _reading(draft, draft.id, draft.title, draft.title_at, context)
    split = _split_at_group(draft)
    if draft.item:
        inner = fields.read(draft.item.children[1:], context.looker)
        outer = fields.read(split[0], context.looker, fields_here=False)
        inner.steps += outer.steps
        text = fields.lines_left((draft.item.line + 1, draft.item.end_line), inner.taken, source, draft.item.column)
        region = (draft.item.end_line, draft.text_end or draft.end_line)
        behind = fields.lines_left(region, outer.taken, source)
        reading.given["description"] = "\n\n".join(filter(None, (text, behind)))
    else:
        inner = fields.read(split[0], context.looker)
        region = (draft.body_line, draft.text_end or draft.end_line)
        reading.given["description"] = fields.lines_left(region, inner.taken, source)
    _group(split[1], context.looker)
    for value in inner.values:
        _field(reading, value, context)
    _step_fences(reading, inner.steps, problems)
    return _finished(reading, context)


def _split_at_group(draft: Draft) -> tuple[list[Block], list[Block]]:
    if draft.text_end is None:
        return draft.body, []
    own = [b for b in draft.body if b.line < draft.text_end]
    return own, draft.body[len(own) :]


def _group(blocks: list[Block], looker: Looker) -> None:
    """Text under a group heading belongs to no task."""
    body = fields.read(blocks, looker, fields_here=False)
    for fence in body.steps:
        looker.problems.error(
            "steps.no-task",
            fence.start,
            "steps stand under a group heading, in no task",
            field="steps",
            found=fence.info,
            accepted="a task",
            mend="move them into a task",
        )


def _reading(draft: Draft, id: str, title: str, title_at: int, context: Context) -> Reading:
    source = context.problems.source
    last = draft.end_line
    while last > draft.line + 1 and not source.lines[last - 1].strip():
        last -= 1
    reading = Reading(draft.notation, id, title, draft.start, source.end_of(last - 1), draft.line + 1, draft.bad)
    reading.spans["title"] = (title_at, title_at + len(title))
    return reading


def _field(reading: Reading, value: Value, context: Context) -> None:
    problems = context.problems
    name = value.name
    if name in reading.spans:
        _twice(reading, value, problems)
        return
    reading.spans[name] = (value.start, value.end)
    if not _usable(value, problems):
        return
    if name.startswith("x-"):
        reading.given.setdefault("extra", {})[name] = structured.free_text(value, problems)
    elif name == "acceptance":
        reading.acceptance = value
    elif name == "requirements":
        reading.given[name] = _ids(value, context.requirements, "requirement", context)
    elif name == "invariants":
        reading.given[name] = _ids(value, context.invariants, "invariant", context)
    elif name == "depends_on":
        reading.given[name] = _dependencies(reading, value, context)
    else:
        found = _READERS[name](value, problems)
        if found is not None:
            reading.given[name] = found


def _twice(reading: Reading, value: Value, problems: Problems) -> None:
    first = problems.source.place(reading.spans[value.name][0])[0]
    shown = labels.SHOWN.get(value.name, value.label)
    problems.error(
        "task.duplicate-label",
        value.label_at,
        f"{value.label} stands in {reading.id} a second time (first in line {first})",
        field=shown,
        found=value.label,
        accepted="each field once",
        mend="join the two",
    )


# What may stand below the line: commands in a fence, and a value on the line together with bullets.
_WITH_FENCES = frozenset({"verify", "rollback"})
_BOTH = frozenset({"rollback", "limits"})


def _usable(value: Value, problems: Problems) -> bool:
    """Whether the value has a shape that its reader can look at."""
    if value.node is not None:
        return _usable_node(value, problems)
    below = bool(value.bullets or (value.fences and value.name in _WITH_FENCES))
    if not value.inline.s and not below:
        if not value.others:
            _empty(value, problems)
            return False
    elif value.inline.s and value.bullets and value.name not in _BOTH:
        problems.error(
            "field.two-places",
            value.label_at,
            f"{value.label} has a value on its line and bullets below",
            field=value.label,
            found=value.inline.s,
            accepted="one of them",
            mend="put everything into the bullets",
        )
        return False
    return _no_strays(value, problems)


def _no_strays(value: Value, problems: Problems) -> bool:
    strays: list[int] = [problems.source.starts[b.line] for b in value.others]
    strays += [f.start for f in value.fences if value.name not in _WITH_FENCES]
    if value.name != "acceptance":
        strays += [problems.source.starts[b.line] for bullet in value.bullets for b in bullet.others]
    for at in strays[:1]:
        problems.error(
            "field.unexpected-content",
            at,
            f"{value.label} cannot hold what stands here",
            field=value.label,
            accepted="a value on the line, or bullets below",
            mend="write it as bullets, or move it into the description",
        )
    return not strays


def _empty(value: Value, problems: Problems) -> None:
    problems.error(
        "field.empty",
        value.label_at,
        f"{value.label} has no value",
        field=value.label,
        accepted="a value, or none",
        mend="write none if there is nothing",
    )


# Fields whose YAML value may be a mapping.
_MAPPINGS = frozenset({"files", "interfaces", "limits", "rollback", "options", "acceptance"})


def _usable_node(value: Value, problems: Problems) -> bool:
    node = value.node
    if isinstance(node, yaml_nodes.Scalar):
        if node.value.strip():
            return value.name != "files" or value.is_none or _bad_node(value, node, problems)
        _empty(value, problems)
        return False
    if isinstance(node, yaml_nodes.Sequence):
        odd = next((i for i in node.items if not isinstance(i, yaml_nodes.Scalar) or not i.value.strip()), None)
        wrong = value.name == "files" and node.items
        if value.name == "acceptance" or (odd is None and not wrong):
            return True
        return _bad_node(value, odd or node, problems)
    return value.name in _MAPPINGS - {"acceptance"} or _bad_node(value, node, problems)


def _bad_node(value: Value, node: yaml_nodes.Node | None, problems: Problems) -> bool:
    accepted = "a map of verbs to lists of paths" if value.name == "files" else "a text or a list of texts"
    problems.error(
        "field.not-text",
        node.start if node else value.label_at,
        f"{value.label} does not hold {accepted}",
        field=value.label,
        accepted=accepted,
        mend=f"write {accepted}",
    )
    return False


def _ids(value: Value, known: Iterable[str], what: str, context: Context) -> tuple[str, ...]:
    found = scalars.names(value, context.problems)
    label = labels.SHOWN[value.name]
    code = f"task.unknown-{what}"
    scalars.unknown_ids(found, known, context.problems, code=code, label=label, what=what)
    return tuple(one for one, _ in found)


def _dependencies(reading: Reading, value: Value, context: Context) -> tuple[str, ...]:
    found: list[str] = []
    several = value.start < value.end and len(value.bullets) > 1
    for one, at in scalars.names(value, context.problems):
        if context.phase is not None and not is_id(one, context.phase):
            _bad_dependency(one, at, context)
            continue
        if several:
            reading.spans[f"depends_on[{len(found)}]"] = (at, at + len(one))
        found.append(one)
    return tuple(found)


def _bad_dependency(one: str, at: int, context: Context) -> None:
    context.problems.error(
        "task.bad-dependency",
        at,
        f"`{one}` is no task id of phase {context.phase}",
        field="Depends on",
        found=one,
        accepted=f"T{context.phase}-01, …, or none",
        mend="name the tasks; a plan of the phase that must come first stands under depends_on in the frontmatter",
    )


def is_id(text: str, phase: str) -> bool:
    """Whether `text` is a task id of the phase, spelled as the frontmatter spells it."""
    prefix = f"T{phase}-"
    digits = text[len(prefix) :]
    if digits[-1:].isascii() and digits[-1:].islower():
        digits = digits[:-1]
    return text.startswith(prefix) and len(digits) >= 2 and digits.isascii() and digits.isdigit()


def _step_fences(reading: Reading, fences: list[Fence], problems: Problems) -> None:
    for fence in fences:
        if "steps" in reading.spans:
            first = problems.source.place(reading.spans["steps"][0])[0]
            problems.error(
                "steps.two-fences",
                fence.start,
                f"{reading.id} has steps in two places (first in line {first})",
                field="steps",
                found=fence.info,
                accepted="one fence a task",
                mend="join the two",
            )
            continue
        reading.spans["steps"] = (fence.start, problems.source.end_of(fence.end_line - 1))
        reading.given["steps"] = steps.from_fence(fence, problems)


def _choice(*choices: str) -> Callable[[Value, Problems], Any]:
    return lambda value, problems: scalars.choice(value, choices, problems)


_READERS: dict[str, Callable[[Value, Problems], Any]] = {
    "kind": _choice(*plan.KINDS),
    "files": claims.files,
    "symbols": claims.symbols,
    "interfaces": structured.interfaces,
    "verify": scalars.commands,
    "tests": structured.tests,
    "preconditions": structured.conditions,
    "postconditions": structured.conditions,
    "change": _choice("preserving", "extending", "modifying", "breaking"),
    "limits": structured.limits,
    "rollback": structured.rollback,
    "on_failure": _choice("block", "retry", "ask"),
    "estimate": scalars.duration,
    "timeout": scalars.duration,
    "on_timeout": _choice("fail", "skip", "retry"),
    "reads": scalars.paths,
    "writes": scalars.paths,
    "owns": scalars.paths,
    "parallel": structured.yes,
    "builder": scalars.name,
    "validator": scalars.name,
    "handoff_to": structured.handoffs,
    "priority": _choice("critical", "high", "normal", "low"),
    "options": structured.options,
    "notes": structured.free_text,
    "references": structured.free_text,
    "tags": structured.free_text,
    "assigned_to": structured.free_text,
}


# YAML


def _from_yaml(draft: Draft, context: Context) -> list[Task]:
    problems = context.problems
    node = _yaml_of(draft, problems)
    found: list[Reading | None] = []
    if isinstance(node, yaml_nodes.Sequence) and (draft.fence or len(node.items) == 1):
        found = [_yaml_task(draft, item, context) for item in node.items]
    elif isinstance(node, yaml_nodes.Mapping):
        found = [_yaml_task(draft, node, context)]
    elif node is not None or not problems.any_error:
        _not_a_task(node.start if node else draft.start, problems)
    readings = [r for r in found if r]
    _behind_yaml(draft, readings, context)
    return [_finished(reading, context) for reading in readings]


def _not_a_task(at: int, problems: Problems) -> None:
    problems.error(
        "task.not-a-mapping",
        at,
        "a YAML task is a mapping",
        field="task",
        accepted="a mapping with id, title and the fields, or a list of them",
        mend="write id: and title:",
    )


def _yaml_of(draft: Draft, problems: Problems) -> yaml_nodes.Node | None:
    source = problems.source
    if draft.fence:
        first = draft.fence.line + 1
        last = draft.fence.end_line - (1 if draft.fence.closed else 0)
    else:
        first, last = draft.line, draft.end_line if draft.yaml is None else draft.yaml.end_line
    lines = ["" if n in source.hidden else source.lines[n] for n in range(first, last)]
    bounds = [0]
    for line in lines:
        bounds.append(bounds[-1] + len(line) + 1)

    def place(index: int) -> int:
        from bisect import bisect_right

        n = min(max(bisect_right(bounds, index) - 1, 0), max(len(lines) - 1, 0))
        return source.starts[first + n] + index - bounds[n]

    return yaml_nodes.read("\n".join(lines), place, problems, "task")


def _yaml_task(draft: Draft, node: yaml_nodes.Node, context: Context) -> Reading | None:
    problems = context.problems
    if not isinstance(node, yaml_nodes.Mapping):
        _not_a_task(node.start, problems)
        return None
    pairs = {key.value: (key, value) for key, value in node.pairs}
    id, title = _yaml_text("id", pairs, node, context), _yaml_text("title", pairs, node, context)
    start = draft.start if draft.notation == outline.LIST else node.start
    reading = Reading(draft.notation, id or "", title or "", start, node.end, problems.source.place(node.start)[0])
    _yaml_id(reading, pairs, context)
    if "title" in pairs:
        reading.spans["title"] = (pairs["title"][1].start, pairs["title"][1].end)
    for name, (key, value) in pairs.items():
        if name not in {"id", "title"}:
            _yaml_key(reading, key, value, context)
    return reading


_Pairs = dict[str, tuple[yaml_nodes.Scalar, yaml_nodes.Node]]


def _yaml_text(name: str, pairs: _Pairs, node: yaml_nodes.Node, context: Context) -> str | None:
    value = pairs[name][1] if name in pairs else None
    if isinstance(value, yaml_nodes.Scalar) and value.value.strip():
        return value.value.strip()
    context.problems.error(
        f"task.no-{name}",
        value.start if value else node.start,
        f"a YAML task needs `{name}`",
        field=name,
        accepted=f"{name}: and a text",
        mend=f"add {name}:",
    )
    return None


def _yaml_id(reading: Reading, pairs: _Pairs, context: Context) -> None:
    if reading.id and context.phase is not None and not is_id(reading.id, context.phase):
        context.problems.error(
            "task.bad-id",
            pairs["id"][1].start,
            f"`{reading.id}` is no task id of phase {context.phase}",
            field="id",
            found=reading.id,
            accepted=f"T{context.phase}-01",
            mend=f"write T{context.phase}-, two digits or more and at most one lower-case letter",
        )


def _yaml_key(reading: Reading, key: yaml_nodes.Scalar, node: yaml_nodes.Node, context: Context) -> None:
    problems = context.problems
    name = labels.known(key.value) if key.value == key.value.lower() and not {" ", "-"} & set(key.value[2:]) else None
    if key.value == "description" and isinstance(node, yaml_nodes.Scalar):
        reading.given["description"] = node.value.strip("\n")
        reading.spans["description"] = (node.start, node.end)
    elif key.value == "steps":
        reading.spans["steps"] = (node.start, node.end)
        reading.given["steps"] = steps.from_nodes(node, problems)
    elif key.value[:2] == "x-" and len(key.value) > 2:
        _field(reading, structured.yaml_value(key.value, key, node), context)
    elif name:
        _field(reading, structured.yaml_value(name, key, node), context)
    else:
        near = labels.nearest_key(key.value, _YAML_ONLY)
        problems.error(
            "task.unknown-label",
            key.start,
            f"`{key.value}` is no key of a task",
            field="task",
            found=key.value,
            accepted=", ".join([*_YAML_ONLY, *labels.FIELDS]),
            mend=f"did you mean {near}?" if near else "remove it, or call it x-…",
        )


def _behind_yaml(draft: Draft, readings: list[Reading], context: Context) -> None:
    """What follows a YAML task up to the next task: its steps; nothing else of it is data."""
    problems = context.problems
    body = fields.read(draft.body, context.looker, fields_here=False)
    if readings:
        _step_fences(readings[-1], body.steps, problems)
    previous = draft.body[0] if draft.body else None
    if draft.yaml and previous and problems.source.lines[previous.line].lstrip().startswith("- "):
        problems.error(
            "task.yaml-item-without-id",
            problems.source.starts[previous.line],
            "an item of a YAML list of tasks begins with its id",
            field="task",
            found=problems.source.lines[previous.line].strip(),
            accepted="- id: T1-01",
            mend="write id first",
        )


# Every notation


def _finished(reading: Reading, context: Context) -> Task:
    problems = context.problems
    given = reading.given
    if not reading.title and not reading.bad and reading.notation in {outline.HEADING, outline.CHECKLIST}:
        problems.error(
            "task.no-title",
            reading.start,
            f"{reading.id} has no title",
            field="title",
            found=reading.id,
            accepted=f"{reading.id}: Title",
            mend="write a title behind the id",
        )
    given["acceptance"] = _acceptance(reading, context)
    source = problems.source
    spans = Spans(reading.spans, source)
    span = Span(reading.start, reading.end, reading.line)
    return Task(reading.id, reading.title, notation=reading.notation, span=span, spans=spans, **given)


def _acceptance(reading: Reading, context: Context) -> tuple[plan.Criterion, ...]:
    problems = context.problems
    value = reading.acceptance
    human = reading.given.get("kind", plan.BUILD) in plan.HUMAN_KINDS
    if value is None or value.is_none:
        if not human and not reading.bad and (value is not None or "acceptance" not in reading.spans):
            _no_acceptance(reading, problems)
        return ()
    commands = reading.given.get("verify", ())
    rules = criteria.Rules(labels.SHOWN["acceptance"], commands=commands, strict=context.strict)
    return criteria.settle(_criteria(value, rules, problems), rules, problems)


def _criteria(value: Value, rules: criteria.Rules, problems: Problems) -> list[criteria.Draft]:
    node = value.node
    if node is not None:
        nodes = node.items if isinstance(node, yaml_nodes.Sequence) else [node]
        return criteria.from_nodes(nodes, rules, problems)
    if value.bullets:
        return criteria.from_bullets(value.bullets, rules, problems)
    from idumb.markdown.entries import Bullet

    text = Text(value.inline.s, value.inline.marks)
    return criteria.from_bullets([Bullet(text, text.at(0))], rules, problems)


def _no_acceptance(reading: Reading, problems: Problems) -> None:
    problems.error(
        "task.no-acceptance",
        reading.start,
        f"{reading.id} says nowhere when it is done",
        field="Acceptance",
        accepted="- **Acceptance:** with boxes below",
        mend="add - **Acceptance:** and - [ ] what must hold — check: and a command in backticks",
    )
