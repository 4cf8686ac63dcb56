"""Questions to a person about a phase, before its plan is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from idumb.domain import whole_numbers
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """`id` is `Q-` and a number, unique in the phase. `answer` is "" until someone answers."""

    id: str
    text: str
    why: str = ""
    answer: str = ""


def number_questions(present: Iterable[Question], new: Iterable[tuple[str, str]]) -> tuple[Question, ...]:
    """Number new questions, given as (text, why), after the known ones; omit those already asked."""
    before = list(present)
    known_texts = {_folded(q.text) for q in before}
    number = whole_numbers.next_free(q.id.removeprefix("Q-") for q in before) - 1
    added: list[Question] = []
    for text, why in new:
        if text.strip() and _folded(text) not in known_texts:
            known_texts.add(_folded(text))
            added.append(Question(f"Q-{number + len(added) + 1}", text, why))
    return tuple(added)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def standard_questions(roadmap: str, project: str, requirements: str) -> Iterator[tuple[str, str]]:
    """Yield (text, why) of the standard questions that these documents leave open."""
    if not roadmap.strip().partition("\n")[2].strip():
        yield "What is true when this phase is done?", "The roadmap names the phase and no result."
    if not requirements.strip():
        yield "Who needs it, and what for?", "There is no REQUIREMENTS.md, and tasks are derived from needs."
    yield "What is left out of this phase, though one might expect it?", "What nobody excludes may be built."
    yield _proof(project)
    yield "What must not change or break?", "It becomes an invariant, or a path that no task may touch."


_CHECKED = re.compile(r"(?m)^## How it is checked\n+(?P<said>(?:(?!^#).*\n?)*)")
_UNFILLED = "The command that shows that everything works"


def _proof(project: str) -> tuple[str, str]:
    match = _CHECKED.search(project)
    if match and match["said"].strip() and _UNFILLED not in match["said"]:
        return "How will one see that this phase is done?", "A command that proves it is worth more than any word."
    return "Which commands show that the project works, and that this phase is done?", "PROJECT.md names none."
