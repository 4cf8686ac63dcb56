"""Values of inputs and outputs: as text, as JSON, and as what an environment variable holds."""

from __future__ import annotations

from typing import Any

from idumb.domain.plans import workflow
from idumb.domain.plans.expression import BOOLEAN, INTEGER, LIST, NUMBER, TEXT
from idumb.domain.plans.workflow import CHOICE, Value
from tests.support.cases import every


def value(type: str) -> Value:
    return Value("v", type, choices=("a", "b") if type == CHOICE else ())


@every(
    "type, read, refused",
    [
        (TEXT, {"x": "x", "x\ny": "x\ny", "": ""}, ["\0", "\udcff"]),
        (BOOLEAN, {"true": True, "false": False}, ["True", "1", ""]),
        (INTEGER, {"7": 7, "-7": -7, "9" * 18: 10**18 - 1}, ["7.0", "+7", "٣", "9" * 19, "x", ""]),
        (NUMBER, {"7": 7.0, "-7.5e-05": -7.5e-05, "9" * 17: float("9" * 17)}, ["1e18", "inf", ".5", "x", ""]),
        (CHOICE, {"a": "a"}, ["c", ""]),
        (LIST, {}, ["[]", "a"]),
    ],
)
def test_a_text_is_read_as_the_declared_type(type: str, read: dict[str, Any], refused: list[str]) -> None:
    assert {text: workflow.from_text(value(type), text) for text in read} == read
    assert [text for text in refused if workflow.from_text(value(type), text) is not None] == []


@every(
    "type, same, refused",
    [
        (TEXT, ["x"], [1, None, "\0"]),
        (BOOLEAN, [True, False], [0, 1, "true"]),
        (INTEGER, [7, 10**18 - 1], [True, 7.0, "7", 10**18]),
        (NUMBER, [7.5], [True, "7", 1e18]),
        (CHOICE, ["a", "b"], ["c", None]),
        (LIST, [[], ["a"]], ["ab", [1], ["\0"], None]),
    ],
)
def test_json_must_have_the_declared_type(type: str, same: list[Any], refused: list[Any]) -> None:
    assert [workflow.from_json(value(type), each) for each in same] == same
    assert [each for each in refused if workflow.from_json(value(type), each) is not None] == []


def test_a_value_longer_than_an_environment_variable_is_refused() -> None:
    longest = "x" * workflow.LONGEST_VALUE
    assert workflow.from_text(value(TEXT), longest) == longest
    assert workflow.from_text(value(TEXT), longest + "x") is None


def test_a_value_is_shown_as_the_text_of_a_variable() -> None:
    assert [workflow.shown(each) for each in (None, True, False, 7, "x", ["ä", "b"])] == [
        "", "true", "false", "7", "x", '["\\u00e4", "b"]'
    ]  # fmt: skip
