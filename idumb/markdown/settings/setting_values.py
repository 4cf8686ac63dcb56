"""Readers of single settings: each turns a YAML node into a value, or raises `WrongValue` with what it accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from idumb import lazy_pattern
from idumb.domain import paths, whole_numbers
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding, did_you_mean, errors
from idumb.domain.settings import MESSAGE_FIELDS
from idumb.markdown.plans.values import seconds
from idumb.markdown.syntax.tree import Node, is_list, is_map, is_text

if TYPE_CHECKING:
    import re

_SIZE = lazy_pattern.compile(r"(\d{1,15})([KMGTkmgt]?)i?[Bb]?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_VARIABLE = lazy_pattern.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME = lazy_pattern.compile(r"[\w.:/@+-]+")
TEMPLATE = lazy_pattern.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_MOST_DIGITS = 300  # of a number for an adapter; a float has no more
_NUMBER = lazy_pattern.compile(r"[-+]?\d+")
_DECIMAL = lazy_pattern.compile(r"[-+]?(\d+\.\d*|\.?\d+)([eE][-+]?\d+)?")


DID_YOU_MEAN = "Did you mean `{}`?"


def decoded(data: bytes, most: int) -> str:
    """Return the text of a file. Raises ValueError with the reason if it is too large or not UTF-8."""
    if len(data) > most:
        raise ValueError(f"is larger than {most} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(f"is not UTF-8: unexpected byte at offset {problem.start}") from None


def rejected(code: str, findings: tuple[Finding, ...], hint: str) -> InputError:
    """Return the error of a file with findings, which quotes the first one; its fix replaces the hint."""
    first, *others = errors(findings)
    more = f" (and {len(others)} more)" if others else ""
    return InputError(code, f"{first.place}: {first.message}{more}", findings=findings, hint=first.fix or hint)


class WrongValue(Exception):
    """An invalid value; `at` is its offset."""

    def __init__(self, at: int, found: str, accepted: str, fix: str = "") -> None:
        super().__init__(accepted)
        self.at, self.found, self.accepted, self.fix = at, found, accepted, fix


Reader = Callable[[Node], Any]


def is_null(node: Node) -> bool:
    return node.plain and node.value in {"", "~", "null", "Null", "NULL"}


def shown(node: Node) -> str:
    return node.value if is_text(node) else "a list" if is_list(node) else "a mapping"


def words(node: Node) -> str:
    if not is_text(node) or not node.value.strip() or "\0" in node.value:
        raise WrongValue(node.start, shown(node), "a text")
    return str(node.value)


def placed(node: Node) -> tuple[str, int]:
    return words(node), node.start


def boolean(node: Node) -> bool:
    if not (is_text(node) and node.plain and node.value in _BOOLEANS):
        raise WrongValue(node.start, shown(node), "true or false")
    return _BOOLEANS[node.value]


def count(node: Node) -> int:
    if not (is_text(node) and node.plain and node.value.isascii() and node.value.isdecimal()):
        raise WrongValue(node.start, shown(node), "a whole number of at least 1")
    number = whole_numbers.parse(node.value)
    if number is None or not 1 <= number <= 10**15:
        raise WrongValue(node.start, shown(node), "a whole number of at least 1")
    return number


def money(node: Node) -> float:
    """Read an amount in US dollars."""
    plain = is_text(node) and node.plain and (_NUMBER.fullmatch(node.value) or _DECIMAL.fullmatch(node.value))
    amount = float(node.value) if plain and is_text(node) else 0.0
    if not 0 < amount <= 10**9:
        raise WrongValue(node.start, shown(node), "an amount of dollars above 0, such as 2.50")
    return amount


def template_name(node: Node) -> str:
    """Read the name of a prompt template: a file name without extension, which cannot leave its folder."""
    name = words(node)
    if not TEMPLATE.fullmatch(name) or name.endswith(".md"):
        raise WrongValue(node.start, name, "the name of a template in .idumb/prompts/, without .md")
    return name


def level(node: Node) -> int:
    if not (is_text(node) and node.plain and node.value in {"0", "1", "2"}):
        raise WrongValue(node.start, shown(node), "a level: 0, 1 or 2")
    return int(node.value)


def percentage(node: Node) -> int:
    if not (is_text(node) and node.plain and node.value in map(str, range(1, 101))):
        raise WrongValue(node.start, shown(node), "a whole number from 1 to 100")
    return int(node.value)


def duration(node: Node) -> int:
    total = seconds(node.value, bare=True) if is_text(node) else None
    if total is None:
        raise WrongValue(node.start, shown(node), "a time such as 90s, 45m, 1h30m or a number of seconds")
    return total


def size(node: Node) -> int:
    match = _SIZE.fullmatch(node.value) if is_text(node) else None
    total = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not 0 < total <= 2**62:
        raise WrongValue(node.start, shown(node), "a size such as 512M, 4G or a number of bytes")
    return total


def one_of(choices: tuple[str, ...]) -> Reader:
    def reader(node: Node) -> str:
        if is_text(node) and node.value in choices:
            return str(node.value)
        fix = did_you_mean(shown(node), choices, "", DID_YOU_MEAN)
        raise WrongValue(node.start, shown(node), f"one of {', '.join(choices)}", fix)

    return reader


def list_of(item: Callable[[Node], str]) -> Reader:
    def reader(node: Node) -> tuple[str, ...]:
        if is_text(node) and is_null(node):
            return ()
        if not is_list(node):
            raise WrongValue(node.start, shown(node), "a list")
        return tuple(item(entry) for entry in node.items)

    return reader


def one_or_more(item: Callable[[Node], str]) -> Reader:
    """Read one item, or a list with at least one."""

    def reader(node: Node) -> tuple[str, ...]:
        if is_list(node) and not node.items:
            raise WrongValue(node.start, "an empty list", "a text, or a list of texts")
        return list_of(item)(node) if is_list(node) else (item(node),)

    return reader


def argument(node: Node) -> str:
    """Read one element of an argument list, which may be empty."""
    if not is_text(node) or "\0" in node.value:
        raise WrongValue(node.start, shown(node), "a text")
    return str(node.value)


def variable(node: Node) -> str:
    name = words(node)
    if not _VARIABLE.fullmatch(name) or name.startswith("IDUMB_"):
        raise WrongValue(node.start, name, "the name of an environment variable, without its value")
    return name


def glob(node: Node) -> str:
    text = words(node)
    problem = paths.problem(text)
    if problem is not None:
        raise WrongValue(node.start, text, f"a path or glob inside the repository: it {problem}", "Fix the path.")
    return text


def branch_name(node: Node) -> str:
    text = words(node)
    if "{" in text.replace("{phase}", ""):
        raise WrongValue(node.start, text, "the name of a branch; {phase} is replaced by the number of the phase")
    return text


def message(node: Node) -> str:
    """Read a template of commit messages."""
    text = argument(node)
    problem = _message_problem(text)
    if problem is not None:
        raise WrongValue(node.start, text, *problem)
    return text


_BRACES = lazy_pattern.compile(r"\{([^{}]*)\}|[{}]")
_TRAILER = lazy_pattern.compile(r"(?im)^[ \t]*Idumb-[\w-]*:")


def _message_problem(template: str) -> tuple[str, str] | None:
    """Return what is accepted instead of a template, and how to fix it; None if it makes a commit message."""
    for match in _BRACES.finditer(template):
        if match[1] not in MESSAGE_FIELDS:
            *most, last = (f"{{{name}}}" for name in MESSAGE_FIELDS)
            return f"text with {', '.join(most)} and {last}", _field_fix(match)
    if not template.split("\n", 1)[0].strip():
        return "text that begins with the subject of the commit", "Write the subject on the first line."
    if _TRAILER.search(template):
        return "text without a line that begins with Idumb-, as only idumb's own trailers do", "Remove the line."
    if any(not c.isprintable() and c != "\n" for c in template):
        return "text without control characters", "Remove the control character."
    return None


def _field_fix(brace: re.Match[str]) -> str:
    """Return how to fix a brace alone, or a name in braces that idumb does not replace."""
    if brace[1] is None:
        return f"Remove the single {brace[0]}."
    return did_you_mean(brace[1], MESSAGE_FIELDS, f"Remove {brace[0]}.", "Did you mean {{{}}}?")


def anything(node: Node) -> Any:
    """Read any value by YAML's core schema, for third-party adapters."""
    if is_map(node):
        return {key.value: anything(value) for key, value in node.pairs}
    if is_list(node):
        return [anything(item) for item in node.items]
    return _scalar(node)


def _scalar(node: Node) -> Any:
    if not node.plain:
        return node.value
    if is_null(node):
        return None
    if node.value in _BOOLEANS:
        return _BOOLEANS[node.value]
    if _NUMBER.fullmatch(node.value):
        if len(node.value) > _MOST_DIGITS:
            raise WrongValue(node.start, shown(node), f"a number of at most {_MOST_DIGITS} digits")
        return int(node.value)
    return float(node.value) if _DECIMAL.fullmatch(node.value) else node.value


def options(node: Node) -> dict[str, Any]:
    if not is_map(node):
        raise WrongValue(node.start, shown(node), "keys with values")
    values: dict[str, Any] = anything(node)
    return values


def node(node: Node) -> Any:
    return node
