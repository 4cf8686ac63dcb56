"""Read GSD's tagged tasks: `<task type="auto">` with `<name>`, `<files>`, `<action>`, `<verify>` and others.

The tags look like XML and are not: text may contain `<`, `&`, examples of tasks, and code fences that authors nest or
do not close. Therefore fences do not count inside tags; a tag runs to its own closing tag.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator
from typing import NamedTuple

from idumb.domain import wording
from idumb.markdown.plans.dialects import foreign_task, headed_tasks
from idumb.markdown.plans.dialects.foreign_task import ForeignTask
from idumb.markdown.syntax.inline import Piece
from idumb.markdown.syntax.source import Source

_OPEN = re.compile(r"<([A-Za-z][\w-]*)((?:\s[^<>]*)?)>")
_TAG = re.compile(r"</?([A-Za-z][\w-]*)(?:\s[^<>]*)?>")
_ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_BLANK = re.compile(r"\s*")
_LONGEST_LINE = 64 * 1024
_TASK_LINES = re.compile(r"^[ \t]*<(task|feature)(?:\s[^<>]*)?>", re.MULTILINE | re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TASK_TAGS = ("task", "feature")
_KNOWN = frozenset({"type", "gate", "tdd", "id", "name", "priority"})
# Tags of a task whose text a builder or a person reads, with their headings.
_TEXTS = {
    **dict.fromkeys(("action", "instructions"), ""),
    "behavior": "Expected behavior:",
    "implementation": "Implementation:",
    "context": "Context:",
    "decision": "Decision:",
    "what-built": "What was built:",
    "how-to-verify": "How to verify:",
    "verification": "Verification:",
    "resume-signal": "How to continue:",
}
# Tags that are fields of a task, and the fields.
_FIELDS = {
    "name": "title", "title": "title", "files": "files", "file": "files", "read_first": "read_first",
    "verify": "verify", "acceptance_criteria": "acceptance", "done": "acceptance", "options": "options",
}  # fmt: skip
_OF_TASK = frozenset({*_FIELDS, *_TEXTS})


class _Tag(NamedTuple):
    """A tag. `end` is the offset after the closing tag."""

    name: str
    attributes: str
    start: int
    content: Piece
    end: int


class Tags:
    """The tags of one document.

    A tag opens at the start of a line or beside another tag. It closes at the next closing tag of its name that is not
    in backticks; examples of the same tag may be inside it.
    """

    def __init__(self, source: Source) -> None:
        text = self.text = source.text
        self.source = source
        self._closing: dict[int, re.Match[str]] = {}  # the closing tag of each tag, by where it opens
        opened: dict[str, list[int]] = {}
        for match in _TAG.finditer(text):
            begin, end = match.span()
            before = text[text.rfind("\n", max(0, begin - _LONGEST_LINE), begin) + 1 : begin]
            in_code = before.count("`") % 2 and "`" in text[end : end + _LONGEST_LINE].partition("\n")[0]
            open_ones = opened.setdefault(match[1], [])
            if match[0][1] != "/" and before.strip()[-1:] in ("", ">"):
                open_ones.append(begin)
            elif match[0][1] == "/" and open_ones and not in_code:
                self._closing[open_ones.pop()] = match

    def tag(self, position: int, end: int) -> _Tag | None:
        """Return the tag that opens at a position, with its content; None if none opens there or it never closes."""
        opened, close = _OPEN.match(self.text, position, end), self._closing.get(position)
        if opened is None or close is None or close.end() > end:
            return None
        content = Piece(self.text[opened.end() : close.start()], opened.end())
        return _Tag(opened[1], opened[2], position, content, close.end())

    def parts(self, within: Piece, known: Collection[str], *, fences: bool = False) -> Iterator[_Tag | Piece]:
        """Yield the tags in a piece of the document and the text between them, without comments.

        A `known` tag that never closes is reported, and reading ends if it is a task. With `fences`, fences are text.
        """
        text, position, loose, end, fence = self.text, within.at, within.at, within.at + len(within.text), ""
        while position < end:
            blank, fenced = _BLANK.match(text, position, end), False
            begin = blank.end() if blank else position
            line_end = text.find("\n", begin, end)
            position = end if line_end == -1 else line_end + 1
            if fences:
                fence, fenced = _fenced(text[begin:position], fence)
            comment = None if fenced else _COMMENT.match(text, begin, end)
            child = self.tag(begin, end) if comment is None and not fenced else None
            if comment is not None or child is not None:
                yield Piece(text[loose:begin], loose)
                position = loose = child.end if child is not None else comment.end() if comment is not None else end
                if child is not None:
                    yield child
            elif not fenced and (opened := _OPEN.match(text, begin, end)) and opened[1].lower() in known:
                self.source.report("dialect.never-closed", begin, f"<{opened[1]}>", accepted=f"</{opened[1]}>")
                if opened[1].lower() in _TASK_TAGS:
                    return
        yield Piece(text[loose:end], loose)


def task_tag(text: str) -> str | None:
    """Return the tag of the tasks in a text; None without any. Plans for one test-driven feature have `<feature>`."""
    found = {match[1].lower() for match in _TASK_LINES.finditer(text)} if "<" in text else set()
    return next((name for name in _TASK_TAGS if name in found), None)


def read(tags: Tags, name: str, body: Piece) -> tuple[list[ForeignTask], dict[str, list[Piece]]]:
    """Return the tasks, whose tag is `name`, in document order, and the texts of the plan's other tags by name.

    Tasks can be anywhere; text beside those in `<tasks>` is reported.
    """
    tasks, others = list[ForeignTask](), dict[str, list[Piece]]()
    for part in tags.parts(body, (*_TASK_TAGS, "tasks"), fences=True):
        whole = isinstance(part, _Tag) and part.name.lower() == "tasks"
        for inner in tags.parts(part.content, _TASK_TAGS) if isinstance(part, _Tag) and whole else [part]:
            if isinstance(inner, _Tag) and inner.name.lower() == name:
                tasks.append(_task(tags, inner, len(tasks) + 1))
            elif isinstance(inner, _Tag):
                others.setdefault(inner.name.lower(), []).append(inner.content)
            else:
                _report_stray(inner, tags.source, whole=whole)
    return tasks, others


def _report_stray(part: Piece, source: Source, *, whole: bool) -> None:
    """Report headings that look like tasks and, in `whole`, the lines of text between tasks."""
    for row in headed_tasks.outlined(Source(part.text, ""), 0, part.at)[1] if part.text.strip() else ():
        text, indent = row.text.strip(), len(row.text) - len(row.text.lstrip())
        is_stray = whole and text and not text.startswith(("<", "#", "---"))
        if is_stray or (row.heading is not None and headed_tasks.like_task(row.heading.text)):
            source.report("dialect.stray-text", row.at + indent, text)


def _fenced(line: str, fence: str) -> tuple[str, bool]:
    """Return the mark of the fence that is open after a line, and whether the line belongs to a fence."""
    mark = headed_tasks.FENCE.match(line)
    if fence:
        closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(fence[0])
        return ("" if closes else fence), True
    return (mark[1], True) if mark else ("", False)


def _task(tags: Tags, tag: _Tag, number: int) -> ForeignTask:
    source = tags.source
    attributes = {match[1]: match[2] or match[3] or "" for match in _ATTRIBUTE.finditer(tag.attributes)}
    draft = ForeignTask(tag.start, tag.end, "", id=attributes.get("id", ""), notation="tag")
    for name in attributes.keys() & {"type", "priority"}:
        headed_tasks.read_field(draft, name, Piece(attributes[name], tag.start), source, tag.start)
    for name in attributes.keys() - _KNOWN:
        source.report("dialect.unknown-attribute", tag.start, f"{name}={attributes[name]}")
    draft.notes += [f"gate: {attributes['gate']}"] if attributes.get("gate") else []
    for part in tags.parts(tag.content, _OF_TASK):
        if isinstance(part, _Tag):
            _child(draft, part, tags)
        elif part.text.strip():
            _markdown(draft, part, source)
    draft.title = draft.title or foreign_task.clean(attributes.get("name", "")) or _titled(draft) or f"Task {number}"
    return draft


def _markdown(draft: ForeignTask, part: Piece, source: Source) -> None:
    """Read the Markdown of a task that has no tags for it: a heading, bold labels and lists."""
    text, at = part
    rows = headed_tasks.outlined(Source(text, ""), 0, at)[1]
    heading = next((row.heading for row in rows if row.heading), None)
    if heading and not draft.title:
        title = foreign_task.clean(heading.text)
        draft.title = re.sub(rf"^{re.escape(draft.id)}\s*(?:[:.—–-]+\s*)?", "", title) if draft.id else title
    draft.description.append(textwrap.dedent(text).strip("\n"))
    headed_tasks.read_labels(draft, rows, source)


def _titled(draft: ForeignTask) -> str:
    """Return the first line of what a task without a name says."""
    lines = (line for text in draft.description for line in text.split("\n"))
    first = next((line for line in lines if line.strip() not in _TEXTS.values()), "")
    return wording.short(foreign_task.clean(first.strip(" #*")))


def _child(draft: ForeignTask, tag: _Tag, tags: Tags) -> None:
    name = tag.name.lower()
    text, at = tag.content
    field = _FIELDS.get(name, "")
    draft.spans.setdefault(field or name, (at, at + len(text)))
    if field:
        headed_tasks.read_field(draft, field, tag.content, tags.source, tag.start)
    elif name in _TEXTS:
        block = foreign_task.block(text)
        draft.description += [f"{_TEXTS[name]}\n{block}".strip("\n")] if block else []
    else:
        draft.description.append(tags.text[tag.start : tag.end])
        known = ", ".join((*_FIELDS, *_TEXTS))
        then = "keeps it as text of the task"
        tags.source.report("dialect.unknown-tag", tag.start, f"<{tag.name}>", accepted=known, then=then)
    if name == "behavior":
        headed_tasks.read_field(draft, "acceptance", tag.content, tags.source, tag.start)
