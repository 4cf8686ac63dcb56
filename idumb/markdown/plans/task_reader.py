"""Read the fields of a task, whatever its notation, and check the task as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from idumb.domain.plans import plan
from idumb.domain.plans.plan import Span, Task
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import claims, criteria, labels, near_misses, outline, steps, structured_values
from idumb.markdown.plans.near_misses import NearMissChecker
from idumb.markdown.syntax import scalars, yaml_nodes
from idumb.markdown.syntax.field_values import Bullet, Value
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.nodes import Fence
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source


@dataclass(slots=True)
class Context:
    """Context shared by the tasks of one plan."""

    phase: str | None
    requirements: Iterable[str]
    invariants: Iterable[str]
    problems: Problems

    @property
    def checker(self) -> NearMissChecker:
        return near_misses.checker(self.phase, self.problems)


@dataclass(slots=True)
class Reading:
    """A task in progress: keyword arguments of `Task`, and the ranges of its fields."""

    notation: str
    id: str
    title: str
    start: int
    end: int
    line: int
    bad: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    acceptance: Value | None = None


def read_field(reading: Reading, value: Value, context: Context) -> None:
    """Read one field into `reading`; report a field that was read before."""
    problems = context.problems
    name = value.name
    if name in reading.spans:
        _twice(reading, value, problems)
        return
    reading.spans[name] = (value.start, value.end)
    if not usable(value):
        return
    if name.startswith("x-"):
        reading.values.setdefault("extra", {})[name] = structured_values.free_text(value)
    elif name == "acceptance":
        reading.acceptance = value
    elif name == "requirements":
        reading.values[name] = scalars.declared_ids(value, context.requirements, "requirement")
    elif name == "invariants":
        reading.values[name] = scalars.declared_ids(value, context.invariants, "invariant")
    elif name == "depends_on":
        reading.values[name] = _dependencies(reading, value, context)
    else:
        result = _READERS[name](value)
        if result is not None:
            reading.values[name] = result


def _twice(reading: Reading, value: Value, problems: Problems) -> None:
    first = problems.source.place(reading.spans[value.name][0])[0]
    shown = labels.SHOWN.get(value.name, value.label)
    message = f"Duplicate field {value.label} in {reading.id}, first used on line {first}"
    fix = "merge the two"
    accepted = "each field once"
    problems.error(
        "task.duplicate-label", value.label_at, message, field=shown, found=value.label, accepted=accepted, fix=fix
    )


def _dependencies(reading: Reading, value: Value, context: Context) -> tuple[str, ...]:
    dependencies: list[str] = []
    several = value.start < value.end and len(value.bullets) > 1
    for dependency, at in scalars.names(value):
        if context.phase is not None and not labels.is_task_id(dependency, context.phase):
            _bad_dependency(dependency, at, context)
            continue
        if several:
            reading.spans[f"depends_on[{len(dependencies)}]"] = (at, at + len(dependency))
        dependencies.append(dependency)
    return tuple(dependencies)


def _bad_dependency(id: str, at: int, context: Context) -> None:
    message = f"`{id}` is not a task id of phase {context.phase}"
    fix = "name tasks; to depend on another plan, write depends_on in the frontmatter"
    accepted = f"T{context.phase}-01, …, or none"
    context.problems.error("task.bad-dependency", at, message, field="Depends on", found=id, accepted=accepted, fix=fix)


def step_fences(reading: Reading, fences: list[Fence], problems: Problems) -> None:
    for fence in fences:
        if "steps" in reading.spans:
            first = problems.source.place(reading.spans["steps"][0])[0]
            message = f"{reading.id} has two step fences, the first on line {first}"
            fix = "merge the two"
            accepted = "one step fence per task"
            problems.error(
                "steps.two-fences", fence.start, message, field="steps", found=fence.info, accepted=accepted, fix=fix
            )
            continue
        reading.spans["steps"] = (fence.start, problems.source.end_of(fence.end_line - 1))
        reading.values["steps"] = steps.from_fence(fence, problems)


def _choice(*choices: str) -> Callable[[Value], Any]:
    return lambda value: scalars.choice(value, choices)


_READERS: dict[str, Callable[[Value], Any]] = {
    "kind": _choice(*plan.KINDS),
    "files": claims.files,
    "symbols": claims.symbols,
    "interfaces": structured_values.interfaces,
    "verify": scalars.commands,
    "tests": structured_values.tests,
    "preconditions": structured_values.conditions,
    "postconditions": structured_values.conditions,
    "change": _choice("preserving", "extending", "modifying", "breaking"),
    "limits": structured_values.limits,
    "rollback": structured_values.rollback,
    "on_failure": _choice("block", "retry", "ask"),
    "estimate": scalars.duration,
    "timeout": scalars.duration,
    "on_timeout": _choice("fail", "skip", "retry"),
    "reads": scalars.paths,
    "writes": scalars.paths,
    "owns": scalars.paths,
    "parallel": structured_values.yes,
    "builder": scalars.name,
    "validator": scalars.name,
    "handoff_to": structured_values.handoffs,
    "priority": _choice("critical", "high", "normal", "low"),
    "options": structured_values.options,
    "notes": structured_values.free_text,
    "references": structured_values.free_text,
    "tags": structured_values.free_text,
    "assigned_to": structured_values.free_text,
}


def finished(reading: Reading, context: Context) -> Task:
    problems = context.problems
    fields = reading.values
    if not reading.title and not reading.bad and reading.notation in {outline.HEADING, outline.CHECKLIST}:
        message = f"{reading.id} has no title"
        fix = "write a title after the id"
        accepted = f"{reading.id}: Title"
        problems.error(
            "task.no-title", reading.start, message, field="title", found=reading.id, accepted=accepted, fix=fix
        )
    fields["acceptance"] = _acceptance(reading, context)
    source = problems.source
    spans = Spans(reading.spans, source)
    span = Span(reading.start, reading.end, reading.line)
    return Task(reading.id, reading.title, notation=reading.notation, span=span, spans=spans, **fields)


def _acceptance(reading: Reading, context: Context) -> tuple[plan.Criterion, ...]:
    problems = context.problems
    value = reading.acceptance
    human = reading.values.get("kind", plan.BUILD) in plan.HUMAN_KINDS
    if value is None or value.is_none:
        if not human and not reading.bad and (value is not None or "acceptance" not in reading.spans):
            _no_acceptance(reading, problems)
        return ()
    commands = reading.values.get("verify", ())
    rules = criteria.Rules(labels.SHOWN["acceptance"], problems, commands=commands)
    return criteria.settle(_criteria(value, rules), rules)


def _criteria(value: Value, rules: criteria.Rules) -> list[criteria.Draft]:
    node = value.node
    if node is not None:
        nodes = node.items if isinstance(node, yaml_nodes.Sequence) else [node]
        return criteria.from_nodes(nodes, rules)
    if value.bullets:
        return criteria.from_bullets(value.bullets, rules)
    text = Text(value.inline.s, value.inline.marks)
    return criteria.from_bullets([Bullet(text, text.at(0))], rules)


def _no_acceptance(reading: Reading, problems: Problems) -> None:
    message = f"{reading.id} has no acceptance criterion"
    fix = "add - **Acceptance:** and - [ ] what must be true — check: and a command in backticks"
    accepted = "- **Acceptance:** with checkboxes below it"
    problems.error("task.no-acceptance", reading.start, message, field="Acceptance", accepted=accepted, fix=fix)


class Spans(Mapping[str, Span]):
    """Maps field names to spans, and creates each `Span` on access."""

    __slots__ = ("_ranges", "_source")

    def __init__(self, ranges: dict[str, tuple[int, int]], source: Source) -> None:
        self._ranges = ranges
        self._source = source

    def __getitem__(self, name: str) -> Span:
        start, end = self._ranges[name]
        return Span(start, end, self._source.place(start)[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __repr__(self) -> str:
        return repr(dict(self))


# Fields that accept fences, and fields that accept a value on the line together with bullets.
_WITH_FENCES = frozenset({"verify", "rollback"})


_BOTH = frozenset({"rollback", "limits"})


def usable(value: Value) -> bool:
    """Whether the value has a shape that its reader accepts. Reports it otherwise."""
    if value.node is not None:
        return _usable_node(value)
    below = bool(value.bullets or (value.fences and value.name in _WITH_FENCES))
    if not value.inline.s and not below:
        if not value.others:
            _empty_value(value)
            return False
    elif value.inline.s and value.bullets and value.name not in _BOTH:
        message = f"{value.label} has both a value on its line and bullets below it"
        fix = "move everything into the bullets"
        value.error("field.two-places", value.label_at, message, value.inline.s, "one of them", fix)
        return False
    return _no_strays(value)


def _no_strays(value: Value) -> bool:
    strays: list[int] = [value.problems.source.starts[b.line] for b in value.others]
    strays += [f.start for f in value.fences if value.name not in _WITH_FENCES]
    if value.name != "acceptance":
        strays += [value.problems.source.starts[b.line] for bullet in value.bullets for b in bullet.others]
    for at in strays[:1]:
        message = f"{value.label} cannot hold this content"
        fix = "write it as bullets, or move it into the description"
        accepted = "a value on the line, or bullets below it"
        value.error("field.unexpected-content", at, message, accepted=accepted, fix=fix)
    return not strays


def _empty_value(value: Value) -> None:
    message = f"{value.label} has no value"
    fix = f"{'indent its value below it, or ' * (value.node is not None)}write none"
    value.error("field.empty", value.label_at, message, accepted="a value, or none", fix=fix)


# Fields whose YAML value may be a mapping.
_MAPPINGS = frozenset({"files", "interfaces", "limits", "rollback", "options", "acceptance"})


def _usable_node(value: Value) -> bool:
    node = value.node
    if isinstance(node, yaml_nodes.Scalar):
        if node.value.strip():
            return value.name != "files" or value.is_none or _bad_node(value, node)
        _empty_value(value)
        return False
    if isinstance(node, yaml_nodes.Sequence):
        odd = next((i for i in node.items if not isinstance(i, yaml_nodes.Scalar) or not i.value.strip()), None)
        wrong = value.name == "files" and node.items
        if value.name == "acceptance" or (odd is None and not wrong):
            return True
        return _bad_node(value, odd or node)
    return value.name in _MAPPINGS - {"acceptance"} or _bad_node(value, node)


def _bad_node(value: Value, node: yaml_nodes.Node | None) -> bool:
    accepted = "a map of verbs to lists of paths" if value.name == "files" else "a text or a list of texts"
    message = f"{value.label} must be {accepted}"
    fix = f"write {accepted}"
    value.error("field.not-text", node.start if node else value.label_at, message, accepted=accepted, fix=fix)
    return False
