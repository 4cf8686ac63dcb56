"""Assertions of what the tests share say what they compared."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.states.ledgers", "tests.states.matrix")
