"""The fields of a task: one row each, with its labels and its reader. The labels of bullets, known or not."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from idumb.domain.plans import plan
from idumb.markdown.plans import criteria, values
from idumb.markdown.plans.values import choice
from idumb.markdown.syntax.record import Reader


class Row(NamedTuple):
    """`fences`: it can hold `sh` fences. `both`: it can be on its line and below. `map`: in YAML, it can be a map."""

    labels: tuple[str, ...]  # messages show the first
    read: Reader
    fences: bool = False
    both: bool = False
    map: bool = False


FIELDS: dict[str, Row] = {
    "kind": Row(("Kind",), choice(*plan.KINDS)),
    "requirements": Row(("Requirements",), values.declared("requirement")),
    "depends_on": Row(("Depends on", "Dependencies", "Blocked by"), values.dependencies),
    "files": Row(("Files", "Files involved", "Files likely affected"), values.files, map=True),
    "symbols": Row(("Symbols",), values.symbols),
    "interfaces": Row(("Interfaces",), values.interfaces, map=True),
    "acceptance": Row(("Acceptance", "Acceptance criteria", "Done when"), criteria.of_task),
    "verify": Row(("Verify",), values.commands, fences=True),
    "tests": Row(("Tests",), values.tests),
    "preconditions": Row(("Preconditions",), values.conditions),
    "postconditions": Row(("Postconditions",), values.conditions),
    "invariants": Row(("Invariants",), values.declared("invariant")),
    "change": Row(("Change", "Semantic class"), choice("preserving", "extending", "modifying", "breaking")),
    "limits": Row(("Limits",), values.limits, both=True, map=True),
    "rollback": Row(("Rollback",), values.rollback, fences=True, both=True, map=True),
    "on_failure": Row(("On failure", "Severity"), choice("block", "retry", "ask")),
    "estimate": Row(("Estimate",), values.duration),
    "timeout": Row(("Timeout",), values.duration),
    "on_timeout": Row(("On timeout",), choice("fail", "skip", "retry")),
    "reads": Row(("Reads",), values.paths),
    "writes": Row(("Writes",), values.paths),
    "owns": Row(("Owns",), values.paths),
    "parallel": Row(("Parallel",), values.yes),
    "builder": Row(("Builder",), values.name),
    "validator": Row(("Validator",), values.name),
    "handoff_to": Row(("Handoff to",), values.handoffs),
    "replaces": Row(("Replaces",), values.names),
    "priority": Row(("Priority",), choice("critical", "high", "normal", "low")),
    "options": Row(("Options",), values.options, map=True),
    "notes": Row(("Notes",), values.free_text),
    "references": Row(("References",), values.free_text),
    "tags": Row(("Tags",), values.free_text),
    "assigned_to": Row(("Assigned to",), values.free_text),
}
OWN = Row(("x-…",), values.free_text)
LABELS = tuple(label for row in FIELDS.values() for label in row.labels)
ALONE = ("id", "title", "description", "steps")
"""Keys that only YAML tasks have."""

_LONGEST = 60  # characters of a label
_BOLD = re.compile(r"(\*\*|__)(.{1,60}?)(:?)\s*\1\s*(:?)\s*", re.DOTALL)
_PLAIN = re.compile(r"([^:`\n]{1,60}?)\s*:\s*")
_END = re.compile(r"[\uff1a]|\s[—–]\s")
_TRAILING = " \t:\uff1a"
_GAPS = re.compile(r"[\s_-]+")


def _singular(word: str) -> str:
    if word == "criteria":
        return "criterion"
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _folded(label: str) -> str:
    return " ".join(_singular(word) for word in _GAPS.split(label.strip().casefold()) if word)


_BY_LABEL = {_folded(label): name for name, row in FIELDS.items() for label in row.labels}


@lru_cache(maxsize=1024)
def field_name(label: str) -> str | None:
    """Return the field name of a label, `x-…` for a custom label, or None for an unknown one."""
    stripped = label.strip()
    if stripped[:2] in {"x-", "X-"} and len(stripped) > 2:
        return "x-" + stripped[2:]
    return _BY_LABEL.get(_folded(stripped))


class Label(NamedTuple):
    """The label at the start of a bullet. `name` is None for an unknown label."""

    shown: str
    name: str | None
    colon: bool
    end: int

    @property
    def field(self) -> str:
        """Return the name of the field that starts here, or nothing."""
        return self.name if self.name and self.colon else ""


_NONE = Label("", None, colon=False, end=0)


def label_of(text: str) -> Label:
    """Return the label at the start of a bullet, known or not."""
    m = _BOLD.match(text)
    if m:
        shown = m[2].rstrip(_TRAILING)
        return Label(shown, field_name(shown), bool(m[3] or m[4]), m.end())
    m = _PLAIN.match(text)
    if m:
        return Label(m[1], field_name(m[1]), colon=True, end=m.end())
    head = _END.split(text[:200], maxsplit=1)[0].strip()
    name = field_name(head) if len(head) <= _LONGEST and (head == text or "\uff1a" in text) else None
    return Label(head, name, colon=False, end=len(text)) if name else _NONE
