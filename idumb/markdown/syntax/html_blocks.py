"""Recognize HTML blocks, as CommonMark defines them; `comments` handles comments."""

from __future__ import annotations

import re

from idumb import lazy_pattern

_UNTIL = (
    (
        lazy_pattern.compile(r"<(?:script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE),
        r"</(?:script|pre|style|textarea)>",
    ),
    (lazy_pattern.compile(r"<\?"), r"\?>"),
    (lazy_pattern.compile(r"<![A-Za-z]"), r">"),
    (lazy_pattern.compile(r"<!\[CDATA\["), r"\]\]>"),
)
_ELEMENT = lazy_pattern.compile(
    r"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div"
    r"|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link"
    r"|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead"
    r"|title|tr|track|ul)(?:\s|/?>|$)",
    re.IGNORECASE,
)
_ATTRIBUTE = r"""\s+[A-Za-z_:][\w.:-]*(?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?"""
_TAG = lazy_pattern.compile(rf"(?:<[A-Za-z][A-Za-z0-9-]*(?:{_ATTRIBUTE})*\s*/?>|</[A-Za-z][A-Za-z0-9-]*\s*>)\s*$")


def begins(line: str, *, in_text: bool) -> str | None:
    """Return the pattern that ends the block that `line` starts, "" if a blank line ends it, None if it starts none.

    With `in_text`, the line follows a paragraph, which a lone tag cannot interrupt.
    """
    until = next((end for begin, end in _UNTIL if begin.match(line)), "")
    if until or _ELEMENT.match(line) or (not in_text and _TAG.match(line)):
        return until
    return None
