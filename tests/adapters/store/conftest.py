"""Fixtures of the store tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def common_dir(tmp_path: Path) -> Path:
    place = tmp_path / "repo" / ".git"
    place.mkdir(parents=True)
    return place
