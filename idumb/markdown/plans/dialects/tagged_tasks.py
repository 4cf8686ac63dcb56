"""Read GSD's tagged tasks: `<task type="auto">` with `<name>`, `<files>`, `<action>`, `<verify>` and others.

The tags look like XML and are not: text may contain `<`, `&`, examples of tasks, and code fences that authors nest or
do not close. Therefore fences do not count inside tags; a tag runs to its own closing tag.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import field

from idumb import lazy_pattern
from idumb.domain.plans.plan import HUMAN, Option
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans.dialects import checks, drafts, elements, labels, titles
from idumb.markdown.plans.dialects.drafts import CriterionDraft, Part, TaskDraft
from idumb.markdown.syntax.problems import Problems

_OPEN = lazy_pattern.compile(r"<([A-Za-z][\w-]*)((?:\s[^<>]*)?)>")
_ATTRIBUTE = lazy_pattern.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_OPTION = lazy_pattern.compile(r"<(option)\b([^<>]*)>")
_ANY = lazy_pattern.compile(r"<([\w-]+)>")
_BLANK = lazy_pattern.compile(r"\s*")
_LINE = lazy_pattern.compile(r"[^\n]*")
_FENCE = lazy_pattern.compile(r"[ \t]*(`{3,}|~{3,})")
_TASKS = lazy_pattern.compile(r"^[ \t]*<tasks>", re.MULTILINE)
_ENDS = lazy_pattern.compile(r"[ \t]*(?:$|\r?\n|<)")
_LONGEST_LINE = 64 * 1024
_TASK_LINE = lazy_pattern.compile(r"[ \t]*<(task|feature)(?:\s[^<>]*)?>")
_COMMENT = lazy_pattern.compile(r"<!--.*?-->", re.DOTALL)
_KNOWN = frozenset({"type", "gate", "tdd", "id", "name", "priority"})
# Tags of a task whose text a builder or a person reads, with their headings.
_TEXTS = {
    "action": "",
    "instructions": "",
    "behavior": "Expected behavior:",
    "implementation": "Implementation:",
    "context": "Context:",
    "decision": "Decision:",
    "what-built": "What was built:",
    "how-to-verify": "How to verify:",
    "verification": "Verification:",
    "resume-signal": "How to continue:",
}
_PRIORITIES = {"p0": "critical", "p1": "high", "p2": "normal", "p3": "low"}


@dataclass(slots=True)
class Tag:
    """A tag with its content. `end` is the offset after the closing tag."""

    name: str
    attributes: str
    start: int
    content: int
    close: int
    end: int


@dataclass(slots=True)
class Scanner:
    """Finds tags in one document.

    `absent` remembers up to where a closing tag is known to be missing; `inline` between which offsets each one stands
    inside a line.
    """

    text: str
    problems: Problems
    absent: dict[str, int] = field(default_factory=dict)
    inline: dict[str, tuple[int, int]] = field(default_factory=dict)

    def tag(self, position: int, end: int) -> Tag | None:
        """Return the tag that opens at a position, with its content; None if none opens there or it never closes."""
        opened = _OPEN.match(self.text, position, end)
        if opened is None:
            return None
        name = opened[1]
        if self.absent.get(name, -1) > position:
            return None
        close = self._close(name, opened.end(), end, strict=True) or self._close(name, opened.end(), end, strict=False)
        if close is None:
            self.absent[name] = end
            return None
        return Tag(name, opened[2], position, opened.end(), *close)

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
        for match in _either(name).finditer(self.text, start, end):
            line = self.text.rfind("\n", max(start, match.start() - _LONGEST_LINE), match.start()) + 1 or start
            before = self.text[line : match.start()]
            if match[0][1] != "/":
                depth += before.strip()[-1:] in ("", ">")
            elif strict and (before.count("`") % 2 or not (not before.strip() or _ENDS.match(self.text, match.end()))):
                continue
            elif depth:
                depth, is_inline = depth - 1, False
            else:
                return match.start(), match.end()
        if strict and is_inline and not is_known:
            self.inline[name] = start, end
        return None


@functools.lru_cache(maxsize=256)
def _either(name: str) -> re.Pattern[str]:
    """Return the pattern of an opening or a closing tag."""
    return re.compile(rf"</?{re.escape(name)}(?:\s[^<>]*)?>")


def task_tag(text: str) -> str | None:
    """Return the tag of the tasks in a text; None without any. Plans for one test-driven feature have `<feature>`."""
    return next((name for name in ("task", "feature") if _has_line(text, name)), None)


def _has_line(text: str, name: str) -> bool:
    """Whether a tag opens at the start of a line."""
    at = text.find(f"<{name}")
    while at != -1:
        begin = text.rfind("\n", 0, at) + 1
        if not text[begin:at].strip(" \t") and (opened := _TASK_LINE.match(text, begin)) and opened[1] == name:
            return True
        at = text.find(f"<{name}", at + 1)
    return False


def read(scanner: Scanner, name: str, start: int, end: int) -> tuple[list[TaskDraft], dict[str, list[Part]]]:
    """Return the tasks, whose tag is `name`, in document order, and the texts of the plan's other tags by name."""
    tasks: list[TaskDraft] = []
    others: dict[str, list[Part]] = {}
    region = _region(scanner, start, end)
    inside = region is not None
    first, last = region or (start, end)
    position, fence = start, ""
    while position < end:
        match = _LINE.match(scanner.text, position, end)
        line = match[0] if match else ""
        after = position + len(line) + 1
        at = position + len(line) - len(line.lstrip())
        in_tasks = first <= position < last
        fence, fenced = ("", False) if inside and in_tasks else _fenced(line, fence)
        if fenced or not line.strip():
            pass
        elif in_tasks and (opened := _TASK_LINE.match(line)) and opened[1] == name:
            task = _task_tag(scanner, at, last)
            if task is None:
                break
            tasks.append(_task(scanner, task, len(tasks) + 1))
            after, fence = task.end, ""
        elif scanner.text.startswith("<", at) and not (inside and scanner.text.startswith("<tasks>", at)):
            found = scanner.tag(at, end)
            if found is not None:
                others.setdefault(found.name.lower(), []).append(
                    (scanner.text[found.content : found.close], found.content)
                )
                after, fence = found.end, ""
        elif inside and in_tasks:
            _stray(scanner, line, at)
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
        _never_closed(scanner.problems, at, "tasks")
        return at + len("<tasks>"), end
    return found.content, found.close


def _stray(scanner: Scanner, line: str, at: int) -> None:
    if line.strip() and not line.strip().startswith(("<!--", "</", "#", "---")):
        scanner.problems.warning(
            "dialect.stray-text",
            at,
            "This text is between the tasks and belongs to none of them",
            found=line.strip(),
            fix="move it into a task if a builder must read it",
        )


def _task_tag(scanner: Scanner, at: int, end: int) -> Tag | None:
    found = scanner.tag(at, end)
    if found is None:
        _never_closed(scanner.problems, at, "task")
    return found


def _never_closed(problems: Problems, at: int, name: str) -> None:
    problems.error(
        "dialect.never-closed",
        at,
        f"`<{name}>` is never closed",
        found=f"<{name}>",
        accepted=f"</{name}>",
        fix=f"write </{name}> where it ends",
    )


def _task(scanner: Scanner, tag: Tag, number: int) -> TaskDraft:
    attributes = {match[1]: match[2] or match[3] or "" for match in _ATTRIBUTE.finditer(tag.attributes)}
    draft = TaskDraft(tag.start, tag.end, "", id=attributes.get("id", ""), notation="tag")
    draft.kind = drafts.kind_of(attributes.get("type", ""), tag.start, scanner.problems)
    draft.priority = _PRIORITIES.get(attributes.get("priority", "").lower(), "normal")
    for name in attributes.keys() - _KNOWN:
        scanner.problems.warning(
            "dialect.unknown-attribute",
            tag.start,
            f"idumb does not know the attribute `{name}` of a task and ignores it",
            found=f"{name}={attributes[name]}",
            fix="remove it if it does not matter",
        )
    if attributes.get("gate"):
        draft.notes.append(f"gate: {attributes['gate']}")
    for part in _children(scanner, tag):
        if isinstance(part, Tag):
            _child(draft, part, scanner)
        elif part[0].strip():
            _markdown(draft, part, scanner.problems)
    draft.title = draft.title or titles.clean(attributes.get("name", "")) or _titled(draft)
    if not draft.title:
        draft.title = f"Task {number}"
    return draft


def _markdown(draft: TaskDraft, part: Part, problems: Problems) -> None:
    """Read the Markdown of a task that has no tags for it: a heading, bold labels and lists."""
    text, at = part
    rows, _ = labels.lines(text, at)
    heading = next((found for row in rows if not row.fenced and (found := labels.heading(row.text))), None)
    if heading and not draft.title:
        draft.title = titles.clean(heading[1])
        draft.title = (
            re.sub(rf"^{re.escape(draft.id)}\s*(?:[:.—–-]+\s*)?", "", draft.title) if draft.id else draft.title
        )
    draft.description.append(titles.dedent(text).strip("\n"))
    labels.read(draft, rows, problems, lambda kind, place: drafts.kind_of(kind, place, problems))


def _titled(draft: TaskDraft) -> str:
    """Return the first line of what a task without a name says."""
    first = next((line for text in draft.description for line in text.split("\n") if _is_title(line)), "")
    return titles.short(titles.clean(first.strip(" #*")))


def _is_title(line: str) -> bool:
    return bool(line.strip()) and line.strip() not in _TEXTS.values()


def _children(scanner: Scanner, task: Tag) -> Iterator[Tag | Part]:
    """Yield the tags of a task, and the text between them."""
    text, position, end = scanner.text, task.content, task.close
    loose = position
    while position < end:
        blank = _BLANK.match(text, position, end)
        begin = blank.end() if blank else position
        comment = _COMMENT.match(text, begin, end)
        if comment:
            yield text[loose:begin], loose
            position = loose = comment.end()
            continue
        child = scanner.tag(begin, end) if text.startswith("<", begin) else None
        if child is not None:
            yield text[loose:begin], loose
            yield child
            position = loose = child.end
            continue
        if text.startswith("<", begin) and (opened := _OPEN.match(text, begin, end)):
            _unclosed(scanner.problems, begin, opened[1])
        line_end = text.find("\n", begin, end)
        position = end if line_end == -1 else line_end + 1
    yield text[loose:end], loose


def _unclosed(problems: Problems, at: int, name: str) -> None:
    if name.lower() in _READERS or name.lower() in _TEXTS:
        _never_closed(problems, at, name)


def _child(draft: TaskDraft, tag: Tag, scanner: Scanner) -> None:
    name = tag.name.lower()
    content = scanner.text[tag.content : tag.close]
    draft.spans.setdefault(_FIELDS.get(name, name), (tag.content, tag.close))
    if name in _READERS:
        _READERS[name](draft, (content, tag.content))
    elif name in _TEXTS:
        text = titles.block(content)
        if text:
            draft.description.append(f"{_TEXTS[name]}\n{text}".strip("\n"))
    else:
        draft.description.append(scanner.text[tag.start : tag.end])
        scanner.problems.warning(
            "dialect.unknown-tag",
            tag.start,
            f"idumb does not know the tag `<{tag.name}>` and keeps it as text of the task",
            found=f"<{tag.name}>",
            fix="use " + ", ".join((*_READERS, *_TEXTS)),
        )
    if name == "behavior":
        draft.criteria += [CriterionDraft(words, at) for words, at in checks.items((content, tag.content))]


def _name(draft: TaskDraft, part: Part) -> None:
    draft.title = titles.clean(part[0])


def _files(draft: TaskDraft, part: Part) -> None:
    draft.files = [*(draft.files or ()), part]


def _read_first(draft: TaskDraft, part: Part) -> None:
    text = titles.block(part[0])
    if text:
        draft.references.append(f"Read first:\n{text}")


def _verify(draft: TaskDraft, part: Part) -> None:
    verification = checks.read(part)
    draft.commands += verification.commands
    draft.criteria += [CriterionDraft(words, at, HUMAN) for words, at in verification.by_hand]
    if verification.commands:
        prose = "\n".join(f"- {words}" for words, _ in verification.prose)
        draft.description += [f"Verification:\n{prose}"] if prose else []
    else:
        draft.criteria += [CriterionDraft(words, at) for words, at in verification.prose]


def _criteria(draft: TaskDraft, part: Part) -> None:
    draft.criteria += [CriterionDraft(words, at) for words, at in checks.items(part)]


def _options(draft: TaskDraft, part: Part) -> None:
    for option in elements.find(part[0], _OPTION):
        attributes = {a[1]: a[2] or a[3] or "" for a in _ATTRIBUTE.finditer(option.opening[2])}
        words = "; ".join(f"{one.opening[1]}: {checks.flat(one.text)}" for one in elements.find(option.text, _ANY))
        id = attributes.get("id") or f"option-{len(draft.options) + 1}"
        draft.options.append(Option(id, words.removeprefix("name: ") or checks.flat(option.text) or id))


_READERS: dict[str, Callable[[TaskDraft, Part], None]] = {
    "name": _name,
    "title": _name,
    "files": _files,
    "file": _files,
    "read_first": _read_first,
    "verify": _verify,
    "acceptance_criteria": _criteria,
    "done": _criteria,
    "options": _options,
}
_FIELDS = {"name": "title", "file": "files", "acceptance_criteria": "acceptance", "done": "acceptance"}
