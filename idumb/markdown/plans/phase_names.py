"""Interpret the names of phase folders and plan files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from idumb.domain import whole_numbers

_DIGITS = r"\d+[A-Za-z]?(?:\.\d+[A-Za-z]?)*"
_NUMBER = re.compile(rf"{_DIGITS}(?=$|[-_ ])")
_OTHER = re.compile(rf"(?:phase[-_ ]?|[A-Z]{{1,6}}-)?({_DIGITS})(?=$|[-_ ]|\.(?!\d))", re.IGNORECASE)
_TEXT = (-1, 0, "")  # before every number
_PARTS = re.compile(r"\d+|\D+")


def number(name: str) -> str | None:
    """Return the phase of a folder: `01-name` → `01`, `06.1` → `06.1`; None without a leading number."""
    m = _NUMBER.match(name)
    return m[0] if m else None


def other_number(name: str) -> str | None:
    """Return the phase of a folder with an alternative name: `phase-1`, `Phase 01`, `CK-01-auth`, `01.auth`."""
    m = _OTHER.match(name) if number(name) is None else None
    return m[1] if m else None


def numbered(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (number, folder) of every phase. An alternative name counts if no other folder has its number."""
    folders = list(names)
    by_number = [(n, name) for name in folders if (n := number(name)) is not None]
    taken = {_bare(n) for n, _ in by_number}
    others = ((n, name) for name in folders if (n := other_number(name)) is not None)
    return [*by_number, *((n, name) for n, name in others if _bare(n) not in taken)]


def same_phase(first: str, second: str) -> bool:
    """Whether two spellings mean one phase; leading zeros do not count (`1` and `01`, `6.1` and `06.1`)."""
    return _bare(first) == _bare(second)


def _bare(phase: str) -> str:
    bare = phase.lstrip("0")
    return (bare if bare[:1].isdigit() else "0" + bare if len(bare) < len(phase) else bare).casefold()


def matching_folders(names: Iterable[str], phase: str) -> list[str]:
    """Return the folders of a phase in natural order: `1`, `01` and `01-name` for `1`.

    If there is none, return those with alternative names. The caller reports none or several.
    """
    folders = list(names)
    matches = [name for name in folders if name == phase or ((n := number(name)) is not None and same_phase(n, phase))]
    if not matches:
        matches = [name for name in folders if (n := other_number(name)) is not None and same_phase(n, phase)]
    return sorted(matches, key=natural)


def plan_files(names: Iterable[str]) -> list[str]:
    """Return the plans of a folder, `*PLAN.md`, in natural order (`2-PLAN.md` before `10-PLAN.md`)."""
    return sorted((name for name in names if name.endswith("PLAN.md") and not name.startswith(".")), key=natural)


def natural(name: str) -> tuple[list[tuple[tuple[int, int, str], str]], str]:
    """Return the key that sorts `2-PLAN.md` before `10-PLAN.md`."""
    parts = [(whole_numbers.sort_key(p), "") if p[0].isdecimal() else (_TEXT, p) for p in _PARTS.findall(name)]
    return parts, name
