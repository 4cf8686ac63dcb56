"""The fields of a task, each with its labels and its reader. The labels of bullets, known or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from idumb.domain import whole_numbers
from idumb.domain.plans import plan
from idumb.domain.plans.plan import Condition, Handoff, Interface, Limits, Option, RollbackClass, TestIntent
from idumb.markdown.plans import criteria, values
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import BULLET, MAP, TEXT, Node
from idumb.markdown.syntax.value_types import Reader

# Values with a form of their own

_DASH = re.compile(r"\s*(?:—|–|--|-(?=\s))\s*")
_PHASES = {"fails before, passes after": ("fails", "passes"), "passes before and after": ("passes", "passes")}
_PROPERTIES = ("inputs", "outputs", "errors", "side effects", "persistence", "async")
_PROPERTY = re.compile(rf"(?:name|{'|'.join(_PROPERTIES)})\s*:", re.IGNORECASE)
_OPTION = re.compile(r"([\w.-]+):\s+(.+)", re.DOTALL)
_HANDOFF = re.compile(r"([\w.:/@+-]+)(?:\s*[(\[]([^()\[\]]+)[)\]])?")
# Words of a condition; `\0` stands before each that is in backticks or quotes.
_CONDITIONS = (
    re.compile(r"file (exists|absent) \0?(\S+)"),
    re.compile(r"file (contains) \0?(\S+) \0(\S+)"),
    re.compile(r"(symbol) \0?(\S+) in \0?(\S+)"),
    re.compile(r"(env|context) \0?(\S+)"),
    re.compile(r"(command) \0(\S+)"),
)


def _each(
    code: str, convert: Callable[[Text], Any], texts: Callable[[Node, Place], Iterable[Text]], key: str = ""
) -> Reader:
    """Return a reader of texts of one form; their attribute `key` must be unique."""

    def read(node: Node, place: Place) -> tuple[Any, ...]:
        made: dict[Any, Any] = {}
        for number, text in enumerate(texts(node, place)):
            value = convert(text)
            name = getattr(value, key) if key and value is not None else number
            if value is None or name in made:
                place.report(code, text.at(0), text.value)
            else:
                made[name] = value
        return tuple(made.values())

    return read


def _test(text: Text) -> TestIntent | None:
    spans = inline.code_spans(text.value)
    dash = _DASH.match(text.value, spans[0][1]) if spans and spans[0][0] == 0 else None
    if dash is None:
        return None
    when, _, intent = text.value[dash.end() :].partition(":")
    command = inline.span_content(text.value, spans[0])
    if when.strip() not in _PHASES or not intent.strip() or not command.strip():
        return None
    return TestIntent(command, *_PHASES[when.strip()], intent=intent.strip())


def _condition(text: Text) -> Condition | None:
    parts = values.words(text)
    shape = " ".join(part.text if part.bare else f"\0{number}" for number, part in enumerate(parts))
    m = next((m for form in _CONDITIONS if (m := form.fullmatch(shape))), None)
    if m is None or not parts[-1].text.strip():
        return None
    if m[1] == "symbol":
        return Condition("symbol", parts[1].text, path=parts[3].text)
    if m[1] == "contains":
        return Condition("file-contains", parts[2].text, text=parts[3].text)
    return Condition(f"file-{m[1]}" if m[1] in {"exists", "absent"} else m[1], parts[-1].text)


def _option(text: Text) -> Option | None:
    m = _OPTION.fullmatch(text.value)
    return Option(m[1], m[2]) if m else None


def _handoff(text: Text) -> Handoff | None:
    m = _HANDOFF.fullmatch(text.value)
    return Handoff(m[1], m[2].strip() if m[2] else None) if m else None


_tests = _each("test.malformed", _test, values.unsplit)
_conditions = _each("condition.malformed", _condition, values.listed)
_options = _each("option.malformed", _option, values.unsplit, key="id")
_handoffs = _each("handoff.malformed", _handoff, values.unsplit)


def _interfaces(node: Node, place: Place) -> tuple[Interface, ...]:
    """Read one public name per bullet, with its properties in nested bullets."""
    if node.is_none:
        return ()
    beside = (
        item.text for item in node.items if _PROPERTY.match(item.value) or (node.kind == MAP and item.kind == TEXT)
    )
    odd = node.text if node.value else next(beside, None)
    if odd is not None:
        place.report("interface.malformed", odd.at(0), odd.value)
        return ()
    return tuple(_interface(item, place) for item in node.items)


def _interface(item: Node, place: Place) -> Interface:
    name, properties = inline.unquote(item.value), dict[str, str]()
    if name == item.value and re.search(r"[\s:,]", name) and item.kind == BULLET:
        place.report("interface.malformed", item.start, name)
    for inner in item.items:
        key, colon, text = inner.value.partition(":")
        key = " ".join(key.replace("_", " ").casefold().split())
        if (
            key in properties
            or key not in _PROPERTIES
            or inner.items
            or (not text.strip() and (colon or key != "async"))
        ):
            place.report("interface.bad-property", inner.start, inner.value, _PROPERTIES)
        properties[key] = text.strip() or "yes"
    return Interface(name, properties)


def limits(node: Node, place: Place) -> Limits | None:
    """Read `files N`, `lines N` and `paths GLOB…`; `paths` also applies to the items after it."""
    counts: dict[str, int] = {}
    globs: list[str] = []
    for text in [] if node.is_none else node.texts():
        kind = ""
        for part in [text] if text.literal else values.split(text, place):
            parts = values.words(part)
            head = parts[0].text.removesuffix(":") if parts and parts[0].bare else ""
            number = whole_numbers.parse(parts[1].text) if len(parts) == 2 and parts[1].text.isdecimal() else None
            if head in {"files", "lines"} and number is not None and head not in counts:
                kind, counts[head] = head, number
            elif head == "paths" or (kind == "paths" and head not in {"files", "lines"}):
                globs += [word.text for word in parts[head == "paths" :]]
                kind = "paths"
            else:
                kind = ""
                place.report("limits.malformed", part.at(0), part.value)
    for item in node.items:
        for inner in item.items:
            if item.value.removesuffix(":") != "paths" or inner.items or not inner.value or item.kind == MAP:
                place.report("limits.malformed", inner.start, inner.value or item.value)
            else:
                globs += [inner.value] if inner.text.literal else [word.text for word in values.words(inner.text)]
    return None if node.is_none else Limits(counts.get("files"), counts.get("lines"), tuple(globs))


def _rollback(node: Node, place: Place) -> RollbackClass:
    """Read `reversible`, `compensatable` with commands below it, or `irreversible: reason`."""
    pair = node.kind == MAP and len(node.items) == 1
    item = node.items[0] if pair else node
    kind, colon, rest = (part.strip() for part in item.value.partition(":"))
    below = bool(item.items or item.fences)
    if kind == "compensatable" and (bool(rest) != below if pair else below and not rest):
        text = Text(rest, item.text.marks, literal=True)
        return RollbackClass(
            kind, values.commands(Node(item.kind, text, item.start, item.end, item.items, item.fences), place)
        )
    if kind == "irreversible" and colon and rest and not item.items:
        return RollbackClass(kind, (), rest)
    if item.value != "reversible" or item.items or pair:
        place.report("rollback.malformed", item.text.at(0) if item.value else node.start, item.value)
    return RollbackClass()


# The fields


class Field(NamedTuple):
    """`fences`: it can hold `sh` fences. `both`: it can be on its line and below. `map`: in YAML, it can be a map."""

    labels: tuple[str, ...]  # messages show the first
    read: Reader
    fences: bool = False
    both: bool = False
    map: bool = False


FIELDS: dict[str, Field] = {
    "kind": Field(("Kind",), values.choice(*plan.KINDS)),
    "requirements": Field(("Requirements",), values.declared("requirement")),
    "depends_on": Field(("Depends on", "Dependencies", "Blocked by"), values.dependencies),
    "files": Field(("Files", "Files involved", "Files likely affected"), values.files, map=True),
    "symbols": Field(("Symbols",), values.symbols),
    "interfaces": Field(("Interfaces",), _interfaces, map=True),
    "acceptance": Field(("Acceptance", "Acceptance criteria", "Done when"), criteria.of_task),
    "verify": Field(("Verify",), values.commands, fences=True),
    "tests": Field(("Tests",), _tests),
    "preconditions": Field(("Preconditions",), _conditions),
    "postconditions": Field(("Postconditions",), _conditions),
    "invariants": Field(("Invariants",), values.declared("invariant")),
    "change": Field(("Change", "Semantic class"), values.choice("preserving", "extending", "modifying", "breaking")),
    "limits": Field(("Limits",), limits, both=True, map=True),
    "rollback": Field(("Rollback",), _rollback, fences=True, both=True, map=True),
    "on_failure": Field(("On failure", "Severity"), values.choice("block", "retry", "ask")),
    "estimate": Field(("Estimate",), values.duration),
    "timeout": Field(("Timeout",), values.duration),
    "on_timeout": Field(("On timeout",), values.choice("fail", "skip", "retry")),
    "reads": Field(("Reads",), values.paths),
    "writes": Field(("Writes",), values.paths),
    "owns": Field(("Owns",), values.paths),
    "parallel": Field(("Parallel",), values.yes),
    "builder": Field(("Builder",), values.name),
    "validator": Field(("Validator",), values.name),
    "handoff_to": Field(("Handoff to",), _handoffs),
    "replaces": Field(("Replaces",), values.names),
    "priority": Field(("Priority",), values.choice("critical", "high", "normal", "low")),
    "options": Field(("Options",), _options, map=True),
    "notes": Field(("Notes",), values.free_text),
    "references": Field(("References",), values.free_text),
    "tags": Field(("Tags",), values.free_text),
    "assigned_to": Field(("Assigned to",), values.free_text),
}
CUSTOM = Field(("x-…",), values.free_text)
LABELS = tuple(label for field in FIELDS.values() for label in field.labels)
ALONE = ("id", "title", "description", "steps")
"""Keys that only YAML tasks have."""


# Labels

_LONGEST = 60  # characters of a label
_BOLD = re.compile(r"(\*\*|__)(.{1,60}?)(:?)\s*\1\s*(:?)\s*", re.DOTALL)
_PLAIN = re.compile(r"([^:`\n]{1,60}?)\s*:\s*")
_END = re.compile(r"[\uff1a]|\s[—–]\s")
_TRAILING = " \t:\uff1a"
_GAPS = re.compile(r"[\s_-]+")


def _singular(word: str) -> str:
    if word == "criteria":
        return "criterion"
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _folded(label: str) -> str:
    return " ".join(_singular(word) for word in _GAPS.split(label.strip().casefold()) if word)


_BY_LABEL = {_folded(label): name for name, field in FIELDS.items() for label in field.labels}


@lru_cache(maxsize=1024)
def field_name(label: str) -> str | None:
    """Return the field name of a label, `x-…` for a custom label, or None for an unknown one."""
    stripped = label.strip()
    if stripped[:2] in {"x-", "X-"} and len(stripped) > 2:
        return "x-" + stripped[2:]
    return _BY_LABEL.get(_folded(stripped))


class Label(NamedTuple):
    """The label at the start of a bullet. `name` is None for an unknown label."""

    shown: str
    name: str | None
    colon: bool
    end: int

    @property
    def field(self) -> str:
        """Return the name of the field that starts here, or nothing."""
        return self.name if self.name and self.colon else ""


_NONE = Label("", None, colon=False, end=0)


def label_of(text: str) -> Label:
    """Return the label at the start of a bullet, known or not."""
    m = _BOLD.match(text)
    if m:
        shown = m[2].rstrip(_TRAILING)
        return Label(shown, field_name(shown), bool(m[3] or m[4]), m.end())
    m = _PLAIN.match(text)
    if m:
        return Label(m[1], field_name(m[1]), colon=True, end=m.end())
    head = _END.split(text[:200], maxsplit=1)[0].strip()
    name = field_name(head) if len(head) <= _LONGEST and (head == text or "\uff1a" in text) else None
    return Label(head, name, colon=False, end=len(text)) if name else _NONE
