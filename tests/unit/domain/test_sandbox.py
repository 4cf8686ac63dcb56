"""Which sandbox can do what, and which folders a task's scope means."""

from __future__ import annotations

from idumb.domain.runs import sandbox
from idumb.domain.runs.sandbox import DETECTION, Support
from idumb.domain.settings import SANDBOX_BWRAP

BWRAP = Support("/usr/bin/bwrap")
NONE = Support("", "bubblewrap is not installed", "bubblewrap")


def test_the_level_in_force() -> None:
    assert sandbox.choose(BWRAP) == (SANDBOX_BWRAP, "")
    assert sandbox.choose(NONE) == (DETECTION, "bubblewrap is not installed")


def test_a_support_is_described() -> None:
    assert sandbox.description(BWRAP) == "bubblewrap"
    assert sandbox.description(NONE) == "bubblewrap is not installed; the package bubblewrap adds one"
