"""Read GSD's tagged tasks: `<task type="auto">` with `<name>`, `<files>`, `<action>`, `<verify>` and others.

The tags look like XML and are not: text may contain `<`, `&`, examples of tasks, and code fences that authors nest or
do not close. Therefore fences do not count inside tags; a tag runs to its own closing tag.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.domain.plans.plan import HUMAN, Option
from idumb.markdown.plans.dialects import checks, drafts, labels
from idumb.markdown.plans.dialects.drafts import CriterionDraft, Part, TaskDraft
from idumb.markdown.syntax.problems import Problems
from idumb.markdown.syntax.source import Source

_OPEN = lazy_pattern.compile(r"<([A-Za-z][\w-]*)((?:\s[^<>]*)?)>")
_ATTRIBUTE = lazy_pattern.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_OPTION = lazy_pattern.compile(r"<(option)\b([^<>]*)>")
_ANY = lazy_pattern.compile(r"<([\w-]+)>")
_BLANK = lazy_pattern.compile(r"\s*")
_FENCE = lazy_pattern.compile(r"[ \t]*(`{3,}|~{3,})")
_TASKS = lazy_pattern.compile(r"^[ \t]*<tasks>", re.MULTILINE)
_ENDS = lazy_pattern.compile(r"[ \t]*(?:$|\r?\n|<)")
_LONGEST_LINE = 64 * 1024
_TASK_LINE = lazy_pattern.compile(r"[ \t]*<(task|feature)(?:\s[^<>]*)?>")
_TASK_LINES = lazy_pattern.compile(r"(?m)^[ \t]*<(task|feature)(?:\s[^<>]*)?>")
_COMMENT = lazy_pattern.compile(r"<!--.*?-->", re.DOTALL)
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
_PRIORITIES = {"p0": "critical", "p1": "high", "p2": "normal", "p3": "low"}


class Tag(NamedTuple):
    """A tag with its content. `end` is the offset after the closing tag."""

    name: str
    attributes: str
    start: int
    content: int
    close: int
    end: int


class Scanner:
    """Finds tags in one document.

    `absent` remembers up to where a closing tag is known to be missing; `inline` between which offsets each one stands
    inside a line.
    """

    def __init__(self, text: str, problems: Problems) -> None:
        self.text, self.problems = text, problems
        self.absent: dict[str, int] = {}
        self.inline: dict[str, tuple[int, int]] = {}

    def never_closed(self, at: int, name: str) -> None:
        self.problems.report("dialect.never-closed", at, f"<{name}>", accepted=f"</{name}>")

    def tag(self, position: int, end: int) -> Tag | None:
        """Return the tag that opens at a position, with its content; None if none opens there or it never closes."""
        opened = _OPEN.match(self.text, position, end)
        if opened is None or self.absent.get(opened[1], -1) > position:
            return None
        name, start = opened[1], opened.end()
        close = self._close(name, start, end, strict=True) or self._close(name, start, end, strict=False)
        if close is None:
            self.absent[name] = end
            return None
        return Tag(name, opened[2], position, start, *close)

    def _close(self, name: str, start: int, end: int, *, strict: bool) -> tuple[int, int] | None:
        """Return where the tag closes. Examples of the same tag inside it are skipped.

        A closing tag stands at an end of its line or beside another tag. Only if there is none (`strict` False), one
        inside a line closes the tag.
        """
        first, last = self.inline.get(name, (end, start))
        is_known = strict and first <= start and end <= last
        if is_known:  # except in this line, because now less of it stands before a closing tag
            line_end = self.text.find("\n", start, end)
            end = end if line_end == -1 else line_end
        depth, is_inline = 0, True
        for match in re.compile(rf"</?{re.escape(name)}(?:\s[^<>]*)?>").finditer(self.text, start, end):
            line = self.text.rfind("\n", max(start, match.start() - _LONGEST_LINE), match.start()) + 1 or start
            before = self.text[line : match.start()]
            if match[0][1] != "/":
                depth += before.strip()[-1:] in ("", ">")
            elif strict and (before.count("`") % 2 or (before.strip() and not _ENDS.match(self.text, match.end()))):
                continue
            elif depth:
                depth, is_inline = depth - 1, False
            else:
                return match.start(), match.end()
        if strict and is_inline and not is_known:
            self.inline[name] = start, end
        return None


def task_tag(text: str) -> str | None:
    """Return the tag of the tasks in a text; None without any. Plans for one test-driven feature have `<feature>`."""
    found = {match[1] for match in _TASK_LINES.finditer(text)} if "<task" in text or "<feature" in text else set()
    return next((name for name in ("task", "feature") if name in found), None)


def read(scanner: Scanner, name: str, start: int, end: int) -> tuple[list[TaskDraft], dict[str, list[Part]]]:
    """Return the tasks, whose tag is `name`, in document order, and the texts of the plan's other tags by name."""
    tasks: list[TaskDraft] = []
    others: dict[str, list[Part]] = {}
    text = scanner.text
    region = _region(scanner, start, end)
    first, last = region or (start, end)
    position, fence = start, ""
    while position < end:
        line_end = text.find("\n", position, end)
        line = text[position : end if line_end == -1 else line_end]
        after = position + len(line) + 1
        at = position + len(line) - len(line.lstrip())
        in_tasks = first <= position < last
        fence, fenced = ("", False) if region and in_tasks else _fenced(line, fence)
        if fenced or not line.strip():
            pass
        elif in_tasks and (opened := _TASK_LINE.match(line)) and opened[1] == name:
            task = scanner.tag(at, last)
            if task is None:
                scanner.never_closed(at, "task")
                break
            tasks.append(_task(scanner, task, len(tasks) + 1))
            after, fence = task.end, ""
        elif text.startswith("<", at) and not (region and text.startswith("<tasks>", at)):
            if (found := scanner.tag(at, end)) is not None:
                others.setdefault(found.name.lower(), []).append((text[found.content : found.close], found.content))
                after, fence = found.end, ""
        elif region and in_tasks and not line.strip().startswith(("<!--", "</", "#", "---")):
            scanner.problems.report("dialect.stray-text", at, line.strip())
        position = after
    return tasks, others


def _fenced(line: str, fence: str) -> tuple[str, bool]:
    """Return the mark of the fence that is open after a line, and whether the line belongs to a fence."""
    mark = _FENCE.match(line)
    if fence:
        closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(fence[0])
        return ("" if closes else fence), True
    return (mark[1], True) if mark else ("", False)


def _region(scanner: Scanner, start: int, end: int) -> tuple[int, int] | None:
    """Return where `<tasks>` begins and ends; None without it: then tasks can be anywhere."""
    match = _TASKS.search(scanner.text, start, end)
    if match is None:
        return None
    at = scanner.text.index("<tasks>", match.start())
    found = scanner.tag(at, end)
    if found is None:
        scanner.never_closed(at, "tasks")
        return at + len("<tasks>"), end
    return found.content, found.close


def _attributes(text: str) -> dict[str, str]:
    return {match[1]: match[2] or match[3] or "" for match in _ATTRIBUTE.finditer(text)}


def _task(scanner: Scanner, tag: Tag, number: int) -> TaskDraft:
    attributes, problems = _attributes(tag.attributes), scanner.problems
    draft = TaskDraft(tag.start, tag.end, "", id=attributes.get("id", ""), notation="tag")
    draft.kind = drafts.kind_of(attributes.get("type", ""), tag.start, problems)
    draft.priority = _PRIORITIES.get(attributes.get("priority", "").lower(), "normal")
    for name in attributes.keys() - _KNOWN:
        problems.report("dialect.unknown-attribute", tag.start, f"{name}={attributes[name]}")
    draft.notes += [f"gate: {attributes['gate']}"] if attributes.get("gate") else []
    for part in _children(scanner, tag):
        if isinstance(part, Tag):
            _child(draft, part, scanner)
        elif part[0].strip():
            _markdown(draft, part, problems)
    draft.title = draft.title or checks.clean(attributes.get("name", "")) or _titled(draft) or f"Task {number}"
    return draft


def _markdown(draft: TaskDraft, part: Part, problems: Problems) -> None:
    """Read the Markdown of a task that has no tags for it: a heading, bold labels and lists."""
    text, at = part
    source = Source(text, "")
    rows = labels.outlined(source, 0, Problems(source), at)[1]
    heading = next((found for row in rows if not row.fenced and (found := labels.heading(row.text))), None)
    if heading and not draft.title:
        title = checks.clean(heading[1])
        draft.title = re.sub(rf"^{re.escape(draft.id)}\s*(?:[:.—–-]+\s*)?", "", title) if draft.id else title
    draft.description.append(textwrap.dedent(text).strip("\n"))
    labels.read(draft, rows, problems)


def _titled(draft: TaskDraft) -> str:
    """Return the first line of what a task without a name says."""
    lines = (line for text in draft.description for line in text.split("\n"))
    first = next((line for line in lines if line.strip() and line.strip() not in _TEXTS.values()), "")
    return checks.short(checks.clean(first.strip(" #*")))


def _children(scanner: Scanner, task: Tag) -> Iterator[Tag | Part]:
    """Yield the tags of a task, and the text between them."""
    text, position, end = scanner.text, task.content, task.close
    loose = position
    while position < end:
        blank = _BLANK.match(text, position, end)
        begin = blank.end() if blank else position
        comment = _COMMENT.match(text, begin, end)
        child = scanner.tag(begin, end) if comment is None and text.startswith("<", begin) else None
        if comment is not None or child is not None:
            yield text[loose:begin], loose
            position = loose = child.end if child is not None else comment.end() if comment is not None else end
            if child is not None:
                yield child
            continue
        if (opened := _OPEN.match(text, begin, end)) and opened[1].lower() in {**_FIELDS, **_TEXTS}:
            scanner.never_closed(begin, opened[1])
        line_end = text.find("\n", begin, end)
        position = end if line_end == -1 else line_end + 1
    yield text[loose:end], loose


def _child(draft: TaskDraft, tag: Tag, scanner: Scanner) -> None:
    name = tag.name.lower()
    part = scanner.text[tag.content : tag.close], tag.content
    field = _FIELDS.get(name, "")
    draft.spans.setdefault(field or name, (tag.content, tag.close))
    if field:
        _field(draft, field, part)
    elif name in _TEXTS:
        text = checks.block(part[0])
        draft.description += [f"{_TEXTS[name]}\n{text}".strip("\n")] if text else []
    else:
        draft.description.append(scanner.text[tag.start : tag.end])
        known = ", ".join((*_FIELDS, *_TEXTS))
        then = "keeps it as text of the task"
        scanner.problems.report("dialect.unknown-tag", tag.start, f"<{tag.name}>", accepted=known, then=then)
    if name == "behavior":
        _field(draft, "acceptance", part)


def _field(draft: TaskDraft, field: str, part: Part) -> None:
    if field == "title":
        draft.title = checks.clean(part[0])
    elif field == "files":
        draft.files = [*(draft.files or ()), part]
    elif field == "read_first" and (text := checks.block(part[0])):
        draft.references.append(f"Read first:\n{text}")
    elif field == "verify":
        _verify(draft, part)
    elif field == "acceptance":
        draft.criteria += [CriterionDraft(words, at) for words, at in checks.items(part)]
    elif field == "options":
        for option in checks.elements(part[0], _OPTION):
            words = "; ".join(
                f"{one.opening[1]}: {checks.flat(one.text)}" for one in checks.elements(option.text, _ANY)
            )
            id = _attributes(option.opening[2]).get("id") or f"option-{len(draft.options) + 1}"
            draft.options.append(Option(id, words.removeprefix("name: ") or checks.flat(option.text) or id))


def _verify(draft: TaskDraft, part: Part) -> None:
    verification = checks.read(part)
    draft.commands += verification.commands
    draft.criteria += [CriterionDraft(words, at, HUMAN) for words, at in verification.by_hand]
    if verification.commands:
        prose = "\n".join(f"- {words}" for words, _ in verification.prose)
        draft.description += [f"Verification:\n{prose}"] if prose else []
    else:
        draft.criteria += [CriterionDraft(words, at) for words, at in verification.prose]
