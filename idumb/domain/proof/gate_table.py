"""The gates in the order in which they run: when each runs, what it requires, and how to get past it."""

from __future__ import annotations

from idumb.lazy_dataclass import dataclass

PLANNING = "planning"
PRE = "pre"
STEP = "step"
POST = "post"
COMPLETION = "completion"
STAGES = (PLANNING, PRE, STEP, POST, COMPLETION)

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

CHECK_TIMEOUT = "run.check_timeout"
"""The limit of each command that a gate runs."""
LEVELS = "levels"
"""The limit of a whole gate that runs no command: that of its level."""


@dataclass(frozen=True, slots=True)
class Row:
    """One gate.

    - `level`: the default. `lowest`: the lowest level that the configuration may set.
    - `timeout`: the setting that limits it, CHECK_TIMEOUT or LEVELS.
    - `cache_key`: what its result depends on, and nothing else.
    - `in_plan`: what of it a plan shows before work; at level 2 that blocks approval. If nothing, why.
    - `must_hold`, `why`, `way_out`: what the gate requires, why, and the governed way to continue if it fails.
    """

    name: str
    stage: str
    level: int
    lowest: int
    timeout: str
    cache_key: tuple[str, ...]
    summary: str
    must_hold: str
    why: str
    way_out: str
    in_plan: str


ROWS: tuple[Row, ...] = (
    Row(
        PLAN,
        PLANNING,
        2,
        2,
        LEVELS,
        ("plans", "configuration", "policy"),
        "`check-plan` finds no error",
        "Each plan of the phase is complete, unambiguous and consistent with the others. In strict mode this includes"
        " requirements, non-goals, change classes, invariants and complete interfaces.",
        "An agent fills each gap of a plan with a guess.",
        "Correct the plan; `idumb check-plan N` names each error with its fix.",
        "each error of `check-plan`, at every level",
    ),
    Row(
        CONDITIONS,
        PRE,
        1,
        1,
        CHECK_TIMEOUT,
        ("working tree", "task"),
        "preconditions hold before a task, postconditions after it",
        "Each precondition of a task holds before anything is built, and each postcondition holds on the result.",
        "Work on a wrong basis is wrong work.",
        "Make the precondition true and decide to retry the task (`idumb decisions`), or correct it in the plan:"
        " `idumb amend N --from-file`.",
        "a condition whose program cannot start. Whether a condition holds shows only right before the task,"
        " after earlier tasks",
    ),
    Row(
        LEDGER,
        STEP,
        1,
        1,
        LEVELS,
        ("changed files", "task"),
        "a task changes the files and symbols that it declares, and nothing else",
        "Each changed file is declared under Files, each declared file changed, and no protected file changed. If a"
        " task declares Symbols, the same applies to the names that its files define; otherwise they are recorded.",
        "A change that nobody declared is a change that nobody reviewed.",
        "Answer the question that the run asks, use `--on-deviation`, or declare the files: `idumb amend N"
        " --from-file`.",
        "a file to modify, delete or move that is missing then, and a file to create that exists",
    ),
    Row(
        CRITERIA,
        STEP,
        1,
        1,
        CHECK_TIMEOUT,
        ("committed files", "task", "environment"),
        "acceptance criteria and Verify commands pass on the tree that will be committed",
        "Each criterion with a check and each Verify command passes on the frozen files.",
        "What an agent says about its own work proves nothing.",
        "Retry with guidance (`idumb resume N --retry-failed`), correct the check (`idumb amend N --from-file`), or"
        " accept the task with a reason (`idumb accept TASK --why TEXT`).",
        "a criterion that nothing proves, and a check whose program cannot start",
    ),
    Row(
        TEST_INTENT,
        STEP,
        1,
        1,
        CHECK_TIMEOUT,
        ("committed files", "task", "environment"),
        "declared tests fail before the work and pass after it; changed tests assert something",
        "Each declared test has an intent, and has the declared result on the tree before the work and on the result."
        " Each new test in Python and Go asserts something, and each changed one that asserted still does; that fails"
        " a task only if the configuration names the gate.",
        "A test that also passes without the work does not test it, nor does one that nothing can fail.",
        "Correct the test or its declaration: `- **Tests:** `command` — fails before, passes after: intent`. If a test"
        " needs no assertion, say so in a comment: `must not raise`.",
        "a test without intent, at every level; a test whose program cannot start",
    ),
    Row(
        INVARIANTS,
        STEP,
        1,
        1,
        CHECK_TIMEOUT,
        ("committed files", "plan", "environment"),
        "each invariant of the plan holds after each task",
        "The command of each invariant passes after each task, after a rollback, and at the end.",
        "An invariant is a promise that no task may trade for its own criteria.",
        "Repair the work (`idumb resume N --retry-failed`), or change the invariant with consent: `idumb amend N"
        " --from-file`.",
        "an invariant whose program cannot start. Whether it holds, only its command shows, which nobody may"
        " run before you agreed to it: `idumb check-plan N --run-checks` does, once you did",
    ),
    Row(
        NON_GOALS,
        STEP,
        0,
        0,
        LEVELS,
        ("changed files", "non-goals"),
        "no path and no symbol of a non-goal changed",
        "No file below `paths` of a non-goal of the plan changes, and no definition that its `symbols` name, not even"
        " its formatting.",
        "A non-goal is what the author of the plan wants untouched, also if a task declares the file.",
        "Undo that part of the change, or change the non-goal with consent: `idumb amend N --from-file`.",
        "a declared path that a non-goal excludes",
    ),
    Row(
        SYNTAX,
        STEP,
        0,
        0,
        LEVELS,
        ("changed files",),
        "every changed Python, JSON, YAML and TOML file parses",
        "Each changed file that parsed before the task still parses, and each new one parses. Source in other languages"
        " is read by the project's own checkers: see the gates `types` and `lint`.",
        "A check that never reads a file does not notice that nothing can read it.",
        "Correct the file at the line that the evidence names. Files in folders such as `fixtures` and `testdata` may"
        " be broken on purpose. If the gate is wrong about a file, set `gates: {syntax: {level: 0}}`.",
        "nothing, because a plan contains no files",
    ),
    Row(
        TYPES,
        STEP,
        0,
        0,
        CHECK_TIMEOUT,
        ("committed files", "tree before the task", "command", "environment"),
        "the project's type checkers report nothing new",
        "Each checker that `gates.types.run` names, or else each of mypy, pyright, tsc, go vet and cargo check that the"
        " project's top folder configures, reports no error that it did not report before the task. It runs only if the"
        " configuration names the gate.",
        "A test runs a part of the program; a type checker reads all of it.",
        "Correct the error that the evidence names. If the checker cannot run, install it where checks see it"
        " (`checkout.prepare`, `checkout.provide`), or name the command: `gates: {types: {level: 1, run: COMMAND}}`.",
        "nothing, because a checker reads the files of the work",
    ),
    Row(
        LINT,
        STEP,
        0,
        0,
        CHECK_TIMEOUT,
        ("committed files", "tree before the task", "command", "environment"),
        "the project's linters report nothing new",
        "Each linter that `gates.lint.run` names, or else each of ruff and eslint that the project's top folder"
        " configures, reports no error that it did not report before the task. It runs only if the configuration names"
        " the gate.",
        "A project agrees on its rules once; each change keeps them.",
        "Correct the error that the evidence names. If the linter cannot run, install it where checks see it"
        " (`checkout.prepare`, `checkout.provide`), or name the command: `gates: {lint: {level: 1, run: COMMAND}}`.",
        "nothing, because a linter reads the files of the work",
    ),
    Row(
        SIZE,
        STEP,
        1,
        0,
        LEVELS,
        ("changed files", "task", "plan"),
        "a change stays within the limits of its task",
        "Files, lines and paths of a change are within `Limits` of the task, or of its plan.",
        "A small task with a large change does something else too.",
        "Split the task, or raise its limits: `idumb amend N --from-file`.",
        "more declared files than the limit, and declared files outside its paths",
    ),
    Row(
        SPECIFICATION,
        STEP,
        0,
        0,
        LEVELS,
        ("changed files",),
        "new and changed public functions declare inputs, outputs, errors and side effects",
        "Each public function that a task adds or changes has types for its inputs and outputs, and its comment names"
        " the errors and the side effects that its source shows, in Python; in Go it has a doc comment. idumb judges"
        " strict plans, and others if the configuration names this gate.",
        "A caller can rely only on what is declared, and so can the next task.",
        "Add what the evidence names: types, a docstring or doc comment. Problems from before the task do not count.",
        "an interface that does not declare its inputs, outputs, errors and side effects",
    ),
    Row(
        DESIGN,
        STEP,
        0,
        0,
        LEVELS,
        ("changed files", "imports of the tree"),
        "no new import cycle, and no score below the threshold",
        "No import that a task adds closes a cycle in Python. If the configuration sets `gates.design.threshold`, the"
        " score of coupling and complexity of Python and Go reaches it. idumb judges strict plans, and others if the"
        " configuration names this gate.",
        "A structure that erodes import by import is not repaired by any later task.",
        "Move what both files need into a third one, or import in the other direction.",
        "nothing, because a plan does not declare imports",
    ),
    Row(
        CHANGE_CLASS,
        POST,
        0,
        0,
        LEVELS,
        ("changed files", "task"),
        "the change is not of a higher class than the task declares",
        "If a task declares Change, its public names and their signatures change no more than that: `preserving` adds"
        " none, `extending` changes none, `modifying` breaks none. idumb reads Python and Go; other languages are not"
        " judged.",
        "You approved a change of that class. A caller that breaks is another decision.",
        "Undo what breaks callers, or declare the higher class: `idumb amend N --from-file` checks the plan again and"
        " asks for your approval.",
        "a task that writes more than documentation without a class, and Symbols that change more than the class says",
    ),
    Row(
        AGREEMENT,
        COMPLETION,
        0,
        0,
        LEVELS,
        ("evidence of the run",),
        "plan and ledger, tests and criteria, validator and skeptic do not contradict one another",
        "A name that the plan promises is not removed undeclared, tests and criteria of a task have the same result,"
        " and no agent refutes what a validator passed or another agent affirms.",
        "Two pieces of evidence that contradict one another cannot both be true, and one of them was relied on.",
        "Find out which one is wrong: correct the work (`idumb amend N`) or the check. At level 1 and 2, the question"
        " whether the phase counts as verified names each contradiction: `idumb decisions`.",
        "an interface that the task that declares it removes; the rest compares evidence of work",
    ),
    Row(
        COMPLETION,
        COMPLETION,
        1,
        1,
        CHECK_TIMEOUT,
        ("final tree", "plans", "environment"),
        "success criteria, invariants and tests pass on the final tree",
        "At the end of a phase, its success criteria, invariants, tests and the checks of all its tasks pass on the"
        " final tree, each file of HEAD is as its task left it, and no gate of level 1 or 2 is open.",
        "Tasks that work one by one can still break each other.",
        "`idumb verify-work N` names what fails; repair it with a new task (`idumb amend N`), or roll back the task"
        " that broke it.",
        "a success criterion that nothing proves, and one whose program cannot start",
    ),
)


def of_name(name: str) -> Row | None:
    """Return the gate of this name."""
    return next((row for row in ROWS if name == row.name), None)
