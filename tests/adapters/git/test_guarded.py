"""Guarded git files compared with their recorded state, including files that cannot be read."""

from __future__ import annotations

import os
from typing import Any

import pytest

from idumb.git import discover, history
from tests.support.gitrepo import GitSandbox


def refuse(monkeypatch: pytest.MonkeyPatch, *, readable: bool) -> None:
    """Root can read everything, so the system would refuse nothing here."""

    def refused(path: Any, *_: Any) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(history, "open", refused, raising=False)
    monkeypatch.setattr(os, "access", lambda *_: readable)


def test_an_unreadable_file_is_recorded_as_unreadable_with_its_mode(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = discover.find(str(sandbox.root))
    before = history.digests(place)
    refuse(monkeypatch, readable=False)
    first = history.digests(place)
    assert first.keys() == before.keys()
    assert first[".git/config"] != before[".git/config"]
    assert history.digests(place) == first


def test_a_file_that_becomes_readable_is_not_a_change(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-LOG-5: the system error is reported as such and not as a change."""
    refuse(monkeypatch, readable=True)
    with pytest.raises(PermissionError, match=r"\.git/config"):
        history.digests(discover.find(str(sandbox.root)))
