"""Compares the public names of two texts of a Python module, with griffe. It parses them and never imports them."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from idumb.gates.languages import python_source

PRESERVING = "preserving"
EXTENDING = "extending"
MODIFYING = "modifying"
BREAKING = "breaking"
CLASSES = (PRESERVING, EXTENDING, MODIFYING, BREAKING)
"""The classes of a change, the harmless ones first."""
UNKNOWN = "unknown"


class Difference(NamedTuple):
    """`change` is one of CLASSES, or UNKNOWN: what may or may not break a caller."""

    change: str
    words: str


def compare(module: str, before: str, after: str) -> list[Difference] | None:
    """Return what happened to the public names; None if one of the texts cannot be parsed, or only too slowly."""
    import warnings

    if any(map(_is_slow, (before, after))):
        return None
    import griffe

    logging.getLogger("griffe").setLevel(logging.CRITICAL)  # about names that other files define
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the user's strings
            path: Any = PurePosixPath(f"{module}.py")
            old, new = (griffe.visit(module, path, text) for text in (before, after))
            return [*_broken(griffe, old, new), *_added(old, new, "")]
    except (SyntaxError, ValueError, RecursionError, MemoryError, griffe.GriffeError):
        return None


def _is_slow(text: str) -> bool:
    """Return whether griffe would take too long: for each assigned name it goes through all others."""
    return (python_source.read(text, _assigned) or 0) > _MOST_ASSIGNED


def _assigned(tree: ast.Module) -> int:
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return sum(isinstance(each, ast.Assign | ast.AnnAssign) for block in blocks for each in block)


_MOST_ASSIGNED = 2500


def _broken(griffe: Any, old: Any, new: Any) -> Iterator[Difference]:
    kind = griffe.BreakageKind
    words = {
        kind.OBJECT_REMOVED: (BREAKING, "was removed"),
        kind.PARAMETER_REMOVED: (BREAKING, "no longer takes {}"),
        kind.PARAMETER_MOVED: (BREAKING, "takes {} at another position"),
        kind.PARAMETER_CHANGED_KIND: (BREAKING, "takes {} in another way"),
        kind.PARAMETER_CHANGED_REQUIRED: (BREAKING, "now requires {}"),
        kind.PARAMETER_ADDED_REQUIRED: (BREAKING, "now requires {}"),
        kind.PARAMETER_CHANGED_DEFAULT: (MODIFYING, "has another default of {}"),
        kind.CLASS_REMOVED_BASE: (BREAKING, "lost a base class"),
    }
    for breakage in griffe.find_breaking_changes(old, new):
        name = breakage.obj.path.partition(".")[2]
        change, text = words.get(breakage.kind, (UNKNOWN, ""))
        if breakage.kind is kind.OBJECT_REMOVED and _may_come_from_elsewhere(new, name):
            change = UNKNOWN
        parameter = getattr(breakage.old_value or breakage.new_value, "name", "")
        if breakage.kind is kind.OBJECT_CHANGED_KIND:
            # An assigned function can be called like a defined one; a property cannot.
            certain = "property" in getattr(breakage.obj, "labels", ())
            now = "a property" if certain else f"of kind {breakage.new_value}"
            yield Difference(BREAKING if certain else UNKNOWN, f"{name} was of kind {breakage.old_value} and is {now}")
        elif breakage.kind is kind.CLASS_REMOVED_BASE:
            lost = {str(base) for base in breakage.old_value} - {str(base) for base in breakage.new_value}
            if lost - {"object"}:
                # A new base may inherit from the lost one; who declares type parameters needs no base for them.
                certain = not breakage.new_value and not any(base.startswith("Generic") for base in lost)
                yield Difference(BREAKING if certain else UNKNOWN, f"{name} {text}")
        elif text:
            yield Difference(change, f"{name} {text.format(parameter)}")


def _may_come_from_elsewhere(new: Any, name: str) -> bool:
    """Return whether a name that its module or class no longer defines may be inherited, generated or imported."""
    owner = new
    for part in name.split(".")[:-1]:
        owner = owner.members.get(part)
        if owner is None or not owner.is_class:
            return False
    if owner.is_module:
        return any(member.is_alias and member.wildcard for member in owner.members.values())
    return bool(owner.decorators) or any(str(base) != "object" for base in owner.bases)


def _added(old: Any, new: Any, owner: str) -> Iterator[Difference]:
    """Yield new public names, and new optional parameters."""
    for name, member in new.members.items():
        if not member.is_public or member.is_alias:
            continue
        before = old.members.get(name)
        if before is None:
            yield Difference(EXTENDING, f"{owner}{name} was added")
        elif member.is_class and before.is_class:
            yield from _added(before, member, f"{owner}{name}.")
        elif member.is_function and before.is_function:
            taken = {parameter.name for parameter in before.parameters}
            optional = [p.name for p in member.parameters if p.name not in taken and not p.required]
            yield from (Difference(EXTENDING, f"{owner}{name} takes a new {parameter}") for parameter in optional)
