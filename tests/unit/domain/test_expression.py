"""Conditions of workflows: grammar, types, bounds and values (R-PLAN-8)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from idumb.domain.plans import expression
from idumb.domain.plans.expression import Expression, ExpressionError, Reference

TYPES = {
    ("inputs", "name"): expression.TEXT,
    ("inputs", "loud"): expression.BOOLEAN,
    ("inputs", "count"): expression.INTEGER,
    ("steps", "a-b", "outcome"): expression.TEXT,
    ("steps", "a-b", "size"): expression.NUMBER,
    ("steps", "a-b", "files"): expression.LIST,
}
VALUES: dict[Reference, Any] = {
    ("inputs", "name"): "x",
    ("inputs", "loud"): True,
    ("inputs", "count"): 3,
    ("steps", "a-b", "outcome"): "completed",
    ("steps", "a-b", "size"): None,
    ("steps", "a-b", "files"): ["x", "y"],
}


def parsed_or_refused(text: str) -> Expression | ExpressionError:
    try:
        return expression.parse(text, TYPES.get)
    except ExpressionError as refused:
        return refused


def value(text: str) -> Any:
    return expression.evaluate(expression.parse(text, TYPES.get), VALUES.get)


def test_a_condition_has_the_value_that_its_grammar_says() -> None:
    cases: list[tuple[str, object]] = [
        ("inputs.loud", True),
        ("not inputs.loud", False),
        ("not not inputs.loud", True),
        ("inputs.name == 'x'", True),
        ('inputs.name != "x"', False),
        ("inputs.count > 2 and inputs.count <= 3.5", True),
        ("inputs.count == 3.0", True),
        ("inputs.name == 'y' or inputs.loud and not (inputs.count < 0)", True),
        ("(inputs.name == 'y' or inputs.loud) and inputs.count == -3", False),
        ("inputs.name in ['a', 'x']", True),
        ("inputs.name in steps.a-b.files", True),
        ("inputs.count in []", False),
        ("steps.a-b.outcome == 'completed'", True),
        ("steps.a-b.size == null", True),
        ("steps.a-b.size > 1", False),
        ("steps.a-b.size <= 1", False),
        ("steps.a-b.size != 1", True),
        ("true", True),
        ("inputs.name < 'y'", True),
        ("inputs.count < 3 or inputs.count > 3 or inputs.count > 4 or inputs.count >= 4 or inputs.count <= 2", False),
        ("inputs.count <= 3 and inputs.count >= 3 and inputs.count < 4", True),
        ("true" + " " * (expression.LONGEST - 4), True),
    ]
    assert not [(text, expected) for text, expected in cases if value(text) is not expected]


def test_an_invalid_condition_is_refused_at_its_place() -> None:
    cases = [
        ("", "The condition ends too early", 0),
        ("inputs.name", "The condition is a text, not true or false", 0),
        ("inputs.count and true", "`and` needs true or false, not an integer", 0),
        ("true or inputs.name", "`or` needs true or false, not a text", 8),
        ("not inputs.name", "`not` needs true or false, not a text", 4),
        ("inputs.name == 1", "`==` cannot compare a text with an integer", 12),
        ("1 == 2 or inputs.name == 1", "`==` cannot compare a text with an integer", 22),
        (" " * 8 + "true or true true", "Unexpected `true` in the condition", 21),
        ("inputs.loud < true", "`<` cannot compare true or false with true or false", 12),
        ("inputs.loud == 1", "`==` cannot compare true or false with an integer", 12),
        ("steps.a-b.files < inputs.name", "`<` cannot compare a list with a text", 16),
        ("inputs.name in 'x'", "`in` cannot compare a text with a text", 12),
        ("inputs.nmae == 'x'", "`inputs.nmae` does not exist", 0),
        ("os.system == 'x'", "`os.system` is not a value", 0),
        ("(true", "Unexpected `(` in the condition", 0),
        ("true true", "Unexpected `true` in the condition", 5),
        ("1 < 2 < 3", "Unexpected `<` in the condition", 6),
        ("true == not true", "Unexpected `not` in the condition", 8),
        ("inputs.name not in ['x']", "Unexpected `not` in the condition", 12),
        ("inputs.name ('x')", "Unexpected `(` in the condition", 12),
        ("(true, true)", "Unexpected `,` in the condition", 5),
        ("true and", "The condition ends too early", 8),
        ("inputs.name == 'x", 'Unexpected character "\'" in the condition', 15),
        ("inputs.name = 'x'", "Unexpected character '=' in the condition", 12),
        ("inputs.count == 0x10", "Unexpected character '0' in the condition", 16),
        ("inputs.count == 1_000", "Unexpected character '1' in the condition", 16),
        ("1inputs.count == 1", "Unexpected character '1' in the condition", 0),
        ("inputs.count == 5-1", "Unexpected character '5' in the condition", 16),
        ("inputs.name == 'it''s'", 'Unexpected character "\'" in the condition', 15),
        (f"inputs.count < {'9' * 19}", "Unexpected character '9' in the condition", 15),
        ("inputs.name in [true]", "A list cannot hold true or false", 16),
        ("inputs.name in ['a' 'b']", "Unexpected `'a'` in the condition", 16),
        ("not (" * 30 + "true" + ")" * 30, "The condition is nested more than 20 levels deep", 105),
        ("not " * 30 + "true", "The condition is nested more than 20 levels deep", 84),
        (" " * 1001, "The condition has 1001 characters", 0),
    ]
    for text, message, at in cases:
        refused = parsed_or_refused(text)
        assert isinstance(refused, ExpressionError), text
        assert (str(refused), refused.at) == (message, at)
        assert refused.fix, text


def test_the_references_of_a_condition_are_found_at_any_depth() -> None:
    """A step runs after the steps whose outcome its condition reads."""
    found = expression.parse("inputs.loud and not (steps.a-b.size > 1 or inputs.name in steps.a-b.files)", TYPES.get)
    assert [".".join(each) for each in found.references()] == [
        "inputs.loud", "steps.a-b.size", "inputs.name", "steps.a-b.files",
    ]  # fmt: skip


_WORDS = ["inputs.name", "inputs.loud", "inputs.count", "steps.a-b.size", "steps.a-b.files", "steps.a-b.outcome",
          "and", "or", "not", "in", "==", "!=", "<", ">=", "(", ")", "[", "]", ",", "'x'", "1", "-2.5", "true", "null",
          "__class__", "lambda", ";", "'", "\n", "é"]  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_WORDS), max_size=14).map(" ".join)))
def test_any_text_is_either_refused_with_a_place_or_has_a_value(text: str) -> None:
    parsed = parsed_or_refused(text)
    if isinstance(parsed, ExpressionError):
        assert 0 <= parsed.at <= len(text)
        return
    assert expression.evaluate(parsed, VALUES.get) in (True, False)
    assert expression.evaluate(parsed, lambda _: None) in (True, False, None)
    assert all(reference in TYPES for reference in parsed.references())


_CONSTANTS = {
    expression.TEXT: st.text("ab(' ", max_size=3).filter(lambda text: not {"'", '"'} <= set(text)),
    expression.INTEGER: st.integers(-(10**18) + 1, 10**18 - 1),
    expression.NUMBER: st.sampled_from([0.0, -2.5, 3.0, 1000.125]),
    expression.BOOLEAN: st.booleans(),
}


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if "'" in value else f"'{value}'"
    return str(value)


@st.composite
def _comparisons(draw: st.DrawFn) -> tuple[str, bool]:
    """Return a comparison of two constants of one type, as the grammar writes it, and its value in Python."""
    kind = draw(st.sampled_from(list(_CONSTANTS)))
    values: st.SearchStrategy[Any] = _CONSTANTS[kind]
    left = draw(values)
    if kind != expression.BOOLEAN and draw(st.booleans()):
        listed = draw(st.lists(values, max_size=4))
        return f"{_constant(left)} in [{', '.join(map(_constant, listed))}]", left in listed
    right = draw(values)
    results = {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
               ">=": left >= right}  # fmt: skip
    signs = ["==", "!="] if kind == expression.BOOLEAN else list(results)
    sign = draw(st.sampled_from(signs))
    space = draw(st.sampled_from(["", " ", "  "]))
    return f"{_constant(left)}{space}{sign}{space}{_constant(right)}", bool(results[sign])


@given(_comparisons(), _comparisons(), _comparisons())
def test_a_condition_of_the_grammar_means_what_python_means(
    first: tuple[str, bool], second: tuple[str, bool], third: tuple[str, bool]
) -> None:
    """`and` binds tighter than `or`, and `not` tighter than both."""
    text = f"not {first[0]} or {second[0]} and ({third[0]})"
    assert value(text) is (not first[1] or (second[1] and third[1]))
