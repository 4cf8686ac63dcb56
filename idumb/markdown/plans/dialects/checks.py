"""Titles, text blocks and lists of plans in other formats, and the executable checks in them.

Only text that the author marked as a command is one: a command inside a sentence may be an example or a part of it.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator

from idumb.markdown.plans.dialects.drafts import Part
from idumb.markdown.syntax import inline

# An element without others of its name in it. What opens and never closes is text; time is linear.
_ELEMENT = re.compile(r"<(automated|human-check|human|manual)>((?:(?!</?\1>).)*+)</\1>", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_SHELLS = frozenset({"sh", "bash", "shell", "zsh"})
_BETWEEN = re.compile(r"\s*(?:[,;]|&&)?\s*")
_SENTENCE = re.compile(r"[A-Z][a-z]+ [a-z]+(?: |[.,:]|$)")
_MISSING = re.compile(r"(MISSING|TODO|TBD|N/?A|none|manual)\b", re.IGNORECASE)
ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_LONGEST = 120
_PREFIX = re.compile(r"^(?:\*\*)?(?:Task|Step)\s+(?:[^\W\d]|[.-])*\d[\w.-]*\s*(?:[:.)]|—|–|-)\s*", re.IGNORECASE)


def read(part: Part) -> tuple[list[str], list[Part], list[Part]]:
    """Read a verification: its commands, what a person checks, and the prose beside them.

    Commands are in `<automated>`, or a text of nothing but commands in backticks or shell fences.
    """
    text, at = part
    commands, by_hand, prose = list[str](), list[Part](), list[Part]()
    for element in _ELEMENT.finditer(text):
        said, inner = element[2].strip(), (element[2], at + element.start(2))
        own = list(_commands(element[2])) if element[1] == "automated" else []
        commands += own
        if element[1] != "automated":
            by_hand += [(flat(said), inner[1])] if said else []
        elif not own and not _MISSING.match(said):
            prose += items(inner)
    rest = _ELEMENT.sub(lambda element: " " * len(element[0]), text)
    alone = _only_commands(rest) if rest.strip() and not commands else None
    if alone is None and rest.strip():
        prose += items((rest, at))
    return [*commands, *(alone or ())], by_hand, prose


def _commands(text: str) -> Iterator[str]:
    """Yield the commands of one `<automated>`; one that says that the command is still missing is none.

    Backticks beside other words make it a sentence about commands, and so do words that begin like a sentence.
    """
    bare = textwrap.dedent(text).strip()
    alone = _only_commands(text)
    for command in alone if alone is not None else [] if inline.code_spans(bare) or _SENTENCE.match(bare) else [bare]:
        if command and not _MISSING.match(command):
            yield html.unescape(command) if "&amp;" in command or "&lt;" in command or "&gt;" in command else command


def _only_commands(text: str) -> list[str] | None:
    """Return the commands of a text that holds nothing else; None for other text."""
    commands: list[str] = []
    position = 0
    for fence in _FENCE.finditer(text):
        before = _spans(text[position : fence.start()]) if fence[2].lower() in _SHELLS else None
        if before is None:
            return None
        commands += [*before, *filter(None, [textwrap.dedent(fence[3]).strip()])]
        position = fence.end()
    rest = _spans(text[position:])
    return None if rest is None or not commands + rest else commands + rest


def _spans(text: str) -> list[str] | None:
    """Return the commands of lines of nothing but code spans and separators, with or without a bullet; else None."""
    commands: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        bare = ITEM.sub("", line, count=1).strip()
        at = 0
        for begin, end, ticks in inline.code_spans(bare):
            command = bare[begin + ticks : end - ticks].strip()
            if not _BETWEEN.fullmatch(bare, at, begin) or not re.search(r"\w", command):
                return None
            commands.append(command)
            at = end
        if not at or bare[at:].strip():
            return None
    return commands


def items(part: Part) -> Iterator[Part]:
    """Yield the items of a list with their continuation lines; a text without a list is one item."""
    text, at = part
    lines = [(match[0], at + match.start()) for match in re.finditer(r"[^\n]*\n?", text) if match[0]]
    top = min((len(line) - len(line.lstrip()) for line, _ in lines if ITEM.match(line)), default=0)
    gathered: list[str] = []
    start = at
    for line, offset in lines:
        marker = ITEM.match(line)
        if marker and len(line) - len(line.lstrip()) <= top:
            if words := flat("".join(gathered)):
                yield words, start
            gathered, start = [line[marker.end() :]], offset
        else:
            start = start if gathered else offset
            gathered.append(line)
    if words := flat("".join(gathered)):
        yield words, start


def flat(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def clean(text: str) -> str:
    """Return a title on one line, without `Task 1:` before it and bold around it."""
    words = flat(text)
    words = _PREFIX.sub("", words, count=1) or words
    return words.removeprefix("**").removesuffix("**").strip()


def short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def block(text: str) -> str:
    """Return a text without its common indentation and the blank lines around it."""
    first, newline, rest = text.partition("\n")
    if first.strip():
        return (first.strip() + newline + textwrap.dedent(rest)).strip()
    return textwrap.dedent(rest).strip("\n").rstrip()
