"""Read the fields of a task from Markdown: bold labels, labelled bullets and headings such as `### Verification`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.domain.plans.plan import CHECK, HUMAN
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans.dialects import checks
from idumb.markdown.plans.dialects.drafts import CriterionDraft, Part, TaskDraft
from idumb.markdown.syntax.problems import Problems

FENCE = lazy_pattern.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = lazy_pattern.compile(r"(#{1,6})[ \t]+(.*)")
_BOLD = lazy_pattern.compile(
    r"(?P<indent>[ \t]*)(?:[-*+][ \t]+)?(?:\*\*|__)(?P<label>[^*_`\n]{1,60}?)"
    r"[ \t]*(?::(?:\*\*|__)|(?:\*\*|__)[ \t]*:)[ \t]*"
)
_BARE = lazy_pattern.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<label>[A-Za-z][\w /-]{1,30}?)[ \t]*:[ \t]+")
_KEY = lazy_pattern.compile(r"(?P<indent>[ \t]*)(?P<label>depends_on|files|verify|acceptance)[ \t]*:[ \t]*")
_BOXED = lazy_pattern.compile(r"[ \t]*[-*+][ \t]+\[.\]")
_NOTE = lazy_pattern.compile(r"(?<![ \t])[ \t]*\([^()]*\)")
_CHECK = lazy_pattern.compile(r"\s+(?:—|–|--?)\s+check:\s*(`+)(.+?)\1\s*$")
_BY_HAND = lazy_pattern.compile(r"\s+(?:—|–|--?)\s+human\s*$")
_AN_ID = lazy_pattern.compile(r"(?:Task[ \t]+)?((?:[\w.]*-|(?:[^\W\d]|\.)*)\d[\w.]*)", re.IGNORECASE)
_ESTIMATE = lazy_pattern.compile(r"(\d{1,4})(?:\.\d+)?[ \t]*(h|hours?|hrs?|m|min|minutes?)\b", re.IGNORECASE)
# Labels without notes in brackets, in lower case, and what they mean.
_FIELDS = {
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
_BY_LABEL = {label: name for name, labels in _FIELDS.items() for label in labels}
_PRIORITIES = {
    "critical": "critical", "p0": "critical", "high": "high", "p1": "high", "normal": "normal", "medium": "normal",
    "p2": "normal", "low": "low", "p3": "low",
}  # fmt: skip


class Line(NamedTuple):
    """A line with its offset. `fenced` lines, the marks included, are text only."""

    text: str
    at: int
    fenced: bool


# As `Line`, without a call of a Python function for each line.
_line: Callable[[tuple[str, int, bool]], Line] = functools.partial(tuple.__new__, Line)


def lines(text: str, at: int = 0) -> tuple[list[Line], int | None]:
    """Return the lines of a text, and the index of a line whose fence never closes."""
    texts = text.split("\n")
    starts = accumulate(map((1).__add__, map(len, texts)), initial=at)
    fenced, opened = _fenced(texts) if "```" in text or "~~~" in text else ([False] * len(texts), None)
    bare = [line.removesuffix("\r") for line in texts] if "\r" in text else texts
    return list(map(_line, zip(bare, starts, fenced, strict=False))), opened


def _fenced(lines: list[str]) -> tuple[list[bool], int | None]:
    """Say of each line whether it belongs to a fence, and which line opens one that never closes."""
    flags: list[bool] = []
    fence, opened = "", None
    for number, line in enumerate(lines):
        inside = bool(fence)
        if ("``" in line or "~~" in line) and (mark := FENCE.match(line)):
            inside = True
            if fence:
                if mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                    fence, opened = "", None
            elif not (mark[1][0] == "`" and "`" in line[mark.end() :]):
                fence, opened = mark[1], number
        flags.append(inside)
    return flags, opened


def read(draft: TaskDraft, rows: list[Line], problems: Problems, kinds: Callable[[str, int], str]) -> None:
    """Read the fields in the body of a task into the draft; the whole body is its description."""
    for name, label_at, part in _fields(rows):
        draft.spans.setdefault(name, (part[1], part[1] + len(part[0])))
        if name == "files":
            draft.files = [*(draft.files or ()), _first_list(part)]
        elif name == "verify":
            _verify(draft, part)
        elif name == "acceptance":
            draft.criteria += [_criterion(words, at) for words, at in checks.items(part)]
        elif name == "depends_on":
            _depends_on(draft, part, problems)
        elif name == "estimate" and (time := _ESTIMATE.search(part[0])):
            draft.estimate = (int(time[1]) * (3600 if time[2][0] in "hH" else 60)) or None
        elif name == "priority":
            draft.priority = _PRIORITIES.get(part[0].strip(" `*\n").casefold(), draft.priority)
        elif name == "type":
            draft.kind = kinds(checks.flat(part[0]).strip("`* "), label_at)


def _fields(rows: list[Line]) -> Iterator[tuple[str, int, Part]]:
    """Yield the name, the place of the label and the value of each known field."""
    current: _Label | None = None
    value: list[str] = []
    start = 0
    for row in rows:
        label = None if row.fenced else _label(row)
        if label is None or (current is not None and not _ends(current, label)):
            value.append(row.text)
            continue
        if current is not None and current.name:
            yield current.name, current.at, ("\n".join(value), start)
        current = label
        value, start = [row.text[label.inner :]], row.at + label.inner
    if current is not None and current.name:
        yield current.name, current.at, ("\n".join(value), start)


@dataclass(frozen=True, slots=True)
class _Label:
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


def _ends(current: _Label, label: _Label) -> bool:
    """Whether a label ends the value of the one before it."""
    if label.name:
        return True
    if current.level:
        return 0 < label.level <= current.level
    if label.level or label.bold:
        return label.indent <= current.indent
    return current.bullet and label.indent <= current.indent


def heading(line: str) -> tuple[int, str] | None:
    """Return the level and the text of a heading, without the `#` that may close it; None for another line."""
    found = _HEADING.match(line) if line.startswith("#") else None
    return (len(found[1]), found[2].rstrip(" \t").rstrip("#").rstrip(" \t")) if found else None


def _label(row: Line) -> _Label | None:
    if head := heading(row.text):
        level, title = head
        known = _BY_LABEL.get(_plain(title).strip(" :*"), "")
        return _Label(known, row.at, len(row.text), 0, level)
    for pattern in (_BOLD, _BARE, _KEY) if ":" in row.text else ():
        match = pattern.match(row.text)
        if match:
            indent = len(match["indent"])
            name = _BY_LABEL.get(_plain(match["label"]), "")
            bullet = row.text[indent : indent + 1] in ("-", "*", "+") and row.text[indent : indent + 2] != "**"
            return _Label(name, row.at, match.end(), indent, bullet=bullet, bold=pattern is _BOLD)
    return None


def _plain(label: str) -> str:
    return " ".join(_NOTE.sub("", label).casefold().split())


def _first_list(part: Part) -> Part:
    """Return the text on the line of a label and the first list or paragraph below it; what follows is other text."""
    text, at = part
    end = 0
    for line in text.split("\n"):
        if FENCE.match(line) or _BOXED.match(line) or (end and not line.strip() and text[:end].strip()):
            break
        end += len(line) + 1
    return text[:end].rstrip("\n"), at


def _verify(draft: TaskDraft, part: Part) -> None:
    verification = checks.read(part)
    draft.commands += verification.commands
    if not verification.commands:
        draft.criteria += [CriterionDraft(words, at) for words, at in verification.prose]


def _criterion(words: str, at: int) -> CriterionDraft:
    """Read a criterion; `— check:` with a command and `— human` prove it, as in idumb's own plans."""
    if check := _CHECK.search(words):
        return CriterionDraft(words[: check.start()], at, CHECK, check[2].strip())
    if by_hand := _BY_HAND.search(words):
        return CriterionDraft(words[: by_hand.start()], at, HUMAN)
    return CriterionDraft(words, at)


def _depends_on(draft: TaskDraft, part: Part, problems: Problems) -> None:
    text = checks.flat(part[0]).strip("[]` ")
    if text.casefold().rstrip(".") in ("none", "nothing", "n/a", "-", "—", ""):
        draft.depends_on = []
        return
    ids: list[Part] = []
    for match in re.finditer(r"[^,;]+", part[0].rstrip()):
        word = checks.ITEM.sub("", match[0].strip(), count=1).strip("[]`\"'* .")
        id = _AN_ID.fullmatch(word)
        if id is None:
            problems.warning(
                "dialect.unread-dependency", part[1] + match.start(),
                "This is no id of a task, so the task waits for the task before it",
                field="Depends on", found=checks.flat(match[0]), fix="name tasks, or write none",
            )  # fmt: skip
            return
        ids.append((id[1], part[1] + match.start()))
    draft.depends_on = ids
