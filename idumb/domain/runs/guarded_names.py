"""The names of the guarded files in the log, and what differs between two records of them."""

from __future__ import annotations

from collections.abc import Mapping

INDEX = ".git/index"


def in_tree(name: str) -> bool:
    """Return whether a name is the path of a file in the working tree."""
    return not name.startswith((".git/", "~/", "/"))


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names whose digests differ."""
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def how(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return whether a file that changed is new or was removed; "" if it has other bytes or another mode."""
    if name not in before:
        return "new"
    return "" if name in after else "removed"
