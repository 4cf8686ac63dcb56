"""Handwritten texts about a phase: questions with their answers, and success criteria.

Questions are asked before a plan is written; the context file of the phase holds them with their answers. Success
criteria may be stated in the roadmap and in the context file; nothing in them is ever run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from idumb.domain import whole_numbers
from idumb.domain.wording import as_markdown, folded, line_end, one_line

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")

SECTION = "## Questions and answers"
OPEN = "_Not answered yet._"
_WHY = "Why: "
_ASKED = re.compile(r"### (Q-\d+): (.+)")


class Question(Struct, frozen=True):
    """`id` is `Q-` and a number, unique in the phase. `answer` is "" until someone answers."""

    id: str
    text: str
    why: str = ""
    answer: str = ""


def questions_in(text: str) -> tuple[Question, ...]:
    """Return the questions of the section in order; the first question of an id counts."""
    lines = _bare(text)
    by_id: dict[str, Question] = {}
    for part in _parts(lines):
        body = [line.strip() for line in lines[part.start : part.end]]
        why = next((line.removeprefix(_WHY) for line in body if line.startswith(_WHY)), "")
        answer_lines = [line for line in body if line != OPEN and not line.startswith(_WHY)]
        answer = "\n".join(line.removeprefix("> ").removeprefix(">") for line in answer_lines).strip()
        by_id.setdefault(part.id, Question(part.id, part.text, why, answer))
    return tuple(by_id.values())


def without_open(text: str) -> str:
    """Return the text without unanswered questions; "" if only headings remain."""
    lines = _lines(text)
    unanswered = {q.id for q in questions_in(text) if not q.answer}
    for part in reversed(list(_parts(_bare(text)))):
        if part.id in unanswered:
            del lines[part.start - 1 : part.end]
    kept = "".join(lines)
    bare = _bare(kept)
    heads = _levels(bare)
    return kept if any(line.strip() and n not in heads for n, line in enumerate(bare)) else ""


def updated(text: str, title: str, questions: Iterable[Question], answers: Mapping[str, str]) -> str:
    """Return the file with new questions appended to the section, and with answers inserted.

    `title` is the heading of a new file. Questions with an existing id are omitted.
    """
    text = text or f"# {one_line(title)}\n"
    ids = {q.id for q in questions_in(text)}
    for question in questions:
        if question.id not in ids:
            text = _appended(text, question)
    for id, answer in answers.items():
        text = _answered(text, id, answer)
    return text


def _answered(text: str, id: str, answer: str) -> str:
    lines, bare = _lines(text), _bare(text)
    part = next((p for p in _parts(bare) if p.id == id), None)
    if part is None:
        return text
    end = line_end(text)
    quoted = [f"> {line}".rstrip() + end for line in as_markdown(answer).strip().split("\n")]
    waiting = next((n for n in range(part.start, part.end) if bare[n].strip() == OPEN), None)
    if waiting is not None:
        lines[waiting : waiting + 1] = quoted
    else:
        lines[part.start : part.start] = [end, *quoted]
    return "".join(lines)


def _appended(text: str, question: Question) -> str:
    end = line_end(text)
    why = [f"{_WHY}{one_line(as_markdown(question.why))}", ""] if question.why.strip() else []
    block = [f"### {question.id}: {one_line(as_markdown(question.text))}", "", *why, OPEN]
    lines = _lines(text)
    section = _section(_bare(text))
    if section is None:
        gap = "" if text.endswith((end + end, "\n\n")) else end if text.endswith("\n") else end + end
        return text + gap + end.join([SECTION, "", *block, ""])
    at = section[1]
    while at > section[0] and not lines[at - 1].strip():
        at -= 1
    if not lines[at - 1].endswith("\n"):
        lines[at - 1] += end
    after = end if at < len(lines) and lines[at].strip() else ""
    lines[at:at] = [end, end.join([*block, ""]), after]
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only LF ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _bare(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in _lines(text)]


class _Part(Struct, frozen=True):
    """A question with the lines of its body, from 0, end excluded."""

    id: str
    text: str
    start: int
    end: int


def _parts(lines: list[str]) -> Iterator[_Part]:
    section = _section(lines)
    if section is None:
        return
    heads = [n for n, level in _levels(lines).items() if section[0] < n < section[1] and level <= 3]
    for at, following in pairwise([*heads, section[1]]):
        match = _ASKED.fullmatch(lines[at].rstrip())
        if match is not None:
            yield _Part(match[1], match[2], at + 1, following)


def _section(lines: list[str]) -> tuple[int, int] | None:
    """Return the line of the section's heading and the line after its end."""
    heads = _levels(lines)
    start = next((n for n in heads if lines[n].rstrip() == SECTION), None)
    if start is None:
        return None
    return start, next((n for n, level in heads.items() if n > start and level <= 2), len(lines))


def number_questions(present: Iterable[Question], new: Iterable[tuple[str, str]]) -> tuple[Question, ...]:
    """Number new questions, given as (text, why), after the known ones; omit those already asked."""
    before = list(present)
    known_texts = {folded(q.text) for q in before}
    number = whole_numbers.next_free(q.id.removeprefix("Q-") for q in before) - 1
    added: list[Question] = []
    for text, why in new:
        if text.strip() and folded(text) not in known_texts:
            known_texts.add(folded(text))
            added.append(Question(f"Q-{number + len(added) + 1}", text, why))
    return tuple(added)


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


_TITLE = r"(?:success|acceptance)[ -]criteria|done when|definition of done"
_TITLED = re.compile(r" {0,3}#{1,6}[ \t]+(?P<title>.*?)[ \t#]*")
_LABEL = re.compile(rf"\s*(?:[-*+][ \t]+)?\**(?:{_TITLE})\**[ \t]*:[ \t]*\**[ \t]*(?P<rest>.*)", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?(?P<text>.*\S)")
_MOST = 100


def success_criteria(text: str) -> tuple[str, ...]:
    """Return the list items under headings or labels such as "Success criteria", in order, without duplicates."""
    return tuple(dict.fromkeys(_items(text.replace("\r\n", "\n").split("\n"))))[:_MOST]


def _items(lines: list[str]) -> Iterator[str]:
    in_list = False
    before: list[str] = []
    for _, line in _unfenced(lines):
        heading, label, item = _TITLED.fullmatch(line), _LABEL.fullmatch(line), _ITEM.fullmatch(line)
        if in_list and item is None and line.strip() and line[:1].isspace() and before:
            before.append(line.strip())
            continue
        if before:
            yield " ".join(before)
            before = []
        if heading is not None or label is not None:
            title = heading["title"] if heading is not None else ""
            in_list = label is not None or re.fullmatch(rf"\**(?:{_TITLE})\**:?", title, re.IGNORECASE) is not None
            before = [label["rest"]] if label is not None and label["rest"].strip() else []
        elif in_list and item is not None:
            before = [item["text"]]
        elif in_list and line.strip():
            in_list = False
    if before:
        yield " ".join(before)


def _levels(lines: Sequence[str]) -> dict[int, int]:
    """Return the heading levels by line (from 0). `lines` have no line ends."""
    return {number: len(heading[1]) for number, line in _unfenced(lines) if (heading := _HEADING.match(line))}


def _unfenced(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are in no fence and in no comment, with their numbers."""
    mark, hidden = "", False
    for number, line in enumerate(lines):
        hidden = hidden or (not mark and line.lstrip().startswith("<!--"))
        fence = None if hidden else _FENCE.match(line)
        if hidden:
            hidden = "-->" not in line
        elif fence and not mark:
            mark = fence[1]
        elif fence and fence[1].startswith(mark) and not line.strip().strip(mark[0]):
            mark = ""
        elif not mark:
            yield number, line
