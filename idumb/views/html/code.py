"""Differences with syntax colours, and prose, as HTML that is safe to embed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import mistune
import pygments
from markupsafe import Markup, escape
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


class _Prose(mistune.HTMLRenderer):
    """Renders prose without anything that a browser would load."""

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return self.link(text or url, url, title)


_prose: Callable[[str], Any] = mistune.Markdown(_Prose(escape=True))


def prose(text: str) -> Markup:
    """Return Markdown as HTML. Markup in it is shown as text."""
    return Markup(_prose(text))  # noqa: S704 - the renderer escapes


def styles() -> Markup:
    """Return the style sheet of the colours, for light and dark screens."""
    dark = f"@media(prefers-color-scheme:dark){{{_style('github-dark')}}}"
    return Markup(f"{_style('default')}\n{dark}")  # noqa: S704 - from the library


def _style(name: str) -> str:
    rules: str = HtmlFormatter(style=name).get_style_defs("pre.diff")  # type: ignore[no-untyped-call]
    return rules


def difference(text: str, most: int) -> Markup:
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
