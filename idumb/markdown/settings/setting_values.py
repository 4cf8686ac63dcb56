"""Rows of single settings, and what every file of settings has: its bytes, and the error about its findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from idumb.domain import paths
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding, did_you_mean, errors
from idumb.domain.settings import MESSAGE_FIELDS
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.record import BadValue, Key, is_null, list_of, matching, pattern, scalar, whole
from idumb.markdown.syntax.source import Kind, Place, Source
from idumb.markdown.syntax.tree import Node, is_text
from idumb.system.files import named_files

T = TypeVar("T")

_SIZE = re.compile(r"(\d{1,15})([KMGTkmgt]?)i?[Bb]?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
NAME, TEMPLATE = r"[\w.:/@+-]+", "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_AMOUNT = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def decoded(data: bytes, most: int) -> str:
    """Return the text of a file. Raises ValueError with the reason if it is too large or not UTF-8."""
    if len(data) > most:
        raise ValueError(f"is larger than {most} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(f"is not UTF-8: unexpected byte at offset {problem.start}") from None


def parsed(data: bytes, path: str, most: int, kind: Kind) -> tuple[Node | None, Source]:
    """Return the YAML of a file of settings, and its text with what is wrong in it."""
    try:
        source = Source(decoded(data, most), path)
    except ValueError as why:
        source = Source("", path)
        source.report(f"{kind.prefix}.unreadable", 0, why=why, path=path)
        return None, source
    node = tree.read(source.text, lambda at: at, source, kind.prefix)
    return (None if node is None or is_null(node) else node), source


def of_file(
    path: str,
    shown: str,
    most: int,
    kind: Kind,
    read: Callable[[bytes, str], tuple[T | None, tuple[Finding, ...]]],
    hint: str,
) -> T | None:
    """Return what `read` makes of a file, None without it. InputError with findings if it is wrong or unreadable."""
    try:
        data = named_files.read(path, most + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        message = f"{shown} cannot be read: {problem.strerror or problem}"
        raise InputError(f"{kind.prefix}.unreadable", message, hint=f"ls -l {shown}") from problem
    value, findings = read(data, shown)
    if errors(findings):
        raise rejected(f"{kind.prefix}.invalid", findings, hint)
    return value


def rejected(code: str, findings: tuple[Finding, ...], hint: str, variable: str = "") -> InputError:
    """Return the error of a file with findings, which quotes the first one; its fix replaces the hint.

    With `variable`, what was read is its value: it has no lines, so the error names it and has no findings.
    """
    first, *others = errors(findings)
    found, more = f", not {first.found!r}" if first.found else "", f" (and {len(others)} more)" if others else ""
    message = f"{variable or first.place}: {first.message}{found * first.code.endswith('bad-value')}{more}"
    step = first.fix[:1].upper() + first.fix[1:] or hint
    return InputError(code, message, findings=() if variable else findings, hint=step)


def _size(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    total = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    return total if 0 < total <= 2**62 else None


def _money(text: str) -> float | None:
    amount = float(text) if _AMOUNT.fullmatch(text) else 0.0
    return amount if 0 < amount <= 10**9 else None


def _glob(node: Node, place: Place) -> str:
    text: str = WORDS.read(node, place)
    problem = paths.problem(text)
    if problem is not None:
        raise BadValue(node, f"a path or glob inside the repository: it {problem}", "fix the path")
    return text


WORDS = matching("a text", lambda text: text.strip() and "\0" not in text)
SIZE = scalar("a size such as 512M, 4G or a number of bytes", _size, {"type": ["integer", "string"]})
MONEY = scalar("an amount of dollars above 0, such as 2.50", _money, {"type": "number"}, plain=True)
TEMPLATE_NAME = pattern("the name of a template in .idumb/prompts/, without .md", rf"(?!.*\.md$){TEMPLATE}")
LEVEL, PERCENT = whole(0, 2, "a level: 0, 1 or 2"), whole(1, 100)
ARGUMENTS = list_of(scalar("a text", lambda text: None if "\0" in text else text), "a list of texts")
VARIABLES = list_of(
    pattern("the name of an environment variable, without its value", "(?!IDUMB_)[A-Za-z_][A-Za-z0-9_]*"),
    "a list of names",
)
GLOBS = list_of(Key("a text", _glob), "a list of paths and globs")
BRANCH = matching(
    "the name of a branch; {phase} is replaced by the number of the phase",
    lambda text: text.strip() and "{" not in text.replace("{phase}", ""),
)


# Templates of commit messages

_BRACES = re.compile(r"\{([^{}]*)\}|[{}]")
_TRAILER = re.compile(r"(?im)^[ \t]*Idumb-[\w-]*:")


def _message(node: Node, _: Place) -> str:
    problem = _message_problem(node.text.s) if is_text(node) and "\0" not in node.text.s else ("a text", "")
    if problem is not None:
        raise BadValue(node, *problem)
    return node.text.s


MESSAGE = Key("a text", _message)


def _message_problem(template: str) -> tuple[str, str] | None:
    """Return what is accepted instead of a template, and how to fix it; None if it makes a commit message."""
    for match in _BRACES.finditer(template):
        if match[1] not in MESSAGE_FIELDS:
            *most, last = (f"{{{name}}}" for name in MESSAGE_FIELDS)
            return f"text with {', '.join(most)} and {last}", _field_fix(match)
    if not template.split("\n", 1)[0].strip():
        return "text that begins with the subject of the commit", "write the subject on the first line"
    if _TRAILER.search(template):
        return "text without a line that begins with Idumb-, as only idumb's own trailers do", "remove the line"
    if any(not c.isprintable() and c != "\n" for c in template):
        return "text without control characters", "remove the control character"
    return None


def _field_fix(brace: re.Match[str]) -> str:
    """Return how to fix a brace alone, or a name in braces that idumb does not replace."""
    if brace[1] is None:
        return f"remove the single {brace[0]}"
    return did_you_mean(brace[1], MESSAGE_FIELDS, f"remove {brace[0]}", "did you mean {{{}}}?")
