"""A failure says which seed chose its points."""

from __future__ import annotations

from tests.support.seed import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
