"""JSON that is hashed, and JSON from anywhere."""

from __future__ import annotations

import pytest

from idumb.domain import canonical_json
from tests.support.cases import every


def test_every_value_has_one_canonical_form() -> None:
    assert canonical_json.encode({"b": [1, None], "a": "ä"}) == b'{"a":"\\u00e4","b":[1,null]}'
    assert canonical_json.decode(canonical_json.encode({"b": [1, None], "a": "ä"})) == {"a": "ä", "b": [1, None]}


@every("text", ["", "{", b"\xff", "[" * 100_000, b'{"a":' * 100_000])
def test_every_unreadable_text_raises_the_same_kind_of_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json.decode(text)


def test_a_value_nested_too_deeply_raises_that_error_too() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="too deep"):
        canonical_json.encode(value)


def test_the_reader_can_choose_how_numbers_are_read() -> None:
    assert canonical_json.decode("[1, NaN]", parse_int=str, parse_constant=str) == ["1", "NaN"]
