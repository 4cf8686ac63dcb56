"""Source text split at its brackets and separators, without a parser. It expects formatted source."""

from __future__ import annotations

import re

from idumb import lazy_pattern

_QUOTED = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = r"//[^\n]*|/\*.*?\*/"
SCRIPT = lazy_pattern.compile(rf"{_QUOTED}|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|{_COMMENT}", re.DOTALL)
OTHERS = lazy_pattern.compile(rf"{_QUOTED}|`[^`]*`|'(?:\\.|[^'\\\n])'|{_COMMENT}", re.DOTALL)
_OPENING, _CLOSING = "([{<", ")]}>"


def without_comments(text: str, pattern: re.Pattern[str]) -> str:
    """Return the text without comments, and without strings that have brackets or commas in them."""

    def bare(match: re.Match[str]) -> str:
        if match[0].startswith("/"):
            return "\n" * match[0].count("\n") or " "
        return '""' if re.search(r"[(){}\[\]<>,;\n]", match[0]) else match[0]

    closed = text.rfind("*/") + 2  # after that, a search from each `/*` would go through the rest of the file
    return pattern.sub(bare, text[:closed] + text[closed:].replace("/*", "/ *"))


def entries(text: str, separators: str) -> list[str]:
    """Return the parts between separators that are in no bracket, without blank ones."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING and not (character == ">" and text[place - 1 : place] in "=-"):
            depth = max(0, depth - 1)
        elif depth == 0 and character in separators:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [one for part in parts if (one := " ".join(part.split()))]


def inside(text: str, start: int) -> tuple[str, int]:
    """Return what is in the bracket that opens at or after `start`, and the place after it."""
    opening = next((i for i in range(start, len(text)) if text[i] in "({"), len(text))
    closing = {"(": ")", "{": "}"}.get(text[opening : opening + 1], "")
    depth = 0
    for place in range(opening, len(text)):
        depth += (text[place] == text[opening]) - (text[place] == closing)
        if depth == 0:
            return text[opening + 1 : place], place + 1
    return text[opening + 1 :], len(text)


def ended(body: str) -> str:
    """Return a body in which each closing brace ends an entry."""
    depth, parts = 0, []
    for character in body:
        depth += (character in "({[") - (character in ")}]")
        parts.append(character + "\n" if character == "}" and depth == 0 else character)
    return "".join(parts)


def tight(text: str) -> str:
    return re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(text.split()))


def to_brace(text: str, start: int) -> str:
    return re.split(r"\{|;|\n\s*\n|=>", text[start : start + 400], maxsplit=1)[0]
