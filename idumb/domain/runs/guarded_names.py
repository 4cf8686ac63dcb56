"""The names and digests of the guarded files in the log, and what differs between two records of them.

The digests of files that earlier versions did not guard begin with `OUTSIDE`, so that a record of such a version can be
compared with the present.
"""

from __future__ import annotations

from collections.abc import Mapping

SCOPE, EVERYWHERE = "(scope)", "2"
"""The entry of a record that covers all files that git reads; records of earlier versions do not have it."""
OUTSIDE = "2:"
INDEX = ".git/index"


def in_tree(name: str) -> bool:
    """Return whether a name is the path of a file in the working tree."""
    return not name.startswith((".git/", "~/", "/")) and name != SCOPE


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names whose digests differ, without the files that one of the two records does not cover."""
    names = {*before, *after} - {SCOPE}
    if before.get(SCOPE) != after.get(SCOPE):
        newer = after if SCOPE in after else before
        names -= {name for name, digest in newer.items() if digest.startswith(OUTSIDE)}
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def how(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return whether a file that changed is new or was removed; "" if it has other bytes or another mode."""
    if name not in before:
        return "new"
    return "" if name in after else "removed"
