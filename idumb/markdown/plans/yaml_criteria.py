"""Read criteria in YAML. A criterion is a text or a mapping."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.domain.finding import nearest
from idumb.domain.plans import plan
from idumb.domain.plans.plan import Span
from idumb.markdown.plans import criteria
from idumb.markdown.syntax import inline, yaml_nodes
from idumb.markdown.syntax.field_values import yaml_text
from idumb.markdown.syntax.inline import Text

_KEYS = ("id", "text", "check", "verify", "human", "opinion", "changed")


def from_nodes(nodes: Iterable[yaml_nodes.Node], rules: criteria.Rules) -> list[criteria.Draft]:
    return [draft for node in nodes if (draft := _from_node(node, rules))]


def _from_node(node: yaml_nodes.Node, rules: criteria.Rules) -> criteria.Draft | None:
    if isinstance(node, yaml_nodes.Scalar) and not node.is_null:
        text = yaml_text(node)
        if criteria.BOX.match(text.s) or criteria.BROKEN_BOX.match(text.s):
            _bad_node(
                node.start,
                "A criterion in YAML must not have a checkbox",
                text.s,
                rules,
                "criterion.box-in-yaml",
            )
            return None
        return criteria.from_text(Text(text.s, text.marks), rules)
    if isinstance(node, yaml_nodes.Mapping):
        return _from_mapping(node, rules)
    _bad_node(node.start, "A criterion must be a text or a mapping", "", rules, "criterion.not-text")
    return None


def _bad_node(at: int, message: str, found: str, rules: criteria.Rules, code: str, mend: str = "") -> None:
    accepted = "a text, or {id?, text, check | verify | human | opinion | changed}"
    rules.error(code, at, message, found, accepted, mend or "write " + accepted)


def _from_mapping(node: yaml_nodes.Mapping, rules: criteria.Rules) -> criteria.Draft | None:
    pairs = {key.value: (key, value) for key, value in node.pairs}
    for key, _ in pairs.values():
        if key.value not in _KEYS:
            near = nearest(key.value, _KEYS)
            mend = f"did you mean {near}?" if near else ""
            _bad_node(key.start, f"Unknown key `{key.value}`", key.value, rules, "criterion.unknown-key", mend)
    text = pairs["text"][1] if "text" in pairs else None
    if not isinstance(text, yaml_nodes.Scalar) or text.is_null:
        _bad_node(node.start, "This criterion has no text", "", rules, "criterion.no-text")
        return None
    line = rules.problems.source.place(node.start)[0]
    draft = criteria.Draft(text.value.strip(), node.start, Span(node.start, node.end, line))
    _mapping_id(draft, pairs, rules)
    _mapping_proof(draft, pairs, rules)
    return draft


_Pairs = dict[str, tuple[yaml_nodes.Scalar, yaml_nodes.Node]]


def _mapping_id(draft: criteria.Draft, pairs: _Pairs, rules: criteria.Rules) -> None:
    if "id" not in pairs:
        return
    key, node = pairs["id"]
    if isinstance(node, yaml_nodes.Scalar) and criteria.ID.fullmatch(node.value + ":"):
        draft.number = node.value
    else:
        _bad_node(key.start, "A criterion id must be AC- and a number", "", rules, "criterion.bad-id")


def _mapping_proof(draft: criteria.Draft, pairs: _Pairs, rules: criteria.Rules) -> None:
    marks = [name for name in (plan.CHECK, *criteria.MARKS, plan.CHANGED) if name in pairs]
    if len(marks) > 1:
        at = pairs[marks[1]][0].start
        _bad_node(at, "This criterion has two proofs", ", ".join(marks), rules, "criterion.two-proofs")
    if not marks:
        return
    key, node = pairs[marks[0]]
    draft.proof = marks[0]
    if draft.proof == plan.CHECK:
        if isinstance(node, yaml_nodes.Scalar) and not node.is_null and node.value.strip():
            draft.command = inline.code(node.value.strip()) or node.value.strip()
        else:
            _bad_node(key.start, "check must be a command", "", rules, "command.empty")
    elif draft.proof == plan.VERIFY and not rules.task:
        _bad_node(key.start, "Success criteria cannot be proven by verify", "verify", rules, "criterion.bad-proof")
    elif draft.proof == plan.CHANGED and not rules.task:
        _bad_node(
            key.start,
            "Success criteria cannot be proven by changed files",
            "changed",
            rules,
            "criterion.bad-proof",
        )
    else:
        _mapping_mark(draft, key, node, rules)


def _mapping_mark(draft: criteria.Draft, key: yaml_nodes.Scalar, node: yaml_nodes.Node, rules: criteria.Rules) -> None:
    if isinstance(node, yaml_nodes.Scalar) and node.plain and node.value in {"true", "True", "TRUE"}:
        return
    entries = node.items if isinstance(node, yaml_nodes.Sequence) else [node]
    texts = [e.value.strip() for e in entries if isinstance(e, yaml_nodes.Scalar) and not e.is_null]
    false = isinstance(node, yaml_nodes.Scalar) and node.plain and node.value.casefold() == "false"
    if draft.proof == plan.HUMAN and texts and len(texts) == len(entries) and not false:
        draft.notes = tuple(texts)
        return
    _bad_node(key.start, f"{draft.proof} must be true or absent", "", rules, "criterion.bad-proof")
