"""Read tasks in YAML: a fence `yaml task`, or an item of a bare list."""

from __future__ import annotations

from bisect import bisect_right

from idumb.domain.plans.plan import Task
from idumb.markdown.plans import fields, labels, outline, steps, structured_values, task_reader
from idumb.markdown.plans.outline import Draft
from idumb.markdown.plans.task_reader import Context, Reading
from idumb.markdown.syntax import yaml_nodes
from idumb.markdown.syntax.problems import Problems

_YAML_ONLY = ("id", "title", "description", "steps")


def read(draft: Draft, context: Context) -> list[Task]:
    problems = context.problems
    node = _yaml_node(draft, problems)
    tasks: list[Reading | None] = []
    if isinstance(node, yaml_nodes.Sequence) and (draft.fence or len(node.items) == 1):
        tasks = [_task(draft, item, context) for item in node.items]
    elif isinstance(node, yaml_nodes.Mapping):
        tasks = [_task(draft, node, context)]
    elif node is not None or not problems.any_error:
        _not_a_task(node.start if node else draft.start, context)
    readings = [r for r in tasks if r]
    _behind_yaml(draft, readings, context)
    return [task_reader.finished(reading, context) for reading in readings]


def _not_a_task(at: int, context: Context) -> None:
    message = "A YAML task must be a mapping"
    fix = "write id: and title:"
    accepted = "a mapping with id, title and fields, or a list of such mappings"
    context.checker.error("task.not-a-mapping", at, message, accepted=accepted, fix=fix)


def _yaml_node(draft: Draft, problems: Problems) -> yaml_nodes.Node | None:
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
        n = min(max(bisect_right(bounds, index) - 1, 0), max(len(lines) - 1, 0))
        return source.starts[first + n] + index - bounds[n]

    return yaml_nodes.read("\n".join(lines), place, problems, "task")


_Pairs = dict[str, tuple[yaml_nodes.Scalar, yaml_nodes.Node]]


def _task(draft: Draft, node: yaml_nodes.Node, context: Context) -> Reading | None:
    problems = context.problems
    if not isinstance(node, yaml_nodes.Mapping):
        _not_a_task(node.start, context)
        return None
    pairs = {key.value: (key, value) for key, value in node.pairs}
    id, title = _text("id", pairs, node, context), _text("title", pairs, node, context)
    start = draft.start if draft.notation == outline.LIST else node.start
    task = Reading(draft.notation, id or "", title or "", start, node.end, problems.source.place(node.start)[0])
    _id(task, pairs, context)
    if "title" in pairs:
        task.spans["title"] = (pairs["title"][1].start, pairs["title"][1].end)
    for name, (key, value) in pairs.items():
        if name not in {"id", "title"}:
            _key(task, key, value, context)
    return task


def _text(name: str, pairs: _Pairs, node: yaml_nodes.Node, context: Context) -> str | None:
    value = pairs[name][1] if name in pairs else None
    if isinstance(value, yaml_nodes.Scalar) and value.value.strip():
        return value.value.strip()
    example = f"{name}: {context.checker.free}" if name == "id" else f"{name}:"
    message = f"This YAML task has no `{name}`"
    fix = f"add {example}"
    accepted = f"{name}: and a text"
    context.problems.error(
        f"task.no-{name}", value.start if value else node.start, message, field=name, accepted=accepted, fix=fix
    )
    return None


def _id(task: Reading, pairs: _Pairs, context: Context) -> None:
    if task.id and context.phase is not None and not labels.is_task_id(task.id, context.phase):
        message = f"`{task.id}` is not a task id of phase {context.phase}"
        fix = f"write T{context.phase}-, two or more digits and optionally a lower-case letter"
        accepted = context.checker.free
        context.problems.error(
            "task.bad-id", pairs["id"][1].start, message, field="id", found=task.id, accepted=accepted, fix=fix
        )


def _key(task: Reading, key: yaml_nodes.Scalar, node: yaml_nodes.Node, context: Context) -> None:
    problems = context.problems
    name = (
        labels.field_name(key.value) if key.value == key.value.lower() and not {" ", "-"} & set(key.value[2:]) else None
    )
    if key.value == "description" and isinstance(node, yaml_nodes.Scalar):
        task.values["description"] = node.value.strip("\n")
        task.spans["description"] = (node.start, node.end)
    elif key.value == "steps":
        task.spans["steps"] = (node.start, node.end)
        task.values["steps"] = steps.from_nodes(node, problems)
    elif key.value[:2] == "x-" and len(key.value) > 2:
        task_reader.read_field(task, structured_values.yaml_value(key.value, key, node, problems), context)
    elif name:
        task_reader.read_field(task, structured_values.yaml_value(name, key, node, problems), context)
    else:
        near = labels.nearest_key(key.value, _YAML_ONLY)
        message = f"Unknown key `{key.value}` in a task"
        fix = f"did you mean `{near}`?" if near else "indent it below its key, remove it, or rename it to x-…"
        accepted = ", ".join([*_YAML_ONLY, *labels.FIELDS])
        context.checker.error("task.unknown-label", key.start, message, key.value, accepted, fix)


def _behind_yaml(draft: Draft, readings: list[Reading], context: Context) -> None:
    """Read the steps after a YAML task, and report all other data before the next task."""
    problems = context.problems
    body = fields.read(draft.body, context.checker, fields_here=False)
    if readings:
        task_reader.step_fences(readings[-1], body.steps, problems)
    previous = draft.body[0] if draft.body else None
    if draft.yaml and previous and problems.source.lines[previous.line].lstrip().startswith("- "):
        context.checker.error(
            "task.yaml-item-without-id",
            problems.source.starts[previous.line],
            "Each item in a YAML list of tasks must start with its id",
            problems.source.lines[previous.line].strip(),
            f"- id: {context.checker.free}",
            "write id first",
        )
