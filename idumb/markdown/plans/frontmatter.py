"""Read the frontmatter of a plan: the YAML between the `---` lines at its start, and the type of each key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

from msgspec import Struct, field

from idumb.domain.plans.plan import GUIDED, STRICT, Invariant, NonGoal, Scope, Setup, Span
from idumb.markdown.plans import criteria, fields
from idumb.markdown.syntax import inline, tree, value_types
from idumb.markdown.syntax.source import Place, Source
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text
from idumb.markdown.syntax.value_types import TEXT, TEXTS, BadValue, Keys, ValueType, choice, list_of, section

_MAX_BYTES = 64 * 1024
_ID, _WORD = r"[0-9A-Za-z][0-9A-Za-z._-]{0,199}", r"[^\s,`\"'\[\]{}]+"


class Frontmatter(Struct):
    """The keys of a plan; `end_line` is the line after the closing `---`."""

    end_line: int
    values: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    criteria: list[criteria.CriterionDraft] | None = None


# Readers of values


def _command(text: str) -> str | None:
    return inline.code(text) or text.strip() or None


def _ids(node: Node, _: Place) -> tuple[str, ...]:
    texts = node.value.split(",") if is_text(node) else [item.value if is_text(item) else "" for item in node.items]
    ids = tuple(text.strip() for text in texts)
    if is_text(node) and ids == ("none",):
        return ()
    if is_map(node) or not all(re.fullmatch(_ID, id) for id in ids):
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


def _criteria(node: Node, place: Place) -> list[criteria.CriterionDraft]:
    if not is_list(node):
        raise BadValue(node)
    return criteria.read(node, place, task=False)


def _limits(node: Node, place: Place) -> Any:
    if not is_map(node):
        raise BadValue(node)
    return fields.limits(tree.as_bullets(node), place)


def _many(make: Callable[..., Any], accepted: str, **keys: ValueType) -> ValueType:
    """Return the type of a list of maps, whose ids must be unique."""
    maps = list_of(section(make, keys, accepted), accepted)

    def read(node: Node, place: Place) -> tuple[Any, ...]:
        made: tuple[Any, ...] = maps.read(node, place)
        _unique((one.id for one in made if hasattr(one, "id")), node, place, accepted)
        return made

    return maps._replace(read=read)


# The keys of a plan, and the order in which a plan has them.
_WORDS = value_types.pattern("an id without spaces", _WORD)
_TEXTS_BY_ID = value_types.mapping_of(TEXT, _WORDS)
_IDS = list_of(_WORDS, "a map of ids to texts, or a list of ids")
_CHECK = value_types.scalar("a command", _command)
_BINDING = value_types.pattern("the name of a role binding", _WORD)
_PHASE, _PLAN = value_types.pattern("an id such as 1 or 06.2", _ID), value_types.pattern("an id such as 01", _ID)
_COUNT = value_types.integer(0)
_CRITERION = {
    **value_types.schema_of({
        "id": value_types.pattern("an id such as AC-1", "AC-[0-9]+"),
        "text": TEXT.must,
        "check": TEXT.says("A command; exit code 0 proves it."),
        "human": list_of(TEXT, "true, or instructions", single=True).says("A person decides; a text has instructions."),
        "opinion": value_types.BOOLEAN.says("A model's judgement, shown as such."),
    }),
    "not": {"anyOf": [{"required": [*two]} for two in combinations(("check", "human", "opinion"), 2)]},
}  # fmt: skip
KEYS: dict[str, ValueType] = {
    "type": value_types.matching("plan", "plan".__eq__)._replace(code="wrong-type", schema={"const": "plan"}).must,
    "phase": _PHASE.must.says('The phase, as its folder spells it, such as "1" or "06.2".'),
    "plan": _PLAN.must.says('The number of the plan in its phase, such as "01".'),
    "title": TEXT.must.says("What the plan delivers."),
    "goal": TEXT.must.says("What is true when every task is done."),
    "version": value_types.pattern(
        "a version such as 2 or 1.4.0, of at most 64 characters", r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}"
    ).says("Your version of the plan, for information only."),
    "mode": choice(GUIDED, STRICT).says("strict runs only what was approved."),
    "depends_on": ValueType(
        "a list of plan ids", _ids, schema={"anyOf": [list_of(_PLAN).schema, value_types.ANY_TEXT]}
    ).says("Plans of this phase that run first."),
    "requirements": ValueType(
        _IDS.accepted, _requirements, schema={"anyOf": [_TEXTS_BY_ID.schema, {**_IDS.schema, "uniqueItems": True}]}
    ).says("Ids with their texts, or a list of ids of REQUIREMENTS.md."),
    "scope": section(
        Scope, {"root": TEXT.says("A folder of the repository."), "protected": TEXTS}, "{root, protected: [globs]}",
    ).says("The folder that tasks may write, and globs that they may not."),
    "non_goals": _many(
        NonGoal, "a list of {id, text, paths?, symbols?}", id=TEXT.must, text=TEXT.must,
        paths=TEXTS.says("Files, folders and globs."),
        symbols=TEXTS.says("Names that files define, as NAME or NAME in PATH."),
    ).says("What no task may change."),
    "invariants": _many(Invariant, "a list of {id, text, check}", id=TEXT.must, text=TEXT.must, check=_CHECK.must).says(
        "What must hold after every task."
    ),
    "success_criteria": ValueType(
        "a list of texts or {text, check | human | opinion}", _criteria,
        schema={"type": "array", "items": {"anyOf": [TEXT.schema, _CRITERION]}},
    ).says("What must hold before the phase is verified. Or write a section ## Success criteria."),
    "assumptions": TEXTS.says("What the plan takes for granted."),
    "setup": _many(
        Setup, "a list of {service, why, env?, where?, check?}", service=TEXT.must, why=TEXT.must,
        env=list_of(TEXT, "a text or a list of texts", single=True).says("Names of environment variables."),
        where=TEXT.says("Where to find it."), check=_CHECK.says("A command that shows that it is there."),
    ).says("What a person must provide before the plan can run."),
    "builder": _BINDING.says("The binding that builds all tasks, `editor` or `human`."),
    "validator": _BINDING.says("The binding that judges all tasks."),
    "limits": ValueType(
        "{files: N, lines: N, paths: [globs]}", _limits,
        schema=value_types.schema_of({"files": _COUNT, "lines": _COUNT, "paths": TEXTS}),
    ).says("Limits of each task."),
}  # fmt: skip
_OWN = {"patternProperties": {"^[xX]-.": {"description": "Yours: kept, not read."}}}
REQUIRED = tuple(name for name, type in KEYS.items() if type.required)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the front matter of a plan, for editors."""
    return value_types.document_schema("front matter of a plan", KEYS) | _OWN


# Reading


def read(source: Source) -> Frontmatter | None:
    """Read the frontmatter of a plan; None if there is none."""
    node, end_line = nodes(source)
    if end_line is None:
        return None
    head = Frontmatter(end_line)
    if node is None:
        return head
    for key, below in node.pairs:
        if key.value in KEYS:
            head.spans[key.value] = source.span(below.start, below.end)
        elif value_types.is_own(key.value):
            head.values.setdefault("extra", {})[key.value] = tree.plain(below)
    own = [key for key in node.items if not value_types.is_own(key.value)]
    whole = Node(tree.MAP, node.text, source.starts[0], node.end, own)
    given = value_types.read_mapping(whole, KEYS, Place("", source), "the frontmatter")
    given.pop("type", None)
    head.criteria = given.pop("success_criteria", None)
    head.values |= given
    return head


def nodes(source: Source, keys: Keys = KEYS) -> tuple[Node | None, int | None]:
    """Return the frontmatter, with the first line after it; None if it has no keys, or there is none."""
    _, *required = (name for name, type in keys.items() if type.required)
    words = {"type": keys["type"].accepted, "keys": ", ".join(required)}
    end = _closing(source, words)
    if end is None:
        return None, None
    text = source.part(1, end)
    if len(text.value.encode()) > _MAX_BYTES:
        source.report("plan.frontmatter-too-large", source.starts[0])
        return None, end + 1
    node = tree.read(text, source, "frontmatter")
    if is_map(node):
        return node, end + 1
    if node is not None or not source.any_error:
        source.report("plan.no-frontmatter", source.starts[0], **words, accepted="key: value")
    return None, end + 1


def _closing(source: Source, words: Mapping[str, str]) -> int | None:
    """Return the line that closes the frontmatter; None, with a problem, if there is none."""
    lines = source.lines
    if lines[0].rstrip(" \t") != "---":
        source.report("plan.no-frontmatter", source.starts[0], lines[0], **words)
        return None
    for n in range(1, len(lines)):
        if lines[n].startswith("---") and not lines[n][3:].strip(" \t"):
            return n
    source.report("plan.frontmatter-never-closed", source.starts[0], "---")
    return None
