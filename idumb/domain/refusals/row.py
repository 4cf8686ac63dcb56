"""What is known of an error by its code alone: what it blocks, and what can be done about it."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idumb.domain.decision import Choice

HINT = "{hint}"
"""The command of a way that is the hint of the error itself, word for word."""


@dataclass(frozen=True, slots=True)
class Row:
    """`what` is blocked; `ways` are choices whose commands name the error's details in braces: `idumb show {task}`."""

    what: str
    ways: tuple[Choice, ...]


def row(what: str, *ways: Choice) -> Row:
    return Row(what, ways)


def way(id: str, text: str, consequence: str, command: str | None = None) -> Choice:
    """A choice; without a command where a person does something that no command does."""
    return Choice(id, text, consequence, command)


def names(command: str) -> tuple[str, ...]:
    """The details that a command needs."""
    return tuple(name for _, name, _, _ in string.Formatter().parse(command) if name)


def filled(command: str | None, hint: str | None, details: Mapping[str, Any]) -> str | None:
    """The command as it is typed; None where a detail is not known, so that nobody pastes half of one."""
    if command is None or command == HINT:
        return hint if command == HINT else None
    values = {name: details.get(name) for name in names(command)}
    if any(value is None for value in values.values()):
        return None
    whole = len(values) == 1 and command == f"{{{names(command)[0]}}}"  # a command itself, which is not quoted again
    return command.format_map({name: str(v) if whole else shlex.quote(str(v)) for name, v in values.items()})


READ_ONLY = "this only reads"
STATUS = way("look", "see the state of the run", READ_ONLY, "idumb status")
DOCTOR = way("examine", "see what is wrong and how to fix it", READ_ONLY, "idumb doctor")
FIX = way(
    "fix", "fix everything that is safe to fix", "idumb keeps a copy of every file it replaces", "idumb doctor --fix"
)
