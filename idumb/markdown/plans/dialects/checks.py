"""Find the executable checks in how a plan of another tool says to verify a task.

Only text that the author marked as a command is one: a command inside a sentence may be an example or a part of it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass
from idumb.markdown.plans.dialects import elements, titles
from idumb.markdown.plans.dialects.drafts import Part

_AUTOMATED = lazy_pattern.compile("<(automated)>")
_BY_HAND = lazy_pattern.compile("<(human-check|human|manual)>")
_FENCE = lazy_pattern.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_SHELLS = frozenset({"", "sh", "bash", "shell", "zsh", "console"})
_SPAN = lazy_pattern.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_MISSING = lazy_pattern.compile(r"(MISSING|TODO|TBD|N/?A|none|manual)\b", re.IGNORECASE)
ITEM = lazy_pattern.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")


@dataclass(frozen=True, slots=True)
class Verification:
    """`commands` run as they are; `by_hand` is for a person; `prose` is everything else."""

    commands: tuple[str, ...] = ()
    by_hand: tuple[Part, ...] = ()
    prose: tuple[Part, ...] = ()


def read(part: Part) -> Verification:
    """Read a verification: `<automated>` commands, or text of nothing but commands in backticks or shell fences."""
    text, at = part
    marked = [command for element in elements.find(text, _AUTOMATED) for command in _commands(element.text)]
    asked = (element for element in elements.find(text, _BY_HAND) if element.text.strip())
    by_hand = tuple((flat(element.text), at + element.opening.end()) for element in asked)
    rest = elements.blanked(elements.blanked(text, _AUTOMATED), _BY_HAND)
    if not rest.strip():
        return Verification(tuple(marked), by_hand)
    alone = _only_commands(rest) if not marked else None
    if alone is not None:
        return Verification(tuple(alone), by_hand)
    return Verification(tuple(marked), by_hand, tuple(items((rest, at))))


def _commands(text: str) -> Iterator[str]:
    """Yield the commands of one `<automated>`; one that says that the command is still missing is none."""
    alone = _only_commands(text)
    for command in alone if alone is not None else [titles.dedent(text).strip()]:
        if command and not _MISSING.match(command):
            yield html.unescape(command) if "&amp;" in command or "&lt;" in command or "&gt;" in command else command


def _only_commands(text: str) -> list[str] | None:
    """Return the commands of a text that holds nothing else; None for other text."""
    commands: list[str] = []
    position = 0
    for fence in _FENCE.finditer(text):
        if fence[2].lower() not in _SHELLS:
            return None
        before = _spans(text[position : fence.start()])
        if before is None:
            return None
        commands += before
        script = titles.dedent(fence[3]).strip()
        commands += [script] if script else []
        position = fence.end()
    rest = _spans(text[position:])
    return None if rest is None or not commands + rest else commands + rest


def _spans(text: str) -> list[str] | None:
    """Return the commands of lines that are one code span each, with or without a bullet; None for other lines."""
    commands = []
    for line in filter(str.strip, text.split("\n")):
        bare = ITEM.sub("", line, count=1).strip()
        span = _SPAN.fullmatch(bare)
        if span is None or not re.search(r"\w", span[2]):
            return None
        commands.append(span[2].strip())
    return commands


def items(part: Part) -> Iterator[Part]:
    """Yield the items of a list with their continuation lines; a text without a list is one item."""
    text, at = part
    lines = [(match[0], at + match.start()) for match in re.finditer(r"[^\n]*\n?", text) if match[0]]
    indents = [len(line) - len(line.lstrip()) for line, _ in lines if ITEM.match(line)]
    top = min(indents, default=0)
    gathered: list[str] = []
    start = at
    for line, offset in lines:
        marker = ITEM.match(line)
        if marker and len(line) - len(line.lstrip()) <= top:
            if words := flat("".join(gathered)):
                yield words, start
            gathered, start = [line[marker.end() :]], offset
        else:
            if not gathered:
                start = offset
            gathered.append(line)
    if words := flat("".join(gathered)):
        yield words, start


def flat(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())
