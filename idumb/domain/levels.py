"""Levels of criticality: what a gate's or a role's failure means, and for how long it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idumb.domain.settings import Settings

INFORMATIONAL = 0
ADVISORY = 1
CRITICAL = 2

GATE = "gate"
ROLE = "role"


@dataclass(frozen=True, slots=True)
class Level:
    """Times in seconds: the shortest and the longest that may be configured, and the usual one. None is no limit."""

    number: int
    means: str
    shortest: int | None = None
    longest: int | None = None
    usual: int | None = None


LEVELS: Mapping[int, Level] = {
    INFORMATIONAL: Level(INFORMATIONAL, "is reported and blocks nothing"),
    ADVISORY: Level(ADVISORY, "blocks execution", 30, 5 * 60, 2 * 60),
    CRITICAL: Level(CRITICAL, "blocks approval and execution", 10, 60, 60),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for one gate or role. `timeout` is in seconds; None is none."""

    name: str
    kind: str
    level: int
    timeout: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "level": self.level, "timeout": self.timeout}


KNOWN: Mapping[str, tuple[str, int]] = {"limits": (GATE, ADVISORY), "validator": (ROLE, ADVISORY)}
"""Kind and level, unless configured. Gates count what is there already, so only roles have a time."""


def rule(settings: Settings, name: str) -> Rule:
    """The rule of a gate or role; those that nobody knows, a third party's, are advisory gates."""
    kind, usual = KNOWN.get(name, (GATE, ADVISORY))
    own = settings.gates.get(name)
    level = usual if own is None or own.level is None else own.level
    timeout = None if kind == GATE else _timeout(settings, level, own.timeout if own else None)
    return Rule(name, kind, level, timeout)


def rules(settings: Settings) -> tuple[Rule, ...]:
    return tuple(rule(settings, name) for name in KNOWN)


def _timeout(settings: Settings, level: int, own: int | None) -> float | None:
    if own is not None:
        return float(own)
    of_level = settings.levels.get(str(level))
    if of_level is not None:
        return float(of_level)
    # `run.validator_timeout` is older than levels, and is meant by those who set it.
    usual = settings.run.validator_timeout if level == ADVISORY else LEVELS[level].usual
    return None if usual is None else float(usual)


def problem(level: int, timeout: int) -> str | None:
    """What a timeout of this level must be, in words, where it is not."""
    known = LEVELS[level]
    if known.shortest is None or known.longest is None:
        return "absent: level 0 has no timeout"
    if known.shortest <= timeout <= known.longest:
        return None
    return f"between {known.shortest}s and {known.longest}s, as level {level} has it"
