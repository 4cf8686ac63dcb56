"""Names in a row."""

from __future__ import annotations

from idumb.domain import wording


def test_names_that_fit_are_listed_and_the_rest_is_counted() -> None:
    assert wording.listed([]) == ""
    assert wording.listed("abcde") == "a, b, c, d, e"
    assert wording.listed("abcdef") == "a, b, c, d, e and 1 more"
    assert wording.listed(("a", "b", "c"), 1) == "a and 2 more"
    assert wording.listed(("a\nb", "c\r")) == "a\\nb, c\\r"


def test_names_with_commas_can_use_another_separator() -> None:
    assert wording.listed("abc", 2, between="; ") == "a; b and 1 more"
