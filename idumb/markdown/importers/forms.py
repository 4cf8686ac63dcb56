"""What looks like a task, a mark, an id, a status or a dependency, in one table for all formats.

A reader notes the forms that it used, by line. The others are listed, so no reader can lose a line in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb import lazy_pattern
from idumb.domain import wording
from idumb.markdown.syntax import inline

BOX, MARK, TASK, MENTION, NEED, STATUS = "a box", "a mark", "a task", "other ids", "a dependency", "a status"
ALL = (BOX, MARK, TASK, MENTION, NEED, STATUS)

# How a text says that one task needs another: with words that mean nothing else, and with others.
_CERTAIN = r"depend(?:s|ent)?[ _-](?:up)?on|blocked[ _-]by"
NEEDING = (
    rf"(?<![a-z\d_])(?:{_CERTAIN}|dependenc(?:y|ies)|depend(?:s|ent)?|requires?|after|needs?|relies[ ]on"
    r"|waits?[ ](?:for|on)|deps?)"
)
_LEAD = r"[ \t>|]*(?:#{1,7}[ \t]*)?"
_MARKER = r"(?:[-*+•‣·–—]|\(?\w{1,3}[.)])"
_BOX = lazy_pattern.compile(
    rf"{_LEAD}(?:{_MARKER}[ \t]*)?[*_~]{{0,3}}\\?\[(?:\s{{0,3}}|\s?[^\s\[\]`^]{{1,2}}\s?)\\?\](?![(\[:])"
)
_MARKS = lazy_pattern.compile(r"\[[ xX✓✔]\]|[☐☑☒✅✔✓]")
_STATUS = lazy_pattern.compile(
    rf"^{_LEAD}(?:{_MARKER}[ \t]+)?[*_]{{0,3}}(?:status|state|lane|done|progress|completed?)[*_]{{0,3}}[ \t]*:"
    r"|\[(?:done|wip|in[ -]progress|completed?|cancell?ed|skipped|blocked|deferred)\]"
    r"|\((?:done|wip|in[ -]progress|completed?|cancell?ed|skipped|blocked|deferred)\)",
    re.IGNORECASE,
)
_SHOUTED = lazy_pattern.compile(r"\b(?:DONE|COMPLETED?|SKIPPED|CANCELL?ED|WIP|DEFERRED)\b|~~\S[^~]*~~")
_NEED = lazy_pattern.compile(rf"(?<![a-z\d_])(?:{_CERTAIN})(?![a-z\d_])", re.IGNORECASE)
_LABEL = lazy_pattern.compile(
    rf"{_LEAD}(?:{_MARKER}[ \t]+)?[*_]{{0,3}}(?:dependenc(?:y|ies)|{_CERTAIN}|blocks|requires|needs|after"
    r"|parallel with)(?![a-z\d_])[^:\n]{0,20}:[*_]{0,3}[ \t]*"
    r"(?P<value>\S.*)",
    re.IGNORECASE,
)
NOTHING = lazy_pattern.compile(
    r"[\W_]*(?:none|nothing|no\b.{0,20}\bdependenc(?:y|ies)|n/?a|\[\])\b[\W_]*|[-—–\[\]\s.]*\Z",
    re.IGNORECASE,
)
_NUMBERED = lazy_pattern.compile(
    r"[ \t]*#{1,6}[ \t]+[*_]{0,3}(?:(?:step|task|phase)[ \t]+)?\d+(?:\.\d+)*[.:)—–]", re.IGNORECASE
)
_KEY = lazy_pattern.compile(
    r"[ \t]*(?:-[ \t]+)?[\"']?(?:status|state|lane|done|completed|depend(?:s_on|encies|ency|s)|blocked_by|blocks"
    r"|parent\w*|subtasks?)[\"']?[ \t]*:[ \t]*+(?!(?:\[[ \t]*\]|null|~|none|''|\"\")?[ \t]*(?:#|$))",
    re.IGNORECASE,
)


class Ids:
    """How the ids of a format look: `id` anywhere in a text, `named` if a text that names one is worth a look."""

    def __init__(self, id: str, *, named: bool = True) -> None:
        self.id = re.compile(rf"(?<![\w.-]){id}(?!\w)", re.IGNORECASE)
        self.start = re.compile(
            rf"{_LEAD}(?:{_MARKER}[ \t]+)?(?:[*_~`]{{0,3}}\\?\[[^\]\n]{{0,3}}\\?\])?[ \t*_~`(\[]*{id}(?!\w)",
            re.IGNORECASE,
        )
        self.named = named


def found(line: str, ids: Ids | None, *, headings: bool) -> Iterator[str]:
    """Yield the forms in a line. With `headings`, a numbered heading is a task."""
    bare = inline.masked(line)
    if _BOX.match(bare):
        yield BOX
    if _MARKS.search(bare):
        yield MARK
    if (ids is not None and ids.start.match(line)) or (headings and _NUMBERED.match(line)):
        yield TASK
    if ids is not None and ids.named and ids.id.search(line):
        yield MENTION
    label = _LABEL.match(line)
    named = label is not None and ids is not None and ids.id.search(label["value"]) is not None
    if named or (_NEED.search(line) and not (label is not None and NOTHING.match(label["value"]))):
        yield NEED
    if _STATUS.search(bare) or _SHOUTED.search(bare):
        yield STATUS


def in_front_matter(line: str) -> Iterator[str]:
    if _KEY.match(line):
        yield STATUS if re.match(r"\W*(?:status|state|lane|done|completed)", line, re.IGNORECASE) else NEED


def row(line: str, unread: list[str], *, used: bool) -> str:
    """Return a line as it is listed, and if a part of it was used, what was not."""
    text = wording.truncate(line.strip())
    return f"{text} ({wording.listed(unread)} not read)" if used else text
