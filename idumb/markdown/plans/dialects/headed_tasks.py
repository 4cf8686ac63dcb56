"""Read tasks that are Markdown: headings such as `### Task 1: Title` and `### T1-001: Title`, and labels below them.

GSD counts such headings as tasks in plans without tags; the first iDumb writes them. Tags have the same fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, pairwise
from typing import NamedTuple

from idumb.domain.plans.plan import CHECK, HUMAN, Criterion, Option
from idumb.markdown.plans.dialects import foreign_task
from idumb.markdown.plans.dialects.foreign_task import ForeignTask
from idumb.markdown.syntax import inline, outline
from idumb.markdown.syntax.inline import Piece
from idumb.markdown.syntax.outline import Entry, Outline
from idumb.markdown.syntax.source import Source

_DASH = r"[ \t]*(?:[:.)]|—|–|--?)[ \t]*"
_T_ID = r"T(?:[\w.]*-\d+|[\w.]*\d)[a-z]?"
_NAMED = re.compile(rf"Task[ \t]+#?((?:[\w.-]*-)?(?:[^\W\d]|\.)*\d[\w.]*)[*`~]*(?:{_DASH}|[ \t]+|$)(.*)", re.IGNORECASE)
_ID = re.compile(rf"\[?({_T_ID})\]?[*`~]*(?:{_DASH}|[ \t]+)(.+)")
_SIGNS = re.compile(r"^(?:\[[ xX]\]|[^\w\[])+")  # what may stand before a title: a box, bold, a picture
_LIKE_TASK = re.compile(r"(?:task|step)\b\W{0,3}(?:[\w.-]*\d|\w{1,5}[:.)])|\[?T-?\d", re.IGNORECASE)
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)(?:[.):]|[ \t]*[—–-])?[ \t]+(.+)")
_STEP = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\][ \t]")
_TICKED = re.compile(r"\W*\[[xX]\]")
_STRAY = re.compile(r"[-*+][ \t]+\[[ xX]\][ \t]|[ \t]{0,3}- id:")
_SECTION = re.compile(r"(?:\d+[.)][ \t]*)?(?:tasks?|implementation tasks|task breakdown|task list)\b", re.IGNORECASE)
_KIND = re.compile(r"\((auto|tdd|execute|checkpoint:[\w-]+)\b[^()]*\)[ \t]*(?:(?::|—|–|-)[ \t]*)?", re.IGNORECASE)
_SECTIONS = {
    "success_criteria": re.compile(r"(?:overall )?success criteria\b|must-haves\b", re.IGNORECASE),
    "objective": re.compile(r"(?:goal|objective|what this builds)\b", re.IGNORECASE),
}


def read(first: int, source: Source) -> tuple[list[ForeignTask], dict[str, list[Piece]]]:
    """Return the tasks in document order, and the texts of the sections for the goal and the success criteria.

    Headings below that of a task belong to it.
    """
    document, rows = outlined(source, first)
    tasks: list[ForeignTask] = []
    texts: dict[str, list[Piece]] = {}
    in_tasks, until = False, 0
    for heading, following in pairwise([*document.headings, None]):
        if heading is None or heading.line < until:
            continue
        title = _SIGNS.sub("", heading.text).rstrip("*_~ ")
        named = _named(title, heading.level, in_tasks=in_tasks)
        if named is not None:
            until = heading.end
            tasks.append(_task(rows[heading.line - first - 1 : until - first - 1], *named, source))
            continue
        in_tasks = bool(_SECTION.match(title)) if heading.level <= 2 else in_tasks or bool(_SECTION.fullmatch(title))
        if _LIKE_TASK.match(title):
            source.report("dialect.stray-text", rows[heading.line - first - 1].at, heading.text)
        body = rows[heading.line - first : following.line - first - 1 if following is not None else len(rows)]
        for row in body:
            if in_tasks and not row.fenced and _STRAY.match(row.text):
                source.report("dialect.stray-text", row.at, row.text.strip())
        if body:
            name = next((name for name, pattern in _SECTIONS.items() if pattern.match(title)), "")
            texts.setdefault(name, []).append(Piece("\n".join(row.text for row in body), body[0].at))
    return tasks, texts


def like_task(title: str) -> bool:
    return _LIKE_TASK.match(_SIGNS.sub("", title)) is not None


def _named(title: str, level: int, *, in_tasks: bool) -> tuple[str, str] | None:
    """Return id and title of a task heading."""
    match = (_NAMED.fullmatch(title) or _ID.fullmatch(title)) if level > 1 else None
    match = match or (_NUMBERED.fullmatch(title) if in_tasks and level > 2 else None)
    return (match[1], match[2]) if match else None


def _task(rows: list[Line], id: str, title: str, source: Source) -> ForeignTask:
    """Return the task whose heading is the first of these lines."""
    head, *body = rows
    while body and body[-1].text.strip() in ("", "---"):
        body.pop()
    last = body[-1] if body else head
    kind = _KIND.match(title)
    words = foreign_task.clean(title[kind.end() :] if kind else title)
    draft = ForeignTask(head.at, last.at + len(last.text), words or id, id=id.strip("."))
    draft.kind = foreign_task.kind_of(kind[1].lower(), head.at, source) if kind else draft.kind
    draft.spans["title"] = (head.at, head.at + len(head.text))
    text = foreign_task.block("\n".join(row.text for row in body))
    draft.description += [text] if text else []
    criteria = read_labels(draft, body, source)
    steps = [box[1] for row in body if not row.fenced and row.at not in criteria and (box := _STEP.match(row.text))]
    draft.done = _TICKED.match(head.text) is not None or (bool(steps) and " " not in steps)
    if draft.done:
        source.report("task.ticked", draft.start, draft.title[:60], fix="idumb import keeps such marks as history")
    return draft


# Labels: bold, of bullets, and headings such as `### Verification`

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BOLD = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+][ \t]+)?(?:\*\*|__)(?P<label>[^*_`\n]{1,60}?)"
    r"[ \t]*(?::(?:\*\*|__)|(?:\*\*|__)[ \t]*:)[ \t]*"
)
_BARE = re.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<label>[A-Za-z][\w /-]{1,30}?)[ \t]*:[ \t]+")
_BOXED = re.compile(r"[ \t]*[-*+][ \t]+\[.\]")
_NOTE = re.compile(r"(?<![ \t])[ \t]*\([^()]*\)")
# Labels without notes in brackets, in lower case, and what they mean.
_LABELS = {
    "files": ("file", "files", "files involved", "files to create", "files to modify", "files to edit", "files created",
              "files modified", "files touched", "files likely touched", "files to touch", "expected output"),
    "verify": ("verify", "verification", "verification command", "verification commands", "verify command"),
    "acceptance": ("acceptance", "acceptance criteria", "done", "done when", "done criteria", "success criteria",
                   "must-haves", "must haves", "definition of done"),
    "depends_on": ("depends on", "depends_on", "dependencies", "blocked by"),
    "estimate": ("estimate", "estimated effort", "estimated time"),
    "priority": ("priority",),
    "type": ("type", "kind"),
}  # fmt: skip
_BY_LABEL = {label: name for name, labels in _LABELS.items() for label in labels}


class Line(NamedTuple):
    """A line with its offset, and the heading that it is. `fenced` lines, of fences and comments, are text only."""

    text: str
    at: int
    fenced: bool
    heading: Entry | None = None


def outlined(source: Source, first: int, begin: int = 0) -> tuple[Outline, list[Line]]:
    """Return the outline and the lines from `first` on; `begin` is the offset of the text.

    A fence that never closes is reported.
    """
    found = outline.read(source, first)
    source.findings += (each for each in found.broken if each.code.endswith(".never-closed"))
    end = len(source.lines) + 1
    never_closed = min((each.line for each in found.broken if each.code == "fence.never-closed"), default=end)
    text_only = found.fenced | found.hidden | {*range(never_closed, end)}
    headings = {each.line: each for each in found.headings}
    rows = enumerate(zip(source.lines[first:], source.starts[first:], strict=False), first + 1)
    return found, [Line(text, begin + at, n in text_only, headings.get(n)) for n, (text, at) in rows]


def read_labels(draft: ForeignTask, rows: list[Line], source: Source) -> set[int]:
    """Read the fields in the body of a task into the draft; the whole body is its description.

    Return where the lines of its criteria begin.
    """
    criteria: set[int] = set()
    for name, at, part in _labelled(rows):
        read_field(draft, name, _first_list(part) if name in ("files", "depends_on") else part, source, at)
        if name == "acceptance":
            criteria.update(row.at for row in rows if part.at <= row.at < part.at + len(part.text))
    return criteria


class _Label(NamedTuple):
    """A label at `at`; its value starts at index `inner` of the line. `name` is "" if it is not a known field.

    `level` is that of a heading, 0 for others; `bullet` and `bold` say how it is written.
    """

    name: str
    at: int
    inner: int
    indent: int
    level: int = 0
    bullet: bool = False
    bold: bool = False


def _labelled(rows: list[Line]) -> Iterator[tuple[str, int, Piece]]:
    """Yield the name, the place of the label and the value of each known field."""
    found: list[tuple[_Label, int, list[str]]] = []
    for row in rows:
        label = None if row.fenced else _label(row)
        if label is not None and (not found or _ends(found[-1][0], label)):
            found.append((label, row.at + label.inner, [row.text[label.inner :]]))
        elif found:
            found[-1][2].append(row.text)
    return ((label.name, label.at, Piece("\n".join(value), at)) for label, at, value in found if label.name)


def _ends(current: _Label, label: _Label) -> bool:
    """Whether a label ends the value of the one before it."""
    if label.name:
        return True
    if current.level:
        return 0 < label.level <= current.level
    return (label.level > 0 or label.bold or current.bullet) and label.indent <= current.indent


def _label(row: Line) -> _Label | None:
    if head := row.heading:
        return _Label(_BY_LABEL.get(_plain(head.text).strip(" :*"), ""), row.at, len(row.text), 0, head.level)
    for pattern in (_BOLD, _BARE) if ":" in row.text else ():
        match = pattern.match(row.text)
        if match:
            indent = len(match["indent"])
            bullet = row.text[indent] in "-*+" and row.text[indent : indent + 2] != "**"
            name = _BY_LABEL.get(_plain(match["label"]), "")
            return _Label(name, row.at, match.end(), indent, bullet=bullet, bold=pattern is _BOLD)
    return None


def _plain(label: str) -> str:
    return foreign_task.flat(_NOTE.sub("", label).casefold())


def _first_list(part: Piece) -> Piece:
    """Return the text on the line of a label and the first list or paragraph below it; what follows is other text."""
    text, at = part
    end = 0
    for line in text.split("\n"):
        if FENCE.match(line) or _BOXED.match(line) or (end and not line.strip() and text[:end].strip()):
            break
        end += len(line) + 1
    return Piece(text[:end].rstrip("\n"), at)


# One field, whether a tag, a label or a heading holds it

_CHECK = re.compile(r"\s+(?:—|–|--?)\s+check:\s*(`.*`)\s*$")
_BY_HAND = re.compile(r"\s+(?:—|–|--?)\s+human\s*$")
_OPTION = re.compile(r"<option\b([^<>]*)>((?>(?:(?!</?option\b).)*))</option>", re.DOTALL)
_OPTION_ID = re.compile(r"\bid\s*=\s*[\"']([^\"']*)")
_OPENING, _CLOSING = re.compile(r"<([\w-]+)>\s*"), re.compile(r"\s*</[\w-]+>\s*")
_AN_ID = re.compile(r"(?:Task[ \t]+)?((?>(?:[\w.]*+-)*)(?=\D*\d)[\w.]++)", re.IGNORECASE)  # a digit behind the last `-`
_ESTIMATE = re.compile(r"(\d{1,4})(?:\.\d+)?[ \t]*(h|hours?|hrs?|m|min|minutes?)\b", re.IGNORECASE)
_PRIORITIES = {"critical": "critical", "p0": "critical", "high": "high", "p1": "high", "normal": "normal",
               "medium": "normal", "p2": "normal", "low": "low", "p3": "low"}  # fmt: skip


def read_field(draft: ForeignTask, name: str, part: Piece, source: Source, at: int) -> None:
    """Read the value of a field into the draft; `at` is where the field begins."""
    draft.spans.setdefault(name, (part.at, part.at + len(part.text)))
    if name == "title":
        draft.title = foreign_task.clean(part.text)
    elif name == "files":
        draft.files = [*(draft.files or ()), part]
    elif name == "read_first" and (text := foreign_task.block(part.text)):
        draft.references.append(f"Read first:\n{text}")
    elif name == "verify":
        _verify(draft, part, source)
    elif name == "acceptance":
        draft.criteria += [_criterion(words, place, source) for words, place in foreign_task.items(part)]
    elif name == "options":
        draft.options += _options(part.text)
    elif name == "depends_on":
        _depends_on(draft, part, source)
    else:
        _word(draft, name, foreign_task.flat(part.text).strip("`* "), source, at)


def _word(draft: ForeignTask, name: str, word: str, source: Source, at: int) -> None:
    if name == "estimate" and (time := _ESTIMATE.search(word)):
        draft.estimate = (int(time[1]) * (3600 if time[2][0] in "hH" else 60)) or None
    elif name == "priority":
        draft.priority = _PRIORITIES.get(word.casefold(), draft.priority)
    elif name == "type":
        draft.kind = foreign_task.kind_of(word, at, source)


def _options(text: str) -> Iterator[Option]:
    """Yield the options with ids that differ and that one can type."""
    known = set[str]()
    for number, option in enumerate(_OPTION.finditer(text), 1):
        words = foreign_task.flat(_OPENING.sub(r"\1: ", _CLOSING.sub("; ", option[2]))).removesuffix(";")
        stated = _OPTION_ID.search(option[1])
        id = re.sub(r"[^\w.-]+", "-", stated[1]) if stated else ""
        if id in ("", *known):
            id = next(name for n in count(number) if (name := f"option-{n}") not in known)
        known.add(id)
        yield Option(id, words.removeprefix("name: ") or id)


def _verify(draft: ForeignTask, part: Piece, source: Source) -> None:
    commands, by_hand, prose = foreign_task.verification(part)
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


def _depends_on(draft: ForeignTask, part: Piece, source: Source) -> None:
    text = foreign_task.flat(part.text).strip("[]` ")
    draft.in_order, none = False, text.casefold().rstrip(".") in ("none", "nothing", "n/a", "-", "—", "")
    for match in () if none else re.finditer(r"[^,;]+", part.text.rstrip()):
        word = foreign_task.ITEM.sub("", match[0].strip(), count=1).strip("[]`\"'* .")
        id = _AN_ID.fullmatch(word)
        at = part.at + match.start()
        if id is None:
            source.report("dialect.unread-dependency", at, foreign_task.flat(match[0]), field="Depends on", what="task")
            draft.in_order = True
        else:
            draft.depends_on.append(Piece(id[1], at))
