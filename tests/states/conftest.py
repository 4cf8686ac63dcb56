"""Shared assertions report the compared values."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.states.ledgers", "tests.states.matrix")
