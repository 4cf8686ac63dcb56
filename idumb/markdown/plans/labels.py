"""The ids of tasks, and the labels of their fields with the accepted spellings."""

from __future__ import annotations

import re
from functools import lru_cache

from idumb import lazy_pattern
from idumb.domain import whole_numbers
from idumb.domain.finding import nearest

# Field name (as in `Task`) and its labels; messages show the first.
FIELDS: dict[str, tuple[str, ...]] = {
    "kind": ("Kind",),
    "requirements": ("Requirements",),
    "depends_on": ("Depends on", "Dependencies", "Blocked by"),
    "files": ("Files", "Files involved", "Files likely affected"),
    "symbols": ("Symbols",),
    "interfaces": ("Interfaces",),
    "acceptance": ("Acceptance", "Acceptance criteria", "Done when"),
    "verify": ("Verify",),
    "tests": ("Tests",),
    "preconditions": ("Preconditions",),
    "postconditions": ("Postconditions",),
    "invariants": ("Invariants",),
    "change": ("Change", "Semantic class"),
    "limits": ("Limits",),
    "rollback": ("Rollback",),
    "on_failure": ("On failure", "Severity"),
    "estimate": ("Estimate",),
    "timeout": ("Timeout",),
    "on_timeout": ("On timeout",),
    "reads": ("Reads",),
    "writes": ("Writes",),
    "owns": ("Owns",),
    "parallel": ("Parallel",),
    "builder": ("Builder",),
    "validator": ("Validator",),
    "handoff_to": ("Handoff to",),
    "priority": ("Priority",),
    "options": ("Options",),
    "notes": ("Notes",),
    "references": ("References",),
    "tags": ("Tags",),
    "assigned_to": ("Assigned to",),
}
SHOWN = {name: labels[0] for name, labels in FIELDS.items()}

_GAPS = lazy_pattern.compile(r"[\s_-]+")


def _singular(word: str) -> str:
    if word == "criteria":
        return "criterion"
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _folded(label: str) -> str:
    return " ".join(_singular(word) for word in _GAPS.split(label.strip().casefold()) if word)


_BY_LABEL = {_folded(label): name for name, labels in FIELDS.items() for label in labels}


@lru_cache(maxsize=1024)
def field_name(label: str) -> str | None:
    """Return the field name of a label, `x-…` for a custom label, or None for an unknown one."""
    stripped = label.strip()
    if stripped[:2] in {"x-", "X-"} and len(stripped) > 2:
        return "x-" + stripped[2:]
    return _BY_LABEL.get(_folded(stripped))


@lru_cache(maxsize=1024)
def nearest_label(label: str) -> str | None:
    """Return the nearest label, or None."""
    return nearest(label.strip(), [spelling for spellings in FIELDS.values() for spelling in spellings])


@lru_cache(maxsize=1024)
def nearest_key(key: str, extra: tuple[str, ...]) -> str | None:
    """Return the nearest key of a YAML task, or None."""
    return nearest(key.strip(), [*FIELDS, *extra])


_SEQUENCE = lazy_pattern.compile(rf"\d{{2,{whole_numbers.MOST_DIGITS}}}[a-z]?", re.ASCII)


def is_task_id(text: str, phase: str) -> bool:
    """Whether `text` is a task id of the phase, with the phase spelled as in the frontmatter."""
    prefix = f"T{phase}-"
    return text.startswith(prefix) and _SEQUENCE.fullmatch(text, len(prefix)) is not None
