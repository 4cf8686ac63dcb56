"""Assertions of what these tests share say what they compared, as those of tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.support.project")
