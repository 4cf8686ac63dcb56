"""What a text says about other tasks: lists and ranges of ids, after words such as "depends on" or a label."""

from __future__ import annotations

import re

from idumb import lazy_pattern
from idumb.domain.plans.source_tasks import RANGE
from idumb.markdown.importers import forms
from idumb.markdown.importers.forms import Ids

_SEPARATOR = r"[ \t]*(?:,[ ]?(?:and|&)\b|[,;/+&]|\b(?:and|plus)\b)[ \t]*"
_RANGE = r"[ \t]*(?:\.{2,3}|…|[-–—~]|\b(?:to|through|thru|until)\b)[ \t]*"
_BRACKETS = r"\((?:[^()]|\([^()]*\))*+\)"
_NOT = lazy_pattern.compile(r"(?:\b(?:not|no|never|without|independent|cannot)\b|n't\b)[^.;,()]*\Z", re.IGNORECASE)
_IN_BRACKETS = lazy_pattern.compile(_BRACKETS)
_ITEM = lazy_pattern.compile(r"\s*(?:[-*+•][ \t]+|\d+[.)][ \t]+)?")
_QUOTES = lazy_pattern.compile(r"[`*]")


class References:
    """Finds the references to ids of a form. An end of a range may leave out what all ids begin with: `T001-003`."""

    def __init__(self, id: str, *, named: bool = True) -> None:
        one = rf"({id})(?!\w)(?:{_RANGE}({id}|\d+)(?!\w))?"
        bare = re.sub(r"\((?!\?)", "(?:", one)
        listed = rf"(?:tasks?[ ])?{bare}(?:[ \t]*{_BRACKETS})?"
        listed = rf"(?P<list>{listed}(?:{_SEPARATOR}{listed})*)"
        self.ids = Ids(id, named=named)
        self._one, self._list = re.compile(one, re.IGNORECASE), re.compile(listed, re.IGNORECASE)
        self._phrase = re.compile(
            rf"{forms.NEEDING}[ \t]*+:?[ \t]*+(?:(?:completion[ ]of|on|the)[ ])?{listed}", re.IGNORECASE
        )

    def phrases(self, line: str, own: str = "") -> tuple[tuple[str, ...], set[str]]:
        """Return the ids after words such as "depends on", and the forms that were read; `own` is the line's own id."""
        line = _QUOTES.sub("", line)
        found: list[str] = []

        def taken(match: re.Match[str]) -> str:
            if _NOT.search(line, max(match.start() - 40, 0), match.start()):
                return match[0]
            found.extend(self._of(match["list"]))
            return " "

        rest = self._phrase.sub(taken, line)
        rest = rest.replace(own, " ", 1) if own else rest
        return tuple(found), {forms.NEED, forms.MENTION}.difference(forms.found(rest, self.ids, headings=False))

    def statement(self, text: str) -> tuple[tuple[str, ...], set[str]]:
        """Return the ids of a text that is a list of them, with the forms that were read; it may say none."""
        text, used = _ITEM.sub("", _QUOTES.sub("", text), count=1), {forms.NEED, forms.MENTION, forms.TASK}
        if forms.NOTHING.match(text):
            return (), used
        whole = self._phrase.match(text) or self._list.match(text)
        if whole is None:
            return (), set()
        return self._of(whole["list"]), used.difference(forms.found(text[whole.end() :], self.ids, headings=False))

    def _of(self, text: str) -> tuple[str, ...]:
        found = self._one.finditer(_IN_BRACKETS.sub(" ", text))
        return tuple(f"{m[1]}{RANGE}{m[2]}" if m[2] else m[1] for m in found)
