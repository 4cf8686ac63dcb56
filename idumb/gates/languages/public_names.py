"""The public names of a source file, and what a change of them means for callers.

A difference is certain only where the language says it: what may or may not break a caller is `UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

PRESERVING = "preserving"
EXTENDING = "extending"
MODIFYING = "modifying"
BREAKING = "breaking"
CLASSES = (PRESERVING, EXTENDING, MODIFYING, BREAKING)
"""The classes of a change, the harmless ones first."""
UNKNOWN = "unknown"

FUNCTION = "function"
OPEN = "interface"
"""A type that others implement or match exhaustively: a new member may break them."""
CLOSED = "type"
VALUE = "value"
REEXPORT = "re-export"


class Parameter(NamedTuple):
    """`type` is its text, "" if the source names none. `required` is None if the language does not say."""

    type: str
    required: bool | None


class Public(NamedTuple):
    """One public name. `text` is what else callers rely on, such as a result. `exact`: any other text breaks them."""

    kind: str
    parameters: tuple[Parameter, ...] = ()
    text: str = ""
    members: Mapping[str, Public] = {}
    exact: bool = False


class Difference(NamedTuple):
    """`change` is one of CLASSES, or UNKNOWN."""

    change: str
    words: str


Surface = Mapping[str, Public]


def compare(before: Surface, after: Surface, owner: str = "", *, adding: str = EXTENDING) -> Iterator[Difference]:
    """Yield what happened to public names; `adding` is the class of a new one."""
    for key, old in before.items():
        name = owner + key
        new = after.get(key)
        if new is None:
            yield Difference(UNKNOWN if old.kind == REEXPORT else BREAKING, f"{name} was removed")
        elif REEXPORT in (old.kind, new.kind):
            continue
        elif old.kind != new.kind:
            yield Difference(UNKNOWN, f"{name} was a {old.kind} and is a {new.kind}")
        else:
            yield from _of_name(name, old, new)
    yield from (Difference(adding, f"{owner}{key} was added") for key in after if key not in before)


def _of_name(name: str, old: Public, new: Public) -> Iterator[Difference]:
    if old.kind == FUNCTION:
        yield from _of_parameters(name, old, new)
    if old.text != new.text and (old.exact or (old.text and new.text)):
        words = f"{name} has another result" if old.kind == FUNCTION else f"{name} has another type"
        yield Difference(BREAKING if old.exact else UNKNOWN, words)
    yield from compare(old.members, new.members, f"{name}.", adding=UNKNOWN if old.kind == OPEN else EXTENDING)


def _of_parameters(name: str, old: Public, new: Public) -> Iterator[Difference]:
    before, after = old.parameters, new.parameters
    for number, (one, other) in enumerate(zip(before, after, strict=False), 1):
        if one.type != other.type and (old.exact or (one.type and other.type)):
            yield Difference(BREAKING if old.exact else UNKNOWN, f"{name} has another type of parameter {number}")
        if other.required and one.required is False:
            yield Difference(BREAKING, f"{name} now requires parameter {number}")
    certain = all(each.required is not None for each in (*before, *after))
    if len(after) < len(before):
        yield Difference(
            BREAKING if certain else UNKNOWN, f"{name} takes {len(after)} instead of {len(before)} parameters"
        )
    for number, added in enumerate(after[len(before) :], len(before) + 1):
        change = {True: BREAKING, False: BREAKING if old.exact else EXTENDING, None: UNKNOWN}[added.required]
        yield Difference(change, f"{name} has a new parameter {number}")
