"""Read a plan of GSD or of the first iDumb into a plan of the contract. Never raises on its input."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from idumb.app.ports import ParsedPlan
from idumb.domain import paths, wording
from idumb.domain.plans.phase_ids import QUICK
from idumb.domain.plans.plan import CHECK, HUMAN, Criterion, Plan, Setup, Span
from idumb.markdown import phases
from idumb.markdown.plans import frontmatter
from idumb.markdown.plans.dialects import foreign_task, headed_tasks, tagged_tasks
from idumb.markdown.plans.dialects.foreign_task import ForeignTask
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.inline import Piece
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

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
    """Parse a plan in one of the dialects that `plan_parser.dialect_of` recognizes."""
    head = _read_head(source)
    draft = None
    if not any(f.code in ("plan.line-too-long", "plan.frontmatter-never-closed") for f in source.findings):
        draft = _plan(data, path, dialect, head, source)
    findings = source.sorted()
    return ParsedPlan(None if source.any_error else draft, findings, source.text, draft, dialect)


def _plan(data: bytes, path: str, dialect: str, head: _Head, source: Source) -> Plan:
    phase = _phase(path, head, source)
    plan = _plan_id(path, head)
    begin = source.starts[head.end_line] if head.end_line < len(source.starts) else len(source.text)
    tasks, texts = _tasks(Piece(source.text[begin:], begin), head.end_line, source)
    if not tasks:
        accepted = '<task type="auto"> … </task>, or headings such as ### Task 1: Title'
        fix = "write its tasks in one of these forms, or convert it: idumb import PATH"
        source.report("plan.no-tasks", begin if begin < len(source.text) else 0, accepted=accepted, fix=fix)
    objective = head.texts.get("objective") or next((foreign_task.block(t) for t, _ in texts.get("objective", ())), "")
    title = head.texts.get("title") or _heading(source, head.end_line) or _first_line(objective) or f"Plan {plan}"
    blocks = ((name, foreign_task.block(text)) for name in _SHARED for text, _ in texts.get(name, ()))
    shared = [f"{name.capitalize()} of the plan:\n{text}" for name, text in blocks]
    for task in tasks:
        task.references = [*shared, *task.references]
    return Plan(
        path, hashlib.sha256(data).hexdigest(), phase, plan, title, head.texts.get("goal") or objective or title,
        depends_on=_depends_on(head, phase, source), requirements=head.requirements,
        success_criteria=tuple(head.criteria) or _success(texts, source), setup=tuple(head.setup), extra=head.extra,
        tasks=foreign_task.tasks_of(tasks, foreign_task.prefix(phase, plan), source, head.requirements, head.files),
        spans=head.spans, dialect=dialect, wave=head.wave,
    )  # fmt: skip


def _tasks(body: Piece, first: int, source: Source) -> tuple[list[ForeignTask], dict[str, list[Piece]]]:
    task_name = tagged_tasks.task_tag(source.text)
    if task_name is None:
        return headed_tasks.read(first, source)
    tasks, texts = tagged_tasks.read(tagged_tasks.Tags(source), task_name, body)
    for name in texts.keys() - _OTHER_TEXTS - set(_SHARED):
        known = ", ".join(_SHARED)
        for part in texts[name]:
            source.report("dialect.unknown-tag", part.at, f"<{name}>", accepted=known, then="does not read it")
    return tasks, texts


def _heading(source: Source, first: int) -> str:
    """Return the text of the first heading of level 1 before any other content."""
    lines = (line for line in source.lines[first : first + 20] if line.strip() and not line.startswith("<!--"))
    line = next(lines, "")
    return wording.short(line[2:].strip()) if line.startswith("# ") else ""


def _first_line(text: str) -> str:
    return wording.short(next((line.strip() for line in text.split("\n") if line.strip()), ""))


def _success(texts: dict[str, list[Piece]], source: Source) -> tuple[Criterion, ...]:
    """Return the items of `<success_criteria>` as criteria that a person judges."""
    stated = [item for part in texts.get("success_criteria", ()) for item in foreign_task.items(part)]
    rows = enumerate(stated, 1)
    return tuple(Criterion(f"AC-{n}", words, HUMAN, span=source.span(at, at)) for n, (words, at) in rows)


def _phase(path: str, head: _Head, source: Source) -> str:
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
    if own and not phases.same_phase(own, phase):
        source.report("dialect.other-phase", head.spans["phase"].start, stated, field="phase", phase=phase)
    return phase


def _number(name: str) -> str:
    return phases.number(name) or phases.other_number(name) or ""


def _id(text: str) -> str:
    return _NOT_ID.sub("-", text).strip("-._")[:_LONGEST_ID]


def _plan_id(path: str, head: _Head) -> str:
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


def _depends_on(head: _Head, phase: str, source: Source) -> tuple[str, ...]:
    """Return the plans of the phase that must run first. What names no plan of the phase is reported."""
    plans: list[str] = []
    for stated, at in head.depends_on:
        for text in re.split(r"\s*,\s*", stated) if re.fullmatch(r"[\w.,\s-]+", stated) and "," in stated else [stated]:
            name = re.sub(r"[-_](?:PLAN|SUMMARY)$", "", _ABOUT.sub("", text).strip("`\"' ").removesuffix(".md"))
            name = named[1] if (named := _NAMED.fullmatch(name)) else name
            numbers = _FILE.fullmatch(name)
            if _ALONE.fullmatch(name):
                plans.append(_padded(name))
            elif numbers and phases.same_phase(numbers[1], phase):
                plans.append(_padded(numbers[2]))
            else:
                source.report("dialect.unread-dependency", at, text, field="depends_on", what=f"plan of phase {phase}")
    return tuple(dict.fromkeys(plans))


# The frontmatter: what idumb needs of it, and what it cannot read

_WORD = re.compile(r"[^\s,`\"'\[\]{}:]+")
_TRUTHS = frozenset({"truths", "observable_truths"})
_CLOSED = re.compile(r"done|complete|executed|superseded|cancell?ed|skipped|deferred|halted|blocked", re.IGNORECASE)
_TEXTS = frozenset({"phase", "plan", "title", "objective", "goal"})
_IGNORED = frozenset(
    {
        "type", "autonomous", "gap_closure", "cross_ai", "status", "created", "updated", "created_by", "validated_by",
        "validation_score", "task_count", "estimated_hours", "phase_name", "tasks", "mode", "effort",
    }
)  # fmt: skip
"""Keys that describe the plan and change nothing about its tasks."""


class _Head(Struct):
    """`end_line` is the line after the frontmatter, 0 without one. `depends_on` are plans as the author names them."""

    end_line: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    wave: int | None = None
    depends_on: list[Piece] = field(default_factory=list)
    files: list[Piece] = field(default_factory=list)
    requirements: dict[str, str] = field(default_factory=dict)
    criteria: list[Criterion] = field(default_factory=list)
    setup: list[Setup] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)


def _read_head(source: Source) -> _Head:
    """Return the frontmatter; an empty one if there is none."""
    head = _Head()
    if source.lines[0].rstrip(" \t") != "---":
        return head
    node, end_line = frontmatter.nodes(source)
    head.end_line = end_line or 0
    for key, value in node.pairs if node is not None else ():
        head.spans[key.value.replace("-", "_")] = source.span(value.start, value.end)
        _key(head, key, value, source)
    return head


def _key(head: _Head, key: Node, node: Node, source: Source) -> None:
    name = key.value.replace("-", "_")
    if is_text(node) and name in _TEXTS:
        head.texts[name] = node.value.strip()
    elif name in _READERS:
        _READERS[name](head, node, source)
    elif name == "status" and is_text(node) and _CLOSED.match(node.value):
        source.report("dialect.done", key.start, f"{key.value}: {node.value}")
    elif name not in _IGNORED:
        head.extra[key.value] = tree.plain(node)
        source.report("dialect.unknown-key", key.start, key.value, field=key.value)


def _requirements(head: _Head, node: Node, _source: Source) -> None:
    stated = (_text(each) for each in _each(node))
    for each in (part for text in stated for part in ([text] if ":" in text else text.split(","))):
        word, _, text = each.partition(":")
        if id := _WORD.match(word.strip()):
            head.requirements.setdefault(id[0], text.strip())


def _wave(head: _Head, node: Node, source: Source) -> None:
    text = node.value.strip() if is_text(node) else ""
    head.wave = int(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else None
    if head.wave is None and _each(node):
        source.report("dialect.bad-value", node.start, text, field="wave")


def _must_haves(head: _Head, node: Node, source: Source) -> None:
    rows = [(key.value.replace("-", "_"), key, values) for key, values in node.pairs] if is_map(node) else []
    for name, key, values in rows or [("truths", node, node)]:
        if name not in _TRUTHS | {"artifacts", "key_links"}:
            source.report("dialect.unknown-key", key.start, key.value, field=key.value)
            continue
        for each in _each(values):
            text, command = _artifact(each) if name == "artifacts" else (_text(each), None)
            if name == "key_links" and is_map(each):
                begin, end, via = (_text(tree.find(each, name)) for name in ("from", "to", "via"))
                text = f"{begin or '?'} is connected to {end or '?'}{f' via {via}' if via else ''}"
            if text:
                id, proof = f"AC-{len(head.criteria) + 1}", CHECK if command else HUMAN
                head.criteria.append(Criterion(id, text, proof, command, span=source.span(each.start, each.end)))


def _artifact(node: Node) -> tuple[str, str | None]:
    """Return an artifact and its check: its path, size and content are checked as GSD checks them."""
    path, provides = _text(tree.find(node, "path") or node).strip("`"), _text(tree.find(node, "provides"))
    words = f"{path}: {provides}" if provides else path
    if paths.problem(path) or re.search(r"\s", path):
        return words, None
    quoted = shlex.quote(path)
    contains = [_text(each) for name in ("contains", "exports") for each in _each(tree.find(node, name))]
    tests = [f"test -e {quoted}"]
    tests += [f"grep -qF -e {shlex.quote(text)} -- {quoted}" for text in contains if text and "\n" not in text]
    lines = _text(tree.find(node, "min_lines"))
    tests += [f'test "$(wc -l < {quoted})" -ge {lines}'] if re.fullmatch(r"\d{1,7}", lines, re.ASCII) else []
    return words, " && ".join(tests)


def _setup(head: _Head, node: Node, _source: Source) -> None:
    for each in _each(node):
        names = [_text(tree.find(variable, "name") or variable) for variable in _each(tree.find(each, "env_vars"))]
        rows = [row for name in ("dashboard_config", "local_dev") for row in _each(tree.find(each, name))]
        known = tuple(name for name in names if re.fullmatch(r"\w+", name))
        service, why = _text(tree.find(each, "service") or each), _text(tree.find(each, "why"))
        head.setup.append(Setup(service or "a service", why, known, "; ".join(map(_text, rows))))


_READERS: Mapping[str, Callable[[_Head, Node, Source], None]] = {
    "wave": _wave, "requirements": _requirements, "must_haves": _must_haves, "user_setup": _setup,
    "depends_on": lambda head, node, _: head.depends_on.extend(_pieces(node)),
    "files_modified": lambda head, node, _: head.files.extend(_pieces(node)),
}  # fmt: skip


def _pieces(node: Node) -> Iterator[Piece]:
    return (Piece(text, each.start) for each in _each(node) if (text := _text(each)))


_NONE = frozenset({"", "none", "[]", "null", "~", "n/a"})


def _each(node: Node | None) -> list[Node]:
    """Return the items of a list, or a single value as a list, without those that say that there is none."""
    found = node.items if is_list(node) else [] if node is None else [node]
    return [each for each in found if not (is_text(each) and each.value.strip().lower() in _NONE)]


def _text(node: Node | None) -> str:
    return foreign_task.flat(tree.said(node))
