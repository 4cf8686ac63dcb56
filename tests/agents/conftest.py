"""Tests with real agents take minutes: each command is a program of its own, so that all of them are of one version."""

from __future__ import annotations

import pytest

from tests.support import project as projects


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(projects.COLD, "1")
