"""Read the fields of a task from Markdown: bold labels, labelled bullets and headings such as `### Verification`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from idumb.markdown.plans.dialects import checks, fields
from idumb.markdown.plans.dialects.drafts import Part, TaskDraft
from idumb.markdown.syntax import outline
from idumb.markdown.syntax.outline import Entry, Outline
from idumb.markdown.syntax.source import Source

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BOLD = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+][ \t]+)?(?:\*\*|__)(?P<label>[^*_`\n]{1,60}?)"
    r"[ \t]*(?::(?:\*\*|__)|(?:\*\*|__)[ \t]*:)[ \t]*"
)
_BARE = re.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<label>[A-Za-z][\w /-]{1,30}?)[ \t]*:[ \t]+")
_BOXED = re.compile(r"[ \t]*[-*+][ \t]+\[.\]")
_NOTE = re.compile(r"(?<![ \t])[ \t]*\([^()]*\)")
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
    never = min(
        (each.line for each in found.broken if each.code == "fence.never-closed"), default=len(source.lines) + 1
    )
    text_only = found.fenced | found.hidden | {*range(never, len(source.lines) + 1)}
    headings = {each.line: each for each in found.headings}
    rows = enumerate(zip(source.lines[first:], source.starts[first:], strict=False), first + 1)
    return found, [Line(text, begin + at, n in text_only, headings.get(n)) for n, (text, at) in rows]


def read(draft: TaskDraft, rows: list[Line], source: Source) -> set[int]:
    """Read the fields in the body of a task into the draft; the whole body is its description.

    Return where the lines of its criteria begin.
    """
    criteria: set[int] = set()
    for name, at, part in _fields(rows):
        fields.read(draft, name, _first_list(part) if name == "files" else part, source, at)
        if name == "acceptance":
            criteria.update(row.at for row in rows if part[1] <= row.at < part[1] + len(part[0]))
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
    return checks.flat(_NOTE.sub("", label).casefold())


def _first_list(part: Part) -> Part:
    """Return the text on the line of a label and the first list or paragraph below it; what follows is other text."""
    text, at = part
    end = 0
    for line in text.split("\n"):
        if FENCE.match(line) or _BOXED.match(line) or (end and not line.strip() and text[:end].strip()):
            break
        end += len(line) + 1
    return text[:end].rstrip("\n"), at
