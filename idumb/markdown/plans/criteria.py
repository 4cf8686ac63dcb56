"""Read acceptance and success criteria: their ids, texts and proofs."""

from __future__ import annotations

import re

from msgspec import Struct

from idumb.domain import whole_numbers
from idumb.domain.plans import plan
from idumb.domain.plans.plan import Criterion, Span
from idumb.markdown.plans import values
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import BULLET, LIST, Node, is_map, is_text

BOX = re.compile(r"\[([ xX])\](?:[ \t]+|$)")
BROKEN_BOX = re.compile(
    r"\[\](?![(\[:])|\[[ xX]{2,}\]|\[[ xX]\](?=[^\s(\[:])|\[[-~/>?!*+.oO✓✔✗✘\u3000\u00a0]\](?=\s|$)"
)
_MARKED_BOX = re.compile(r"[-+*]\s*\[[ xX]?\]")  # a bullet with its checkbox on the line of the label
_ID = re.compile(r"AC-(\d+):(?:\s+|$)")
_NEAR_ID = re.compile(r"[\[(*_`]*AC[-_ ]?\d", re.IGNORECASE)
_PROOF = re.compile(r"(check|verify|human|opinion)\b", re.IGNORECASE)
_CHECK = re.compile(r"check:\s*")
_KEEPS = re.compile(r"keeps:\s*(?=`|$)")
_NEAR_KEEPS = re.compile(r"keeps?\s*:|keeps?\s*\x00+$", re.IGNORECASE)
_SECOND = re.compile(r"check:|keeps:\s*\x00")
_STRAY_KEEPS = re.compile(r"\(\s*keeps\s*:|\bkeeps\s*:\s*\x00|--keeps:", re.IGNORECASE)
_STRAY = re.compile(
    r"\(\s*(?:check\s*:|(?:verify|human|opinion)\s*\))|\bcheck\s*:\s*\x00|--(?:check:|(?:verify|human|opinion)\s*$)",
    re.IGNORECASE,
)
_KEEP = "keeps"
_MARKS = (plan.VERIFY, plan.HUMAN, plan.OPINION)
_KEYS = ("id", "text", plan.CHECK, _KEEP, *_MARKS, plan.CHANGED)
_OF_TASKS = (_KEEP, plan.VERIFY, plan.CHANGED)  # proofs that success criteria cannot have


class CriterionDraft(Struct):
    """A criterion before ids are assigned and Verify is known. `proof` is None without a proof mark."""

    text: str
    span: Span
    id: str = ""
    proof: str | None = None
    command: str | None = None
    notes: tuple[str, ...] = ()
    keeps: bool = False


def read(node: Node, place: Place, *, task: bool = True) -> list[CriterionDraft]:
    """Return the criteria of a list, or the one on the line of the label; `task` False: they are success criteria."""
    items = node.items if node.kind == LIST or node.items else [node]
    reader = _Reader(place, task)
    return [draft for item in items if (draft := reader.bullet(item) if item.kind == BULLET else reader.yaml(item))]


def of_task(node: Node, place: Place) -> list[CriterionDraft] | None:
    """Read the acceptance criteria of a task; None if it says that it has none."""
    return None if node.is_none else read(node, place)


def has_command(text: str) -> bool:
    """Whether a text ends in a proof with a command."""
    dash = inline.last_dash(text)
    return dash is not None and re.match(r"\s*(?:check|keeps):\s*`", text[dash.end() :]) is not None


class _Reader:
    def __init__(self, place: Place, task: bool) -> None:  # noqa: FBT001
        self.place, self.task = place, task

    def bullet(self, item: Node) -> CriterionDraft | None:
        text, box = item.text, BOX.match(item.value)
        if box:
            if box[1] != " ":
                self.place.report("criterion.ticked", item.start, box[0].strip())
            text = text.part(box.end())
        elif BROKEN_BOX.match(text.value) or _MARKED_BOX.match(text.value):
            self.place.report("box.malformed", text.at(0), text.value[:40])
            return None
        else:
            self.place.report("criterion.no-box", item.start, text.value)
        draft = self.text(text, item)
        if draft:
            self.below(draft, item)
        return draft

    def text(self, text: Text, item: Node) -> CriterionDraft | None:
        """Read one criterion: id, text, dash, proof."""
        whole, id = text, _ID.match(text.value)
        if id:
            whole = text.part(id.end())
        elif _NEAR_ID.match(text.value):
            self.place.report("criterion.bad-id", text.at(0), text.value[:40])
        last = whole.at(len(whole.value) - 1) + 1 if whole.value else whole.at(0)
        span = self.place.source.span(whole.at(0), last)
        draft = CriterionDraft(whole.value, span, id[0].strip().removesuffix(":") if id else "")
        dash = inline.last_dash(whole.value)
        if dash and self.proof(draft, whole.part(dash.end()), item):
            draft.text = whole.value[: dash.start()].rstrip(" \t—–")
        self.strays(draft, whole)
        if draft.text:
            return draft
        self.place.report("criterion.no-text", whole.at(0), whole.value)
        return None

    def proof(self, draft: CriterionDraft, tail: Text, item: Node) -> bool:
        """Read the part after the last dash. Return whether it is, or looks like, a proof."""
        if self.is_command(tail, item):
            self.command(draft, tail, item)
        elif tail.value in _MARKS:
            draft.proof = tail.value
            if tail.value in _OF_TASKS and not self.task:
                self.bad_proof(tail)
        elif _PROOF.match(tail.value):
            draft.proof = plan.UNPROVEN
            self.bad_proof(tail)
        else:
            return False
        return True

    def is_command(self, text: Text, item: Node) -> bool:
        """Whether `check:` or `keeps:` and a command follow; report what only looks like the latter."""
        if _CHECK.match(text.value):
            return True
        keeps = _KEEPS.match(text.value)
        if self.task and keeps and (keeps.end() < len(text.value) or item.fences):
            return True
        if _NEAR_KEEPS.match(inline.masked(text.value)):
            self.bad_keeps(text)
        return False

    def command(self, draft: CriterionDraft, text: Text, item: Node) -> None:
        draft.proof, draft.keeps = plan.CHECK, text.value.startswith(_KEEP)
        command = text.part(text.value.index(":") + 1)
        fence = item.fences[0] if item.fences and not command.value else None
        draft.command = values.fenced(fence, self.place) if fence else values.command(command, self.place)

    def bad_proof(self, text: Text) -> None:
        near = "— check: `command`, — human or — opinion"
        accepted = {} if self.task else {"accepted": near}
        self.place.report("criterion.bad-proof", text.at(0), text.value, **accepted)

    def bad_keeps(self, text: Text) -> None:
        words = {} if self.task else {"fix": "write check: instead: success criteria are judged after the work"}
        self.place.report("criterion.bad-keeps", text.at(0), text.value, **words)

    def strays(self, draft: CriterionDraft, whole: Text) -> None:
        """Report a second proof, or a proof without a dash before it."""
        masked = inline.masked(draft.text)
        dashes = list(inline.DASH.finditer(masked))
        ends = [*(dash.start() for dash in dashes[1:]), len(masked)]
        parts = (
            [(dash, masked[dash.end() : end].strip()) for dash, end in zip(dashes, ends, strict=True)] if dashes else []
        )
        second = next((dash for dash, part in parts if part in _MARKS or _SECOND.match(part)), None)
        if draft.proof and second:
            self.place.report("criterion.two-proofs", whole.at(second.start()), whole.value)
        elif (stray := _STRAY.search(masked)) and draft.proof != plan.UNPROVEN:
            draft.proof = draft.proof or plan.UNPROVEN  # reported here; do not also report it as unproven
            self.bad_proof(whole.part(stray.start()))
        elif not stray and (kept := _STRAY_KEEPS.search(masked)) and not (dashes and dashes[-1].end() <= kept.start()):
            self.bad_keeps(whole.part(kept.start()))

    def below(self, draft: CriterionDraft, item: Node) -> None:
        """Read nested bullets: a check, or notes."""
        notes: list[str] = []
        values.only_bullets(item, self.place, fences=draft.proof == plan.CHECK)
        for inner in item.items:
            if self.is_command(inner.text, inner):
                if draft.proof is None:
                    self.command(draft, inner.text, inner)
                else:
                    self.place.report("criterion.two-proofs", inner.start, inner.value)
            elif _STRAY.match(inline.masked(inner.value)) or inner.value.casefold() in _MARKS:
                self.bad_proof(inner.text)
            else:
                notes += self.notes(inner)
        draft.notes = tuple(notes)

    def notes(self, item: Node, depth: int = 0) -> list[str]:
        if BOX.match(item.value) or BROKEN_BOX.match(item.value):
            self.place.report("criterion.nested-box", item.start, item.value)
            return []
        values.only_bullets(item, self.place, fences=False)
        notes = ["  " * depth + item.value]
        for inner in item.items:
            notes += self.notes(inner, depth + 1)
        return notes

    # YAML: a text or a map

    def yaml(self, node: Node) -> CriterionDraft | None:
        if is_text(node) and not node.is_null:
            text = node.text.part(0)
            if BOX.match(text.value) or BROKEN_BOX.match(text.value):
                self.place.report("criterion.box-in-yaml", node.start, text.value)
                return None
            return self.text(Text(text.value, text.marks), node)
        if is_map(node):
            return self.map(node)
        self.place.report("criterion.not-text", node.start)
        return None

    def map(self, node: Node) -> CriterionDraft | None:
        pairs = {key.value: (key, value) for key, value in node.pairs}
        for key, _ in node.pairs:
            if key.value not in _KEYS:
                self.place.report("criterion.unknown-key", key.start, key.value, _KEYS)
        words = pairs["text"][1] if "text" in pairs else None
        if not is_text(words) or words.is_null:
            self.place.report("criterion.no-text", node.start)
            return None
        draft = CriterionDraft(words.value.strip(), self.place.source.span(node.start, node.end))
        if "id" in pairs:
            id = pairs["id"][1].value
            draft.id = id if _ID.fullmatch(id + ":") else ""
            if not draft.id:
                self.place.report("criterion.bad-id", pairs["id"][0].start, id)
        marks = [name for name in _KEYS[2:] if name in pairs]
        if len(marks) > 1:
            self.place.report("criterion.two-proofs", pairs[marks[1]][0].start, ", ".join(marks))
        if marks:
            self.mark(draft, *pairs[marks[0]])
        return draft

    def mark(self, draft: CriterionDraft, key: Node, node: Node) -> None:
        """Read the proof of a map: a command, true, or the instructions for a person."""
        name, text = key.value, node.value.strip()
        draft.keeps, draft.proof = name == _KEEP, plan.CHECK if name == _KEEP else name
        notes = tuple(item.value.strip() for item in (node.items if node.kind == LIST else [node]) if is_text(item))
        switch = node.plain and text.casefold() in {"true", "false"}
        if name in _OF_TASKS and not self.task:
            self.place.report("criterion.bad-proof", key.start, name, accepted="check, human or opinion")
        elif draft.proof == plan.CHECK:
            draft.command = inline.code(text) or text
            if not is_text(node) or not text:
                self.place.report("command.empty", key.start)
        elif switch and text in {"true", "True", "TRUE"}:
            pass
        elif name == plan.HUMAN and all(notes) and len(notes) == max(len(node.items), 1) and not switch:
            draft.notes = notes
        else:
            self.place.report("criterion.bad-proof", key.start, name, accepted=f"{name}: true")


def settle(
    drafts: list[CriterionDraft], place: Place, commands: tuple[str, ...] = (), *, task: bool = True
) -> tuple[Criterion, ...]:
    """Assign missing ids, and let Verify prove the criteria if none of them has a proof of its own."""
    numbers = _numbers(drafts, place)
    free = (f"AC-{number}" for number in range(1, len(drafts) + len(numbers) + 1) if number not in numbers)
    covered = bool(commands) and not any(draft.proof for draft in drafts)
    settled = []
    for draft in drafts:
        id, proof = draft.id or next(free), draft.proof or (plan.VERIFY if covered else plan.UNPROVEN)
        if proof == plan.VERIFY and not commands and task:
            place.report("criterion.nothing-to-verify", draft.span.start, "verify")
        elif proof == plan.UNPROVEN and draft.proof is None:
            place.report("criterion.unproven", draft.span.start, draft.text, id=id)
        settled.append(Criterion(id, draft.text, proof, draft.command, draft.notes, draft.span, draft.keeps))
    return tuple(settled)


def _numbers(drafts: list[CriterionDraft], place: Place) -> dict[int, int]:
    """Return the numbers of the given ids, each with its first line."""
    numbers: dict[int, int] = {}
    for draft in drafts:
        number = whole_numbers.parse(draft.id[3:]) if draft.id else None
        if draft.id and number is None:
            place.report("criterion.bad-id", draft.span.start, draft.id, accepted="AC- and at most 18 digits")
        elif number in numbers:
            place.report("criterion.duplicate-id", draft.span.start, draft.id, first=numbers[number])
        elif number is not None:
            numbers[number] = draft.span.line
    return numbers
