"""Checks for vague wording. Text in backticks or quotes is code or a quotation and is exempt.

Most plans contain none of these words, and plans can have ten thousand tasks. Therefore all texts are searched as one,
and only phrases that occur are searched for task by task.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from idumb.domain.finding import Finding
from idumb.domain.intake.rule import Case, is_declaration, short
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
_WORDS = {
    "text.placeholder": ("is a placeholder", "Decide, and write down the decision."),
    "text.vague": ("is vague", "Name exactly what you mean."),
    "text.conditional": (
        "is a condition that no one can check",
        "Decide in the plan: require it or remove it.",
    ),
}
Text = tuple[Plan, Task | None, str, str, int]
"""Plan, task (None for the plan's own), kind of text, the text, its line or 0."""


def phrases(case: Case) -> Iterator[Finding]:
    texts = list(_texts(case))
    whole = "\n".join(text for _, _, _, text, _ in texts).lower()
    present = [phrase for phrase in PHRASES if phrase.word in whole]
    if not present:
        return
    for plan, task, place, text, line in texts:
        lowered = text.lower()
        for phrase in present:
            if phrase.word in lowered and place in phrase.places:
                match = _pattern(phrase.pattern).search(_bare(text))
                if match is not None:
                    yield _phrase_finding(case, phrase, (plan, task, place, text, line), match[0].strip(" :()[]-–—"))
                    break


def _texts(case: Case) -> Iterator[Text]:
    for plan in case.contract.plans:
        for criterion in plan.success_criteria:
            yield plan, None, CRITERION, criterion.text, criterion.span.line if criterion.span else 0
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
        yield plan, task, CRITERION, criterion.text, criterion.span.line if criterion.span else 0
    yield from ((plan, task, "tests", test.intent, 0) for test in task.tests)
    yield plan, task, "notes", task.notes, 0
    yield plan, task, "rollback", task.rollback.reason, 0


def quoted(case: Case) -> Iterator[Finding]:
    """Find the plainest of these words where they may be literal: in code, in text of a step, in a check."""
    for plan, task, place, text, line in _texts(case):
        if word := _plainest(" ".join(match[0] for match in _code().finditer(text))):
            yield _quoted_finding(case, (plan, task, place, text, line), word, f"quoted in {_NAMES[place]}")
    for plan in case.contract.plans:
        checks = [*((c.command, c.span) for c in plan.success_criteria), *((i.check, None) for i in plan.invariants)]
        for command, span in checks:
            if command and (word := _plainest(command)):
                where = (plan, None, "success_criteria", command, span.line if span else 0)
                yield _quoted_finding(case, where, word, "in a check")
        for task in plan.tasks:
            yield from _quoted_in_task(case, plan, task)


def _quoted_in_task(case: Case, plan: Plan, task: Task) -> Iterator[Finding]:
    checks = ((c.command, c.span.line if c.span else 0) for c in task.acceptance if c.command)
    for command, line in (*checks, *((command, 0) for command in (*task.verify, *(t.command for t in task.tests)))):
        if word := _plainest(command):
            yield _quoted_finding(case, (plan, task, CRITERION, command, line), word, "in a check")
    for step in task.steps:
        for name, value in step.arguments.items():
            if isinstance(value, str) and (word := _plainest(value)):
                yield _quoted_finding(case, (plan, task, INTENT, value, step.line), word, f"in `{name}` of a step")


def _plainest(text: str) -> str:
    lowered = text.lower()
    if not any(word in lowered for word in ("tbd", "fixme", "etc.", "as needed")):
        return ""
    match = _plain_words().search(text)
    return match[0] if match is not None else ""


@functools.cache
def _plain_words() -> re.Pattern[str]:
    return re.compile(r"(?i)(?<![\w./-])(?:tbd|fixme)(?![\w/-])|(?<![\w./~-])etc\.(?![\w/])|\bas needed\b")


def _quoted_finding(case: Case, where: Text, found: str, place: str) -> Finding:
    plan, task, field, text, line = where
    message = f"{task.id if task else 'The plan'}: `{found}` appears {place}."
    fix = "If you mean this text literally, leave it. Otherwise decide, and write down the decision."
    return case.at("text.quoted", plan, task, short(text), message, fix, field=field, line=line)


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


def _phrase_finding(case: Case, phrase: Phrase, where: Text, found: str) -> Finding:
    plan, task, place, text, line = where
    problem, fix = _WORDS[phrase.code]
    whose = task.id if task else "success criteria" if place == CRITERION else "the plan"
    message = f"{whose}: `{found}` in {_NAMES[place]} {problem}."
    field = place if task or place != CRITERION else "success_criteria"
    return case.at(phrase.code, plan, task, short(text), message, fix, field=field, line=line)
