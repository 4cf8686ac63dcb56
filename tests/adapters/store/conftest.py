"""Fixtures of the store tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adapters.store.opened import OpenedLog


@pytest.fixture
def common_dir(tmp_path: Path) -> Path:
    place = tmp_path / "repo" / ".git"
    place.mkdir(parents=True)
    return place


@pytest.fixture
def opened(tmp_path: Path) -> OpenedLog:
    return OpenedLog(tmp_path)
