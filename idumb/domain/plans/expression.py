"""Conditions of workflows: a small language over inputs, and over outcomes and outputs of earlier steps.

Python's parser reads them: names, texts and numbers become names for it, and only the nodes of the grammar in
`docs/workflow-format.md` are accepted. Length and depth are bounded, every expression has a type before it runs, and
evaluation always ends with a value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from msgspec import Struct

LONGEST = 1000
DEEPEST = 20

TEXT, INTEGER, NUMBER, BOOLEAN, LIST, NULL = "text", "integer", "number", "boolean", "list", "null"
_NUMERIC = frozenset({INTEGER, NUMBER})

Reference = tuple[str, ...]
"""`("inputs", NAME)` or `("steps", STEP, NAME)`."""

_TOKEN = re.compile(
    r"\s*(?:(?:(?P<name>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*)"
    r"|(?P<number>-?[0-9]{1,18}(?:\.[0-9]{1,18})?)"
    r"|(?P<text>'[^'\n]*'|\"[^\"\n]*\"))(?![\w.'\"-])"  # no value is a part of 0x10, 1_000, 5-1 or 'it''s'
    r"|(?P<sign>==|!=|<=|>=|[<>()\[\],]))"
)
_SIGNS = frozenset({"and", "or", "not", "in"})
_CONSTANTS: Mapping[str, tuple[Any, str]] = {"true": (True, BOOLEAN), "false": (False, BOOLEAN), "null": (None, NULL)}
_OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": eq, "!=": ne, "<=": le, ">=": ge, "<": lt, ">": gt,
    "in": lambda left, right: left in right,
}  # fmt: skip
_COMPARING: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">", ast.In: "in",
}  # fmt: skip


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


class Expression(Struct, frozen=True):
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
    reader = _Reader(text, types)
    expression, kind = reader.read(reader.tree())
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
    left, right = (evaluate(part, lookup) for part in parts)
    if operator not in ("==", "!=") and (left is None or right is None):  # these alone can be true of null
        return False
    return bool(_OPERATIONS[operator](left, right))


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
        tokens.append(_Token("sign" if match[kind] in _SIGNS else kind, match[kind], match.start(kind)))
        at = match.end()
    return tokens


class _Reader:
    """Reads the nodes of Python's parser. `read` returns an expression and its type."""

    def __init__(self, text: str, types: Callable[[Reference], str | None]) -> None:
        self._tokens, self._types, self._size = _tokens(text), types, len(text)
        self._start = self._tokens[0].at if self._tokens else len(text)

    def tree(self) -> ast.expr:
        """Return the condition as Python sees it: each value is a name as long as the value."""
        masked = [" "] * self._size
        for token in self._tokens:
            name = token.text if token.kind == "sign" else "v" * len(token.text)
            masked[token.at : token.at + len(name)] = name
        try:
            return ast.parse("".join(masked)[self._start :], mode="eval").body
        except SyntaxError as error:  # Python gives the end of a text no place
            raise self._unexpected(self._start + error.offset - 1 if error.offset else self._size) from None

    def _unexpected(self, at: int) -> ExpressionError:
        """Return the error of the token at an index, or of the end if there is none."""
        token = next((token for token in self._tokens if token.at >= at), None)
        if token is None:
            return ExpressionError("The condition ends too early", self._size, _VALUES)
        fix = "a comparison of two values; brackets join several"
        return ExpressionError(f"Unexpected `{token.text}` in the condition", token.at, fix)

    def _at(self, node: ast.expr, *, end: bool = False) -> int:
        return self._start + (node.end_col_offset or 0 if end else node.col_offset)

    def read(self, node: ast.expr, depth: int = 0) -> tuple[Expression, str]:
        if depth > DEEPEST:
            message = f"The condition is nested more than {DEEPEST} levels deep"
            raise ExpressionError(message, self._at(node), "nest less")
        if isinstance(node, ast.Name):
            return self._value(next(token for token in self._tokens if token.at == self._at(node)))
        if isinstance(node, ast.List):
            return self._list(node)
        if isinstance(node, ast.BoolOp):
            word = "and" if isinstance(node.op, ast.And) else "or"
            return Expression(word, tuple(self._boolean(part, word, depth) for part in node.values)), BOOLEAN
        if isinstance(node, ast.UnaryOp):  # there are tokens for `not` alone
            return Expression("not", (self._boolean(node.operand, "not", depth),)), BOOLEAN
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        first = next((part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)), None)
        raise self._unexpected(self._at(node) if first is None else self._at(first, end=True))

    def _boolean(self, node: ast.expr, word: str, depth: int) -> Expression:
        part, kind = self.read(node, depth + 1)
        if kind != BOOLEAN:
            raise ExpressionError(f"`{word}` needs true or false, not {_a(kind)}", self._at(node), "a comparison")
        return part

    def _comparison(self, node: ast.Compare) -> tuple[Expression, str]:
        left, first = self.read(node.left)
        sign, at = _COMPARING.get(type(node.ops[0]), ""), self._at(node.left, end=True)
        right, second = self.read(node.comparators[0])
        if not sign or len(node.ops) > 1:
            raise self._unexpected(self._at(node.comparators[0], end=True) if sign else at)
        if not _comparable(sign, first, second):
            at = next(token.at for token in self._tokens if token.at >= at and token.text == sign)
            message = f"`{sign}` cannot compare {_a(first)} with {_a(second)}"
            raise ExpressionError(message, at, _OPERANDS.get(sign, "two values of the same type, or null"))
        return Expression(sign, (left, right)), BOOLEAN

    def _list(self, node: ast.List) -> tuple[Expression, str]:
        parts = [(element, *self.read(element)) for element in node.elts]
        for element, part, kind in parts:
            if kind not in (TEXT, INTEGER, NUMBER) or part.operator != "value":
                raise ExpressionError(f"A list cannot hold {_a(kind)}", self._at(element), "texts and numbers")
        return Expression("list", tuple(part for _, part, _ in parts)), LIST

    def _value(self, token: _Token) -> tuple[Expression, str]:
        if token.kind == "text":
            return Expression("value", value=token.text[1:-1]), TEXT
        if token.kind == "number":
            convert, kind = (float, NUMBER) if "." in token.text else (int, INTEGER)
            return Expression("value", value=convert(token.text)), kind
        if token.text in _CONSTANTS:
            value, kind = _CONSTANTS[token.text]
            return Expression("value", value=value), kind
        reference = tuple(token.text.split("."))
        if (reference[0], len(reference)) not in {("inputs", 2), ("steps", 3)}:
            raise ExpressionError(f"`{token.text}` is not a value", token.at, _VALUES)
        known = self._types(reference)
        if known is None:
            fix = "a declared input, or `outcome` or a declared output of another step"
            raise ExpressionError(f"`{token.text}` does not exist", token.at, fix)
        return Expression("reference", value=reference), known


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
