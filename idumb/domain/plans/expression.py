"""Conditions of workflows: a small language over inputs, and over outcomes and outputs of earlier steps.

It has a tokenizer and a recursive-descent parser of its own. Length and depth are bounded, every expression has a type
before it runs, and evaluation always ends with a value. `docs/workflow-format.md` has the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from idumb import lazy_pattern
from idumb.lazy_dataclass import dataclass

LONGEST = 1000
DEEPEST = 20

TEXT, INTEGER, NUMBER, BOOLEAN, LIST, NULL = "text", "integer", "number", "boolean", "list", "null"
_NUMERIC = frozenset({INTEGER, NUMBER})

Reference = tuple[str, ...]
"""`("inputs", NAME)` or `("steps", STEP, NAME)`."""

_TOKEN = lazy_pattern.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*)"
    r"|(?P<number>-?[0-9]{1,18}(?:\.[0-9]{1,18})?)"
    r"|(?P<text>'[^'\n]*'|\"[^\"\n]*\")"
    r"|(?P<sign>==|!=|<=|>=|[<>()\[\],]))"
)
_WORDS = frozenset({"and", "or", "not", "in", "true", "false", "null"})
_COMPARING = ("==", "!=", "<=", ">=", "<", ">", "in")


class ExpressionError(ValueError):
    """An invalid expression. `at` is the index of the mistake, `fix` says what is accepted there."""

    def __init__(self, message: str, at: int, fix: str) -> None:
        super().__init__(message)
        self.at = at
        self.fix = fix


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. `operator` is `value`, `reference`, `list`, `not`, `and`, `or` or a comparison.

    `value` is the constant or the reference; `parts` are the operands.
    """

    operator: str
    parts: tuple[Expression, ...] = ()
    value: Any = None

    def references(self) -> Iterator[Reference]:
        if self.operator == "reference":
            yield self.value
        for part in self.parts:
            yield from part.references()


def parse(text: str, types: Callable[[Reference], str | None]) -> Expression:
    """Return the expression of a condition. `types` returns the type of a reference, None for an unknown one.

    ExpressionError if it is not valid, or if its value is not true or false.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"The condition has {len(text)} characters", 0, f"at most {LONGEST} characters")
    parser = _Parser(_tokens(text), types, len(text))
    expression, kind = parser.disjunction(0)
    parser.require_end()
    if kind != BOOLEAN:
        fix = "compare it, for example with == 'text'"
        raise ExpressionError(f"The condition is {_a(kind)}, not true or false", 0, fix)
    return expression


def evaluate(expression: Expression, lookup: Callable[[Reference], Any]) -> Any:
    """Return the value. `lookup` returns the value of a reference, None for the output of a step that did not run."""
    operator, parts = expression.operator, expression.parts
    if operator == "value":
        return expression.value
    if operator == "reference":
        return lookup(expression.value)
    if operator == "list":
        return [evaluate(part, lookup) for part in parts]
    if operator == "not":
        return evaluate(parts[0], lookup) is not True
    if operator == "and":
        return all(evaluate(part, lookup) is True for part in parts)
    if operator == "or":
        return any(evaluate(part, lookup) is True for part in parts)
    return _compare(operator, evaluate(parts[0], lookup), evaluate(parts[1], lookup))


def _compare(operator: str, left: Any, right: Any) -> bool:
    """Compare two values. Only `==` and `!=` can be true if one of them is null."""
    if operator == "==":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    if left is None or right is None:
        return False
    if operator == "in":
        return left in right
    results: Mapping[str, bool] = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return results[operator]


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            fix = "a name, a number, a text in quotes, or one of == != < <= > >= ( ) [ ] ,"
            raise ExpressionError(f"Unexpected character {text[at]!r} in the condition", at, fix)
        kind = str(match.lastgroup)
        word = match[kind]
        tokens.append(_Token("sign" if word in _WORDS else kind, word, match.start(kind)))
        at = match.end()
    return tokens


class _Parser:
    """Reads tokens from left to right. Each method returns an expression and its type."""

    def __init__(self, tokens: list[_Token], types: Callable[[Reference], str | None], end: int) -> None:
        self._tokens = tokens
        self._types = types
        self._next = 0
        self._end = _Token("end", "", end)

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else self._end

    def _take(self, *texts: str) -> _Token | None:
        """Take the next token if it is one of these words or signs."""
        token = self._token
        if token.kind != "sign" or token.text not in texts:
            return None
        self._next += 1
        return token

    def require_end(self) -> None:
        if self._token.kind != "end":
            fix = "and, or, a comparison, or the end of the condition"
            raise ExpressionError(f"Unexpected `{self._token.text}` in the condition", self._token.at, fix)

    def disjunction(self, depth: int) -> tuple[Expression, str]:
        return self._joined("or", self._conjunction, depth)

    def _conjunction(self, depth: int) -> tuple[Expression, str]:
        return self._joined("and", self._negation, depth)

    def _joined(
        self, word: str, operand: Callable[[int], tuple[Expression, str]], depth: int
    ) -> tuple[Expression, str]:
        at = self._token.at
        first, kind = operand(depth)
        parts = [first]
        while self._take(word):
            self._require_boolean(kind, at, word)
            at = self._token.at
            part, kind = operand(depth)
            parts.append(part)
        if len(parts) == 1:
            return first, kind
        self._require_boolean(kind, at, word)
        return Expression(word, tuple(parts)), BOOLEAN

    def _require_boolean(self, kind: str, at: int, word: str) -> None:
        if kind != BOOLEAN:
            raise ExpressionError(f"`{word}` needs true or false, not {_a(kind)}", at, "a comparison")

    def _negation(self, depth: int) -> tuple[Expression, str]:
        self._require_depth(depth)
        if not self._take("not"):
            return self._comparison(depth)
        at = self._token.at
        part, kind = self._negation(depth + 1)
        self._require_boolean(kind, at, "not")
        return Expression("not", (part,)), BOOLEAN

    def _comparison(self, depth: int) -> tuple[Expression, str]:
        left, first = self._operand(depth)
        sign = self._take(*_COMPARING)
        if sign is None:
            return left, first
        right, second = self._operand(depth)
        if not _comparable(sign.text, first, second):
            message = f"`{sign.text}` cannot compare {_a(first)} with {_a(second)}"
            raise ExpressionError(message, sign.at, _OPERANDS.get(sign.text, "two values of the same type, or null"))
        return Expression(sign.text, (left, right)), BOOLEAN

    def _operand(self, depth: int) -> tuple[Expression, str]:
        token = self._token
        if self._take("("):
            self._require_depth(depth)
            inner = self.disjunction(depth + 1)
            self._require(")")
            return inner
        if self._take("["):
            return self._list()
        if token.kind == "name":
            return self._reference()
        return self._constant()

    def _require_depth(self, depth: int) -> None:
        if depth > DEEPEST:
            raise ExpressionError(
                f"The condition is nested more than {DEEPEST} levels deep", self._token.at, "nest less"
            )

    def _require(self, sign: str) -> None:
        if not self._take(sign):
            found = f"`{self._token.text}`" if self._token.text else "the end of the condition"
            raise ExpressionError(f"Expected `{sign}`, found {found}", self._token.at, sign)

    def _list(self) -> tuple[Expression, str]:
        parts: list[Expression] = []
        while not self._take("]"):
            if parts:
                self._require(",")
            at = self._token.at
            part, kind = self._constant()
            if kind not in (TEXT, INTEGER, NUMBER):
                raise ExpressionError(f"A list cannot hold {_a(kind)}", at, "texts and numbers")
            parts.append(part)
        return Expression("list", tuple(parts)), LIST

    def _constant(self) -> tuple[Expression, str]:
        token = self._token
        self._next += 1
        if token.kind == "text":
            return Expression("value", value=token.text[1:-1]), TEXT
        if token.kind == "number" and "." in token.text:
            return Expression("value", value=float(token.text)), NUMBER
        if token.kind == "number":
            return Expression("value", value=int(token.text)), INTEGER
        if token.text in ("true", "false") and token.kind == "sign":
            return Expression("value", value=token.text == "true"), BOOLEAN
        if token.text == "null" and token.kind == "sign":
            return Expression("value"), NULL
        found = f"`{token.text}`" if token.text else "the end of the condition"
        raise ExpressionError(f"Expected a value, found {found}", token.at, _VALUES)

    def _reference(self) -> tuple[Expression, str]:
        token = self._token
        self._next += 1
        reference = tuple(token.text.split("."))
        if (reference[0], len(reference)) not in {("inputs", 2), ("steps", 3)}:
            raise ExpressionError(f"`{token.text}` is not a value", token.at, _VALUES)
        kind = self._types(reference)
        if kind is None:
            fix = "a declared input, or `outcome` or a declared output of another step"
            raise ExpressionError(f"`{token.text}` does not exist", token.at, fix)
        return Expression("reference", value=reference), kind


_VALUES = "inputs.NAME, steps.STEP.outcome, steps.STEP.OUTPUT, a text in quotes, a number, true, false or null"
_OPERANDS = {
    "in": "a text or a number before `in`, and a list after it",
    **dict.fromkeys(("<", "<=", ">", ">="), "two numbers, or two texts"),
}


def _comparable(operator: str, left: str, right: str) -> bool:
    if operator == "in":
        return right == LIST and left in (TEXT, INTEGER, NUMBER)
    both_numbers = left in _NUMERIC and right in _NUMERIC
    if operator in ("==", "!="):
        return left == right or both_numbers or NULL in (left, right)
    return both_numbers or (left == right == TEXT)


def _a(kind: str) -> str:
    return {INTEGER: "an integer", BOOLEAN: "true or false", NULL: "null"}.get(kind, f"a {kind}")
