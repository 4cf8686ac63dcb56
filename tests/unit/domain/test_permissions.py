"""Which sandbox can do what, and which folders a task's scope means."""

from __future__ import annotations

from idumb.domain import permissions
from idumb.domain.permissions import DETECTION, SANDBOX_BWRAP, Support

BWRAP = Support("/usr/bin/bwrap")
NONE = Support("", "bubblewrap is not installed", "bubblewrap")


def test_the_level_in_force() -> None:
    assert permissions.choose_sandbox(BWRAP) == (SANDBOX_BWRAP, "")
    assert permissions.choose_sandbox(NONE) == (DETECTION, "bubblewrap is not installed")


def test_a_support_is_described() -> None:
    assert permissions.sandbox_words(BWRAP) == "bubblewrap"
    assert permissions.sandbox_words(NONE) == "bubblewrap is not installed; the package bubblewrap adds one"
