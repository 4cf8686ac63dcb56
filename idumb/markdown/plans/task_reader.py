"""Read the tasks that the outline found, in Markdown or YAML: their fields, their steps and their description."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from idumb.domain.plans import plan
from idumb.domain.plans.plan import Task
from idumb.markdown.plans import criteria, near_misses, steps, values
from idumb.markdown.plans.fields import ALONE, CUSTOM, FIELDS, LABELS, Field, Label, field_name, label_of
from idumb.markdown.plans.task_finder import CHECKLIST, FENCE, HEADING, LIST, TaskDraft
from idumb.markdown.plans.values import is_task_id
from idumb.markdown.syntax import blocks, tree
from idumb.markdown.syntax.blocks import Block
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Place, Source
from idumb.markdown.syntax.tree import MAP, TEXT, Node, is_list, is_map, is_text

_BOLD_LINE = re.compile(r"(\*\*|__)([^*_:\uff1a]{1,60}?)\s*(?:[:\uff1a]\s*)?\1")


def read(draft: TaskDraft, context: Place) -> list[Task]:
    """Read one task, or several if a YAML fence contains a list."""
    if draft.notation in {FENCE, LIST}:
        return [finished(task, context) for task in _from_yaml(draft, context)]
    _from_markdown(draft, context)
    return [finished(draft, context)]


def finished(draft: TaskDraft, context: Place) -> Task:
    """Return the task, and report what it lacks as a whole."""
    source, given = context.source, draft.values
    if not draft.title and not draft.bad and draft.notation in {HEADING, CHECKLIST}:
        source.report("task.no-title", draft.start, draft.id, field="title")
    place = Place("Acceptance", source)
    human = given.get("kind", plan.BUILD) in plan.HUMAN_KINDS
    if draft.criteria is None and not human and not draft.bad:
        place.report("task.no-acceptance", draft.start, id=draft.called or draft.id)
    given["acceptance"] = criteria.settle(draft.criteria or [], place, given.get("verify", ()))
    spans = {name: source.span(*range) for name, range in draft.spans.items()}
    span = source.span(draft.start, draft.end)
    return Task(draft.id, draft.title, notation=draft.notation, span=span, spans=spans, **given)


# One field


def read_field(draft: TaskDraft, name: str, label: str, node: Node, at: int, context: Place) -> None:
    """Read one field into a draft: `at` is where it starts, `label` how it is written. Report a second one."""
    source = context.source
    place = Place(label, source, at, context.phase, context.declared)
    field = FIELDS.get(name, CUSTOM)
    if name in draft.spans:
        first = source.line_number(draft.spans[name][0])
        source.report("task.duplicate-label", at, label, field=field.labels[0], id=draft.id, first=first)
        return
    draft.spans[name] = (node.start, node.end)
    if not (_usable if node.kind == tree.BULLET else _usable_yaml)(name, field, node, place):
        if name == "acceptance":
            draft.criteria = []  # do not also report that there are none
        return
    if node.kind != tree.BULLET and name != "acceptance":
        node = tree.as_bullets(node)
        node.text.literal = name == "verify"
    value = field.read(node, place)
    if name == "acceptance":
        draft.criteria = value
    elif field is CUSTOM:
        draft.values.setdefault("extra", {})[name] = value
    elif value is not None:
        draft.values[name] = value


def _usable(name: str, field: Field, node: Node, place: Place) -> bool:
    """Whether a value has a shape that its reader accepts. Reports it otherwise."""
    if not node.value and not node.items and not (node.fences and field.fences) and not node.strays:
        place.report("field.empty", place.at)
        return False
    if node.value and node.items and not field.both:
        place.report("field.two-places", place.at, node.value)
        return False
    return values.only_bullets(node, place, fences=field.fences, deep=name != "acceptance")


def _usable_yaml(name: str, field: Field, node: Node, place: Place) -> bool:
    if is_text(node) and not node.value.strip():
        place.report("field.empty", place.at)
        return False
    odd = None
    if is_map(node):
        odd = None if field.map else node
    elif name == "files":
        odd = None if node.is_none else node
    elif is_list(node) and name != "acceptance":
        odd = next((item for item in node.items if item.kind != TEXT or not item.value.strip()), None)
    if odd is not None:
        accepted = "a map of verbs to lists of paths" if name == "files" else "a text or a list of texts"
        place.report("field.not-text", odd.start, accepted=accepted)
    return odd is None


# Markdown


def _from_markdown(draft: TaskDraft, context: Place) -> None:
    source = context.source
    last = draft.end_line if draft.text_end is None else draft.text_end
    filled = next((n for n in range(last - 1, draft.line, -1) if source.lines[n].strip()), draft.line)
    draft.end = source.end_of(filled)
    draft.spans["title"] = (draft.title_at, draft.title_at + len(draft.title))
    own = [block for block in draft.body if draft.text_end is None or block.line < draft.text_end]
    body = _Body(draft, context)
    if draft.item:
        body.read(draft.item.children[1:])
        text = lines_left((draft.item.line + 1, draft.item.end_line), body.taken, source, draft.item.indent)
        behind = _Body(draft, context, fields_here=False)
        behind.read(own)
        rest = lines_left((draft.item.end_line, last), behind.taken, source)
        draft.values["description"] = "\n\n".join(filter(None, (text, rest)))
    else:
        body.read(own)
        draft.values["description"] = lines_left((draft.body_line, last), body.taken, source)
    _Body(None, context).read(draft.body[len(own) :])  # under a group heading, where data belongs to no task


class _Body:
    """Separates the fields and steps of a task from its description, and reads them.

    Without a task, or with `fields_here` False, fields are errors. `taken` are the lines that are not description.
    """

    def __init__(self, draft: TaskDraft | None, context: Place, *, fields_here: bool = True) -> None:
        self.draft, self.context, self.source = draft, context, context.source
        self.near_misses = near_misses.of_phase(context.phase, context.source)
        self.fields_here = fields_here and draft is not None
        self.taken: list[tuple[int, int]] = []

    def read(self, body: Iterable[Block]) -> None:
        run: list[Block] = []
        for block in _flattened(body):
            if block.kind == blocks.ITEM and not block.ordered:
                run.append(block)
            elif block.kind == blocks.FENCE and block.info in steps.FENCES and block.top and not block.indent:
                self._steps(block)
            else:
                self._run(run)
                run = []
                self._other(block)
        self._run(run)

    def _steps(self, fence: Block) -> None:
        self.taken.append((fence.line, fence.end_line))
        draft, source = self.draft, self.source
        if draft is None:
            self.source.report("steps.no-task", fence.start, fence.info, field="steps")
        elif "steps" in draft.spans:
            first = source.line_number(draft.spans["steps"][0])
            self.source.report("steps.two-fences", fence.start, fence.info, field="steps", id=draft.id, first=first)
        else:
            draft.spans["steps"] = (fence.start, source.end_of(fence.end_line - 1))
            draft.values["steps"] = steps.from_fence(fence, self.source)

    def _run(self, run: list[Block]) -> None:
        """Read a run of bullets: all are fields, or all are description."""
        labelled = [(item, text, label_of(text.value)) for item in run for text in [blocks.first_text(item)[0]]]
        has_field = any(label.field for _, _, label in labelled)
        for item, text, label in labelled:
            for child in item.children:
                self.near_misses.report_in(child, boxes=label.name != "acceptance")
            if label.name and not label.colon:
                self.source.report("field.no-colon", item.start, label.shown, field=label.shown)
            elif not has_field:
                continue
            elif not label.name:
                if self.fields_here and text.value[:1] != "[":  # malformed checkboxes are reported separately
                    self._unknown(item, text, label)
            elif self.fields_here and self.draft is not None:
                self.taken.append((item.line, item.end_line))
                node = blocks.value_of(item, self.source.starts, label.end)
                node.end = self.source.end_of(item.end_line - 1)
                behind = min(text.at(len(text.value) - 1) + 1, node.end)
                node.start = node.text.at(0) if node.value else node.items[0].start if node.items else behind
                read_field(self.draft, label.name, label.shown, node, item.start, self.context)
            else:
                self.source.report("field.misplaced", item.start, label.shown, field=label.shown)

    def _unknown(self, item: Block, text: Text, label: Label) -> None:
        code, shown = ("task.unknown-label", label.shown) if label.colon else ("task.not-a-field", text.value)
        near = LABELS if len(shown) <= 60 else ()
        self.source.report(code, item.start, shown, near, field="task", accepted=", ".join(LABELS))

    def _other(self, block: Block) -> None:
        """Report what looks like a field in the description."""
        if block.kind == blocks.ITEM:
            for child in block.children:
                self.near_misses.report_in(child, boxes=True)
            text, _ = blocks.first_text(block)
            label = label_of(text.value)
            if label.field:
                self.source.report("field.numbered", block.start, text.value, field=label.shown)
        elif block.kind == blocks.PARAGRAPH:
            for line, at in block.pieces:
                m = _BOLD_LINE.match(line)
                if m and field_name(m[2]):
                    self.source.report("field.no-bullet", at, line, field=m[2])


def _flattened(body: Iterable[Block]) -> Iterator[Block]:
    for block in body:
        if block.kind == blocks.LIST:
            yield from block.children
        else:
            yield block


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
            parts[-1].append(text[min(dedent, len(text) - len(text.lstrip(" \t"))) :])
        line += 1
    return "\n\n".join(filter(None, map(_trimmed, parts)))


def _trimmed(lines: list[str]) -> str:
    """Join lines without the blank ones around them."""
    filled = [n for n, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


# YAML: a fence `yaml task`, or an item of a bare list


def _from_yaml(draft: TaskDraft, context: Place) -> list[TaskDraft]:
    source, node = context.source, _node_of(draft, context.source)
    tasks = node.items if is_list(node) else [node] if is_map(node) else []
    if not tasks and (node is not None or not source.any_error):
        source.report("task.not-a-mapping", node.start if node else draft.start, field="task")
    read = [one for task in tasks if (one := _yaml_task(draft, task, context)) is not None]
    _Body(read[-1] if read else draft, context, fields_here=False).read(draft.body)
    behind = source.lines[draft.body[0].line] if draft.yaml and draft.body else ""
    if behind.lstrip().startswith("- "):
        at = source.starts[draft.body[0].line]
        source.report("task.yaml-item-without-id", at, behind.strip(), field="task")
    return read


def _node_of(draft: TaskDraft, source: Source) -> Node | None:
    """Return the YAML of a draft without its comments, which end no item."""
    lines = source.part(draft.line, (draft.yaml or draft).end_line)
    return tree.read(draft.fence.body(source) if draft.fence else lines, source, "task")


def _yaml_task(draft: TaskDraft, node: Node, context: Place) -> TaskDraft | None:
    source = context.source
    if node.kind != MAP:
        source.report("task.not-a-mapping", node.start, field="task")
        return None
    pairs = {key.value: value for key, value in node.pairs}
    texts = dict.fromkeys(("id", "title"), "")
    for name in texts:
        value = pairs.get(name)
        texts[name] = value.value.strip() if is_text(value) else ""
        if not texts[name]:
            source.report(f"task.no-{name}", value.start if value else node.start, field=name)
    start = draft.start if draft.notation == LIST else node.start
    task = TaskDraft(draft.notation, texts["id"], texts["title"], start, end=node.end)
    if task.id and context.phase is not None and not is_task_id(task.id, context.phase):
        form = f"T{context.phase}-, two or more digits and optionally a lower-case letter"
        source.report("task.bad-id", pairs["id"].start, task.id, field="id", form=form)
    for key, value in node.pairs:
        _yaml_key(task, key, value, context)
    return task


def _yaml_key(draft: TaskDraft, key: Node, value: Node, context: Place) -> None:
    name = key.value
    known = field_name(name) if name == name.lower() and not {" ", "-"} & set(name[2:]) else None
    known = name if name[:2] == "x-" and len(name) > 2 else known
    if name in ALONE and name != "id":
        draft.spans[name] = (value.start, value.end)
    if name == "description" and is_text(value):
        draft.values[name] = value.value.strip("\n")
    elif name == "description":
        Place(name, context.source).report("field.not-text", value.start, accepted="a text")
    elif name == "steps":
        draft.values[name] = steps.from_nodes(value, context.source)
    elif known:
        read_field(draft, known, name, value, key.start, context)
    elif name not in ALONE:
        context.source.report("task.unknown-label", key.start, name, (*ALONE, *FIELDS), field="task")
