"""Tests with real agents take minutes: each command is a program of its own, so that all of them are of one version.

Consent to Codex is consent to the server that its arguments name, so all commands know the scripted model's address.
"""

from __future__ import annotations

import pytest

from tests.adapters.agents import recorder
from tests.agents.inside import ADDRESS
from tests.support import project as projects


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(projects.COLD, "1")
    for name, value in recorder.variables("codex", ADDRESS).items():
        monkeypatch.setenv(name, value)
