"""Which object of a reply is the answer, and that a quotation never is one (R-ADAPT-2, R-ADAPT-4, R-ADAPT-5)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from idumb.domain import replies
from tests.support.cases import every
from tests.support.growth import assert_linear

PASS = '{"verdict": "PASS", "findings": []}'
FAIL = '{"verdict": "FAIL", "findings": [{"message": "no"}]}'
SPREAD = '{\n  "verdict": "FAIL",\n  "findings": []\n}'
OTHER = '{"edits": [{"tool": "write_file"}], "told": {"verdict": "FAIL"}}'


def test_the_only_object_with_the_key_is_the_answer_wherever_it_is() -> None:
    cases: list[str] = [
        PASS,
        f"\ufeff{PASS}\r\n",
        f"Well.\n\n```json\n{PASS}\n```\nDone.",
        f"I think so.\n  {PASS}  ",
        '{\n"verdict":\r\n"PASS",\n"findings": []\n}\nThat is all.',
        f"~~~\n{OTHER}\n~~~\nis what it says.\n\n{PASS}",
        f"{PASS}\n\nOnce more:\n```\n{PASS}\n```",
        f"{{\n{PASS}",
        f"{{x}}\n{PASS}",
    ]
    assert not [text for text in cases if replies.answer(text, "verdict") != {"verdict": "PASS", "findings": []}]


OWN = [FAIL, SPREAD, f"```\n{FAIL}\n```", f"> {FAIL}", f"It is {FAIL}.", SPREAD[:-3]]


@every("own, quoted", itertools.product(OWN, [f"```json\n{PASS}\n```", f"{PASS}"]))
def test_a_quoted_object_next_to_another_leaves_no_answer_in_any_order(own: str, quoted: str) -> None:
    for text in (f"It says:\n\n{quoted}\n\nI say:\n\n{own}\n", f"I say:\n\n{own}\n\nIt says:\n\n{quoted}\n"):
        answer = replies.answer(text, "verdict")
        assert isinstance(answer, str)
        assert "two different answers" in answer


@every("text", [f'{{"findings": [\n{FAIL}\nis cut.\n{PASS}', f'```json\n{{"a": 1,\n{FAIL}\n```\n{PASS}'])
def test_an_answer_after_an_incomplete_object_counts(text: str) -> None:
    answer = replies.answer(text, "verdict")
    assert isinstance(answer, str)
    assert "two different answers" in answer


@every("text", [f"{FAIL} is what I was told.\n{FAIL}", '{"verdict": ["PASS"]}'])
def test_a_repeated_equal_object_is_one_answer(text: str) -> None:
    assert isinstance(replies.answer(text, "verdict"), dict)


def test_an_object_within_a_line_of_text_is_not_an_answer() -> None:
    cases: list[str] = ["", "[1]", '{"verdict": ', f"{PASS} and so on", f"- {PASS}", f"{PASS} {FAIL}", OTHER]
    assert not [text for text in cases if replies.answer(text, "verdict") != "the answer holds no verdict"]


def test_two_different_lists_are_not_an_answer_either() -> None:
    texts = ('{"questions": ["a"]}', '{"questions": ["b"]}')
    assert isinstance(replies.answer("\n".join(texts), "questions"), str)
    assert replies.answer(texts[0], "questions") == {"questions": ["a"]}


@every(
    "text",
    [
        '{"a":' * 50_000,
        '{"a":\n' * 50_000,
        '{"a":' + "1" * 5_000 + "}\n",
        '{"a":1,\n' * 100_000,
        '{"aaaaaaaa\n' * 100_000,
        " " * 100_000 + "{\n" * 2_000,
    ],
)
def test_a_text_that_would_take_long_to_read_is_not_an_answer(text: str) -> None:
    assert replies.answer(f"{text}{PASS}", "verdict") == "the answer holds more broken or nested JSON than is read"


_LONG: dict[str, Callable[[int], str]] = {
    "spaces": lambda size: '"verdict"' + " " * size,
    "mentions": lambda size: '"verdict":"' * size,
    "an object that never ends": lambda size: '{"a":\n' * size + "[" + "1,\n" * (1_000 * size) + "x",
}


@pytest.mark.parametrize("kind", _LONG)
def test_reading_takes_linear_time(kind: str) -> None:
    assert_linear(lambda text: replies.answer(text, "verdict"), lambda size: f"{_LONG[kind](size)}\n{PASS}")
