"""The helper that tells linear from quadratic work."""

from __future__ import annotations

import pytest

from tests.support.growth import assert_linear


@pytest.mark.nightly
def test_quadratic_work_is_detected() -> None:
    with pytest.raises(AssertionError, match="times as long"):
        assert_linear(compare_all, lambda n: list(range(n)))


def compare_all(items: list[int]) -> int:
    return sum(1 for one in items for other in items if one == other)
