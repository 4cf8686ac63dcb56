"""A failure names the seed of the commit that chose its case."""

from __future__ import annotations

from tests.support.seed import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
