"""Phases: the names of their folders and plan files, and ROADMAP.md. Tolerant, because people write both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from idumb.domain import whole_numbers

# Names of folders and files

_DIGITS = r"\d+[A-Za-z]?(?:\.\d+[A-Za-z]?)*"
_NUMBER = re.compile(rf"{_DIGITS}(?=$|[-_ ])")
_OTHER = re.compile(rf"(?:phase[-_ ]?|[A-Z]{{1,6}}-)?({_DIGITS})(?=$|[-_ ]|\.(?!\d))", re.IGNORECASE)
_TEXT = (-1, 0, "")  # before every number
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


def natural(name: str) -> tuple[list[tuple[tuple[int, int, str], str]], str]:
    """Return the key that sorts `2-PLAN.md` before `10-PLAN.md`."""
    parts = [(whole_numbers.sort_key(p), "") if p[0].isdecimal() else (_TEXT, p) for p in _PARTS.findall(name)]
    return parts, name


# The roadmap: headings, list items and table rows

_TITLED = re.compile(
    rf"(?:\[.\]\s*)?Phase\s+({_DIGITS})(?:\s*(?::|—|–|--|-(?=\s)|\.(?=\s))\s*|\s+|$)(.*)", re.IGNORECASE
)
_BOX = re.compile(r"\[.\]\s*")
_CELL = re.compile(rf"(?:Phase\s+)?({_DIGITS})\.?(?:(?:\s*(?::|—|–|-(?=\s))\s*|\s+)(.*))?", re.IGNORECASE)


class Phase(NamedTuple):
    """A phase of the roadmap. `line` counts from 1; it is 0 if unknown."""

    number: str
    title: str
    line: int


def roadmap_phases(text: str) -> tuple[Phase, ...]:
    """Return each phase once, in the order of first mention."""
    import mistune

    markdown = mistune.create_markdown(renderer=None, plugins=["table", "strikethrough"])
    blocks = markdown(text)
    lines = text.replace("\r\n", "\n").split("\n")
    phases: dict[str, Phase] = {}
    for number, title in _numbered_titles(blocks if isinstance(blocks, list) else []):
        if number not in phases:
            phases[number] = Phase(number, title, _line(lines, number, title))
    return tuple(phases.values())


def roadmap_section(text: str, number: str) -> str:
    """Return the roadmap's section about a phase, or the item or row that names it; "" if there is none."""
    phase = next((p for p in roadmap_phases(text) if same_phase(p.number, number)), None)
    if phase is None:
        return ""
    lines = text.replace("\r\n", "\n").split("\n")
    levels, own = _phase_headings(text)
    at = next((n for n, other in own if same_phase(other, number)), None)
    if at is not None:
        end = next((n for n in levels if n > at and levels[n] <= levels[at]), len(lines))
        return "\n".join(lines[at:end]).strip("\n")
    start = phase.line - 1
    if start < 0:
        return phase.title
    indent = len(lines[start]) - len(lines[start].lstrip())
    below = (n for n in range(start + 1, len(lines)) if not _belongs(lines[n], indent))
    return "\n".join(lines[start : next(below, len(lines))]).strip("\n")


def _belongs(line: str, indent: int) -> bool:
    return bool(line.strip()) and len(line) - len(line.lstrip()) > indent


def with_phase(text: str, number: str, title: str, goal: str, after: str = "") -> str:
    """Return the roadmap with one more phase in the style of the others; nothing else changes.

    The phase follows phase `after` and its earlier insertions, or ends the roadmap.
    """
    if after:
        inserted = _behind(text, after, f"Phase {number}: {title}", goal)
        if inserted is not None and [p.number for p in roadmap_phases(inserted) if p.number != number] == [
            p.number for p in roadmap_phases(text)
        ]:
            return inserted
    levels, own = _phase_headings(text)
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith((end * 2, "\n\n")) else end if text.endswith("\n") else end * 2
    level = levels[own[0][0]] if own else 2
    return text + gap + end.join(_section_of(level, f"Phase {number}: {title}", goal))


def _phase_headings(text: str) -> tuple[dict[int, int], list[tuple[int, str]]]:
    """Return the levels of all headings, and (line, number) of those that name a phase."""
    from idumb.domain import phase_documents

    lines = text.replace("\r\n", "\n").split("\n")
    levels = phase_documents.levels(lines)
    return levels, [(n, m[1]) for n in levels if (m := _TITLED.match(lines[n].strip(" #")))]


def _section_of(level: int, name: str, goal: str) -> list[str]:
    return [f"{'#' * level} {name}", "", *([goal, ""] if goal else [])]


def _behind(text: str, after: str, name: str, goal: str) -> str | None:
    """Return the text with the phase inserted after the heading or list item of another; None without either."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    levels, own = _phase_headings(text)
    at = next((n for n, number in own if same_phase(number, after)), None)
    if at is not None:
        children = {n for n, number in own if _is_inserted(number, after)}
        stop = next((n for n in levels if n > at and levels[n] <= levels[at] and n not in children), None)
        if stop is None:
            return None  # the last one: the new one ends the roadmap
        gap = [] if not lines[stop - 1].strip() else [""]
        return end.join([*lines[:stop], *gap, *_section_of(levels[at], name, goal), *lines[stop:]])
    items = [(p.number, p.line - 1) for p in roadmap_phases(text) if p.line and _ITEM.match(lines[p.line - 1])]
    of = [line for number, line in items if same_phase(number, after) or _is_inserted(number, after)]
    marks = _ITEM.match(lines[max(of)]) if of else None
    if marks is None:
        return None
    begin, bold = re.sub(r"\[.\]", "[ ]", marks[1]), marks[2] or ""
    stop = max(of) + 1
    while stop < len(lines) and _belongs(lines[stop], len(begin) - len(begin.lstrip())):
        stop += 1
    words = f"{begin}{bold}{name}{bold}{f' - {goal}' if goal else ''}"
    return end.join([*lines[:stop], words, *lines[stop:]])


_ITEM = re.compile(r"(\s*(?:[-*+]|\d+[.)])\s+(?:\[.\]\s*)?)(\*\*|__)?Phase\s", re.IGNORECASE)


def _is_inserted(number: str, after: str) -> bool:
    parts, before = number.split("."), after.split(".")
    return len(parts) > len(before) and all(map(same_phase, parts, before))


def _numbered_titles(blocks: list[dict[str, Any]], *, listed: bool = False) -> Iterator[tuple[str, str]]:
    for block in blocks:
        kind = block["type"]
        if kind == "heading" or (listed and kind in {"block_text", "paragraph"}):
            yield from _from_text(_headline(block), heading=kind == "heading")
        elif kind == "table_row":
            yield from _from_row([_words(cell).strip() for cell in block["children"]])
        elif kind in {"list", "list_item", "table", "table_body", "block_quote"}:
            yield from _numbered_titles(block["children"], listed=listed or kind == "list_item")


def _from_text(text: str, *, heading: bool) -> Iterator[tuple[str, str]]:
    m = _TITLED.match(text.strip().partition("\n")[0])
    if m and (heading or m[2]):
        yield m[1], _title(m[2])


def _from_row(cells: list[str]) -> Iterator[tuple[str, str]]:
    m = _CELL.fullmatch(cells[0]) if cells else None
    if m:
        yield m[1], _title(m[2] or (cells[1] if len(cells) > 1 else ""))


def _title(text: str) -> str:
    """Return a title without a remark after a dash."""
    return re.split(r"\s+(?:—|–|--)\s+", text.strip(), maxsplit=1)[0].strip(" *_:")


def _headline(token: dict[str, Any]) -> str:
    """Return the text of a block, or its bold start, without a checkbox."""
    children = token.get("children") or []
    if children and children[0]["type"] == "text" and _BOX.fullmatch(_words(children[0])):
        children = children[1:]
    return _words(children[0] if children and children[0]["type"] == "strong" else token)


def _words(token: dict[str, Any]) -> str:
    if "children" in token:
        return "".join(_words(child) for child in token["children"])
    if token["type"] in {"softbreak", "linebreak"}:
        return "\n"
    return str(token.get("raw", ""))


def _line(lines: list[str], number: str, title: str) -> int:
    """Return the first line with the number and the start of the title, because mistune keeps no positions."""
    first = title.partition(" ")[0]
    pattern = re.compile(rf"(?<![\w.]){re.escape(number)}(?![\w])(?!\.\d)")
    likely = (n for n, line in enumerate(lines, 1) if pattern.search(line) and first in line)
    return next(likely, 0)
