"""Shared assertions report the compared values; a failure names the seed of the commit that chose its case."""

from __future__ import annotations

import pytest

from tests.support.seed import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]

pytest.register_assert_rewrite("tests.states.ledgers", "tests.states.matrix")
