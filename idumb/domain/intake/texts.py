"""Checks for vague wording, and for sentences that are still those of the template.

Text in backticks or quotes is code or a quotation, and is not vague.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from idumb.domain.intake.rule import Case, Hit, Hits, field_of, is_declaration
from idumb.domain.plans.plan import Criterion, Plan, Task

TITLE, CRITERION, INTENT, DESCRIPTION = "title", "acceptance", "steps", "description"
_SHORT = (TITLE, CRITERION, INTENT)
"""Texts that say in one sentence what is done; other texts may describe a program that decides at run time."""
_OPEN, _END = r"(?:^|[-–—:(\[]\s*)", r"\s*(?:[:)\].]|$)"
_UNDECIDED = (
    rf"(?<![\w./-])(?i:tbd|fixme)(?![\w/-])|{_OPEN}TODO\b{_END}|\?\?\?"
    r"|(?i:\bto be (?:determined|decided)\b(?! by))"
)
_VAGUE = r"(?i)\bor (?:similar|something)\b|(?<![\w-])appropriate(?:ly)?\b|\b(?:somehow|hopefully)\b"
_IF_POSSIBLE = (
    r"(?i)\b(?:if|when|whenever|where|wherever) (?:needed|necessary|possible)\b|\bif time (?:permits|allows)\b"
    r"|\bnice[ -]to[ -]have\b"
)
_OPTIONAL = r"(?i)^optionally\b|^\(?optional(?:[:,]|\))|\(optional\)\s*$|\bmaybe\b"
_ELSEWHERE = r"\b(?:skip|proceed|otherwise|continue with|go to|fall back)\b"
_PHRASES = tuple(
    (code, re.compile(pattern, re.MULTILINE), places)
    for code, pattern, places in (
        ("text.placeholder", _UNDECIDED, ()),
        ("text.vague", r"(?i)(?<![\w./~-])etc\b(?!/)|\band so (?:on|forth)\b", ()),
        ("text.vague", _VAGUE, _SHORT),
        ("text.conditional", r"(?i)\bas (?:needed|necessary)\b", ()),
        ("text.conditional", _IF_POSSIBLE, _SHORT),
        ("text.conditional", _OPTIONAL, (TITLE, INTENT)),
        ("text.conditional", rf"(?i)\bdepending on\b|^(?:if|unless)\b.*{_ELSEWHERE}", (INTENT,)),
    )
)
"""Code, what is ambiguous, and the kinds of text in which it is; none for all."""
Text = tuple[Plan, Task | None, str, str, int]
"""Plan, task (None for the plan's own), kind of text, the text, its line or 0."""


def phrases(case: Case) -> Hits:
    for plan, task, place, text, line in _texts(case):
        bare = _CODE.sub(" … ", text)
        for code, pattern, places in _PHRASES:
            match = pattern.search(bare) if place in places or not places else None
            if match is not None:
                whose = task.id if task else "success criteria" if place == CRITERION else "the plan"
                words = {"whose": whose, "word": match[0].strip(" :()[]-–—"), "place": _NAMES[place]}
                field = field_of(task) if place == CRITERION else place
                yield plan, task, Hit(text, words, code, field, line)
                break


def _texts(case: Case) -> Iterator[Text]:
    for plan in case.contract.plans:
        for criterion in plan.success_criteria:
            yield plan, None, CRITERION, criterion.text, criterion.span.line
        if is_declaration(plan):
            yield from ((plan, None, place, text, 0) for place, text in _of_plan(plan))
        for task in plan.tasks:
            if is_declaration(plan):
                yield from _declared(plan, task)
            for step in task.steps:
                yield plan, task, INTENT, step.intent, step.line


def _of_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    yield TITLE, plan.title
    yield "goal", plan.goal
    yield from (("requirements", text) for text in plan.requirements.values())
    yield from (("non_goals", goal.text) for goal in plan.non_goals)
    yield from (("invariants", invariant.text) for invariant in plan.invariants)
    yield from (("assumptions", text) for text in plan.assumptions)
    yield from (("setup", needed.why) for needed in plan.setup)


def _declared(plan: Plan, task: Task) -> Iterator[Text]:
    yield plan, task, TITLE, task.title, 0
    yield plan, task, DESCRIPTION, task.description, 0
    for criterion in task.acceptance:
        yield plan, task, CRITERION, criterion.text, criterion.span.line
    yield from ((plan, task, "tests", test.intent, 0) for test in task.tests)
    yield plan, task, "notes", task.notes, 0
    yield plan, task, "rollback", task.rollback.reason, 0


_CODE = re.compile(r"(?<!`)(`++)(?>(?:[^`]++|(?!\1(?!`))`++)+)\1(?!`)|\"[^\"\n]*\"|“[^”\n]*”|'[^'\n]*'(?!\w)")
_NAMES = {
    TITLE: "the title",
    CRITERION: "a criterion",
    INTENT: "the intent of a step",
    DESCRIPTION: "the description",
    "goal": "the goal",
    "requirements": "a requirement",
    "non_goals": "a non-goal",
    "invariants": "an invariant",
    "assumptions": "an assumption",
    "setup": "the setup",
    "tests": "the intent of a test",
    "notes": "the notes",
    "rollback": "the reason",
}


# Sentences of templates/plan.md and templates/phase-plan.md that the author of a plan has to replace.
SENTENCES = frozenset(
    {
        "What this plan delivers",
        "What is true when every task is done",
        "What a user needs, in one sentence",
        "Instructions for the builder. A task changes only the files that it declares.",
        "The result of this task exists",
        "Name the command that shows it",
    }
)
_BLANK = re.compile(r"<[A-Za-z][^<>]*>|\[[A-Z][^\[\]]*\]|\{\{?[A-Za-z][^{}]*\}?\}|\$[A-Za-z]\w*")


def unfilled(case: Case) -> Hits:
    """Find texts that are unchanged from the template."""
    for plan in case.contract.plans:
        texts = [("title", plan.title), ("goal", plan.goal), *(("requirements", t) for t in plan.requirements.values())]
        yield from ((plan, None, hit) for hit in _unfilled(texts, plan.success_criteria, "success_criteria"))
    for plan, task in case.pairs:
        texts = [("title", task.title), ("description", task.description)]
        yield from ((plan, task, hit) for hit in _unfilled(texts, task.acceptance, "acceptance"))


def _unfilled(texts: Iterable[tuple[str, str]], criteria: Iterable[Criterion], field: str) -> Iterator[Hit]:
    yield from (Hit(text, field=name) for name, text in texts if _is_unfilled(text))
    for one in criteria:
        if any(map(_is_unfilled, (one.text, *one.instructions))):
            yield Hit(one.text, field=field, line=one.span.line)


def _is_unfilled(text: str) -> bool:
    plain = text.strip()
    return plain in SENTENCES or _BLANK.fullmatch(plain) is not None
