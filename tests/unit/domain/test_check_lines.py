"""The line that a message proposes is right for a configuration that sets `checks` already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from idumb.domain import check_lines
from idumb.domain.settings import CheckSettings
from idumb.markdown.settings import configuration

PRESENT = CheckSettings(provide=("data.log",), prepare=("make: deps",), regression="end")

LONG = "checks: {provide: [data.log, b c.log], prepare: ['make: deps'], regression: end}"


@pytest.mark.parametrize(
    ("present", "change", "words"),
    [
        (None, {"provide": ["a.log"]}, "Add `checks: {provide: [a.log]}` to .idumb/config.yaml"),
        (
            CheckSettings(),
            {"home": "user"},
            "Replace `checks` in .idumb/config.yaml by `checks: {home: user}`",
        ),
        (
            PRESENT,
            {"provide": ["b c.log", "data.log"]},
            f"Replace `checks` in .idumb/config.yaml by `{LONG}`",
        ),
    ],
)
def test_the_line_keeps_what_is_set(present: CheckSettings | None, change: Mapping[str, Any], words: str) -> None:
    assert check_lines.adding(present, change) == words
    assert check_lines.adding(present, change, verb="add").startswith(words[0].lower())


def test_the_line_can_be_read_again() -> None:
    change = {"cache": ("out", "out/**", "it's"), "tree": "here"}
    text = check_lines.line(PRESENT, change)
    settings, findings = configuration.read(f"{text}\n".encode())
    assert (findings, settings and settings.checks) == (
        (),
        CheckSettings(
            tree="here",
            cache=("out", "out/**", "it's"),
            provide=("data.log",),
            prepare=("make: deps",),
            regression="end",
        ),
    )
