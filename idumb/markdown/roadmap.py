"""ROADMAP.md: which phases it names, as headings, list items or table rows. Tolerant: it is written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_NUMBER = r"\d+[A-Za-z]?(?:\.\d+[A-Za-z]?)*"
_TEXT = re.compile(rf"(?:\[.\]\s*)?Phase\s+({_NUMBER})(?:\s*(?::|—|–|--|-(?=\s)|\.(?=\s))\s*|\s+|$)(.*)", re.IGNORECASE)
_BOX = re.compile(r"\[.\]\s*")
_CELL = re.compile(rf"(?:Phase\s+)?({_NUMBER})\.?(?:(?:\s*(?::|—|–|-(?=\s))\s*|\s+)(.*))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Phase:
    """`line` counts from 1, or is 0 where the place could not be found."""

    number: str
    title: str
    line: int


def read(text: str) -> tuple[Phase, ...]:
    """Every phase once, in the order of the document; where it is named first counts."""
    import mistune

    markdown = mistune.create_markdown(renderer=None, plugins=["table", "strikethrough"])
    blocks = markdown(text)
    lines = text.replace("\r\n", "\n").split("\n")
    found: dict[str, Phase] = {}
    for number, title in _named(blocks if isinstance(blocks, list) else []):
        if number not in found:
            found[number] = Phase(number, title, _line(lines, number, title))
    return tuple(found.values())


def _named(blocks: list[dict[str, Any]], *, listed: bool = False) -> Iterator[tuple[str, str]]:
    for block in blocks:
        kind = block["type"]
        if kind == "heading" or (listed and kind in {"block_text", "paragraph"}):
            yield from _from_text(_headline(block), heading=kind == "heading")
        elif kind == "table_row":
            yield from _from_row([_words(cell).strip() for cell in block["children"]])
        elif kind in {"list", "list_item", "table", "table_body", "block_quote"}:
            yield from _named(block["children"], listed=listed or kind == "list_item")


def _from_text(text: str, *, heading: bool) -> Iterator[tuple[str, str]]:
    m = _TEXT.match(text.strip().partition("\n")[0])
    if m and (heading or m[2]):
        yield m[1], _title(m[2])


def _from_row(cells: list[str]) -> Iterator[tuple[str, str]]:
    m = _CELL.fullmatch(cells[0]) if cells else None
    if m:
        yield m[1], _title(m[2] or (cells[1] if len(cells) > 1 else ""))


def _title(text: str) -> str:
    """A title without what often follows it: a remark behind a dash belongs to the reader, not to the name."""
    return re.split(r"\s+(?:—|–|--)\s+", text.strip(), maxsplit=1)[0].strip(" *_:")


def _headline(token: dict[str, Any]) -> str:
    """The text of a block, or the part in bold where it begins so, but for a box."""
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
    """mistune keeps no places; the first line with the number and the beginning of the title is the one."""
    first = title.partition(" ")[0]
    pattern = re.compile(rf"(?<![\w.]){re.escape(number)}(?![\w])(?!\.\d)")
    likely = (n for n, line in enumerate(lines, 1) if pattern.search(line) and first in line)
    return next(likely, 0)
