"""The gates in the order in which they run. What each requires, why, and how to get past it: docs/gates.md."""

from __future__ import annotations

from idumb.lazy_dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class Row:
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
