"""The helper that tells linear from quadratic work."""

from __future__ import annotations

import pytest

from tests.support.growth import assert_linear


def test_linear_work_is_accepted() -> None:
    assert_linear(lambda text: text.replace("a", "b").count("b"), lambda n: "a" * n * 1000)


@pytest.mark.nightly
def test_quadratic_work_is_detected() -> None:
    with pytest.raises(AssertionError, match="times as long"):
        assert_linear(compare_all, lambda n: list(range(n)))


def compare_all(items: list[int]) -> int:
    return sum(1 for one in items for other in items if one == other)


@pytest.mark.nightly
def test_a_slow_first_call_hides_no_quadratic_work() -> None:
    calls: list[int] = []

    def work(items: list[int]) -> int:
        calls.append(compare_all(list(range(0 if calls else 1000))))
        return compare_all(items)

    with pytest.raises(AssertionError, match="times as long"):
        assert_linear(work, lambda n: list(range(n)))


def test_work_that_ignores_its_input_is_detected() -> None:
    with pytest.raises(AssertionError, match="does not make the program work"):
        assert_linear(lambda _: None, lambda _: None)
