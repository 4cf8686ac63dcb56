"""Read the frontmatter of GSD plans and of the first iDumb template: what idumb needs, and what it cannot read."""

from __future__ import annotations

import re
import shlex
from dataclasses import field
from typing import Any

from idumb.domain import paths
from idumb.domain.plans.plan import CHECK, HUMAN, Criterion, Setup, Span
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import frontmatter
from idumb.markdown.plans.dialects import checks
from idumb.markdown.plans.dialects.drafts import Part
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

_WORD = re.compile(r"[^\s,`\"'\[\]{}:]+")
_TRUTHS = frozenset({"truths", "observable_truths"})
_TEXTS = frozenset({"phase", "plan", "title", "objective", "goal"})
_IGNORED = frozenset(
    {
        "type", "autonomous", "gap_closure", "cross_ai", "status", "created", "updated", "created_by", "validated_by",
        "validation_score", "task_count", "estimated_hours", "phase_name", "tasks", "mode", "effort",
    }
)  # fmt: skip
"""Keys that describe the plan and change nothing about its tasks."""


@dataclass(slots=True)
class Head:
    """`end_line` is the line after the frontmatter, 0 without one. `depends_on` are plans as the author names them."""

    end_line: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    wave: int | None = None
    depends_on: list[Part] = field(default_factory=list)
    files: list[Part] = field(default_factory=list)
    requirements: dict[str, str] = field(default_factory=dict)
    criteria: list[Criterion] = field(default_factory=list)
    setup: list[Setup] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)


def read(source: Source) -> Head:
    """Return the frontmatter; an empty one if there is none."""
    head = Head()
    if source.lines[0].rstrip(" \t") != "---":
        return head
    node, end_line = frontmatter.nodes(source)
    head.end_line = end_line or 0
    for key, value in node.pairs if node is not None else ():
        head.spans[key.value.replace("-", "_")] = source.span(value.start, value.end)
        _key(head, key, value, source)
    return head


def _key(head: Head, key: Node, node: Node, source: Source) -> None:
    name = key.value.replace("-", "_")
    if is_text(node) and name in _TEXTS:
        head.texts[name] = node.value.strip()
    elif name in _READERS:
        _READERS[name](head, node, source)
    elif name not in _IGNORED and name not in _LISTS:
        head.extra[key.value] = tree.plain(node)
        source.report("dialect.unknown-key", key.start, key.value, field=key.value)
    if name in _LISTS:
        parts = [(text, each.start) for each in _each(node) if (text := _text(each))]
        setattr(head, _LISTS[name], parts)


def _requirements(head: Head, node: Node, _source: Source) -> None:
    for word, _, text in (_text(each).partition(":") for each in _each(node)):
        if id := _WORD.match(word.strip()):
            head.requirements.setdefault(id[0], text.strip())


def _wave(head: Head, node: Node, source: Source) -> None:
    text = node.value.strip() if is_text(node) else ""
    head.wave = int(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else None
    if head.wave is None and not (is_text(node) and node.is_null):
        source.report("dialect.bad-value", node.start, text, field="wave")


def _must_haves(head: Head, node: Node, source: Source) -> None:
    for part, values in node.pairs if is_map(node) else ():
        _must_have(head, part, values, source)


def _must_have(head: Head, key: Node, node: Node, source: Source) -> None:
    name = key.value.replace("-", "_")
    if name not in _TRUTHS | {"artifacts", "key_links"}:
        source.report("dialect.unknown-key", key.start, key.value, field=key.value)
        return
    for each in _each(node):
        text, command = _artifact(each) if name == "artifacts" else (_text(each), None)
        if name == "key_links" and is_map(each):
            fields = {name: _text(value) for name, value in _map(each).items()}
            via = f" via {fields['via']}" if fields.get("via") else ""
            text = f"{fields.get('from', '?')} is connected to {fields.get('to', '?')}{via}"
        if text:
            id, proof = f"AC-{len(head.criteria) + 1}", CHECK if command else HUMAN
            head.criteria.append(Criterion(id, text, proof, command, span=source.span(each.start, each.end)))


def _artifact(node: Node) -> tuple[str, str | None]:
    """Return an artifact and its check: its path, size and content are checked as GSD checks them."""
    fields = _map(node)
    path = _text(fields.get("path", node)).strip("`")
    words = f"{path}: {_text(fields['provides'])}" if fields.get("provides") else path
    if paths.problem(path) or re.search(r"\s", path):
        return words, None
    quoted = shlex.quote(path)
    contains = [_text(each) for name in ("contains", "exports") for each in _each(fields.get(name))]
    tests = [f"test -e {quoted}"]
    tests += [f"grep -qF -e {shlex.quote(text)} -- {quoted}" for text in contains if text and "\n" not in text]
    lines = _text(fields["min_lines"]) if "min_lines" in fields else ""
    tests += [f'test "$(wc -l < {quoted})" -ge {lines}'] if re.fullmatch(r"\d{1,7}", lines, re.ASCII) else []
    return words, " && ".join(tests)


def _setup(head: Head, node: Node, _source: Source) -> None:
    for each in _each(node):
        fields = _map(each)
        names = [_text(_map(variable).get("name", variable)) for variable in _each(fields.get("env_vars"))]
        steps = "; ".join(_text(step) for step in _each(fields.get("dashboard_config")))
        why = _text(fields["why"]) if "why" in fields else ""
        known = tuple(name for name in names if re.fullmatch(r"\w+", name))
        head.setup.append(Setup(_text(fields.get("service", each)) or "a service", why, known, steps))


_LISTS = {"depends_on": "depends_on", "files_modified": "files"}
_READERS = {"wave": _wave, "requirements": _requirements, "must_haves": _must_haves, "user_setup": _setup}


def _map(node: Node) -> dict[str, Node]:
    return {k.value: v for k, v in node.pairs} if is_map(node) else {}


def _each(node: Node | None) -> list[Node]:
    """Return the items of a list, or a single value as a list; nothing for an empty value."""
    if is_list(node):
        return node.items
    if node is None or (is_text(node) and (node.is_null or node.value.strip().lower() in ("none", "[]"))):
        return []
    return [node]


def _text(node: Node) -> str:
    """Return a value on one line. An unquoted text with a colon is a mapping in YAML; it becomes text again."""
    if is_text(node):
        return checks.flat(node.value)
    if is_list(node):
        return ", ".join(map(_text, node.items))
    return "; ".join(f"{key.value}: {_text(value)}" for key, value in node.pairs)
