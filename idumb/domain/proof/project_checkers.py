"""The type checkers and linters that idumb knows: which files of a project configure each, and what it reports.

Their output is read in the usual forms: `PATH:LINE:COLUMN: TEXT` (mypy, pyright, go vet, cargo's and ruff's short
form), `PATH(LINE,COLUMN): TEXT` (tsc), a text followed by `--> PATH:LINE` (rustc, ruff), and a path followed by its
lines (eslint).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from idumb.domain.proof import gate_table

_INSTALLED = 'PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH" '
"""Programs that a project installs for itself come first; idumb never downloads one."""


class Checker(NamedTuple):
    """`files` configure it, each if its text matches the pattern."""

    gate: str
    name: str
    arguments: str
    files: tuple[tuple[str, str], ...]

    @property
    def label(self) -> str:
        """Return the name for people."""
        return f"{self.name} {self.arguments.partition(' ')[0]}" if self.name in {"go", "cargo"} else self.name

    @property
    def command(self) -> str:
        return f"{_INSTALLED}{self.name}{' ' if self.arguments else ''}{self.arguments}"


_ANY = ""
_SECTION_OF_MYPY = (
    ("pyproject.toml", r"(?m)^\[tool\.mypy\]"),
    ("mypy.ini", _ANY),
    (".mypy.ini", _ANY),
    ("setup.cfg", r"(?m)^\[mypy\]"),
)
_ESLINT = (
    *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
    *(f".eslintrc{ending}" for ending in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
)

CHECKERS = (
    Checker(gate_table.TYPES, "mypy", ".", _SECTION_OF_MYPY),
    Checker(
        gate_table.TYPES, "pyright", "", (("pyrightconfig.json", _ANY), ("pyproject.toml", r"(?m)^\[tool\.pyright\]"))
    ),
    Checker(gate_table.TYPES, "tsc", "--noEmit --pretty false", (("tsconfig.json", _ANY),)),
    Checker(gate_table.TYPES, "go", "vet ./...", (("go.mod", _ANY),)),
    Checker(gate_table.TYPES, "cargo", "check --quiet --all-targets --message-format short", (("Cargo.toml", _ANY),)),
    Checker(
        gate_table.LINT,
        "ruff",
        "check --no-cache --output-format concise .",
        (("pyproject.toml", r"(?m)^\[tool\.ruff\b"), ("ruff.toml", _ANY), (".ruff.toml", _ANY)),
    ),
    Checker(
        gate_table.LINT, "eslint", ".", (*((name, _ANY) for name in _ESLINT), ("package.json", r'"eslintConfig"\s*:'))
    ),
)
FILES = tuple(dict.fromkeys(path for checker in CHECKERS for path, _ in checker.files))

_OWN_FILES = re.compile(r"(?m)^(?:files|packages|modules)\s*=")


def commands(gate: str) -> tuple[str, ...]:
    """Return every command that a gate without one in the configuration may run."""
    return tuple(command for checker in CHECKERS if checker.gate == gate for command in _variants(checker))


def configured(gate: str, read: Callable[[str], str | None]) -> Iterator[tuple[Checker, str]]:
    """Yield each checker of a gate that the project configures, with its command. `read` returns a file's text."""
    for checker in CHECKERS:
        if checker.gate == gate:
            text = next((found for path, pattern in checker.files if (found := _match(read(path), pattern))), None)
            if text is not None:
                with_files, without = _variants(checker)[0], _variants(checker)[-1]
                yield checker, without if checker.name == "mypy" and _OWN_FILES.search(text) else with_files


def _variants(checker: Checker) -> tuple[str, ...]:
    """Return the command, and for mypy also the one for a project that says itself which files it checks."""
    return (checker.command, checker._replace(arguments="").command) if checker.name == "mypy" else (checker.command,)


def _match(text: str | None, pattern: str) -> str | None:
    """Return the section of the text that matches; None if nothing matches."""
    found = None if text is None else re.search(pattern, text)
    return None if found is None else f"{found.string[found.start() :]}\n".partition("\n[")[0]


class Finding(NamedTuple):
    """`line` counts from 1. `words` are code and message without positions. `is_error`: it is not only a warning."""

    path: str
    line: int
    words: str
    is_error: bool = True


_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_AT_COLON = re.compile(r"(?:vet: )?([^\s:()][^:()]*):(\d+)(?::\d+)?(?::| -)\s+(\S.*)")
_AT_BRACKET = re.compile(r"([^\s:()][^:()]*)\((\d+)(?:,\d+)?\):\s+(\S.*)")
_ARROW = re.compile(r"\s*-->\s+([^:]+):(\d+)(?::\d+)?\s*$")
_HEADLINE = re.compile(r"(?:error|warning)(?:\[\w+\])?: \S.*|[A-Z]{1,4}\d{2,5} .*|invalid-syntax: .*")
_BELOW_PATH = re.compile(r"\s+(\d+):\d+\s+(error|warning)\s+(\S.*)")
_NO_PROBLEM = re.compile(r"(?:note|info|information|hint|help)\b", re.IGNORECASE)
_WARNING = re.compile(r"warning\b", re.IGNORECASE)
_POSITION = re.compile(r"\b(lines?|column) \d+|(?<=[\w\])]):\d+(?::\d+)?")
_STOPPED = re.compile(r"errors prevented further checking|could not compile `|^vet: ", re.MULTILINE)


def findings(output: str) -> tuple[Finding, ...]:
    """Return the errors that the output names, in its order; the warnings if it names no error."""
    found = tuple(_read(_COLOUR.sub("", output).splitlines()))
    return tuple(each for each in found if each.is_error) or found


def _read(lines: Sequence[str]) -> Iterator[Finding]:
    path = headline = ""
    for line in lines:
        bare = line.strip()
        if below := _BELOW_PATH.fullmatch(line.rstrip()):
            if path:
                yield _finding(path, below[1], f"{below[2]}: {below[3]}")
        elif arrow := _ARROW.fullmatch(line):
            if headline:
                yield _finding(arrow[1], arrow[2], headline)
            headline = ""
        elif at := _AT_BRACKET.fullmatch(bare) or _AT_COLON.fullmatch(bare):
            if not _NO_PROBLEM.match(at[3]):
                yield _finding(at[1], at[2], at[3])
        elif _HEADLINE.fullmatch(line):
            headline = line
        elif bare and line == line.lstrip():
            path = bare


def _finding(path: str, line: str, words: str) -> Finding:
    plain = " ".join(_POSITION.sub(lambda found: found[1] or "", words.replace(" [*]", "")).split())
    return Finding(path.strip().removeprefix("./"), int(line), plain, not _WARNING.match(words))


def new_findings(before: Sequence[Finding], after: Sequence[Finding], moved: Mapping[str, str]) -> list[Finding]:
    """Return what `after` has more often than `before`, wherever in its file. `moved` has former paths by new path."""
    known = Counter((each.path, each.words) for each in before)
    fresh = []
    for each in after:
        key = (moved.get(each.path, each.path), each.words)
        if known[key]:
            known[key] -= 1
        else:
            fresh.append(each)
    return fresh


def stopped(output: str) -> bool:
    """Return whether the checker says that an error kept it from looking for others."""
    return _STOPPED.search(_COLOUR.sub("", output)) is not None
