"""Read the frontmatter of GSD plans and of the first iDumb template: what idumb needs, and what it cannot read."""

from __future__ import annotations

import re
import shlex
from dataclasses import field
from typing import Any

from idumb import lazy_pattern
from idumb.domain import paths
from idumb.domain.plans.plan import CHECK, HUMAN, Criterion, Setup, Span
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import frontmatter
from idumb.markdown.plans.dialects import checks
from idumb.markdown.plans.dialects.drafts import Part
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

_WORD = lazy_pattern.compile(r"[^\s,`\"'\[\]{}:]+")
_TRUTHS = frozenset({"truths", "observable_truths"})
_IGNORED = frozenset(
    {
        "type", "autonomous", "gap_closure", "cross_ai", "status", "created", "updated", "created_by", "validated_by",
        "validation_score", "task_count", "estimated_hours", "phase_name", "tasks", "mode", "effort",
        "estimated_steps", "estimated_files", "skills_used",
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


def read(source: Source, problems: Problems) -> Head:
    """Return the frontmatter; an empty one if there is none."""
    head = Head()
    if source.lines[0].rstrip(" \t") != "---":
        return head
    end = frontmatter.closing(source, problems)
    if end is None:
        return head
    head.end_line = end + 1
    begin = source.starts[1]
    text = source.text[begin : source.starts[end]]
    if len(text.encode()) > frontmatter.MAX_BYTES:
        problems.report("plan.frontmatter-too-large", source.starts[0])
        return head
    node = tree.read(text, lambda index: begin + index, problems, "frontmatter")
    if is_map(node):
        reader = _Reader(head, problems)
        for key, value in node.pairs:
            reader.key(key, value)
    return head


class _Reader:
    def __init__(self, head: Head, problems: Problems) -> None:
        self.head = head
        self.problems = problems

    def key(self, key: Node, node: Node) -> None:
        name = key.value.replace("-", "_")
        head = self.head
        line = self.problems.source.line_of(node.start) + 1
        head.spans[name] = Span(node.start, node.end, line)
        if is_text(node) and name in ("phase", "plan", "title", "objective", "goal"):
            head.texts[name] = node.value.strip()
        elif name == "wave":
            self._wave(node)
        elif name == "depends_on":
            head.depends_on = [(text, each.start) for each in _each(node) if (text := _text(each))]
        elif name == "files_modified":
            head.files = [(text, each.start) for each in _each(node) if (text := _text(each))]
        elif name == "requirements":
            self._requirements(node)
        elif name == "must_haves" and is_map(node):
            for part, values in node.pairs:
                self._must_haves(part, values)
        elif name == "user_setup":
            self._setup(node)
        elif name not in _IGNORED:
            head.extra[key.value] = tree.plain(node)
            self._unread(key, f"idumb does not read the key `{key.value}`")

    def _unread(self, key: Node, message: str) -> None:
        self.problems.warning(
            "dialect.unknown-key",
            key.start,
            message,
            field=key.value,
            found=key.value,
            fix="move it into the text if a builder must know it",
        )

    def _wave(self, node: Node) -> None:
        text = node.value.strip() if is_text(node) else ""
        if re.fullmatch(r"\d{1,6}", text, re.ASCII):
            self.head.wave = int(text)
        elif not (is_text(node) and node.is_null):
            self.problems.warning(
                "dialect.bad-value", node.start, "`wave` is no whole number, so it orders nothing", field="wave",
                found=text, fix="write wave: 1",
            )  # fmt: skip

    def _requirements(self, node: Node) -> None:
        for each in _each(node):
            word, _, text = _text(each).partition(":")
            id = _WORD.match(word.strip())
            if id:
                self.head.requirements.setdefault(id[0], text.strip())

    def _must_haves(self, key: Node, node: Node) -> None:
        name = key.value.replace("-", "_")
        for each in _each(node):
            if name in _TRUTHS:
                self._person(_text(each), each)
            elif name == "artifacts":
                self._artifact(each)
            elif name == "key_links":
                self._link(each)
        if name not in _TRUTHS | {"artifacts", "key_links"}:
            self._unread(key, f"idumb does not read `{key.value}` of must_haves")

    def _person(self, text: str, node: Node) -> None:
        if text:
            self._criterion(text, HUMAN, node)

    def _criterion(self, text: str, proof: str, node: Node, command: str | None = None) -> None:
        line = self.problems.source.line_of(node.start) + 1
        id = f"AC-{len(self.head.criteria) + 1}"
        self.head.criteria.append(Criterion(id, text, proof, command, span=Span(node.start, node.end, line)))

    def _artifact(self, node: Node) -> None:
        """Read an artifact: its path, size and content are checked as GSD checks them."""
        fields = {k.value: v for k, v in node.pairs} if is_map(node) else {}
        path = _text(fields.get("path", node)).strip("`")
        provides = _text(fields["provides"]) if "provides" in fields else ""
        words = f"{path}: {provides}" if provides else path
        if paths.problem(path) or re.search(r"\s", path):
            self._person(words, node)
            return
        quoted = shlex.quote(path)
        tests = [f"test -e {quoted}"]
        contains = [_text(each) for name in ("contains", "exports") for each in _each(fields.get(name))]
        tests += [f"grep -qF -e {shlex.quote(text)} -- {quoted}" for text in contains if text and "\n" not in text]
        lines = _text(fields["min_lines"]) if "min_lines" in fields else ""
        if re.fullmatch(r"\d{1,7}", lines, re.ASCII):
            tests.append(f'test "$(wc -l < {quoted})" -ge {lines}')
        self._criterion(words, CHECK, node, " && ".join(tests))

    def _link(self, node: Node) -> None:
        if not is_map(node):
            self._person(_text(node), node)
            return
        fields = {k.value: _text(v) for k, v in node.pairs}
        via = f" via {fields['via']}" if fields.get("via") else ""
        self._person(f"{fields.get('from', '?')} is connected to {fields.get('to', '?')}{via}", node)

    def _setup(self, node: Node) -> None:
        for each in _each(node):
            fields = {k.value: v for k, v in each.pairs} if is_map(each) else {}
            names = []
            for variable in _each(fields.get("env_vars")):
                inner = {k.value: v for k, v in variable.pairs} if is_map(variable) else {}
                names.append(_text(inner.get("name", variable)))
            steps = "; ".join(_text(step) for step in _each(fields.get("dashboard_config")))
            service = _text(fields.get("service", each)) or "a service"
            why = _text(fields["why"]) if "why" in fields else ""
            names = [name for name in names if re.fullmatch(r"\w+", name)]
            self.head.setup.append(Setup(service, why, tuple(names), steps))


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
