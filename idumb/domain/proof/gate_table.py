"""The gates in the order in which they run, and the levels of gates and roles: their meaning and time.

What each gate requires, why, and how to get past it: docs/gates.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from idumb.domain import agent
from idumb.domain.settings import GateSettings, Settings

PLANNING = "planning"
PRE = "pre"
STEP = "step"
POST = "post"
COMPLETION = "completion"

PLAN = "plan"
LEDGER = "ledger"
CONDITIONS = "conditions"
CRITERIA = "criteria"
INVARIANTS = "invariants"
NON_GOALS = "non-goals"
SYNTAX = "syntax"
SPECIFICATION = "specification"
DESIGN = "design"
CHANGE_CLASS = "change-class"
AGREEMENT = "agreement"
TEST_INTENT = "test-intent"
TYPES = "types"
LINT = "lint"
SIZE = "size"


class Row(Struct, frozen=True):
    """One gate. `level` is the default, `lowest` the lowest level that the configuration may set."""

    name: str
    stage: str
    level: int
    lowest: int
    summary: str


ROWS: tuple[Row, ...] = (
    Row(PLAN, PLANNING, 2, 2, "`check-plan` finds no error"),
    Row(CONDITIONS, PRE, 1, 1, "preconditions hold before a task, postconditions after it"),
    Row(LEDGER, STEP, 1, 1, "a task changes the files and symbols that it declares, and nothing else"),
    Row(CRITERIA, STEP, 1, 1, "acceptance criteria and Verify commands pass on the tree that will be committed"),
    Row(TEST_INTENT, STEP, 1, 1, "declared tests fail before the work and pass after it"),
    Row(INVARIANTS, STEP, 1, 1, "each invariant of the plan holds after each task"),
    Row(NON_GOALS, STEP, 1, 0, "no path and no symbol of a non-goal changed"),
    Row(SYNTAX, STEP, 0, 0, "every changed Python, JSON, YAML and TOML file parses"),
    Row(TYPES, STEP, 0, 0, "the project's type checkers report nothing new"),
    Row(LINT, STEP, 0, 0, "the project's linters report nothing new"),
    Row(SIZE, STEP, 1, 0, "a change stays within the limits of its task"),
    Row(SPECIFICATION, STEP, 0, 0, "new and changed public functions declare inputs, outputs, errors and side effects"),
    Row(DESIGN, STEP, 0, 0, "no new import cycle, and no score below the threshold"),
    Row(CHANGE_CLASS, POST, 0, 0, "the change is not of a higher class than the task declares"),
    Row(
        AGREEMENT,
        COMPLETION,
        0,
        0,
        "plan and ledger, tests and criteria, validator and skeptic do not contradict one another",
    ),
    Row(COMPLETION, COMPLETION, 1, 1, "success criteria, invariants and tests pass on the final tree"),
)
RUNS_COMMANDS = frozenset({CONDITIONS, CRITERIA, TEST_INTENT, INVARIANTS, TYPES, LINT, COMPLETION})
"""`run.check_timeout` limits each command of these. The time of its level limits any other gate."""


def of_name(name: str) -> Row | None:
    """Return the gate of this name."""
    return next((row for row in ROWS if name == row.name), None)


INFORMATIONAL = 0
ADVISORY = 1
CRITICAL = 2

GATE = "gate"
ROLE = "role"

_TIMES: Mapping[int, tuple[int, int, int]] = {ADVISORY: (30, 5 * 60, 2 * 60), CRITICAL: (10, 60, 60)}
"""Seconds by level: the shortest and the longest allowed, and the default. Level 0 has no limit."""


class Rule(Struct, frozen=True):
    """The rule of one gate or role. `timeout` is in seconds; None is none."""

    name: str
    kind: str
    level: int
    timeout: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "level": self.level, "timeout": self.timeout}


_ALWAYS = frozenset({SIZE, agent.VALIDATOR})
"""They are part of the contract also if the configuration does not name them."""
KNOWN: Mapping[str, tuple[str, int]] = {
    **{row.name: (GATE, row.level) for row in ROWS},
    **dict.fromkeys(agent.ROLES, (ROLE, ADVISORY)),
}
"""Kind and default level."""
WITH_COMMANDS = frozenset({TYPES, LINT})
"""Gates whose commands the configuration may name, as it names those of the project's own gates."""


def rule(settings: Settings, name: str) -> Rule:
    """Return the rule of a gate or role; an unknown one, of a third party, is an advisory gate."""
    kind, usual = KNOWN.get(name, (GATE, ADVISORY))
    own = settings.gates.get(name)
    level = usual if own is None or own.level is None else own.level
    timeout = None if own is None or own.timeout is None or kind == ROLE else float(own.timeout)
    if kind == ROLE and level_limits_time(settings, name):
        timeout = _timeout(settings, name, level, own)
    return Rule(name, kind, level, timeout)


def time_to_judge(settings: Settings, name: str) -> float:
    """Return how many seconds a gate that runs no command may take; infinity at level 0."""
    own = rule(settings, name)
    usual = own.timeout if own.timeout is not None else _of_level(settings, own.level)
    return math.inf if usual is None else usual


def _of_level(settings: Settings, level: int) -> float | None:
    usual = _TIMES[level][2] if level in _TIMES else None
    seconds = settings.levels.get(str(level), usual)
    return None if seconds is None else float(seconds)


def of_change(settings: Settings, name: str, *, strict: bool) -> int:
    """Return the level of what a gate of stage `step` or `post` finds in a change.

    In strict mode you approved the class of each change, so that a higher one blocks unless the configuration says
    otherwise.
    """
    if name == CHANGE_CLASS and strict and name not in settings.gates:
        return ADVISORY
    return rule(settings, name).level


def asks_about_non_goals(settings: Settings, *, strict: bool) -> bool:
    """Return whether a person decides about a changed non-goal: in a guided plan, unless the configuration does."""
    own = settings.gates.get(NON_GOALS)
    return not strict and (own is None or own.level is None)


def rules(settings: Settings) -> tuple[Rule, ...]:
    """Return the rules of the validator and the gates, and of other roles that the configuration names."""
    names = (*(n for n in KNOWN if n in _ALWAYS or n in settings.gates), *(n for n in settings.gates if n not in KNOWN))
    return tuple(rule(settings, name) for name in names)


def run_commands(settings: Settings) -> bool:
    """Return whether the configuration names a gate that runs something of the project's."""
    return any(name in WITH_COMMANDS or name not in KNOWN for name in settings.gates)


def level_limits_time(settings: Settings, role: str) -> bool:
    """Whether the level decides how long the role may take; a builder has the timeout of its task."""
    own = settings.gates.get(role)
    overridden = own is not None and (own.level is not None or own.timeout is not None)
    return role == agent.VALIDATOR or (role != agent.BUILDER and overridden)


def _timeout(settings: Settings, name: str, level: int, own: GateSettings | None) -> float | None:
    if own is not None and own.timeout is not None:
        return float(own.timeout)
    # `run.validator_timeout` is older than levels, and users rely on it.
    if name == agent.VALIDATOR and level == ADVISORY and str(level) not in settings.levels:
        return float(settings.run.validator_timeout)
    return _of_level(settings, level)


def timeout_problem(level: int, timeout: int) -> str | None:
    """Return what a timeout of this level must be, in words, or None if it is valid."""
    if level not in _TIMES:
        return "absent: level 0 has no timeout"
    shortest, longest, _ = _TIMES[level]
    return None if shortest <= timeout <= longest else f"between {shortest}s and {longest}s at level {level}"
