"""The checks of `idumb doctor` and their results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

OK = "ok"
WARN = "warn"
PROBLEM = "problem"
NOT_EXAMINED = "not examined"
_ORDER = (OK, WARN, PROBLEM)


class Symptom(Struct, frozen=True):
    """One result of a check. `fix` is the next command or step; `fixes` means that `idumb doctor --fix` does it.

    `subject` is what the fix works on (a ref, a phase, a path), for the check that reported it.
    """

    state: str
    found: str
    path: str = ""
    means: str = ""
    fix: str = ""
    fixes: bool = False
    subject: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "subject"}


warn = functools.partial(Symptom, WARN)
problem = functools.partial(Symptom, PROBLEM)
passed = functools.partial(Symptom, OK)

Look = Callable[[], Iterable[Symptom]]
Fix = Callable[[Symptom], str]


class Check(Struct, frozen=True):
    """`look` only reads. `fix` applies the fix and returns what it did in one line.

    It keeps a copy of all it replaces.

    `alone`: the fix runs without the write lock, because it repairs the log itself or takes the lock itself.
    """

    code: str
    about: str
    look: Look
    fix: Fix | None = None
    alone: bool = False


class CheckResult(Struct, frozen=True):
    """The result of a check. No symptoms means OK."""

    check: Check
    symptoms: tuple[Symptom, ...]

    @property
    def state(self) -> str:
        return worst(symptom.state for symptom in self.symptoms)

    def as_dict(self) -> dict[str, Any]:
        return {
            "code": self.check.code,
            "about": self.check.about,
            "state": self.state,
            "symptoms": [symptom.as_dict() for symptom in self.symptoms],
        }


def worst(states: Iterable[str]) -> str:
    return max(states, key=_ORDER.index, default=OK)


def count(seen: Sequence[CheckResult]) -> dict[str, int]:
    """Return the number of checks by state. Checks that another problem prevented are not warnings."""
    skipped = [check for check in seen if any(symptom.found == NOT_EXAMINED for symptom in check.symptoms)]
    examined = [check for check in seen if check not in skipped]
    return {state: sum(1 for check in examined if check.state == state) for state in _ORDER} | {
        "not_examined": len(skipped)
    }
