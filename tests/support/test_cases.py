"""A table of cases in one test fails if one case fails, and names it."""

from __future__ import annotations

import pytest

from tests.support.cases import every


def test_each_case_that_fails_is_named() -> None:
    @every("number", [3, 30, 2, "x"])
    def is_small(number: int) -> None:
        if number == 2:
            pytest.fail("not this one")
        assert number < 10

    with pytest.raises(BaseExceptionGroup, match="3 of 4 cases fail") as caught:
        is_small()
    assert [failure.__notes__ for failure in caught.value.exceptions] == [
        ["case 1: 30"],
        ["case 2: 2"],
        ["case 3: 'x'"],
    ]
