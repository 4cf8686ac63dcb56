"""Read acceptance and success criteria: their ids, texts and proofs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.finding import did_you_mean
from idumb.domain.plans import plan
from idumb.domain.plans.plan import Criterion, Span
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax import inline, scalars, yaml_nodes
from idumb.markdown.syntax.field_values import Bullet, yaml_text
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.problems import Field

BOX = lazy_pattern.compile(r"\[([ xX])\](?:[ \t]+|$)")
BROKEN_BOX = lazy_pattern.compile(
    r"\[\](?![(\[:])|\[[ xX]{2,}\]|\[[ xX]\](?=[^\s(\[:])|\[[-~/>?!*+.oO✓✔✗✘\u3000\u00a0]\](?=\s|$)"
)
_MARKED_BOX = lazy_pattern.compile(r"[-+*]\s*\[[ xX]?\]")  # a bullet with its checkbox on the line of the label
ID = lazy_pattern.compile(r"AC-(\d+):(?:\s+|$)")
_NEAR_ID = lazy_pattern.compile(r"[\[(*_`]*AC[-_ ]?\d", re.IGNORECASE)
_PROOF = lazy_pattern.compile(r"(check|verify|human|opinion)\b", re.IGNORECASE)
_CHECK = lazy_pattern.compile(r"check:\s*")
_KEEPS = lazy_pattern.compile(r"keeps:\s*(?=`|$)")
_NEAR_KEEPS = lazy_pattern.compile(r"keeps?\s*:|keeps?\s*\x00+$", re.IGNORECASE)
_MASKED_KEEPS = lazy_pattern.compile(r"keeps:\s*\x00")
_STRAY_KEEPS = lazy_pattern.compile(r"\(\s*keeps\s*:|\bkeeps\s*:\s*\x00|--keeps:", re.IGNORECASE)
_STRAY = lazy_pattern.compile(
    r"\(\s*(?:check\s*:|(?:verify|human|opinion)\s*\))|\bcheck\s*:\s*\x00|--(?:check:|(?:verify|human|opinion)\s*$)",
    re.IGNORECASE,
)
MARKS = (plan.VERIFY, plan.HUMAN, plan.OPINION)
PROOFS = "— check: `command`, — keeps: `command`, — verify, — human or — opinion"
_ACCEPTED_KEEPS = "— keeps: `command`"


@dataclass(slots=True)
class Draft:
    """A criterion before ids are assigned and Verify is known. `proof` is None without a proof mark."""

    text: str
    at: int
    span: Span
    number: str = ""
    proof: str | None = None
    command: str | None = None
    notes: tuple[str, ...] = ()
    keeps: bool = False


@dataclass(slots=True)
class Rules(Field):
    """Context of a list of criteria: whether it belongs to a task, and the commands of Verify."""

    task: bool = True
    commands: tuple[str, ...] = ()


def from_bullets(bullets: Iterable[Bullet], rules: Rules) -> list[Draft]:
    return [draft for bullet in bullets if (draft := _from_bullet(bullet, rules))]


def _from_bullet(bullet: Bullet, rules: Rules) -> Draft | None:
    text = _without_box(bullet.text, bullet.start, rules)
    if text is None:
        return None
    draft = from_text(text, rules, fences=bullet)
    if draft:
        _nested(draft, bullet, rules)
    return draft


def _without_box(text: Text, start: int, rules: Rules) -> Text | None:
    box = BOX.match(text.s)
    if box:
        if box[1] != " ":
            message = "This criterion is ticked, but plans do not record status"
            rules.warning("criterion.ticked", start, message, box[0].strip(), "write [ ]")
        return text.part(box.end())
    if BROKEN_BOX.match(text.s) or _MARKED_BOX.match(text.s):
        broken_box(text.at(0), text.s[:40], rules)
        return None
    rules.warning("criterion.no-box", start, "This criterion has no checkbox", text.s, "write - [ ] before it")
    return text


def broken_box(at: int, written: str, field: Field) -> None:
    message = "This looks like a checkbox but is not one"
    fix = "write - [ ] with one space inside the brackets and one after them"
    field.error("box.malformed", at, message, written, "- [ ] text", fix)


def from_text(text: Text, rules: Rules, fences: Bullet | None = None) -> Draft | None:
    """Read one criterion: id, text, dash, proof."""
    number, text = _number(text, rules)
    last = text.at(len(text.s) - 1) + 1 if text.s else text.at(0)
    line = rules.problems.source.place(text.at(0))[0]
    draft = Draft(text.s, text.at(0), Span(text.at(0), last, line), number)
    dash = inline.last_dash(text.s)
    if dash:
        _proof(draft, text, dash, rules, fences)
    _strays(draft, text, rules)
    if draft.text:
        return draft
    message = "This criterion has no text"
    rules.error("criterion.no-text", text.at(0), message, text.s, "- [ ] text — proof", "write what must be true")
    return None


def _number(text: Text, rules: Rules) -> tuple[str, Text]:
    m = ID.match(text.s)
    if m:
        return m[0].strip().removesuffix(":"), text.part(m.end())
    if _NEAR_ID.match(text.s):
        message = "This looks like a criterion id but is not one"
        fix = "write AC-, a number and a colon, without bold or brackets"
        rules.error("criterion.bad-id", text.at(0), message, text.s[:40], "AC-1: text", fix)
    return "", text


def _proof(draft: Draft, text: Text, dash: re.Match[str], rules: Rules, fences: Bullet | None) -> None:
    tail = text.part(dash.end())
    before = text.s[: dash.start()].rstrip(" \t—–")
    check = _CHECK.match(tail.s) or _keeps(tail, rules, fences)
    if check:
        draft.text, draft.proof, draft.keeps = before, plan.CHECK, check[0].startswith("keeps")
        draft.command = _check(tail.part(check.end()), rules, fences)
    elif tail.s in MARKS:
        draft.text, draft.proof = before, tail.s
        if tail.s == plan.VERIFY and not rules.task:
            _near_miss(tail, rules)
    elif _PROOF.match(tail.s):
        draft.text, draft.proof = before, plan.UNPROVEN
        _near_miss(tail, rules)


def _keeps(text: Text, rules: Rules, fences: Bullet | None) -> re.Match[str] | None:
    """Match `keeps:` with a command; report what only looks like it."""
    keeps = _KEEPS.match(text.s)
    if rules.task and keeps and (keeps.end() < len(text.s) or (fences and fences.fences)):
        return keeps
    if _NEAR_KEEPS.match(inline.masked(text.s)):
        _bad_keeps(text, rules)
    return None


def _bad_keeps(text: Text, rules: Rules) -> None:
    """Report a property to keep that is not written as one."""
    if rules.task:
        message = f"`{text.s}` looks like a property that must stay true, but is not written as one"
        fix = "write — keeps: and the whole command in backticks"
        rules.error("criterion.bad-keeps", text.at(0), message, text.s, _ACCEPTED_KEEPS, fix)
        return
    message = "Only a criterion of a task can say keeps: success criteria are judged after the work"
    rules.error("criterion.bad-keeps", text.at(0), message, text.s, "— check: `command`", "write check: instead")


def _check(text: Text, rules: Rules, fences: Bullet | None) -> str | None:
    if text.s:
        return scalars.one_command(text, rules)
    if fences and fences.fences:
        return scalars.fenced(fences.fences[0], rules)
    scalars.bare_command(text, rules, empty=True)
    return None


def _near_miss(tail: Text, rules: Rules) -> None:
    message = f"`{tail.s}` looks like a proof but is not one"
    fix = "write the proof exactly as shown, or put the word in backticks"
    accepted = PROOFS if rules.task else PROOFS.replace("— keeps: `command`, — verify, ", "")
    rules.error("criterion.bad-proof", tail.at(0), message, tail.s, accepted, fix)


def _strays(draft: Draft, text: Text, rules: Rules) -> None:
    """Report a second proof, or a proof without a dash before it."""
    blotted = inline.masked(draft.text)
    dashes = list(inline.DASH.finditer(blotted))
    parts = zip(dashes, [*(d.start() for d in dashes[1:]), len(blotted)], strict=False)
    second = next((d for d, end in parts if _is_proof(blotted[d.end() : end].strip())), None) if draft.proof else None
    stray = None if second else _STRAY.search(blotted)
    if second:
        message = "This criterion has two proofs"
        fix = "split it into two criteria, or join the commands with &&"
        rules.error("criterion.two-proofs", text.at(second.start()), message, text.s, "one proof", fix)
    elif stray and draft.proof != plan.UNPROVEN:
        draft.proof = draft.proof or plan.UNPROVEN  # reported here; do not also report it as unproven
        _near_miss(text.part(stray.start()), rules)
    elif (kept := _STRAY_KEEPS.search(blotted)) and not (dashes and dashes[-1].end() <= kept.start()):
        _bad_keeps(text.part(kept.start()), rules)


def _is_proof(text: str) -> bool:
    return bool(_CHECK.match(text) or _MASKED_KEEPS.match(text)) or text in MARKS


def _nested(draft: Draft, bullet: Bullet, rules: Rules) -> None:
    """Read nested bullets: a check, or notes."""
    notes: list[str] = []
    for child in bullet.children:
        check = _CHECK.match(child.text.s) or _keeps(child.text, rules, child)
        if check:
            _nested_check(draft, child, check, rules)
        elif BOX.match(child.text.s) or BROKEN_BOX.match(child.text.s):
            _nested_box(child, rules)
        elif _is_near_proof(child.text.s):
            _near_miss(child.text, rules)
        else:
            notes += _remarks(child, rules)
    draft.notes = tuple(notes)


def _is_near_proof(text: str) -> bool:
    return bool(_STRAY.match(inline.masked(text))) or text.casefold() in MARKS


def _nested_check(draft: Draft, child: Bullet, check: re.Match[str], rules: Rules) -> None:
    if draft.proof is None:
        draft.proof, draft.keeps = plan.CHECK, check[0].startswith("keeps")
        draft.command = _check(child.text.part(check.end()), rules, child)
        return
    message = "This criterion has two proofs"
    fix = "split it into two criteria, or join the commands with &&"
    rules.error("criterion.two-proofs", child.start, message, child.text.s, "one proof", fix)


def _nested_box(child: Bullet, rules: Rules) -> None:
    message = "This checkbox is below a criterion and would be ignored"
    fix = "make it a separate criterion, or remove its checkbox"
    rules.error("criterion.nested-box", child.start, message, child.text.s, "bullets without a checkbox", fix)


def _remarks(child: Bullet, rules: Rules, depth: int = 0) -> list[str]:
    notes = ["  " * depth + child.text.s]
    for grandchild in child.children:
        if BOX.match(grandchild.text.s) or BROKEN_BOX.match(grandchild.text.s):
            _nested_box(grandchild, rules)
        else:
            notes += _remarks(grandchild, rules, depth + 1)
    return notes


def settle(drafts: list[Draft], rules: Rules) -> tuple[Criterion, ...]:
    """Assign missing ids, and apply Verify to criteria without a proof of their own."""
    ids = _ids(drafts, rules)
    any_mark = any(d.proof for d in drafts)
    covered = bool(rules.commands) and not any_mark
    settled = []
    for draft, id in zip(drafts, ids, strict=True):
        proof = draft.proof or (plan.VERIFY if covered else plan.UNPROVEN)
        if proof == plan.VERIFY and not rules.commands and rules.task:
            _nothing_to_verify(draft, rules)
        elif proof == plan.UNPROVEN and draft.proof is None:
            _unproven(draft, rules)
        settled.append(Criterion(id, draft.text, proof, draft.command, draft.notes, draft.span, draft.keeps))
    return tuple(settled)


def _nothing_to_verify(draft: Draft, rules: Rules) -> None:
    message = "This criterion is proven by Verify, but the task has no Verify"
    fix = "add - **Verify:** and a command"
    rules.error("criterion.nothing-to-verify", draft.at, message, "verify", "a field Verify with commands", fix)


def _unproven(draft: Draft, rules: Rules) -> None:
    """Warn about an unproven criterion of an invalid plan. In a valid one, intake reports it, depending on the mode."""
    message = f"Nothing proves “{draft.text}”"
    fix = "add — check: and a command in backticks, or — human"
    rules.warning("criterion.unproven", draft.at, message, draft.text, fix)


def _ids(drafts: list[Draft], rules: Rules) -> list[str]:
    taken: dict[int | None, Draft] = {}
    for draft in drafts:
        if not draft.number:
            continue
        number = whole_numbers.parse(draft.number[3:])
        if number is None:
            message = "The number of this criterion is too large"
            fix = "give it another number"
            rules.error("criterion.bad-id", draft.at, message, draft.number, "AC- and at most 18 digits", fix)
        elif number in taken:
            first = taken[number].span.line
            message = f"Duplicate id {draft.number}, first used on line {first}"
            fix = "give it another number"
            rules.error("criterion.duplicate-id", draft.at, message, draft.number, "unique ids", fix)
        taken.setdefault(number, draft)
    ids = []
    free = 1
    for draft in drafts:
        if draft.number:
            ids.append(draft.number)
            continue
        while free in taken:
            free += 1
        ids.append(f"AC-{free}")
        free += 1
    return ids


# Criteria in YAML: texts or mappings

_YAML_KEEPS = "keeps"
_KEYS = ("id", "text", "check", _YAML_KEEPS, "verify", "human", "opinion", "changed")


def from_nodes(nodes: Iterable[yaml_nodes.Node], rules: Rules) -> list[Draft]:
    return [draft for node in nodes if (draft := _from_node(node, rules))]


def _from_node(node: yaml_nodes.Node, rules: Rules) -> Draft | None:
    if isinstance(node, yaml_nodes.Scalar) and not node.is_null:
        text = yaml_text(node)
        if BOX.match(text.s) or BROKEN_BOX.match(text.s):
            _bad_node(
                rules, "criterion.box-in-yaml", node.start, "A criterion in YAML must not have a checkbox", text.s
            )
            return None
        return from_text(Text(text.s, text.marks), rules)
    if isinstance(node, yaml_nodes.Mapping):
        return _from_mapping(node, rules)
    _bad_node(rules, "criterion.not-text", node.start, "A criterion must be a text or a mapping")
    return None


def _bad_node(rules: Rules, code: str, at: int, message: str, found: str = "", fix: str = "") -> None:
    accepted = "a text, or {id?, text, check | keeps | verify | human | opinion | changed}"
    rules.error(code, at, message, found, accepted, fix or "write " + accepted)


def _from_mapping(node: yaml_nodes.Mapping, rules: Rules) -> Draft | None:
    pairs = {key.value: (key, value) for key, value in node.pairs}
    for key, _ in pairs.values():
        if key.value not in _KEYS:
            fix = did_you_mean(key.value, _KEYS, form="did you mean {}?")
            _bad_node(rules, "criterion.unknown-key", key.start, f"Unknown key `{key.value}`", key.value, fix)
    text = pairs["text"][1] if "text" in pairs else None
    if not isinstance(text, yaml_nodes.Scalar) or text.is_null:
        _bad_node(rules, "criterion.no-text", node.start, "This criterion has no text")
        return None
    line = rules.problems.source.place(node.start)[0]
    draft = Draft(text.value.strip(), node.start, Span(node.start, node.end, line))
    _mapping_id(draft, pairs, rules)
    _mapping_proof(draft, pairs, rules)
    return draft


_Pairs = dict[str, tuple[yaml_nodes.Scalar, yaml_nodes.Node]]


def _mapping_id(draft: Draft, pairs: _Pairs, rules: Rules) -> None:
    if "id" not in pairs:
        return
    key, node = pairs["id"]
    if isinstance(node, yaml_nodes.Scalar) and ID.fullmatch(node.value + ":"):
        draft.number = node.value
    else:
        _bad_node(rules, "criterion.bad-id", key.start, "A criterion id must be AC- and a number")


def _mapping_proof(draft: Draft, pairs: _Pairs, rules: Rules) -> None:
    marks = [name for name in (plan.CHECK, _YAML_KEEPS, *MARKS, plan.CHANGED) if name in pairs]
    if len(marks) > 1:
        at = pairs[marks[1]][0].start
        _bad_node(rules, "criterion.two-proofs", at, "This criterion has two proofs", ", ".join(marks))
    if not marks:
        return
    key, node = pairs[marks[0]]
    draft.keeps = marks[0] == _YAML_KEEPS
    draft.proof = plan.CHECK if draft.keeps else marks[0]
    if draft.keeps and not rules.task:
        _bad_node(rules, "criterion.bad-proof", key.start, "Success criteria cannot say keeps", "keeps", "write check")
    elif draft.proof == plan.CHECK:
        if isinstance(node, yaml_nodes.Scalar) and not node.is_null and node.value.strip():
            draft.command = inline.code(node.value.strip()) or node.value.strip()
        else:
            _bad_node(rules, "command.empty", key.start, f"{marks[0]} must be a command")
    elif draft.proof == plan.VERIFY and not rules.task:
        _bad_node(rules, "criterion.bad-proof", key.start, "Success criteria cannot be proven by verify", "verify")
    elif draft.proof == plan.CHANGED and not rules.task:
        _bad_node(
            rules, "criterion.bad-proof", key.start, "Success criteria cannot be proven by changed files", "changed"
        )
    else:
        _mapping_mark(draft, key, node, rules)


def _mapping_mark(draft: Draft, key: yaml_nodes.Scalar, node: yaml_nodes.Node, rules: Rules) -> None:
    if isinstance(node, yaml_nodes.Scalar) and node.plain and node.value in {"true", "True", "TRUE"}:
        return
    entries = node.items if isinstance(node, yaml_nodes.Sequence) else [node]
    texts = [e.value.strip() for e in entries if isinstance(e, yaml_nodes.Scalar) and not e.is_null]
    false = isinstance(node, yaml_nodes.Scalar) and node.plain and node.value.casefold() == "false"
    if draft.proof == plan.HUMAN and texts and len(texts) == len(entries) and not false:
        draft.notes = tuple(texts)
        return
    _bad_node(rules, "criterion.bad-proof", key.start, f"{draft.proof} must be true or absent")
