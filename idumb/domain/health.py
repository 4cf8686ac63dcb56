"""What `idumb doctor` finds: small checks, each with a stable code, and what follows from what they see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

OK = "ok"
WARN = "warn"
PROBLEM = "problem"
NOT_EXAMINED = "not examined"
_ORDER = (OK, WARN, PROBLEM)


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that a check saw. `mend` is the next command or step; `mends`: `idumb doctor --fix` does it itself.

    `subject` is what the mend works on (a ref, a phase, a path), for the check that found it alone.
    """

    state: str
    found: str
    path: str = ""
    means: str = ""
    mend: str = ""
    mends: bool = False
    subject: str = ""


def warn(found: str, path: str = "", *, means: str, mend: str = "", mends: bool = False, subject: str = "") -> Symptom:
    return Symptom(WARN, found, path, means, mend, mends, subject)


def problem(
    found: str, path: str = "", *, means: str, mend: str = "", mends: bool = False, subject: str = ""
) -> Symptom:
    return Symptom(PROBLEM, found, path, means, mend, mends, subject)


def passed(found: str, path: str = "") -> Symptom:
    return Symptom(OK, found, path)


Look = Callable[[], Iterable[Symptom]]
Mend = Callable[[Symptom], str]


@dataclass(frozen=True, slots=True)
class Check:
    """`look` only reads. `mend` gives what it did in one line; all that it replaces is set aside, never deleted.

    `alone`: it is mended without the right to write to the log being held for it: the log itself is what is mended, or
    the mend takes that right.
    """

    code: str
    about: str
    look: Look
    mend: Mend | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check that was made, with all that it saw; no symptom at all is as good as OK."""

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
            "symptoms": [_plain(symptom) for symptom in self.symptoms],
        }


def worst(states: Iterable[str]) -> str:
    return max(states, key=_ORDER.index, default=OK)


def count(seen: Sequence[CheckResult]) -> dict[str, int]:
    """Checks by state; those that another cause kept from being made are no warnings."""
    skipped = [one for one in seen if any(symptom.found == NOT_EXAMINED for symptom in one.symptoms)]
    made = [one for one in seen if one not in skipped]
    return {state: sum(1 for one in made if one.state == state) for state in _ORDER} | {"not_examined": len(skipped)}


def _plain(symptom: Symptom) -> dict[str, Any]:
    return {
        "state": symptom.state,
        "found": symptom.found,
        "path": symptom.path,
        "means": symptom.means,
        "mend": symptom.mend,
        "mends": symptom.mends,
    }
