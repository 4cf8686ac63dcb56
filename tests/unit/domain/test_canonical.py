"""JSON that is hashed, and JSON from anywhere."""

from __future__ import annotations

import pytest

from idumb.domain import canonical_json


def test_the_spelling_of_a_value_is_one() -> None:
    assert canonical_json.encode({"b": [1, None], "a": "ä"}) == b'{"a":"\\u00e4","b":[1,null]}'
    assert canonical_json.decode(canonical_json.encode({"b": [1, None], "a": "ä"})) == {"a": "ä", "b": [1, None]}


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000, b'{"a":' * 100_000])
def test_whatever_cannot_be_read_is_one_kind_of_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json.decode(text)


def test_what_is_nested_too_deep_to_be_written_is_that_error_too() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="too deep"):
        canonical_json.encode(value)


def test_who_reads_it_may_say_what_becomes_of_a_number() -> None:
    assert canonical_json.decode("[1, NaN]", parse_int=str, parse_constant=str) == ["1", "NaN"]
