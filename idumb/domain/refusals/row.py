"""What the code of an error determines: what it blocks, and the choices."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from typing import Any

from idumb.domain.decision import Choice
from idumb.lazy_dataclass import dataclass

HINT = "{hint}"
"""A choice whose command is the hint of the error, verbatim."""


@dataclass(frozen=True, slots=True)
class Row:
    """`blocked` says what cannot continue. The commands of `ways` name details in braces: `idumb show {task}`."""

    blocked: str
    ways: tuple[Choice, ...]


def row(blocked: str, *ways: Choice) -> Row:
    return Row(blocked, ways)


def way(id: str, text: str, consequence: str = "then run the command again", command: str | None = None) -> Choice:
    """Return a choice; without a command if a person must do something that no command does."""
    return Choice(id, text, consequence, command)


def look(text: str, command: str, id: str = "look") -> Choice:
    """Return a choice that changes nothing."""
    return Choice(id, text, READ_ONLY, command)


def names(command: str) -> tuple[str, ...]:
    """Return the details that a command needs."""
    return tuple(name for _, name, _, _ in string.Formatter().parse(command) if name)


def filled(command: str | None, hint: str | None, details: Mapping[str, Any]) -> str | None:
    """Return the command with its details filled in; None if one is unknown, so that nobody runs half a command."""
    if command is None or command == HINT:
        return hint if command == HINT else None
    values = {name: details.get(name) for name in names(command)}
    if any(value is None for value in values.values()):
        return None
    whole = len(values) == 1 and command == f"{{{names(command)[0]}}}"  # the detail is a whole command, already quoted
    return command.format_map({name: str(v) if whole else shlex.quote(str(v)) for name, v in values.items()})


READ_ONLY = "this only reads"
STATUS = look("see the state of the run", "idumb status")
DOCTOR = look("see what is wrong and how to fix it", "idumb doctor", "examine")
FIX = way(
    "fix", "fix everything that is safe to fix", "idumb keeps a copy of every file it replaces", "idumb doctor --fix"
)
