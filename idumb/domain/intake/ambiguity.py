"""Words that leave open what is to be done. What stands in backticks or quotes is code or somebody's words.

Most plans have none of these words, and plans may have ten thousand tasks: all texts are first looked through as one,
word by word, and only a word that is there is looked for task by task.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake.rule import Case, Example, Rule, is_declaration, short
from idumb.domain.plan import Plan, Task

LONGEST = 2 * 60 * 60
TITLE, CRITERION, INTENT, DESCRIPTION = "title", "acceptance", "steps", "description"
_ALL = (TITLE, CRITERION, INTENT)


@dataclass(frozen=True, slots=True)
class Phrase:
    """`word`, in lower case, is a part of every match of `pattern`; `places` are the kinds of text it is about."""

    code: str
    word: str
    pattern: str
    places: tuple[str, ...] = _ALL


_OPEN = r"(?:^|[-–—:(\[]\s*)"
_ELSEWHERE = r"\b(?:skip|proceed|otherwise|continue with|go to|fall back)\b"
_END = r"\s*(?:[:)\].]|$)"
PHRASES = (
    Phrase("text.placeholder", "tbd", r"(?<![\w./-])(?i:tbd)(?![\w/-])", (*_ALL, DESCRIPTION)),
    Phrase("text.placeholder", "todo", rf"{_OPEN}TODO\b{_END}", (*_ALL, DESCRIPTION)),
    Phrase("text.placeholder", "???", r"\?\?\?", (*_ALL, DESCRIPTION)),
    Phrase("text.placeholder", "to be de", r"(?i)\bto be (?:determined|decided)\b(?! by)", (*_ALL, DESCRIPTION)),
    Phrase("text.vague", "etc", r"(?i)(?<![\w./~-])etc\b(?!/)"),
    Phrase("text.vague", "and so ", r"(?i)\band so (?:on|forth)\b"),
    Phrase("text.vague", "or similar", r"(?i)\bor similar\b"),
    Phrase("text.vague", "or something", r"(?i)\bor something\b"),
    Phrase("text.vague", "appropriate", r"(?i)(?<![\w-])appropriate(?:ly)?\b"),
    Phrase("text.vague", "somehow", r"(?i)\bsomehow\b"),
    Phrase("text.vague", "hopefully", r"(?i)\bhopefully\b"),
    Phrase("text.conditional", "needed", r"(?i)\b(?:as|if|when|where|wherever) needed\b"),
    Phrase("text.conditional", "necessary", r"(?i)\b(?:as|if|when|where|wherever) necessary\b"),
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
    "text.placeholder": ("is a placeholder", "Decide it, and write the decision."),
    "text.vague": ("leaves open what is meant", "Name all that is meant, and nothing else."),
    "text.conditional": (
        "is a condition that nobody can check",
        "Decide it in the plan: say that it is done, or leave it out.",
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
                found = _pattern(phrase.pattern).search(_bare(text))
                if found is not None:
                    yield _told(case, phrase, (plan, task, place, text, line), found[0].strip(" :()[]-–—"))
                    break


def _texts(case: Case) -> Iterator[Text]:
    for plan in case.contract.plans:
        for criterion in plan.success_criteria:
            yield plan, None, CRITERION, criterion.text, criterion.span.line if criterion.span else 0
        for task in plan.tasks:
            if is_declaration(plan):
                yield from _declared(plan, task)
            for step in task.steps:
                yield plan, task, INTENT, step.intent, step.line


def _declared(plan: Plan, task: Task) -> Iterator[Text]:
    yield plan, task, TITLE, task.title, 0
    if task.description:
        yield plan, task, DESCRIPTION, task.description, 0
    for criterion in task.acceptance:
        yield plan, task, CRITERION, criterion.text, criterion.span.line if criterion.span else 0


@functools.cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


@functools.cache
def _code() -> re.Pattern[str]:
    return re.compile(r"(`+)[^`]+\1|\"[^\"\n]*\"|“[^”\n]*”|'[^'\n]*'(?!\w)")


def _bare(text: str) -> str:
    return _code().sub(" … ", text)


def _told(case: Case, phrase: Phrase, where: Text, found: str) -> Finding:
    plan, task, place, text, line = where
    what, mend = _WORDS[phrase.code]
    whose = task.id if task else "success criteria"
    names = {
        TITLE: "the title",
        CRITERION: "a criterion",
        INTENT: "the intent of a step",
        DESCRIPTION: "the description",
    }
    field = place if task else "success_criteria"
    return case.at(
        phrase.code,
        plan,
        task,
        field,
        found=short(text),
        accepted="words that mean one thing",
        message=f"{whose}: `{found}` in {names[place]} {what}.",
        mend=mend,
        line=line,
    )


def estimates(case: Case) -> Iterator[Finding]:
    """A task that is meant to take more than two hours is a plan of its own."""
    for plan, task in case.pairs:
        if task.estimate is not None and task.estimate > LONGEST and not task.is_human:
            hours = f"{task.estimate / 3600:.1f}".removesuffix(".0")
            yield case.at(
                "task.long-estimate",
                plan,
                task,
                "estimate",
                found=f"{hours} hours",
                accepted="at most 2 hours",
                message=f"{task.id} is estimated at {hours} hours.",
                mend="Split it into tasks that can each be proven.",
            )


_TASK = (
    "### T1-01: {title}\n\n- **Files:** create `hello.txt`\n- **Acceptance:**\n"
    "  - [ ] {criterion} — check: `test -s hello.txt`\n{fields}"
)

RULES = (
    Rule(
        "text.placeholder",
        WARNING,
        ERROR,
        phrases,
        "A title, criterion, intent or description holds TBD, TODO, `???`, “to be determined” or “to be decided”.",
        Example(_TASK.format(title="Greet", criterion="The greeting is TBD", fields="")),
    ),
    Rule(
        "text.vague",
        WARNING,
        ERROR,
        phrases,
        "A title, criterion or intent leaves open what is meant: etc., and so on, or similar, appropriate, somehow.",
        Example(_TASK.format(title="Greet", criterion="It greets friends, family etc.", fields="")),
    ),
    Rule(
        "text.conditional",
        WARNING,
        ERROR,
        phrases,
        "A title, criterion or intent has a condition that nobody can check: as needed, if necessary, where possible,"
        " if time permits, optional.",
        Example(_TASK.format(title="Greet, and wave if necessary", criterion="It greets", fields="")),
    ),
    Rule(
        "task.long-estimate",
        WARNING,
        WARNING,
        estimates,
        "The task is estimated at more than two hours.",
        Example(_TASK.format(title="Greet", criterion="It greets", fields="- **Estimate:** 3h\n")),
    ),
)
