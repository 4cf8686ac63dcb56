"""Read the frontmatter of a plan: the YAML between the `---` lines at its start, one row per key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.plans.plan import GUIDED, STRICT, Invariant, NonGoal, Scope, Setup, Span
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import criteria, values
from idumb.markdown.plans.values import Place
from idumb.markdown.syntax import inline, tree
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

MAX_BYTES = 64 * 1024
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


class BadValue(Exception):
    """A value that its key does not accept."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.node = node


class Key(NamedTuple):
    """What a key accepts, in words, and its reader. `keys` are those of its maps."""

    accepted: str
    read: Callable[[Node, Place], Any]
    required: bool = False
    keys: dict[str, Key] = {}  # noqa: RUF012 (never changed)
    code: str = "plan.bad-value"


# Readers of values


def _matching(valid: Callable[[str], Any]) -> Callable[[Node, Place], str]:
    def read(node: Node, _: Place) -> str:
        if not is_text(node) or not valid(node.text.s):
            raise BadValue(node)
        return node.text.s.strip()

    return read


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None and not whole_numbers.too_long(text)


_text = _matching(str.strip)


def _texts(node: Node, place: Place) -> tuple[str, ...]:
    if not is_list(node):
        raise BadValue(node)
    return tuple(text for item in node.items if (text := value(_text, item, place)))


def _names(node: Node, place: Place) -> tuple[str, ...]:
    return (_text(node, place),) if is_text(node) else _texts(node, place)


def _command(node: Node, place: Place) -> str:
    text = _text(node, place)
    return inline.code(text) or text


def _ids(node: Node, _: Place) -> tuple[str, ...]:
    texts = node.text.s.split(",") if is_text(node) else [item.text.s if is_text(item) else "" for item in node.items]
    ids = tuple(text.strip() for text in texts)
    if is_text(node) and ids == ("none",):
        return ()
    if is_map(node) or not all(map(_is_id, ids)):
        raise BadValue(node)
    return ids


def _requirements(node: Node, place: Place) -> dict[str, str]:
    if is_text(node):
        raise BadValue(node)
    texts: dict[str, str] = {}
    for item in node.items:
        text = item.items[0].text.s.strip() if is_map(node) else ""
        if not is_text(item) or not _WORD.fullmatch(item.text.s) or item.text.s in texts or (is_map(node) and not text):
            _bad(item, place)
        else:
            texts[item.text.s] = text
    return texts


def _criteria(node: Node, place: Place) -> list[criteria.Draft]:
    if not is_list(node):
        raise BadValue(node)
    return criteria.read(node, place, task=False)


def _limits(node: Node, place: Place) -> Any:
    if not is_map(node):
        raise BadValue(node)
    return values.limits(tree.as_bullets(node), place)


def _map(make: Callable[..., Any], keys: dict[str, Key]) -> Callable[[Node, Place], Any]:
    """Return a reader of a map with these keys, which are the arguments of `make`."""

    def read(node: Node, place: Place) -> Any:
        if not is_map(node):
            raise BadValue(node)
        given = record(node, keys, place, owner=f"`{place.label}`")
        missing = [
            name for name, key in keys.items() if key.required and name not in {key.text.s for key in node.items}
        ]
        blank = {name: "" for name, key in keys.items() if key.required}  # reported
        return None if missing else make(**(blank | given))

    return read


def _list(of: Callable[[Node, Place], Any]) -> Callable[[Node, Place], tuple[Any, ...]]:
    """Return a reader of a list of maps, whose ids must be unique."""

    def read(node: Node, place: Place) -> tuple[Any, ...]:
        if not is_list(node):
            raise BadValue(node)
        made = [one for item in node.items if (one := value(of, item, place)) is not None]
        ids = Counter(one.id for one in made if hasattr(one, "id"))
        for id in sorted(id for id, count in ids.items() if count > 1):
            place.report("plan.duplicate-id", node.start, id, accepted=KEYS[place.label].accepted)
        return tuple(made)

    return read


def _row(accepted: str, make: Callable[..., Any], *, many: bool = True, **keys: Key) -> Key:
    return Key(accepted, _list(_map(make, keys)) if many else _map(make, keys), keys=keys)


# The keys of a plan, and the order in which a plan has them.
_TEXT, _OPTIONAL, _TEXTS = Key("a text", _text, required=True), Key("a text", _text), Key("a list of texts", _texts)
_CHECK, _BINDING = Key("a command", _command), Key("the name of a role binding", _matching(_WORD.fullmatch))
KEYS: dict[str, Key] = {
    "type": Key("plan", _matching("plan".__eq__), required=True, code="plan.wrong-type"),
    "phase": Key("an id such as 1 or 06.2", _matching(_is_id), required=True),
    "plan": Key("an id such as 01", _matching(_is_id), required=True),
    "title": _TEXT,
    "goal": _TEXT,
    "version": Key("a version such as 2 or 1.4.0, of at most 64 characters", _matching(_VERSION.fullmatch)),
    "mode": Key("guided or strict", _matching({GUIDED, STRICT}.__contains__)),
    "depends_on": Key("a list of plan ids", _ids),
    "requirements": Key("a map of ids to texts, or a list of ids", _requirements),
    "scope": _row("{root, protected: [globs]}", Scope, many=False, root=_OPTIONAL, protected=_TEXTS),
    "non_goals": _row(
        "a list of {id, text, paths?, symbols?}", NonGoal, id=_TEXT, text=_TEXT, paths=_TEXTS, symbols=_TEXTS
    ),
    "invariants": _row(
        "a list of {id, text, check}", Invariant, id=_TEXT, text=_TEXT, check=_CHECK._replace(required=True)
    ),
    "success_criteria": Key("a list of texts or {text, check | human | opinion}", _criteria),
    "assumptions": _TEXTS,
    "setup": _row(
        "a list of {service, why, env?, where?, check?}", Setup,
        service=_TEXT, why=_TEXT, env=Key("a text or a list of texts", _names), where=_OPTIONAL, check=_CHECK,
    ),
    "builder": _BINDING,
    "validator": _BINDING,
    "limits": Key("{files: N, lines: N, paths: [globs]}", _limits),
}  # fmt: skip
REQUIRED = tuple(name for name, key in KEYS.items() if key.required)


# Reading


def read(source: Source, problems: Problems) -> Frontmatter | None:
    """Read the frontmatter of a plan; None if there is none."""
    node, end_line = nodes(source, problems)
    if end_line is None:
        return None
    head = Frontmatter(end_line)
    if node is None:
        return head
    for key, below in node.pairs:
        if key.text.s in KEYS:
            head.spans[key.text.s] = Span(below.start, below.end, source.line_of(below.start) + 1)
        elif _is_extra(key.text.s):
            head.values.setdefault("extra", {})[key.text.s] = tree.plain(below)
    own = [key for key in node.items if not _is_extra(key.text.s)]
    whole = Node(tree.MAP, node.text, source.starts[0], node.end, own)
    given = record(whole, KEYS, Place("", problems), owner="the frontmatter")
    given.pop("type", None)
    head.criteria = given.pop("success_criteria", None)
    head.values |= given
    return head


def _is_extra(name: str) -> bool:
    return name[:2].lower() == "x-" and len(name) > 2


def nodes(source: Source, problems: Problems) -> tuple[Node | None, int | None]:
    """Return the frontmatter, with the first line after it; None if it has no keys, or there is none."""
    end = closing(source, problems)
    if end is None:
        return None, None
    begin = source.starts[1]
    text = source.text[begin : source.starts[end]]
    if len(text.encode()) > MAX_BYTES:
        problems.report("plan.frontmatter-too-large", source.starts[0])
        return None, end + 1
    node = tree.read(text, lambda index: begin + index, problems, "frontmatter")
    if is_map(node):
        return node, end + 1
    if node is not None or not problems.any_error:
        problems.report("plan.no-frontmatter", source.starts[0], accepted="key: value")
    return None, end + 1


def closing(source: Source, problems: Problems) -> int | None:
    """Return the line that closes the frontmatter; None, with a problem, if there is none."""
    lines = source.lines
    margin = "remove any tab and spaces before --- on line {line}"
    if lines[0].rstrip(" \t") != "---":
        words: dict[str, Any] = {"fix": margin, "line": 1} if lines[0].strip() == "---" else {}
        problems.report("plan.no-frontmatter", source.starts[0], lines[0], **words)
        return None
    for n in range(1, len(lines)):
        if lines[n].startswith("---") and not lines[n][3:].strip(" \t"):
            return n
    indented = next((n for n, line in enumerate(lines[1:], 2) if line.strip() == "---"), 0)
    words = {"fix": margin, "line": indented} if indented else {}
    problems.report("plan.frontmatter-never-closed", source.starts[0], "---", **words)
    return None


def value(reader: Callable[[Node, Place], Any], node: Node, place: Place) -> Any:
    """Read one value; None, with a problem, if its key does not accept it."""
    try:
        return reader(node, place)
    except BadValue as bad:
        _bad(bad.node, place)
        return None


def _bad(node: Node, place: Place) -> None:
    source = place.problems.source
    found = node.text.s if is_text(node) else source.text[node.start : node.end].partition("\n")[0].strip()
    key = KEYS[place.label]
    place.report(key.code, node.start, found, accepted=key.accepted)


def value_of(name: str, node: Node, problems: Problems) -> Any:
    """Read one key as the frontmatter of a plan has it; None, with problems, if it is invalid."""
    return value(KEYS[name].read, node, Place(name, problems))


def record(node: Node, keys: dict[str, Key], place: Place, *, owner: str) -> dict[str, Any]:
    """Return the values of a map by key. Report unknown keys, missing ones, and those of the plan without a value."""
    given: dict[str, Any] = {}
    for key, below in node.pairs:
        name, inner = key.text.s, Place(place.label or key.text.s, place.problems)
        if name not in keys:
            inner.report("plan.unknown-key", key.start, name, tuple(keys), owner=owner, **_belongs(name, keys))
        elif below.is_null and not place.label:
            inner.report("plan.empty-value", key.start, accepted=keys[name].accepted)
        elif (made := value(keys[name].read, below, inner)) is not None:
            given[name] = made
    present = {key.text.s for key in node.items}
    for name in (name for name, key in keys.items() if key.required and name not in present):
        inner = Place(place.label or name, place.problems)
        inner.report("plan.missing-key", node.start, key=name, owner=owner, accepted=KEYS[inner.label].accepted)
    return given


def _belongs(name: str, keys: dict[str, Key]) -> dict[str, str]:
    """Return where a misplaced key belongs."""
    if keys is not KEYS and name in KEYS:
        return {"where": "if it is a key of the plan, remove its indentation; otherwise "}
    owner = next((parent for parent, key in KEYS.items() if name in key.keys), "")
    return {"where": f"if it belongs to {owner}, indent it; otherwise "} if owner and keys is KEYS else {}
