"""The type checkers and linters that idumb knows, and by which files a project configures each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
        gate_table.LINT,
        "eslint",
        ".",
        (*((name, _ANY) for name in _ESLINT), ("package.json", r'"eslintConfig"\s*:')),
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
    if found is None or text is None:
        return None
    return f"{text[found.start() :]}\n".partition("\n[")[0]
