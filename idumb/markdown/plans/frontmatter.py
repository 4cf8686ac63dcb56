"""Read the frontmatter of a plan: the YAML between the `---` lines at its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.finding import did_you_mean
from idumb.domain.plans.plan import GUIDED, STRICT, Invariant, Limits, NonGoal, Scope, Setup, Span
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import criteria, structured_values
from idumb.markdown.syntax import inline, yaml_nodes
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.yaml_nodes import Mapping, Node, Scalar, Sequence

MAX_BYTES = 64 * 1024
REQUIRED = ("type", "phase", "plan", "title", "goal")
_ID = lazy_pattern.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_VERSION = lazy_pattern.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
_WORD = lazy_pattern.compile(r"[^\s,`\"'\[\]{}]+")


@dataclass(slots=True)
class Frontmatter:
    """The keys of a plan; `end_line` is the line after the closing `---`."""

    end_line: int
    values: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    criteria: list[criteria.Draft] | None = None


def read(source: Source, problems: Problems) -> Frontmatter | None:
    """Read the frontmatter of a plan; None if there is none."""
    node, end_line = nodes(source, problems)
    if end_line is None:
        return None
    head = Frontmatter(end_line)
    if node is not None:
        _Reader(head, problems).read(node)
    return head


def nodes(source: Source, problems: Problems) -> tuple[Mapping | None, int | None]:
    """Return the frontmatter as nodes, with the first line after it; None if it has no keys, or there is none."""
    end = closing(source, problems)
    if end is None:
        return None, None
    begin = source.starts[1]
    text = source.text[begin : source.starts[end]]
    if len(text.encode()) > MAX_BYTES:
        too_large(source, problems)
        return None, end + 1
    node = yaml_nodes.read(text, lambda index: begin + index, problems, "frontmatter")
    if isinstance(node, Mapping):
        return node, end + 1
    if node is not None or not problems.any_error:
        problems.error(
            "plan.no-frontmatter", source.starts[0], "The frontmatter has no keys", accepted="key: value", fix=_ADD
        )
    return None, end + 1


_MARGIN = "remove any tab and spaces before --- on line {}"
_ADD = "start the file with ---, type: plan, phase, plan, title, goal and ---"


def too_large(source: Source, problems: Problems) -> None:
    message = "The frontmatter is larger than 64 KiB"
    fix = "move long texts into the body of the plan"
    problems.error("plan.frontmatter-too-large", source.starts[0], message, accepted="at most 64 KiB", fix=fix)


def closing(source: Source, problems: Problems) -> int | None:
    """Return the line that closes the frontmatter; None, with a problem, if there is none."""
    lines = source.lines
    if lines[0].rstrip(" \t") != "---":
        message = "The plan does not start with frontmatter"
        fix = _MARGIN.format(1) if lines[0].strip() == "---" else _ADD
        problems.error("plan.no-frontmatter", source.starts[0], message, found=lines[0], accepted="---", fix=fix)
        return None
    for n in range(1, len(lines)):
        if lines[n].startswith("---") and not lines[n][3:].strip(" \t"):
            return n
    indented = next((n for n, line in enumerate(lines[1:], 2) if line.strip() == "---"), 0)
    message = "The frontmatter is never closed"
    fix = _MARGIN.format(indented) if indented else "close it with --- on a separate line"
    problems.error("plan.frontmatter-never-closed", source.starts[0], message, found="---", accepted="---", fix=fix)
    return None


class _Reader:
    """Reads each key with its method in `_KEYS`."""

    def __init__(self, frontmatter: Frontmatter, problems: Problems) -> None:
        self.frontmatter = frontmatter
        self.problems = problems

    def read(self, node: Mapping) -> None:
        for key, value in node.pairs:
            self._key(key, value)
        keys = {key.value for key, _ in node.pairs}
        missing = [k for k in REQUIRED if k not in keys]
        for name in missing:
            message = f"The frontmatter has no `{name}`"
            self._error("plan.missing-key", self.problems.source.starts[0], name, message, fix=f"add {name}:")

    def _key(self, key: Scalar, node: Node) -> None:
        name = key.value
        if name[:2].lower() == "x-" and len(name) > 2:
            self.frontmatter.values.setdefault("extra", {})[name] = plain(node)
            return
        if name not in _KEYS:
            fix = did_you_mean(name, _KEYS, f"remove it, or rename it to x-{name}")
            if owner := next((parent for parent, keys in _INNER.items() if name in keys), ""):
                fix = f"if it belongs to {owner}, indent it; otherwise {fix}"
            self._error("plan.unknown-key", key.start, name, f"Unknown key `{name}`", found=name, fix=fix)
            return
        line = self.problems.source.place(node.start)[0]
        self.frontmatter.spans[name] = Span(node.start, node.end, line)
        if isinstance(node, Scalar) and node.is_null:
            fix = "write a value, or remove it"
            self._error("plan.empty-value", key.start, name, f"`{name}` has no value", fix=fix)
            return
        value = _KEYS[name][0](self, name, node)
        if value is not None:
            self.frontmatter.values[name] = value

    def _error(self, code: str, at: int, name: str, message: str, *, found: str = "", fix: str = "") -> None:
        accepted = _KEYS[name][1] if name in _KEYS else ", ".join(_KEYS)
        self.problems.error(
            code, at, message, field=name, found=found, accepted=accepted, fix=fix or f"write {accepted}"
        )

    def _bad(self, name: str, node: Node) -> None:
        message = f"`{name}` must be {_KEYS[name][1]}"
        self._error("plan.bad-value", node.start, name, message, found=self._shown(node))

    def _shown(self, node: Node) -> str:
        """Return the text of a scalar, or the first line of a list or mapping."""
        if isinstance(node, Scalar):
            return node.value
        return self.problems.source.text[node.start : node.end].partition("\n")[0].strip()

    # One key each

    def type(self, name: str, node: Node) -> None:
        if not isinstance(node, Scalar) or node.value != "plan":
            message = "The type of a plan must be `plan`"
            self._error("plan.wrong-type", node.start, name, message, found=self._shown(node))

    def _matching(self, name: str, node: Node, valid: Callable[[str], Any]) -> str | None:
        """Return the text of a scalar if it is valid; report it otherwise."""
        if isinstance(node, Scalar) and valid(node.value):
            return node.value
        self._bad(name, node)
        return None

    def text(self, name: str, node: Node) -> str | None:
        text = self._matching(name, node, str.strip)
        return text and text.strip()

    def id(self, name: str, node: Node) -> str | None:
        return self._matching(name, node, _is_id)

    def version(self, name: str, node: Node) -> str | None:
        return self._matching(name, node, _VERSION.fullmatch)

    def mode(self, name: str, node: Node) -> str | None:
        return self._matching(name, node, {GUIDED, STRICT}.__contains__)

    def name(self, name: str, node: Node) -> str | None:
        return self._matching(name, node, _WORD.fullmatch)

    def ids(self, name: str, node: Node) -> tuple[str, ...] | None:
        if isinstance(node, Scalar):
            text = node.value.strip()
            if text == "none":
                return ()
            node = Sequence(
                [Scalar(t.strip(), plain=True, start=node.start, end=node.end) for t in text.split(",")],
                node.start,
                node.end,
            )
        items = node.items if isinstance(node, Sequence) else []
        texts = [i.value for i in items if isinstance(i, Scalar) and _is_id(i.value)]
        if len(texts) == len(items) and isinstance(node, Sequence):
            return tuple(texts)
        self._bad(name, node)
        return None

    def requirements(self, name: str, node: Node) -> dict[str, str] | None:
        texts: dict[str, str] = {}
        if isinstance(node, Mapping):
            for key, value in node.pairs:
                if isinstance(value, Scalar) and value.value.strip() and _WORD.fullmatch(key.value):
                    texts[key.value] = value.value.strip()
                else:
                    self._bad(name, key)
            return texts
        for item in self._list(name, node):
            if isinstance(item, Scalar) and _WORD.fullmatch(item.value) and item.value not in texts:
                texts[item.value] = ""
            else:
                self._bad(name, item)
        return texts if isinstance(node, Sequence) else None

    def scope(self, name: str, node: Node) -> Scope | None:
        fields = self._fields(name, node, _INNER[name])
        if fields is None:
            return None
        root = self._text_of(name, fields.get("root"))
        return Scope(root, self._texts_of(name, fields.get("protected")))

    def non_goals(self, name: str, node: Node) -> tuple[NonGoal, ...]:
        goals = []
        for fields in self._mappings(name, node):
            id, text = self._text_of(name, fields["id"]), self._text_of(name, fields["text"])
            places, symbols = (self._texts_of(name, fields.get(key)) for key in ("paths", "symbols"))
            goals.append(NonGoal(id or "", text or "", places, symbols))
        self._unique(name, node, [n.id for n in goals])
        return tuple(goals)

    def invariants(self, name: str, node: Node) -> tuple[Invariant, ...]:
        declared = []
        for fields in self._mappings(name, node):
            id, text, check = (self._text_of(name, fields[k]) for k in ("id", "text", "check"))
            declared.append(Invariant(id or "", text or "", _command(check or "")))
        self._unique(name, node, [i.id for i in declared])
        return tuple(declared)

    def success_criteria(self, name: str, node: Node) -> None:
        rules = criteria.Rules("success_criteria", self.problems, task=False)
        self.frontmatter.criteria = criteria.from_nodes(self._list(name, node), rules)

    def texts(self, name: str, node: Node) -> tuple[str, ...]:
        return self._texts_of(name, node)

    def setup(self, name: str, node: Node) -> tuple[Setup, ...]:
        services = []
        for fields in self._mappings(name, node):
            service, why, where, check = (self._text_of(name, fields.get(k)) for k in _INNER[name] if k != "env")
            env = fields.get("env")
            env_list = Sequence([env], env.start) if isinstance(env, Scalar) else env
            names = self._texts_of(name, env_list)
            services.append(Setup(service or "", why or "", names, where or "", _command(check) if check else None))
        return tuple(services)

    def limits(self, name: str, node: Node) -> Limits | None:
        if isinstance(node, Mapping):
            return structured_values.limits_of(node, Field(name, self.problems))
        self._bad(name, node)
        return None

    # Parts of values

    def _list(self, name: str, node: Node) -> list[Node]:
        if isinstance(node, Sequence):
            return node.items
        self._bad(name, node)
        return []

    def _mappings(self, name: str, node: Node) -> Iterator[dict[str, Node]]:
        """Yield the values of each valid mapping in a list."""
        for item in self._list(name, node):
            fields = self._fields(name, item, _INNER[name])
            if fields is not None:
                yield fields

    def _fields(self, name: str, node: Node, keys: dict[str, bool]) -> dict[str, Node] | None:
        """Return the values of a mapping by key (True: required); None if it is invalid."""
        if not isinstance(node, Mapping):
            self._bad(name, node)
            return None
        values = {}
        for key, value in node.pairs:
            if key.value in keys:
                values[key.value] = value
            else:
                fix = did_you_mean(key.value, keys, "remove it")
                if key.value in _KEYS:
                    fix = f"if it is a key of the plan, remove its indentation; otherwise {fix}"
                message = f"Unknown key `{key.value}` in `{name}`"
                self._error("plan.unknown-key", key.start, name, message, found=key.value, fix=fix)
        missing = [k for k, required in keys.items() if required and k not in values]
        for absent in missing:
            self._error("plan.missing-key", node.start, name, f"`{name}` has no `{absent}`", fix=f"add {absent}:")
        return None if missing else values

    def _text_of(self, name: str, node: Node | None) -> str | None:
        return None if node is None else self.text(name, node)

    def _texts_of(self, name: str, node: Node | None) -> tuple[str, ...]:
        if node is None:
            return ()
        texts = [self._text_of(name, item) for item in self._list(name, node)]
        return tuple(text for text in texts if text)

    def _unique(self, name: str, node: Node, ids: list[str]) -> None:
        for id in sorted(id for id, count in Counter(ids).items() if count > 1):
            self._error("plan.duplicate-id", node.start, name, f"Duplicate id `{id}` in `{name}`", found=id)


# The method that reads each key, and what it accepts.
_KEYS: dict[str, tuple[Callable[[_Reader, str, Node], Any], str]] = {
    "type": (_Reader.type, "plan"),
    "phase": (_Reader.id, "an id such as 1 or 06.2"),
    "plan": (_Reader.id, "an id such as 01"),
    "title": (_Reader.text, "a text"),
    "goal": (_Reader.text, "a text"),
    "version": (_Reader.version, "a version such as 2 or 1.4.0, of at most 64 characters"),
    "mode": (_Reader.mode, "guided or strict"),
    "depends_on": (_Reader.ids, "a list of plan ids"),
    "requirements": (_Reader.requirements, "a map of ids to texts, or a list of ids"),
    "scope": (_Reader.scope, "{root, protected: [globs]}"),
    "non_goals": (_Reader.non_goals, "a list of {id, text, paths?, symbols?}"),
    "invariants": (_Reader.invariants, "a list of {id, text, check}"),
    "success_criteria": (_Reader.success_criteria, "a list of texts or {text, check | human | opinion}"),
    "assumptions": (_Reader.texts, "a list of texts"),
    "setup": (_Reader.setup, "a list of {service, why, env?, where?, check?}"),
    "builder": (_Reader.name, "the name of a role binding"),
    "validator": (_Reader.name, "the name of a role binding"),
    "limits": (_Reader.limits, "{files: N, lines: N, paths: [globs]}"),
}
# Keys of nested mappings; True means required.
_INNER: dict[str, dict[str, bool]] = {
    "scope": {"root": False, "protected": False},
    "non_goals": {"id": True, "text": True, "paths": False, "symbols": False},
    "invariants": {"id": True, "text": True, "check": True},
    "setup": {"service": True, "why": True, "env": False, "where": False, "check": False},
}


def scope(node: Node, problems: Problems) -> Scope | None:
    """Read the key `scope`; None, with problems, if it is invalid."""
    value: Scope | None = value_of("scope", node, problems)
    return value


def value_of(name: str, node: Node, problems: Problems) -> Any:
    """Read one key as the frontmatter of a plan has it; None, with problems, if it is invalid."""
    return _KEYS[name][0](_Reader(Frontmatter(0), problems), name, node)


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None and not whole_numbers.too_long(text)


def _command(text: str) -> str:
    """Return a command in YAML without surrounding backticks."""
    return inline.code(text) or text


def plain(node: Node) -> Any:
    """Return a node as lists, dicts and texts."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {key.value: plain(value) for key, value in node.pairs}
