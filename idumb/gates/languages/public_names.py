"""The public names of a source file, and what a change of them means for callers.

A difference is certain only where the language says it: what may or may not break a caller is `UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from idumb import lazy_pattern

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
    """One public name. `text` is what else callers rely on, such as a result.

    `exact`: another type breaks callers. `inherits`: it may have more members than its own text names.
    """

    kind: str
    parameters: tuple[Parameter, ...] = ()
    text: str = ""
    members: Mapping[str, Public] = {}
    exact: bool = False
    inherits: bool = False


class Difference(NamedTuple):
    """`change` is one of CLASSES, or UNKNOWN."""

    change: str
    words: str


Surface = Mapping[str, Public]
"""The public names of a file or type. A name with ALL stands for names that another file defines."""
ALL = "*"


def compare(
    before: Surface, after: Surface, owner: str = "", *, adding: str = EXTENDING, inherits: bool = False
) -> Iterator[Difference]:
    """Yield what happened to public names; `adding` is the class of a new one.

    A name that may come from elsewhere now (`inherits`, ALL) was perhaps not removed.
    """
    elsewhere = inherits or any(ALL in key for key in after)
    for key, old in before.items():
        name = owner + key
        new = after.get(key)
        if new is None:
            yield Difference(UNKNOWN if elsewhere or old.kind == REEXPORT else BREAKING, f"{name} was removed")
        elif REEXPORT in (old.kind, new.kind):
            continue
        elif old.kind != new.kind:
            yield Difference(UNKNOWN, f"{name} was a {old.kind} and is a {new.kind}")
        else:
            yield from _of_name(name, old, new)
    for key in after:
        if key not in before:
            yield Difference(UNKNOWN if ALL in key else adding, f"{owner}{key} was added")


def _of_name(name: str, old: Public, new: Public) -> Iterator[Difference]:
    if old.kind == FUNCTION:
        yield from _of_parameters(name, old, new)
    if old.text != new.text and (old.exact or (old.text and new.text)):
        words = f"{name} has another result" if old.kind == FUNCTION else f"{name} has another type"
        yield Difference(_of_types(old, old.text, new.text), words)
    if old.kind == OPEN and bool(old.text) != bool(new.text):  # spelled out on one side only
        yield Difference(UNKNOWN, f"{name} is declared in another way")
        return
    adding = UNKNOWN if old.kind == OPEN else EXTENDING
    yield from compare(old.members, new.members, f"{name}.", adding=adding, inherits=new.inherits)


_WORD = lazy_pattern.compile(r"[^\W\d]\w*")
_BUILT_IN = lazy_pattern.compile(
    r"(?:[fiu]|u?int|float|complex)(?:8|16|32|64|128)|u?int(?:ptr)?|[iu]size|any|bool(?:ean)?|byte|char|double|error|float"
    r"|long|rune|short|str(?:ing)?|void|chan|const|dyn|final|fn|func|impl|interface|map|mut|self|struct"
    r"|Boolean|Box|Integer|List|Long|Map|Object|Option|Result|Set|String|Vec"
)
"""Words in types of Go, Rust and Java that mean the same in every file."""


def _of_types(public: Public, old: str, new: str) -> str:
    """Return the class of another type. If it has other names, one may be another name of the same type."""
    names = ({word for word in _WORD.findall(text) if not _BUILT_IN.fullmatch(word)} for text in (old, new))
    return BREAKING if public.exact and next(names) == next(names) else UNKNOWN


def _of_parameters(name: str, old: Public, new: Public) -> Iterator[Difference]:
    before, after = old.parameters, new.parameters
    for number, (one, other) in enumerate(zip(before, after, strict=False), 1):
        if one.type != other.type and (old.exact or (one.type and other.type)):
            yield Difference(_of_types(old, one.type, other.type), f"{name} has another type of parameter {number}")
        if other.required and one.required is False:
            yield Difference(BREAKING, f"{name} now requires parameter {number}")
    certain = all(each.required is not None for each in (*before, *after))
    if len(after) < len(before):
        yield Difference(
            BREAKING if certain else UNKNOWN, f"{name} takes {len(after)} instead of {len(before)} parameters"
        )
    for number, added in enumerate(after[len(before) :], len(before) + 1):
        change = {True: BREAKING, False: UNKNOWN if old.exact else EXTENDING, None: UNKNOWN}[added.required]
        yield Difference(change, f"{name} has a new parameter {number}")
