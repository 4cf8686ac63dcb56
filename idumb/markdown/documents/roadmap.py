"""Read the phases of ROADMAP.md from headings, list items and table rows. Tolerant, because people write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.markdown.plans.phase_names import same_phase
from idumb.markdown.syntax import outline
from idumb.markdown.syntax.outline import Entry
from idumb.markdown.syntax.source import Source

_NUMBER = r"\d+[A-Za-z]?(?:\.\d+[A-Za-z]?)*"
_TEXT = lazy_pattern.compile(rf"Phase\s+({_NUMBER})(?:\s*(?::|—|–|--|-(?=\s)|\.(?=\s))\s*|\s+|$)(.*)", re.IGNORECASE)
_CELL = lazy_pattern.compile(rf"(?:Phase\s+)?({_NUMBER})\.?(?:(?:\s*(?::|—|–|-(?=\s))\s*|\s+)(.*))?", re.IGNORECASE)
_BOLD = lazy_pattern.compile(r"(\*\*|__)(.+?)\1")
_LINK = lazy_pattern.compile(r"!?\[([^\]]*)\]\([^()]*\)")
_MARKS = lazy_pattern.compile(r"\*\*|__|~~|[*`]")
_ITEM = lazy_pattern.compile(r"(\s*(?:[-*+]|\d+[.)])\s+(?:\[.\]\s*)?)(\*\*|__)?Phase\s", re.IGNORECASE)


class Phase(NamedTuple):
    """A phase of the roadmap. `line` counts from 1, `end` is the line after its section, item or row."""

    number: str
    title: str
    line: int
    end: int
    level: int = 0  # of its heading


def read(text: str) -> tuple[Phase, ...]:
    """Return each phase once, in the order of first mention."""
    phases: dict[str, Phase] = {}
    for phase in sorted(_named(text), key=lambda phase: phase.line):
        phases.setdefault(phase.number, phase)
    return tuple(phases.values())


def _named(text: str) -> Iterator[Phase]:
    """Yield what names a phase: headings, items and rows of tables."""
    document = outline.read(Source(text, ""), 0)
    for entry in (*document.headings, *document.items):
        match = _TEXT.match(_words(entry))
        if match is not None and (entry.level or match[2]):
            yield Phase(match[1], _title(match[2]), entry.line, entry.end, entry.level)
    for line, row in enumerate(document.lines, 1):
        cells = [_plain(cell).strip() for cell in row.strip().strip("|").split("|")] if row.lstrip()[:1] == "|" else []
        match = _CELL.fullmatch(cells[0]) if cells and line not in document.fenced | document.hidden else None
        if match is not None:
            yield Phase(match[1], _title(match[2] or (cells[1] if len(cells) > 1 else "")), line, line + 1)


def _words(entry: Entry) -> str:
    """Return the text of an entry, or its bold start."""
    bold = _BOLD.match(entry.text)
    return _plain(bold[2] if bold is not None else entry.text).strip()


def _plain(text: str) -> str:
    return _MARKS.sub("", _LINK.sub(r"\1", text))


def _title(text: str) -> str:
    """Return a title without a remark after a dash."""
    return re.split(r"\s+(?:—|–|--)\s+", text.strip(), maxsplit=1)[0].strip(" *_:")


def section(text: str, number: str) -> str:
    """Return the roadmap's section about a phase, or the item or row that names it; "" if there is none."""
    named = sorted(_of(text, number), key=lambda phase: (not phase.level, phase.line))
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(lines[named[0].line - 1 : named[0].end - 1]).strip("\n") if named else ""


def _of(text: str, number: str) -> list[Phase]:
    return [phase for phase in _named(text) if same_phase(phase.number, number)]


def with_phase(text: str, number: str, title: str, goal: str, after: str = "") -> str:
    """Return the roadmap with one more phase in the style of the others; nothing else changes.

    The phase follows phase `after` and its earlier insertions, or ends the roadmap.
    """
    name = f"Phase {number}: {title}"
    inserted = _behind(text, after, name, goal) if after else None
    numbers = [phase.number for phase in read(text)]
    if inserted is not None and [phase.number for phase in read(inserted) if phase.number != number] == numbers:
        return inserted
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith((end * 2, "\n\n")) else end if text.endswith("\n") else end * 2
    level = next((phase.level for phase in _named(text) if phase.level), 2)
    return text + gap + end.join(_section_of(level, name, goal))


def _section_of(level: int, name: str, goal: str) -> list[str]:
    return [f"{'#' * level} {name}", "", *([goal, ""] if goal else [])]


def _behind(text: str, after: str, name: str, goal: str) -> str | None:
    """Return the text with the phase inserted after the heading or list item of another; None without either."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    named = [phase for phase in _named(text) if same_phase(phase.number, after) or _is_inserted(phase.number, after)]
    headings = [phase for phase in named if phase.level]
    if headings:
        stop = max(phase.end for phase in headings) - 1
        if stop >= len(lines):
            return None  # the last one: the new one ends the roadmap
        gap = [] if not lines[stop - 1].strip() else [""]
        level = next((phase.level for phase in headings if same_phase(phase.number, after)), headings[0].level)
        return end.join([*lines[:stop], *gap, *_section_of(level, name, goal), *lines[stop:]])
    items = [phase for phase in named if _ITEM.match(lines[phase.line - 1])]
    last = max(items, key=lambda phase: phase.line, default=None)
    marks = _ITEM.match(lines[last.line - 1]) if last is not None else None
    if last is None or marks is None:
        return None
    begin, bold = re.sub(r"\[.\]", "[ ]", marks[1]), marks[2] or ""
    words = f"{begin}{bold}{name}{bold}{f' - {goal}' if goal else ''}"
    return end.join([*lines[: last.end - 1], words, *lines[last.end - 1 :]])


def _is_inserted(number: str, after: str) -> bool:
    parts, before = number.split("."), after.split(".")
    return len(parts) > len(before) and all(map(same_phase, parts, before))
