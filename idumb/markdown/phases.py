"""Phases: the names of their folders and plan files, and ROADMAP.md. Tolerant, because people write both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from idumb.domain import whole_numbers, wording

if TYPE_CHECKING:
    from markdown_it.token import Token

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
    folders = set(names)
    return sorted({name for n, name in numbered(folders) if same_phase(n, phase)} | ({phase} & folders), key=natural)


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
_BOX = re.compile(r"\[.\]\s*")
_ITEM = re.compile(r"(\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[.\]\s*)?)(\*\*|__)?(?=\S)")


class Phase(NamedTuple):
    """A phase of the roadmap. `line` counts from 1; `level` is that of a heading, 0 for an item or a row."""

    number: str
    title: str
    line: int
    level: int


class _Roadmap:
    """The lines of the text, the levels of its headings by line (from 0), and every mention of a phase.

    A heading, list item or table row that begins with a phase mentions it.
    """

    def __init__(self, text: str) -> None:
        from markdown_it import MarkdownIt

        self.lines = text.split("\n")
        markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        tokens = markdown.parse(text.replace("\r\n", "\n").replace("\r", " "))
        self.levels: dict[int, int] = {}
        self.mentions: list[Phase] = []
        for n, token in enumerate(tokens):
            at, level = token.map[0] if token.map else 0, 0
            if token.type == "heading_open":
                self.levels[at] = level = int(token.tag[1])
            if (mention := _mention(tokens[n : n + 6], level)) is not None:
                self.mentions.append(Phase(*mention, at + 1, level))

    @property
    def numbers(self) -> list[str]:
        """The number of each phase once, in the order of first mention."""
        return list(dict.fromkeys(phase.number for phase in self.mentions))

    def end(self, at: int) -> int:
        """Return the line after the section, or after the item, that starts at a line."""
        if at in self.levels:
            return next((n for n in self.levels if n > at and self.levels[n] <= self.levels[at]), len(self.lines))
        indent, below = _indent(self.lines[at]), range(at + 1, len(self.lines))
        ends = (n for n in below if not self.lines[n].strip() or _indent(self.lines[n]) <= indent)
        return next(ends, len(self.lines))


def _mention(tokens: Sequence[Token], level: int) -> tuple[str, str] | None:
    """Return number and title if a heading, list item or row begins with these tokens and names a phase."""
    kinds = [token.type for token in tokens]
    if kinds[:2] == ["tr_open", "td_open"]:
        row = _CELL.fullmatch(_plain(tokens[2].children or []))
        second = _plain(tokens[5].children or []) if kinds[4:5] == ["td_open"] else ""
        return (row[1], _title(row[2] or second)) if row else None
    if not level and kinds[:2] != ["list_item_open", "paragraph_open"]:
        return None
    named = _TITLED.match(_headline(tokens[1 if level else 2].children or []))
    return (named[1], _title(named[2])) if named and (level or named[2]) else None


def _headline(children: Sequence[Token]) -> str:
    """Return the first line of a text, or its bold start, without a checkbox."""
    text = [child for child in children if child.content or child.type not in ("text", "html_inline")]
    if text and text[0].type == "text" and _BOX.fullmatch(text[0].content):
        text = text[1:]
    if text and text[0].type == "strong_open":
        text = text[: [child.type for child in text].index("strong_close")]
    return _plain(text).partition("\n")[0]


def _plain(children: Sequence[Token]) -> str:
    return "".join("\n" if "break" in child.type else child.content for child in children).strip()


def roadmap_phases(text: str) -> tuple[Phase, ...]:
    """Return each phase once, in the order of first mention."""
    first = {phase.number: phase for phase in reversed(_Roadmap(text).mentions)}
    return tuple(sorted(first.values(), key=lambda phase: phase.line))


def roadmap_section(text: str, number: str) -> str:
    """Return the roadmap's section about a phase, or the item or row that names it; "" if there is none."""
    roadmap = _Roadmap(text.replace("\r\n", "\n"))
    own = [phase for phase in roadmap.mentions if same_phase(phase.number, number)]
    phase = next((phase for phase in own if phase.level), own[0] if own else None)
    lines = roadmap.lines[phase.line - 1 : roadmap.end(phase.line - 1)] if phase else []
    return "\n".join(lines).strip("\n")


def _title(text: str) -> str:
    """Return a title without a remark after a dash."""
    return re.split(r"\s+(?:—|–|--)\s+", text.strip(), maxsplit=1)[0].strip(" *_:")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def with_phase(text: str, number: str, title: str, goal: str, after: str = "") -> str:
    """Return the roadmap with one more phase in the style of the others; nothing else changes.

    The phase follows phase `after` and its earlier insertions, or ends the roadmap.
    """
    name, roadmap = f"Phase {number}: {title}", _Roadmap(text)
    end = wording.line_end(text)
    inserted = _behind(roadmap, after, name, goal, end) if after else None
    if inserted is not None and [n for n in _Roadmap(inserted).numbers if n != number] == roadmap.numbers:
        return inserted
    gap = "" if not text or text.endswith((end * 2, "\n\n")) else end if text.endswith("\n") else end * 2
    level = next((phase.level for phase in roadmap.mentions if phase.level), 2)
    return text + gap + end.join(_section_of(level, name, goal))


def _section_of(level: int, name: str, goal: str) -> list[str]:
    return [f"{'#' * level} {name}", "", *([goal, ""] if goal else [])]


def _behind(roadmap: _Roadmap, after: str, name: str, goal: str, end: str) -> str | None:
    """Return the text with the phase inserted after the heading or list item of another; None without either."""
    lines, mentions = roadmap.lines, roadmap.mentions
    heading = next((p for p in mentions if p.level and same_phase(p.number, after)), None)
    if heading is not None:
        stop = roadmap.end(heading.line - 1)
        inserted = {p.line - 1 for p in mentions if p.level and _is_inserted(p.number, after)}
        while stop in inserted:
            stop = roadmap.end(stop)
        if stop == len(lines):
            return None  # the last one: the new one ends the roadmap
        gap = [""] if lines[stop - 1].strip() else []
        return _inserted(lines, stop, [*gap, *_section_of(heading.level, name, goal)], end)
    items = [p for p in mentions if same_phase(p.number, after) or _is_inserted(p.number, after)]
    at = max((p.line - 1 for p in items if _ITEM.match(lines[p.line - 1])), default=-1)
    marks = _ITEM.match(lines[at]) if at >= 0 else None
    if marks is None:
        return None
    stop, bold, begin = roadmap.end(at), marks[2] or "", re.sub(r"\[.\]", "[ ]", marks[1])
    words = f"{begin}{bold}{name}{bold}{f' - {goal}' if goal else ''}"
    return _inserted(lines, stop, [words], end)


def _inserted(lines: list[str], stop: int, new: list[str], end: str) -> str:
    """Return the text with new lines, which end in `end`; the others keep their own ends."""
    above, below = "\n".join(lines[:stop]), lines[stop:]
    return above + "\n" + end.join([*new, "\n".join(below)]) if below else above + end + end.join(new)


def _is_inserted(number: str, after: str) -> bool:
    parts, before = number.split("."), after.split(".")
    return len(parts) > len(before) and all(map(same_phase, parts, before))
