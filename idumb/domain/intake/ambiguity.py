"""Checks for vague wording. Text in backticks or quotes is code or a quotation and is exempt.

Most plans contain none of these words, and plans can have ten thousand tasks. Therefore all texts are searched as one,
and only phrases that occur are searched for task by task.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from idumb.domain.intake.rule import Case, Hit, Hits, is_declaration
from idumb.domain.plans.plan import Plan, Task
from idumb.lazy_dataclass import dataclass

TITLE, CRITERION, INTENT, DESCRIPTION = "title", "acceptance", "steps", "description"
_SHORT = (TITLE, CRITERION, INTENT)
"""Texts that say in one sentence what is done; other texts may describe a program that decides at run time."""
_ALL = (
    *_SHORT,
    DESCRIPTION,
    "goal",
    "requirements",
    "non_goals",
    "invariants",
    "assumptions",
    "setup",
    "tests",
    "notes",
    "rollback",
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """`word`, in lower case, is part of every match of `pattern`; `places` are the kinds of text it applies to."""

    code: str
    word: str
    pattern: str
    places: tuple[str, ...] = _SHORT


_OPEN = r"(?:^|[-–—:(\[]\s*)"
_ELSEWHERE = r"\b(?:skip|proceed|otherwise|continue with|go to|fall back)\b"
_END = r"\s*(?:[:)\].]|$)"
PHRASES = (
    Phrase("text.placeholder", "tbd", r"(?<![\w./-])(?i:tbd)(?![\w/-])", _ALL),
    Phrase("text.placeholder", "fixme", r"(?<![\w./-])(?i:fixme)(?![\w/-])", _ALL),
    Phrase("text.placeholder", "todo", rf"{_OPEN}TODO\b{_END}", _ALL),
    Phrase("text.placeholder", "???", r"\?\?\?", _ALL),
    Phrase("text.placeholder", "to be de", r"(?i)\bto be (?:determined|decided)\b(?! by)", _ALL),
    Phrase("text.vague", "etc", r"(?i)(?<![\w./~-])etc\b(?!/)", _ALL),
    Phrase("text.vague", "and so ", r"(?i)\band so (?:on|forth)\b", _ALL),
    Phrase("text.vague", "or similar", r"(?i)\bor similar\b"),
    Phrase("text.vague", "or something", r"(?i)\bor something\b"),
    Phrase("text.vague", "appropriate", r"(?i)(?<![\w-])appropriate(?:ly)?\b"),
    Phrase("text.vague", "somehow", r"(?i)\bsomehow\b"),
    Phrase("text.vague", "hopefully", r"(?i)\bhopefully\b"),
    Phrase("text.conditional", "as ne", r"(?i)\bas (?:needed|necessary)\b", _ALL),
    Phrase("text.conditional", "needed", r"(?i)\b(?:if|when|where|wherever) needed\b"),
    Phrase("text.conditional", "necessary", r"(?i)\b(?:if|when|where|wherever) necessary\b"),
    Phrase("text.conditional", "possible", r"(?i)\b(?:if|where|wherever|when|whenever) possible\b"),
    Phrase("text.conditional", "if time ", r"(?i)\bif time (?:permits|allows)\b"),
    Phrase("text.conditional", "nice to have", r"(?i)\bnice to have\b"),
    Phrase("text.conditional", "nice-to-have", r"(?i)\bnice-to-have\b"),
    Phrase(
        "text.conditional", "optional", r"(?i)^optionally\b|^\(?optional(?:[:,]|\))|\(optional\)\s*$", (TITLE, INTENT)
    ),
    Phrase("text.conditional", "depending on", r"(?i)\bdepending on\b", (INTENT,)),
    Phrase("text.conditional", "if ", rf"(?i)^if\b.*{_ELSEWHERE}", (INTENT,)),
    Phrase("text.conditional", "unless ", rf"(?i)^unless\b.*{_ELSEWHERE}", (INTENT,)),
    Phrase("text.conditional", "maybe", r"(?i)\bmaybe\b", (TITLE, INTENT)),
)
Text = tuple[Plan, Task | None, str, str, int]
"""Plan, task (None for the plan's own), kind of text, the text, its line or 0."""


def phrases(case: Case) -> Hits:
    texts = list(_texts(case))
    whole = "\n".join(text for _, _, _, text, _ in texts).lower()
    present = [phrase for phrase in PHRASES if phrase.word in whole]
    for plan, task, place, text, line in texts if present else ():
        lowered = text.lower()
        for phrase in present:
            if phrase.word in lowered and place in phrase.places:
                match = _pattern(phrase.pattern).search(_bare(text))
                if match is not None:
                    whose = task.id if task else "success criteria" if place == CRITERION else "the plan"
                    words = {"whose": whose, "word": match[0].strip(" :()[]-–—"), "place": _NAMES[place]}
                    yield plan, task, Hit(text, words, phrase.code, _field(place, task), line)
                    break


def _texts(case: Case) -> Iterator[Text]:
    for plan in case.contract.plans:
        for criterion in plan.success_criteria:
            yield plan, None, CRITERION, criterion.text, criterion.line
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
        yield plan, task, CRITERION, criterion.text, criterion.line
    yield from ((plan, task, "tests", test.intent, 0) for test in task.tests)
    yield plan, task, "notes", task.notes, 0
    yield plan, task, "rollback", task.rollback.reason, 0


def _field(place: str, task: Task | None) -> str:
    return place if task or place != CRITERION else "success_criteria"


@functools.cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


@functools.cache
def _code() -> re.Pattern[str]:
    return re.compile(r"(`+)[^`]+\1|\"[^\"\n]*\"|“[^”\n]*”|'[^'\n]*'(?!\w)")


def _bare(text: str) -> str:
    return _code().sub(" … ", text)


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
