"""Phases: the names of their folders and plan files, and ROADMAP.md. Tolerant, because people write both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from idumb.domain import phase_documents, whole_numbers

# Names of folders and files

_DIGITS = r"\d+[A-Za-z]?(?:\.\d+[A-Za-z]?)*"
_NUMBER = re.compile(rf"{_DIGITS}(?=$|[-_ ])")
_OTHER = re.compile(rf"(?:phase[-_ ]?|[A-Z]{{1,6}}-)?({_DIGITS})(?=$|[-_ ]|\.(?!\d))", re.IGNORECASE)
_TEXT = (-1, "")  # before every number
_PARTS = re.compile(r"\d+|\D+")


def number(name: str) -> str | None:
    """Return the phase of a folder: `01-name` → `01`, `06.1` → `06.1`; None without a leading number."""
    m = _NUMBER.match(name)
    return m[0] if m else None


def other_number(name: str) -> str | None:
    """Return the phase of a folder with an alternative name: `phase-1`, `Phase 01`, `CK-01-auth`, `01.auth`."""
    m = _OTHER.match(name) if number(name) is None else None
    return m[1] if m else None


def numbered(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (number, folder) of every phase. An alternative name counts if no other folder has its number."""
    folders = list(names)
    by_number = [(n, name) for name in folders if (n := number(name)) is not None]
    taken = {_bare(n) for n, _ in by_number}
    others = ((n, name) for name in folders if (n := other_number(name)) is not None)
    return [*by_number, *((n, name) for n, name in others if _bare(n) not in taken)]


def same_phase(first: str, second: str) -> bool:
    """Whether two spellings mean one phase; leading zeros do not count (`1` and `01`, `6.1` and `06.1`)."""
    return _bare(first) == _bare(second)


def _bare(phase: str) -> str:
    bare = phase.lstrip("0")
    return (bare if bare[:1].isdigit() else "0" + bare if len(bare) < len(phase) else bare).casefold()


def matching_folders(names: Iterable[str], phase: str) -> list[str]:
    """Return the folders of a phase in natural order: `1`, `01` and `01-name` for `1`.

    If there is none, return those with alternative names. The caller reports none or several.
    """
    folders = list(names)
    matches = [name for name in folders if name == phase or ((n := number(name)) is not None and same_phase(n, phase))]
    if not matches:
        matches = [name for name in folders if (n := other_number(name)) is not None and same_phase(n, phase)]
    return sorted(matches, key=natural)


def plan_files(names: Iterable[str]) -> list[str]:
    """Return the plans of a folder, `*PLAN.md`, in natural order (`2-PLAN.md` before `10-PLAN.md`)."""
    return sorted((name for name in names if name.endswith("PLAN.md") and not name.startswith(".")), key=natural)


def natural(name: str) -> tuple[list[tuple[tuple[int, str], str]], str]:
    """Return the key that sorts `2-PLAN.md` before `10-PLAN.md`."""
    parts = [(whole_numbers.sort_key(p), "") if p[0].isdecimal() else (_TEXT, p) for p in _PARTS.findall(name)]
    return parts, name


# The roadmap: headings, list items and table rows

_TITLED = re.compile(
    rf"(?:\[.\]\s*)?Phase\s+({_DIGITS})(?:\s*(?::|—|–|--|-(?=\s)|\.(?=\s))\s*|\s+|$)(.*)", re.IGNORECASE
)
_CELL = re.compile(rf"(?:Phase\s+)?({_DIGITS})\.?(?:(?:\s*(?::|—|–|-(?=\s))\s*|\s+)(.*))?", re.IGNORECASE)
_BOX = re.compile(r"^\[.\]\s*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})\s*")
_BOLD = re.compile(r"(\*\*|__)(.+?)\1")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"`([^`]+)`|\\([^\w\s])|(?<!\s)\*+|\*+(?!\s)|~~|(?<!\w)_+|_+(?!\w)")
_HASHES = re.compile(r"^#+[ \t]+|(?:^|[ \t]+)#+[ \t]*$")
_BELOW_HEADER = re.compile(r"[>\s|:-]*-[\s|:-]*")
_OTHER_BLOCK = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s|[\s>]*[|>]| {4}|\t")
_ITEM = re.compile(r"(\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s*)?)(\*\*|__)?(?=\S)")


class Phase(NamedTuple):
    """A phase of the roadmap. `line` counts from 1; `level` is that of a heading, 0 for an item or a row."""

    number: str
    title: str
    line: int
    level: int


def roadmap_phases(text: str) -> tuple[Phase, ...]:
    """Return each phase once, in the order of first mention."""
    first = {phase.number: phase for phase in reversed(_mentions(_lines(text)))}
    return tuple(sorted(first.values(), key=lambda phase: phase.line))


def roadmap_section(text: str, number: str) -> str:
    """Return the roadmap's section about a phase, or the item or row that names it; "" if there is none."""
    lines = _lines(text)
    own = [phase for phase in _mentions(lines) if same_phase(phase.number, number)]
    phase = next((phase for phase in own if phase.level), own[0] if own else None)
    return "\n".join(lines[phase.line - 1 : _end(lines, phase.line - 1)]).strip("\n") if phase else ""


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _mentions(lines: list[str]) -> list[Phase]:
    """Return every heading, list item and table row that begins with a phase."""
    levels, mentions, in_table = _levels(lines), list[Phase](), False
    for n, line in phase_documents.unfenced(lines):
        in_table = "|" in line and (in_table or _BELOW_HEADER.fullmatch(line) is not None)
        mention = _mention(line, levels.get(n, 0), in_table=in_table)
        mentions += [Phase(*mention, n + 1, levels.get(n, 0))] if mention else []
    return mentions


def _levels(lines: list[str]) -> dict[int, int]:
    """Return the levels of headings by line (from 0), also of underlined ones."""
    plain = (n for n, line in phase_documents.unfenced(lines[:-1]) if line.strip() and not _OTHER_BLOCK.match(line))
    underlined = {n: 1 if "=" in lines[n + 1] else 2 for n in plain if _UNDERLINE.fullmatch(lines[n + 1])}
    return dict(sorted((underlined | phase_documents.levels(lines)).items()))


def _mention(line: str, level: int, *, in_table: bool) -> tuple[str, str] | None:
    """Return number and title."""
    text = line.lstrip("> \t")
    item = _ITEM.match(text)
    if in_table and not level and item is None:
        first, _, second = text.strip("| \t").partition("|")
        match = _CELL.fullmatch(_plain(first))
        return (match[1], _title(match[2] or _plain(second.partition("|")[0]))) if match else None
    if not level and item is None and not _HASHES.match(text):
        return None
    text = _BOX.sub("", _HASHES.sub("", text[len(item[1]) :] if item and not level else text))
    bold = _BOLD.match(text)
    match = _TITLED.match(_plain(bold[2] if bold else text))
    return (match[1], _title(match[2])) if match and (level or match[2]) else None


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\1\2", _LINK.sub(r"\1", text)).strip()


def _title(text: str) -> str:
    """Return a title without a remark after a dash."""
    return re.split(r"\s+(?:—|–|--)\s+", text.strip(), maxsplit=1)[0].strip(" *_:")


def _end(lines: list[str], at: int) -> int:
    """Return the line after the section, or after the item, that starts at a line."""
    levels, indent = _levels(lines), _indent(lines[at])
    if at in levels:
        return next((n for n in levels if n > at and levels[n] <= levels[at]), len(lines))
    below = (n for n in range(at + 1, len(lines)) if not lines[n].strip() or _indent(lines[n]) <= indent)
    return next(below, len(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def with_phase(text: str, number: str, title: str, goal: str, after: str = "") -> str:
    """Return the roadmap with one more phase in the style of the others; nothing else changes.

    The phase follows phase `after` and its earlier insertions, or ends the roadmap.
    """
    name, before = f"Phase {number}: {title}", _mentions(_lines(text))
    if after:
        inserted = _behind(text, after, name, goal)
        if inserted is not None and [p.number for p in roadmap_phases(inserted) if p.number != number] == [
            p.number for p in roadmap_phases(text)
        ]:
            return inserted
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith((end * 2, "\n\n")) else end if text.endswith("\n") else end * 2
    level = next((phase.level for phase in before if phase.level), 2)
    return text + gap + end.join(_section_of(level, name, goal))


def _section_of(level: int, name: str, goal: str) -> list[str]:
    return [f"{'#' * level} {name}", "", *([goal, ""] if goal else [])]


def _behind(text: str, after: str, name: str, goal: str) -> str | None:
    """Return the text with the phase inserted after the heading or list item of another; None without either."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    mentions = _mentions(lines)
    heading = next((p for p in mentions if p.level and same_phase(p.number, after)), None)
    if heading is not None:
        stop = _end(lines, heading.line - 1)
        inserted = {p.line - 1 for p in mentions if p.level and _is_inserted(p.number, after)}
        while stop in inserted:
            stop = _end(lines, stop)
        if stop == len(lines):
            return None  # the last one: the new one ends the roadmap
        gap = [""] if lines[stop - 1].strip() else []
        return end.join([*lines[:stop], *gap, *_section_of(heading.level, name, goal), *lines[stop:]])
    items = [p for p in mentions if same_phase(p.number, after) or _is_inserted(p.number, after)]
    at = max((p.line - 1 for p in items if _ITEM.match(lines[p.line - 1])), default=-1)
    marks = _ITEM.match(lines[at]) if at >= 0 else None
    if marks is None:
        return None
    stop, bold, begin = _end(lines, at), marks[2] or "", re.sub(r"\[.\]", "[ ]", marks[1])
    words = f"{begin}{bold}{name}{bold}{f' - {goal}' if goal else ''}"
    return end.join([*lines[:stop], words, *lines[stop:]])


def _is_inserted(number: str, after: str) -> bool:
    parts, before = number.split("."), after.split(".")
    return len(parts) > len(before) and all(map(same_phase, parts, before))
