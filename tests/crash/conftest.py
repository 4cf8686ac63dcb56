"""Assertions of the harness say what they compared, as those of tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.crash.harness")
