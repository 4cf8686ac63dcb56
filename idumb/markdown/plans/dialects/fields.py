"""Read one field of a task of another tool, whether a tag, a label or a heading holds it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb.domain.plans.plan import CHECK, HUMAN, Criterion, Option
from idumb.markdown.plans.dialects import checks, drafts
from idumb.markdown.plans.dialects.drafts import Part, TaskDraft
from idumb.markdown.syntax import inline
from idumb.markdown.syntax.source import Source

_CHECK = re.compile(r"\s+(?:—|–|--?)\s+check:\s*(`.*`)\s*$")
_BY_HAND = re.compile(r"\s+(?:—|–|--?)\s+human\s*$")
_OPTION = re.compile(r"<option\b([^<>]*)>((?:(?!</?option\b).)*+)</option>", re.DOTALL)
_ID = re.compile(r"\bid\s*=\s*[\"']([^\"']*)")
_OPENING, _CLOSING = re.compile(r"<([\w-]+)>\s*"), re.compile(r"\s*</[\w-]+>\s*")
_AN_ID = re.compile(r"(?:Task[ \t]+)?((?:[\w.]*-|(?:[^\W\d]|\.)*)\d[\w.]*)", re.IGNORECASE)
_ESTIMATE = re.compile(r"(\d{1,4})(?:\.\d+)?[ \t]*(h|hours?|hrs?|m|min|minutes?)\b", re.IGNORECASE)
_PRIORITIES = {
    word: name
    for name, words in {
        "critical": "critical p0", "high": "high p1", "normal": "normal medium p2", "low": "low p3"
    }.items()
    for word in words.split()
}  # fmt: skip


def read(draft: TaskDraft, name: str, part: Part, source: Source, at: int) -> None:
    """Read the value of a field into the draft; `at` is where the field begins."""
    draft.spans.setdefault(name, (part[1], part[1] + len(part[0])))
    if name == "title":
        draft.title = checks.clean(part[0])
    elif name == "files":
        draft.files = [*(draft.files or ()), part]
    elif name == "read_first" and (text := checks.block(part[0])):
        draft.references.append(f"Read first:\n{text}")
    elif name == "verify":
        _verify(draft, part, source)
    elif name == "acceptance":
        draft.criteria += [_criterion(words, place, source) for words, place in checks.items(part)]
    elif name == "options":
        draft.options += _options(part[0])
    elif name == "depends_on":
        _depends_on(draft, part, source)
    else:
        _word(draft, name, checks.flat(part[0]).strip("`* "), source, at)


def _word(draft: TaskDraft, name: str, word: str, source: Source, at: int) -> None:
    if name == "estimate" and (time := _ESTIMATE.search(word)):
        draft.estimate = (int(time[1]) * (3600 if time[2][0] in "hH" else 60)) or None
    elif name == "priority":
        draft.priority = _PRIORITIES.get(word.casefold(), draft.priority)
    elif name == "type":
        draft.kind = drafts.kind_of(word, at, source)


def _options(text: str) -> Iterator[Option]:
    for number, option in enumerate(_OPTION.finditer(text), 1):
        words = checks.flat(_OPENING.sub(r"\1: ", _CLOSING.sub("; ", option[2]))).removesuffix(";")
        id = _ID.search(option[1])
        own = (id and id[1]) or f"option-{number}"
        yield Option(own, words.removeprefix("name: ") or own)


def _verify(draft: TaskDraft, part: Part, source: Source) -> None:
    commands, by_hand, prose = checks.read(part)
    draft.commands += commands
    stated = [(HUMAN, *each) for each in by_hand] + [("", *each) for each in prose if not commands]
    draft.criteria += [Criterion("", words, proof, span=source.span(at, at)) for proof, words, at in stated]
    if commands and prose and draft.notation == "tag":  # Markdown is in the description as a whole
        draft.description.append("\n".join(["Verification:", *(f"- {words}" for words, _ in prose)]))


def _criterion(words: str, at: int, source: Source) -> Criterion:
    """Read a criterion; `— check:` with a command and `— human` prove it, as in idumb's own plans."""
    span, proof, command = source.span(at, at), "", None
    if (check := _CHECK.search(words)) and (command := inline.code(check[1])) is not None:
        words, proof, command = words[: check.start()], CHECK, command.strip()
    elif by_hand := _BY_HAND.search(words):
        words, proof = words[: by_hand.start()], HUMAN
    return Criterion("", words, proof, command, span=span)


def _depends_on(draft: TaskDraft, part: Part, source: Source) -> None:
    text = checks.flat(part[0]).strip("[]` ")
    ids: list[Part] = []
    none = text.casefold().rstrip(".") in ("none", "nothing", "n/a", "-", "—", "")
    for match in () if none else re.finditer(r"[^,;]+", part[0].rstrip()):
        word = checks.ITEM.sub("", match[0].strip(), count=1).strip("[]`\"'* .")
        id = _AN_ID.fullmatch(word)
        at = part[1] + match.start()
        if id is None:
            found = checks.flat(match[0])
            source.report("dialect.unread-dependency", at, found, field="Depends on", what="task")
            return
        ids.append((id[1], at))
    draft.depends_on = ids
