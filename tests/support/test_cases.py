"""A table of cases in one test fails if one case fails, and names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import every

seen: list[tuple[int, str]] = []


@every("number, word", [(1, "one"), (2, "two")])
@every("mark", "!?")
def test_all_rows_are_run_with_the_fixtures(tmp_path: Path, number: int, word: str, mark: str) -> None:
    """Each in an empty folder."""
    seen.append((number, word + mark))
    assert not list(tmp_path.iterdir())
    (tmp_path / "used").touch()
    assert seen == [(1, "one!"), (1, "one?"), (2, "two!"), (2, "two?")][: len(seen)]


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


def test_a_table_without_rows_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match="proves nothing"):
        every("number", [])
