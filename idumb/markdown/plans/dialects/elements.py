"""Elements in the text of a tag: from an opening tag to the first closing one of its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass

_CLOSING = lazy_pattern.compile(r"</([\w-]+)>")


@dataclass(frozen=True, slots=True)
class Element:
    """`opening` is the match of its opening tag, `text` its content, and `after` the place behind its closing tag."""

    opening: re.Match[str]
    text: str
    after: int


def find(text: str, opening: re.Pattern[str]) -> Iterator[Element]:
    """Yield the elements that are not inside one another. The first group of `opening` is the name of the tag.

    An opening tag that nothing closes is text, and costs no search, so time is linear.
    """
    last_closing = {closing[1]: closing.start() for closing in _CLOSING.finditer(text)}
    at = 0
    while opened := opening.search(text, at):
        at = opened.end()
        if last_closing.get(opened[1], -1) >= at:
            end = text.index(f"</{opened[1]}>", at)
            after = end + len(opened[1]) + 3
            yield Element(opened, text[at:end], after)
            at = after


def blanked(text: str, opening: re.Pattern[str]) -> str:
    """Return a text with spaces instead of its elements."""
    pieces, at = [], 0
    for element in find(text, opening):
        begin = element.opening.start()
        pieces += [text[at:begin], " " * (element.after - begin)]
        at = element.after
    return "".join([*pieces, text[at:]])
