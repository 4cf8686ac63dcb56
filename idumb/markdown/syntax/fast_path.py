"""Read tasks in the most common shape with one pattern, ten times as fast as the general parser.

A task in any other shape, or with any finding, goes to the general parser, which decides. A property test requires
equal results.
"""

# ruff: noqa: ARG001 (all field readers have the same signature)
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from idumb import lazy_pattern
from idumb.domain.plans import plan
from idumb.domain.plans.plan import Criterion, FileClaim, Span, TestIntent
from idumb.lazy_dataclass import dataclass
from idumb.markdown.syntax import scalars
from idumb.markdown.syntax.nodes import FastTask, Fence
from idumb.markdown.syntax.source import Source

_TASK = lazy_pattern.compile(
    r"(#{3,6}) (T[0-9A-Za-z][0-9A-Za-z._-]*-[0-9]{2,}[a-z]?): ([^\s#<](?:[^\n#<]*[^\s#<])?)\n"
    r"((?:[^\W\d_][^\n]*\n|\n)*+)"  # paragraphs whose lines start with a letter are plain text
    r"((?:- (?!id:)(?:\*\*[A-Z][a-z ]*:\*\*|[A-Za-z][a-z_ ]*:)[^\n]*\n(?:  - [^\n]*\n)*)+)"
    r"(\n(?:[^\W\d_][^\n]*\n|\n)*+)?+"  # and more such paragraphs after a blank line
)
# Description lines that may be more than text; the general parser checks them.
_SUSPICIOUS = lazy_pattern.compile(r"^(?:id[ \t]*:|t\d|task[^a-z]|[a-z_]+:)", re.IGNORECASE | re.MULTILINE)
_STEPS = lazy_pattern.compile(r"```((?:yaml|json) steps)\n")
_NEXT = lazy_pattern.compile(r"\n*(?:(#{1,6}) |\Z)")
_FIELD = lazy_pattern.compile(r"- (?:\*\*)?([A-Za-z][a-z_ ]*):(?:\*\*)?(?: (\S[^\n]*))?\n((?:  - [^\n]*\n)*)")

_CODE = r"`[^`\s][^`\n]*`"
_WORDS = rf"(?:[^`\n—–<\\-]++|(?<=\w)-(?=\w)|{_CODE})++"
_CRITERION = lazy_pattern.compile(rf"  - \[ \] ({_WORDS})(?:— (?:check: ({_CODE})|(verify|human|opinion)))?\n")
_PROOF_WORDS = lazy_pattern.compile(r"check|keep|verify|human|opinion", re.IGNORECASE)
_NEAR_ID = lazy_pattern.compile(r"[\[(*_`]*AC[-_ ]?\d", re.IGNORECASE)
_FILE_LINES = lazy_pattern.compile(r"^  - (create|modify|delete|read) `([^`\s][^`\n]*)`$", re.MULTILINE)
_FILE = lazy_pattern.compile(rf"(create|modify|delete|read) ({_CODE}(?:, {_CODE})*)")
_COMMANDS = lazy_pattern.compile(rf"{_CODE}(?:, {_CODE})*")
_TEST = lazy_pattern.compile(rf"({_CODE}) — (fails before, passes after|passes before and after): (\S(?:[^\n]*\S)?)")
_NAME = lazy_pattern.compile(r"[\w.:/@+-]+")


def find(source: Source, line: int) -> FastTask | None:
    """Return the task that starts on `line` if all of it has the common shape and a heading or the end follows."""
    text = source.text
    m = _TASK.match(text, source.starts[line])
    if m is None:
        return None
    end = m.end()
    lines = line + text.count("\n", m.start(), end)
    fence = None
    steps = _STEPS.match(text, end) if text.startswith("`", end) else None
    if steps:
        closing = source.closing_fence(steps.end(), "```")
        if closing is None:
            return None
        last = source.line_of(closing) + 1
        fence = Fence(lines, last, end, 0, "```", steps[1], top=True, closed=True)
        lines, end = last, source.end_of(last - 1)
    following = _NEXT.match(text, end)
    if any(part and _SUSPICIOUS.search(part) for part in (m[4], m[6])):
        return None
    if not following or len(following[1] or "") > len(m[1]) or text.find("<!--", m.start(), end) >= 0:
        return None
    return FastTask(line, lines, m, fence)


@dataclass(slots=True)
class Shared:
    """Declared ids that the fields of a plan's tasks may use."""

    requirements: frozenset[str]
    dependencies: re.Pattern[str]


def shared(phase: str | None, requirements: frozenset[str]) -> Shared:
    task_id = rf"T{re.escape(phase or '')}-[0-9]{{2,}}[a-z]?"
    return Shared(requirements, re.compile(rf"{task_id}(?:, {task_id})*"))


class _Unusual(Exception):
    """A value does not have the common shape."""


Given = dict[str, Any]
Ranges = dict[str, tuple[int, int]]


def read(block: FastTask, common: Shared) -> tuple[Given, Ranges] | None:
    """Return the fields of the task and their ranges, or None if one of them needs the general parser."""
    m = block.match
    text, position = m.string, m.start(5)
    fields: Given = {"description": _description(m[4].strip("\n"), (m[6] or "").strip("\n"))}
    ranges: Ranges = {"title": m.span(3)}
    line = block.line + 1 + text.count("\n", m.start(), position)
    try:
        for field in _FIELD.finditer(text, position, m.end(5)):
            label, inline, nested = field.groups()
            name, reader = _READERS.get(label, _NO_READER)
            if name in fields or field.start() != position or bool(inline) == bool(nested):
                return None
            position = field.end()
            if nested:
                start = position - len(nested)
                ranges[name] = (start + 2, position - 1)
                fields[name] = reader("", nested, common, start, line + 1)
                line += 1 + nested.count("\n")
            else:
                start = position - len(inline) - 1
                ranges[name] = (start, position - 1)
                fields[name] = reader(inline, "", common, start, line)
                line += 1
        if position != m.end(5):
            return None
        _settle(fields)
    except _Unusual:
        return None
    return fields, ranges


def _description(before: str, behind: str) -> str:
    return f"{before}\n\n{behind}" if before and behind else before or behind


def end_of_text(m: re.Match[str]) -> int:
    """Return the end of the task's last line, without its steps."""
    behind = (m[6] or "").rstrip("\n")
    return m.start(6) + len(behind) if behind else m.end(5) - 1


def _settle(values: Given) -> None:
    """Apply Verify to criteria; a task with unproven criteria goes to the general parser."""
    drafts = values.get("acceptance")
    if not drafts:
        raise _Unusual
    unmarked = [c for c in drafts if c.proof == plan.UNPROVEN]
    commands = values.get("verify")
    if unmarked:
        if len(unmarked) < len(drafts) or not commands:
            raise _Unusual
        drafts = [Criterion(c.id, c.text, plan.VERIFY, None, (), c.span) for c in drafts]
    elif not commands and any(c.proof == plan.VERIFY for c in drafts):
        raise _Unusual
    values["acceptance"] = tuple(drafts)


def _inline(text: str) -> str:
    if not text or text[-1] == " ":
        raise _Unusual
    return text


def _requirements(text: str, nested: str, common: Shared, at: int, line: int) -> tuple[str, ...]:
    ids = tuple(_inline(text).split(", "))
    if not common.requirements.issuperset(ids):
        if text == "none":
            return ()
        raise _Unusual
    return ids


def _dependencies(text: str, nested: str, common: Shared, at: int, line: int) -> tuple[str, ...]:
    if common.dependencies.fullmatch(_inline(text)):
        return tuple(text.split(", "))
    if text == "none":
        return ()
    raise _Unusual


def _files(text: str, nested: str, common: Shared, at: int, line: int) -> tuple[FileClaim, ...]:
    if text == "none":
        return ()
    plain = _FILE_LINES.findall(nested)
    if plain and len(plain) == nested.count("\n"):
        return tuple([FileClaim(verb, path) for verb, path in plain])
    claims: list[FileClaim] = []
    for entry in nested[4:-1].split("\n  - ") if nested else (text,):
        m = _FILE.fullmatch(entry)
        if m is None:
            raise _Unusual
        verb = m[1]
        claims += [FileClaim(verb, path) for path in m[2][1:-1].split("`, `")]
    return tuple(claims)


def _acceptance(text: str, nested: str, common: Shared, at: int, line: int) -> list[Criterion]:
    criteria: list[Criterion] = []
    position = 0
    for number, m in enumerate(_CRITERION.finditer(nested)):
        words, command, mark = m.groups()
        begin, end = m.span()
        if begin != position or not _plain(words):
            raise _Unusual
        position = end
        if command or mark:
            if words[-1] != " ":
                raise _Unusual
            words = words[:-1]
        if not words or words[-1].isspace():
            raise _Unusual
        span = Span(at + begin + _BOX, at + end - 1, line + number)
        proof = plan.CHECK if command else mark or plan.UNPROVEN
        criteria.append(Criterion(f"AC-{number + 1}", words, proof, command and command[1:-1], (), span))
    if position != len(nested):
        raise _Unusual
    return criteria


_BOX = len("  - [ ] ")


def _plain(words: str) -> bool:
    """Whether the text of a criterion is certainly plain text."""
    if words[0] in _ODD_BEGINNINGS and (words[0] in " \t[(" or _NEAR_ID.match(words)):
        return False
    if not words.isascii():
        return not _PROOF_WORDS.search(words)
    folded = words.lower()
    return not any(word in folded for word in ("check", "keep", "verify", "human", "opinion"))


_ODD_BEGINNINGS = frozenset(" \t[(*_`aA")


def _verify(text: str, nested: str, common: Shared, at: int, line: int) -> tuple[str, ...]:
    commands: list[str] = []
    for entry in nested[4:-1].split("\n  - ") if nested else (text,):
        if not _COMMANDS.fullmatch(entry):
            raise _Unusual
        commands += entry[1:-1].split("`, `")
    return tuple(commands)


def _tests(text: str, nested: str, common: Shared, at: int, line: int) -> tuple[TestIntent, ...]:
    intents = []
    for entry in nested[4:-1].split("\n  - ") if nested else (text,):
        m = _TEST.fullmatch(entry)
        if m is None:
            raise _Unusual
        before = "fails" if m[2][0] == "f" else "passes"
        intents.append(TestIntent(m[1][1:-1], before, "passes", m[3]))
    return tuple(intents)


def _duration(text: str, nested: str, common: Shared, at: int, line: int) -> int:
    length = scalars.seconds(_inline(text))
    if length is None:
        raise _Unusual
    return length


def _name(text: str, nested: str, common: Shared, at: int, line: int) -> str:
    if not _NAME.fullmatch(_inline(text)) or text.casefold() in {"none", "-"}:
        raise _Unusual
    return text


def _choice(*choices: str) -> Callable[[str, str, Shared, int, int], str]:
    def read_one(text: str, nested: str, common: Shared, at: int, line: int) -> str:
        if text not in choices:
            raise _Unusual
        return text

    return read_one


_LABELS: dict[str, tuple[str, Callable[[str, str, Shared, int, int], Any]]] = {
    "Requirements": ("requirements", _requirements),
    "Depends on": ("depends_on", _dependencies),
    "Files": ("files", _files),
    "Acceptance": ("acceptance", _acceptance),
    "Verify": ("verify", _verify),
    "Tests": ("tests", _tests),
    "Estimate": ("estimate", _duration),
    "Timeout": ("timeout", _duration),
    "Builder": ("builder", _name),
    "Validator": ("validator", _name),
    "Change": ("change", _choice("preserving", "extending", "modifying", "breaking")),
    "On failure": ("on_failure", _choice("block", "retry", "ask")),
    "On timeout": ("on_timeout", _choice("fail", "skip", "retry")),
    "Priority": ("priority", _choice("critical", "high", "normal", "low")),
}
_READERS = _LABELS | {name: (name, reader) for name, reader in _LABELS.values()}


def _no_reader(text: str, nested: str, common: Shared, at: int, line: int) -> None:
    raise _Unusual


_NO_READER = ("", _no_reader)
