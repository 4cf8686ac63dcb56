"""How a part of a shell script can end, and how sequences, lists, pipes and branches combine that."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain.plans.simple_command import SimpleCommand
from idumb.lazy_dataclass import dataclass

PIPE, FALLBACK, SEQUENCE, BACKGROUND, CONDITION, LOOP = (
    "pipe",
    "fallback",
    "sequence",
    "background",
    "condition",
    "loop",
)


@dataclass(frozen=True, slots=True)
class Status:
    """How a part of the script can end.

    `decisive` commands make it fail if they fail; `fatal` ones end the whole script. `constant` is its exit code if
    that never varies. `last` is the command whose exit code it has.
    """

    decisive: tuple[SimpleCommand, ...] = ()
    fatal: tuple[SimpleCommand, ...] = ()
    hidden: tuple[tuple[SimpleCommand, str, str], ...] = ()
    constant: bool | None = None
    exits: bool = False
    last: str = ""


class Unreadable(Exception):
    """The text decides by itself, or is not a script."""


def in_background(part: Status) -> Status:
    lost = tuple((simple, BACKGROUND, "") for simple in (*part.decisive, *part.fatal))
    return Status(hidden=(*part.hidden, *lost), constant=True, last="&")


def in_sequence(status: Status, part: Status) -> Status:
    """Return the status of two commands in sequence: the second one decides."""
    if status.exits:
        raise Unreadable
    fatal = set(status.fatal)
    lost = tuple((simple, SEQUENCE, part.last) for simple in status.decisive if simple not in fatal)
    return Status(
        part.decisive,
        (*status.fatal, *part.fatal),
        (*status.hidden, *lost, *part.hidden),
        part.constant,
        part.exits,
        part.last,
    )


def both(left: Status, right: Status) -> Status:
    if right.exits and right.constant:
        raise Unreadable  # `… && exit 0` leaves the rest to the commands below
    constant = right.constant if left.constant else None if left.constant is None else False
    if left.constant is None and right.constant is False:
        constant = False
    return Status(
        (*left.decisive, *right.decisive),
        (*left.fatal, *right.fatal),
        (*left.hidden, *right.hidden),
        constant,
        last=right.last,
    )


def either(left: Status, right: Status, fallback: str) -> Status:
    fatal, hidden = (*left.fatal, *right.fatal), (*left.hidden, *right.hidden)
    if right.constant is True and not right.decisive:
        lost = tuple((simple, FALLBACK, fallback) for simple in left.decisive)
        return Status((), fatal, (*hidden, *lost), constant=True, last=right.last)
    if right.constant is False:
        more = left.decisive if right.exits else ()
        return Status(left.decisive, (*fatal, *more), hidden, left.constant, last=left.last)
    return Status((*left.decisive, *right.decisive), fatal, hidden, last=right.last)


def piped(parts: Sequence[Status], *, pipefail: bool) -> Status:
    last = parts[-1]
    hidden = tuple(entry for part in parts for entry in part.hidden)
    before = [simple for part in parts[:-1] for simple in (*part.decisive, *part.fatal)]
    if pipefail:
        return Status((*before, *last.decisive, *last.fatal), (), hidden, last.constant, last=last.last)
    passive = all(simple.is_filter for simple in last.decisive)
    lost = (simple for simple in before if (passive and (not simple.is_filter or simple.decides)) or simple.tests)
    hidden = (*hidden, *((simple, PIPE, last.last) for simple in lost))
    return Status((*last.decisive, *last.fatal), (), hidden, last.constant, last=last.last)


def branched(tests: Sequence[Status], branches: Sequence[Status], otherwise: Status | None) -> Status:
    """Return the status of `if`: a condition decides only if one of its outcomes can fail."""
    everything = [*tests, *branches, *([otherwise] if otherwise else [])]
    hidden = tuple(entry for status in everything for entry in status.hidden)
    results = [*branches, *([otherwise] if otherwise else [])]
    decisive = tuple(simple for status in results for simple in status.decisive)
    fatal = tuple(simple for status in results for simple in status.fatal)
    if any(status.exits and status.constant for status in results):
        raise Unreadable
    conditions = tuple(simple for status in tests for simple in status.decisive)
    last = results[-1].last
    if any(status.constant is False for status in results) or (otherwise is not None and otherwise.decisive):
        exits = any(status.exits for status in results)
        return Status((*conditions, *decisive), (*fatal, *(conditions if exits else ())), hidden, last=last)
    lost = tuple((simple, CONDITION, last) for simple in conditions if simple.is_tool)
    return Status(decisive, fatal, (*hidden, *lost), last=last)
