"""The text of a document as lines, with a mapping from offsets to lines and columns, and what is wrong in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.domain import catalog, whole_numbers, wording
from idumb.domain.finding import ERROR, MOST, Finding, first_of_each, nearest
from idumb.domain.plans.plan import Span
from idumb.markdown.syntax.inline import Text

_HABITS = frozenset({"task.ticked", "criterion.ticked", "criterion.no-box"})
_ODD_SPACES = re.compile("[\xa0\u2000-\u200a\u202f\u205f]")  # a space to see, and none to a parser
_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: .*)?\r?$", re.MULTILINE)
_MIB = 1024 * 1024
_LINES = 10
_BELOW = 20  # lines to search for the next one with text
_TAB = re.compile(r" *\t")
_LONGEST = 600  # characters of a message, which may quote the plan


class Source:
    """Decoded text with its lines (without line ends) and the offset of each.

    Lines end only at LF or CRLF. `lines` counts from 0; messages count from 1. A byte-order mark is part of the text
    but of no line. `others` are the other plans of the phase, `findings` what is wrong, all of it reported at once.
    """

    __slots__ = ("cuts", "findings", "free", "hidden", "lines", "others", "path", "prefix", "starts", "text")

    def __init__(self, text: str, path: str, others: Sequence[bytes] = ()) -> None:
        self.text = text
        self.path = path
        raw = text.split("\n")
        self.starts = list(accumulate(map((1).__add__, map(len, raw)), initial=0))
        self.lines = [line.removesuffix("\r") for line in raw] if "\r" in text else raw
        if text.startswith("\ufeff"):
            self.lines[0] = self.lines[0][1:]
            self.starts[0] = 1
        self.hidden: set[int] = set()  # lines that contain only a comment
        self.cuts: dict[int, str] = {}  # lines without their inline comments
        self.others = others
        self.free: dict[str, str] = {}
        self.prefix = "T1-"  # of the ids of the plan's tasks
        self.findings: list[Finding] = []

    def line_index(self, offset: int) -> int:
        """Return the line of an offset, from 0."""
        return min(max(bisect_right(self.starts, offset) - 1, 0), len(self.lines) - 1)

    def line_number(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return self.line_index(offset) + 1

    def column(self, offset: int) -> int:
        """Return the column of an offset, from 1."""
        return max(offset - self.starts[self.line_index(offset)], 0) + 1

    def end_of(self, line: int) -> int:
        """Return the offset after the last character of a line, before its line end."""
        return self.starts[line] + len(self.lines[line])

    def span(self, start: int, end: int) -> Span:
        return Span(start, end, self.line_number(start))

    def part(self, first: int, last: int) -> Text:
        """Return lines with LF, without comments. An index after the text maps to the end of the last line."""
        lines = ["" if n in self.hidden else self.lines[n] for n in range(first, last)]
        starts = self.starts[first:last] or [self.starts[min(first, len(self.starts) - 1)]]
        end = starts[-1] + (len(lines[-1]) if lines else 0)
        indexes = accumulate((len(line) + 1 for line in lines), initial=0)
        return Text("".join(f"{line}\n" for line in lines), list(zip(indexes, [*starts, end], strict=False)))

    def free_id(self) -> str:
        """Return a task id that no plan of the phase uses or mentions."""
        prefix = self.prefix
        if prefix not in self.free:
            id_pattern = re.compile(re.escape(prefix) + r"(\d+)", re.ASCII)
            texts = (self.text, *(data.decode("utf-8", "replace") for data in self.others))
            free = whole_numbers.next_free(number for text in texts for number in id_pattern.findall(text))
            self.free[prefix] = f"{prefix}{free:02d}"
        return self.free[prefix]

    def report(
        self, code: str, at: int, found: str = "", near: Sequence[str] = (), *, field: str = "",
        accepted: str | None = None, fix: str | None = None, **words: Any,
    ) -> None:  # fmt: skip
        """Add a finding at an offset; `words` fill in the texts of the catalog, `accepted` and `fix` replace them.

        `near` are the accepted names, of which one may be meant.
        """
        row = catalog.ROWS[code]
        accepted = (", ".join(near) or row.accepted) if accepted is None else accepted
        known = nearest(found, near) if near and found and len(self.findings) < MOST else None
        found = _ODD_SPACES.sub(lambda odd: f"\\u{ord(odd[0]):04x}", found)
        words |= {"found": found, "field": field, "accepted": accepted}
        if any("{free}" in text for text in (row.message, row.fix, accepted)):
            words["free"] = self.free_id()
        message, usual = row.said(words)
        fix = usual if fix is None else fix
        fix = f"did you mean `{known}`?" if known and known != found else fix
        accepted = accepted.replace("{free}", words.get("free", ""))
        accepted = wording.short(accepted, _LONGEST) if row.guided == ERROR else ""
        self.findings.append(
            Finding(
                code, row.guided, self.path, self.line_number(at), self.column(at), field, wording.short(found),
                accepted, wording.short(message, _LONGEST), wording.short(fix, _LONGEST),
            )
        )  # fmt: skip

    @property
    def any_error(self) -> bool:
        return any(f.severity == ERROR for f in self.findings)

    def sorted(self) -> tuple[Finding, ...]:
        """Return the findings in source order. A habit of the author is reported once, with the other lines."""
        habits: dict[str, list[Finding]] = {}
        reported: list[Finding] = []
        for finding in sorted(self.findings, key=lambda f: (f.line, f.column, f.code)):
            (habits.setdefault(finding.code, []) if finding.code in _HABITS else reported).append(finding)
        reported += (_once(repeated) for repeated in habits.values())
        ordered = sorted(reported, key=lambda f: (f.line, f.column, f.code))
        return tuple(map(self._with_tab, first_of_each(ordered)))

    def _with_tab(self, finding: Finding) -> Finding:
        """Name a tab that may have caused an error: at its line, or at the next one with text."""
        lines, at = self.lines, finding.line - 1
        following = next((n for n in range(at + 1, min(at + _BELOW, len(lines))) if lines[n].strip()), at)
        tab = next((n for n in (at, following) if _TAB.match(lines[n])), None)
        if tab is None or finding.severity != ERROR:
            return finding
        where = "" if tab == at else f" of line {tab + 1}"
        return replace(finding, fix=f"replace the tab in the indentation{where} with spaces; otherwise {finding.fix}")


def decoded(data: bytes, path: str, others: Sequence[bytes] = (), most: int = 32) -> Source:
    """Decode a file of `most` MiB, up to the first bad byte, and report what is wrong with the file as a whole.

    A mark that git left at a merge conflict is wrong: both sides would be read.
    """
    too_large = len(data) > most * _MIB
    try:
        text = "" if too_large else data.decode("utf-8")
        bad = -1
    except UnicodeDecodeError as error:
        bad = error.start
        text = data[:bad].decode("utf-8")
    source = Source(text, path, others)
    if too_large:
        source.report("plan.too-large", 0, most=most)
    elif bad >= 0:
        source.report("plan.not-utf-8", len(text), byte=f"{data[bad]:#04x}")
    elif "\0" in text:
        source.report("plan.nul", text.index("\0"))
    elif (mark := _CONFLICT.search(text)) is not None:
        source.report("plan.conflict", mark.start(), mark[0].rstrip())
    return source


class DocumentKind(NamedTuple):
    """A kind of document: what its codes begin with, and how its mappings are read.

    `dotted`: findings name the whole path of a key. `lenient`: a key without a value is as if it were absent.
    `own`: keys that begin with `x-` are the user's.
    """

    prefix: str
    dotted: bool = False
    lenient: bool = False
    own: bool = False


PLAN = DocumentKind("plan")
CONFIG = DocumentKind("config", dotted=True, lenient=True)
POLICY, SCRIPT = DocumentKind("policy"), DocumentKind("script")
STEP = DocumentKind("step", lenient=True)
WORKFLOW = DocumentKind("workflow", own=True)


class Place(Struct):
    """A named part of a document, for findings in it: where it starts, and its own key in a mapping.

    What its value may refer to: the phase, the declared ids by kind.
    """

    label: str
    source: Source
    at: int = 0
    phase: str | None = None
    declared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kind: DocumentKind = PLAN
    key: str = ""

    def inner(self, key: str, at: int) -> Place:
        """Return the place of a key in a mapping."""
        label = f"{self.label}.{key}" if self.kind.dotted and self.label else self.label
        return Place(label or key, self.source, at, self.phase, self.declared, self.kind, key)

    @property
    def name(self) -> str:
        return (self.kind.dotted and self.label) or self.key or self.label

    def report(self, code: str, at: int, found: str = "", near: Sequence[str] = (), **words: Any) -> None:
        self.source.report(code, at, found, near, field=self.label or self.key, **words)


def _once(repeated: list[Finding]) -> Finding:
    first, *others = repeated
    if not others:
        return first
    lines = wording.listed((str(other.line) for other in others), _LINES)
    return replace(first, message=f"{first.message} (also in line{'s' * (len(others) > 1)} {lines})")
