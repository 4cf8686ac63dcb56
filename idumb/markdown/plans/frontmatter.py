"""Read the frontmatter of a plan: the YAML between the `---` lines at its start, one row per key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.plans.plan import GUIDED, STRICT, Invariant, NonGoal, Scope, Setup, Span
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans import criteria, values
from idumb.markdown.syntax import inline, record, tree
from idumb.markdown.syntax.problems import Place, Problems
from idumb.markdown.syntax.record import TEXT, TEXTS, BadValue, Key, Keys, choice, list_of, matching, section
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

MAX_BYTES = 64 * 1024
_ID = lazy_pattern.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
VERSION = lazy_pattern.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
_WORD = lazy_pattern.compile(r"[^\s,`\"'\[\]{}]+")


@dataclass(slots=True)
class Frontmatter:
    """The keys of a plan; `end_line` is the line after the closing `---`."""

    end_line: int
    values: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    criteria: list[criteria.Draft] | None = None


# Readers of values


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None and not whole_numbers.too_long(text)


def _command(text: str) -> str | None:
    return inline.code(text) or text.strip() or None


def _ids(node: Node, _: Place) -> tuple[str, ...]:
    texts = node.text.s.split(",") if is_text(node) else [item.text.s if is_text(item) else "" for item in node.items]
    ids = tuple(text.strip() for text in texts)
    if is_text(node) and ids == ("none",):
        return ()
    if is_map(node) or not all(map(_is_id, ids)):
        raise BadValue(node)
    return ids


def _requirements(node: Node, place: Place) -> dict[str, str]:
    if is_map(node):
        texts: dict[str, str] = _TEXTS_BY_ID.read(node, place)
        return texts
    ids = _IDS.read(node, place)
    _unique(ids, node, place, KEYS["requirements"].accepted)
    return dict.fromkeys(ids, "")


def _unique(ids: Iterable[str], node: Node, place: Place, accepted: str) -> None:
    for id in sorted(id for id, count in Counter(ids).items() if count > 1):
        place.report("plan.duplicate-id", node.start, id, accepted=accepted)


def _criteria(node: Node, place: Place) -> list[criteria.Draft]:
    if not is_list(node):
        raise BadValue(node)
    return criteria.read(node, place, task=False)


def _limits(node: Node, place: Place) -> Any:
    if not is_map(node):
        raise BadValue(node)
    return values.limits(tree.as_bullets(node), place)


def _is_of_plan(name: str, _: Keys) -> dict[str, str]:
    """Return what to do with an unknown key of a map."""
    return {"where": "if it is a key of the plan, remove its indentation; otherwise "} if name in KEYS else {}


def _many(make: Callable[..., Any], accepted: str, **keys: Key) -> Key:
    """Return the row of a list of maps, whose ids must be unique."""
    row = list_of(section(make, keys, accepted, hint=_is_of_plan), accepted)

    def read(node: Node, place: Place) -> tuple[Any, ...]:
        made: tuple[Any, ...] = row.read(node, place)
        _unique((one.id for one in made if hasattr(one, "id")), node, place, accepted)
        return made

    return row._replace(read=read)


# The keys of a plan, and the order in which a plan has them.
_TEXTS_BY_ID = record.each(TEXT, "an id without spaces", _WORD.fullmatch)
_IDS = list_of(matching("an id without spaces", _WORD.fullmatch), "a map of ids to texts, or a list of ids")
_CHECK, _BINDING = record.scalar("a command", _command), matching("the name of a role binding", _WORD.fullmatch)
KEYS: dict[str, Key] = {
    "type": matching("plan", "plan".__eq__)._replace(required=True, code="wrong-type"),
    "phase": matching("an id such as 1 or 06.2", _is_id).must,
    "plan": matching("an id such as 01", _is_id).must,
    "title": TEXT.must,
    "goal": TEXT.must,
    "version": matching("a version such as 2 or 1.4.0, of at most 64 characters", VERSION.fullmatch),
    "mode": choice(GUIDED, STRICT),
    "depends_on": Key("a list of plan ids", _ids),
    "requirements": Key("a map of ids to texts, or a list of ids", _requirements),
    "scope": section(Scope, {"root": TEXT, "protected": TEXTS}, "{root, protected: [globs]}", hint=_is_of_plan),
    "non_goals": _many(
        NonGoal, "a list of {id, text, paths?, symbols?}", id=TEXT.must, text=TEXT.must, paths=TEXTS, symbols=TEXTS
    ),
    "invariants": _many(Invariant, "a list of {id, text, check}", id=TEXT.must, text=TEXT.must, check=_CHECK.must),
    "success_criteria": Key("a list of texts or {text, check | human | opinion}", _criteria),
    "assumptions": TEXTS,
    "setup": _many(
        Setup, "a list of {service, why, env?, where?, check?}", service=TEXT.must, why=TEXT.must,
        env=list_of(TEXT, "a text or a list of texts", single=True), where=TEXT, check=_CHECK,
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
            head.spans[key.text.s] = source.span(below.start, below.end)
        elif record.is_own(key.text.s):
            head.values.setdefault("extra", {})[key.text.s] = tree.plain(below)
    own = [key for key in node.items if not record.is_own(key.text.s)]
    whole = Node(tree.MAP, node.text, source.starts[0], node.end, own)
    given = record.record(whole, KEYS, Place("", problems), "the frontmatter", hint=_belongs)
    given.pop("type", None)
    head.criteria = given.pop("success_criteria", None)
    head.values |= given
    return head


def nodes(source: Source, problems: Problems) -> tuple[Node | None, int | None]:
    """Return the frontmatter, with the first line after it; None if it has no keys, or there is none."""
    end = closing(source, problems)
    if end is None:
        return None, None
    text, place = source.part(1, end)
    if len(text.encode()) > MAX_BYTES:
        problems.report("plan.frontmatter-too-large", source.starts[0])
        return None, end + 1
    node = tree.read(text, place, problems, "frontmatter")
    if is_map(node):
        return node, end + 1
    if node is not None or not problems.any_error:
        problems.report("plan.no-frontmatter", source.starts[0], accepted="key: value")
    return None, end + 1


def closing(source: Source, problems: Problems) -> int | None:
    """Return the line that closes the frontmatter; None, with a problem, if there is none."""
    lines = source.lines
    margin = "remove any tab and spaces before --- on line"
    if lines[0].rstrip(" \t") != "---":
        words: dict[str, Any] = {"fix": f"{margin} 1"} if lines[0].strip() == "---" else {}
        problems.report("plan.no-frontmatter", source.starts[0], lines[0], **words)
        return None
    for n in range(1, len(lines)):
        if lines[n].startswith("---") and not lines[n][3:].strip(" \t"):
            return n
    indented = next((n for n, line in enumerate(lines[1:], 2) if line.strip() == "---"), 0)
    words = {"fix": f"{margin} {indented}"} if indented else {}
    problems.report("plan.frontmatter-never-closed", source.starts[0], "---", **words)
    return None


def value_of(name: str, node: Node, problems: Problems) -> Any:
    """Read one key as the frontmatter of a plan has it; None, with findings, if it is invalid."""
    return record.value(KEYS[name], node, Place(name, problems))


def _belongs(name: str, _: Keys) -> dict[str, str]:
    """Return what to do with an unknown key, which may belong to another one."""
    owner = next((parent for parent, key in KEYS.items() if name in key.keys), "")
    where = {"where": f"if it belongs to {owner}, indent it; otherwise "} if owner else {}
    return {**where, "fix": f"remove it, or rename it to x-{name}"}
