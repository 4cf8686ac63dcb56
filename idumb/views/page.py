"""The page of a run, for reviewers and auditors: one HTML file that loads nothing else."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
import mistune
import pygments
from markupsafe import Markup, escape
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

from idumb.app.reading.report_page import Card, Page, Span
from idumb.domain import outcome, wording
from idumb.system import shipped
from idumb.views import graph, phrases

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_MOST_LINES, _MOST_OF_ALL = 2000, 40_000
"""Lines of differences that are shown: of one task, and of all tasks together."""
_MOST_OUTPUT = 4000
"""Characters of an output that are shown: its end."""
_MOST_TRANSCRIPT, _MOST_OF_TRANSCRIPTS = 16 * 1024, 1024 * 1024
"""Bytes of a transcript that are shown, its end, and of all transcripts together."""
_LONG, _CUT = 0.05, 0.02
"""A pause longer than this part of the time at work is cut, and then as wide as this part of it."""
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def render(page: Page, redact: Callable[[str], str]) -> str:
    """Return the page as HTML. `redact` removes secrets from each text."""
    script = shipped.template("reports/page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    bars, pauses = _timeline(page.spans)
    titles = {name: redact(task.title) for name, task in page.contract.tasks.items()}
    statuses = {card.task.id: card.status for card in page.cards}
    picture = graph.svg(page.waves, page.contract.dependencies, titles, statuses)
    return (
        _environment(redact)
        .get_template("page.html")
        .render(
            page=page,
            state=page.state,
            result=_result(page),
            counts=Counter(_group(card.status) for card in page.cards).most_common(),
            attempts=sum(len(card.attempts) for card in page.cards),
            first=_first_pass(page),
            spent=_spent(page.spent),
            bars=bars,
            pauses=pauses,
            graph=Markup(picture),  # noqa: S704 - it escapes its texts
            transcript_bytes=_bytes_of_each(page),
            lines=min(_MOST_LINES, _MOST_OF_ALL // max(len(page.cards), 1)),
            style=Markup(shipped.template("reports/page.css")) + _styles(),  # noqa: S704 - our own
            script=Markup(script),  # noqa: S704 - our own
            digest=digest,
        )
    )


def _bytes_of_each(page: Page) -> int:
    transcripts = sum(len(by_role) for card in page.cards for by_role in card.transcripts.values())
    return min(_MOST_TRANSCRIPT, _MOST_OF_TRANSCRIPTS // max(transcripts, 1))


def _last_bytes(text: str, most: int) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else f"…{data[-most:].decode('utf-8', 'ignore')}"


def _environment(redact: Callable[[str], str]) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: shipped.template(f"reports/{name}")),
        autoescape=True,
        finalize=lambda value: redact(value) if type(value) is str else value,
        lstrip_blocks=True,
        trim_blocks=True,
    )
    environment.filters.update(
        prose=lambda text: _prose(redact(text)),
        difference=lambda text, most: _difference(redact(text), most),
        last_bytes=_last_bytes,
        end=lambda text: text if len(text) <= _MOST_OUTPUT else f"…{text[-_MOST_OUTPUT:]}",
        counted=phrases.counted,
        duration=phrases.duration,
        group=_group,
        moment=phrases.moment,
        proven=_proven,
        search=lambda card: redact(_search(card)),
        short=phrases.short,
        spent=_spent,
    )
    environment.globals.update(listed=wording.listed)
    return environment


def _group(status: str) -> str:
    """Return the word by which the page counts and filters tasks."""
    if status in outcome.DONE:
        return "done"
    return "not run" if status in outcome.NOT_RUN else status


def _result(page: Page) -> tuple[str, str]:
    """Return the result of the phase in a word, and why."""
    record = page.state.verification
    if record is not None:
        return str(record["status"]), str(record.get("reason") or "")
    return page.state.state, page.state.reason


def _first_pass(page: Page) -> tuple[int, int]:
    """Return how many of the attempted tasks are done with their first attempt, and how many were attempted."""
    attempted = [card for card in page.cards if card.attempts]
    return sum(len(c.attempts) == 1 and c.status in outcome.DONE for c in attempted), len(attempted)


def _spent(row: Mapping[str, Any] | None) -> Mapping[str, str]:
    return phrases.spent(row or {"tokens": 0, "cost_usd": 0})


def _proven(card: Card) -> bool:
    return card.status in outcome.DONE and all(row["result"] == "passed" for row in card.proofs)


def _search(card: Card) -> str:
    """Return what the search of the page looks at."""
    files = [row["path"] for row in (card.change or {}).get("files", ())]
    files += [claim.path for claim in card.task.files or ()]
    reasons = [str(attempt.get("reason") or "") for attempt in card.attempts]
    return " ".join((card.task.id, card.task.title, card.status, *card.task.requirements, *files, *reasons)).casefold()


class _Bar(NamedTuple):
    """An attempt from `left`, `width` wide, in percent of the line."""

    span: Span
    left: float
    width: float
    seconds: float


class _Pause(NamedTuple):
    """A pause that was cut: where its mark is, in percent, and how long it was."""

    left: float
    seconds: float


def _timeline(spans: Sequence[Span]) -> tuple[list[_Bar], list[_Pause]]:
    """Return the bars of attempts, and the pauses between them. Long pauses are cut to a mark."""
    moments = [(_seconds(span.start), _seconds(span.end or span.start)) for span in spans]
    if not moments:
        return [], []
    busy = list(_merged(moments))
    at_work = sum(end - start for start, end in busy) or 1.0
    width, offsets, cuts, gone = 0.0, [], [], busy[0][0]
    for start, end in busy:
        gap = start - gone
        if gap > at_work * _LONG:
            cuts.append((width, gap))
            gap = at_work * _CUT
        width += gap
        offsets.append((start, width - start))
        width, gone = width + end - start, end
    whole = 100.0 / (width or 1.0)

    def at(moment: float) -> float:
        return (moment + next(shift for start, shift in reversed(offsets) if start <= moment)) * whole

    bars = [
        _Bar(span, round(at(start), 3), round(max((end - start) * whole, 0.15), 3), end - start)
        for span, (start, end) in zip(spans, moments, strict=True)
    ]
    return bars, [_Pause(round(left * whole, 3), seconds) for left, seconds in cuts]


def _merged(moments: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the times at which at least one attempt worked."""
    start, end = min(moments)
    for begin, stop in sorted(moments):
        if begin > end:
            yield start, end
            start, end = begin, stop
        end = max(end, stop)
    yield start, end


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


class _Prose(mistune.HTMLRenderer):
    """Renders prose without anything that a browser would load."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return self.link(text or url, url, title)


_markdown: Callable[[str], Any] = mistune.Markdown(_Prose(escape=True))


def _prose(text: str) -> Markup:
    """Return Markdown as HTML. Markup in it is shown as text."""
    return Markup(_markdown(text))  # noqa: S704 - the renderer escapes


def _styles() -> Markup:
    """Return the style sheet of the colours, for light and dark screens."""
    dark = f"@media(prefers-color-scheme:dark){{{_style('github-dark')}}}"
    return Markup(f"{_style('default')}\n{dark}")  # noqa: S704 - from the library


def _style(name: str) -> str:
    rules: str = HtmlFormatter(style=name).get_style_defs("pre.diff")  # type: ignore[no-untyped-call]
    return rules


def _difference(text: str, most: int) -> Markup:
    """Return a difference of git as lines with colours; after `most` lines, only how many follow."""
    lines = [line for line in text.splitlines() if not line.startswith(("index ", "diff --git "))]
    shown = Markup("\n").join(_lines(lines[:most]))
    left = len(lines) - most
    return shown if left <= 0 else shown + escape(f"\n… and {left} lines more")


def _lines(lines: list[str]) -> Iterator[Markup]:
    lexer: Lexer = TextLexer()
    hunk: list[str] = []
    for line in [*lines, "@@"]:
        if line[:1] in ("+", "-", " ") and not line.startswith(("+++ ", "--- ")):
            hunk.append(line)
            continue
        yield from _hunk(hunk, lexer)
        hunk = []
        if line.startswith(("+++ ", "--- ")) and not line.endswith("/dev/null"):
            lexer = _lexer(line[4:].removeprefix("a/").removeprefix("b/"))
        if line != "@@":
            yield Markup('<span class="{}">{}</span>').format("hunk" if line.startswith("@@") else "head", line)


def _hunk(hunk: list[str], lexer: Lexer) -> Iterator[Markup]:
    if not hunk:
        return
    coloured = pygments.highlight("\n".join(line[1:] for line in hunk), lexer, _FORMATTER).split("\n")
    kinds = {"+": "add", "-": "del", " ": "same"}
    for line, code in zip(hunk, coloured, strict=False):
        sign = line[0]
        safe = Markup(code)  # noqa: S704 - the formatter escapes
        yield Markup('<span class="{}">{}{}</span>').format(kinds[sign], sign, safe)


@functools.cache
def _lexer(path: str) -> Lexer:
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)
