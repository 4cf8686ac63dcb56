"""Read success criteria stated in roadmap and context file. Nothing in them is ever run."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TITLE = r"(?:success|acceptance)[ -]criteria|done when|definition of done"
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<title>.*?)[ \t#]*")
_LABEL = re.compile(rf"\s*(?:[-*+][ \t]+)?\**(?:{_TITLE})\**[ \t]*:[ \t]*\**[ \t]*(?P<rest>.*)", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[.\][ \t]+)?(?P<text>.*\S)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MOST = 100


def criteria(text: str) -> tuple[str, ...]:
    """Return the list items under headings or labels such as "Success criteria", in order, without duplicates."""
    return tuple(dict.fromkeys(_items(text.replace("\r\n", "\n").split("\n"))))[:_MOST]


def _items(lines: list[str]) -> Iterator[str]:
    in_list = fenced = False
    before: list[str] = []
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        if fenced:
            continue
        heading, label, item = _HEADING.fullmatch(line), _LABEL.fullmatch(line), _ITEM.fullmatch(line)
        if in_list and item is None and line.strip() and line[:1].isspace() and before:
            before.append(line.strip())
            continue
        if before:
            yield " ".join(before)
            before = []
        if heading is not None or label is not None:
            title = heading["title"] if heading is not None else ""
            in_list = label is not None or re.fullmatch(rf"\**(?:{_TITLE})\**:?", title, re.IGNORECASE) is not None
            before = [label["rest"]] if label is not None and label["rest"].strip() else []
        elif in_list and item is not None:
            before = [item["text"]]
        elif in_list and line.strip():
            in_list = False
    if before:
        yield " ".join(before)
