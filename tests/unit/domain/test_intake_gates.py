"""What a plan already shows of a gate: a warning, and an error if the gate has level 2 (R-GATE-1, R-GATE-2)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from idumb.domain.finding import ERROR, WARNING
from idumb.domain.intake.rule import StartState
from idumb.domain.plans.plan import (
    Condition,
    Criterion,
    FileClaim,
    Interface,
    Invariant,
    Limits,
    NonGoal,
    Plan,
    SymbolClaim,
    TestIntent,
)
from idumb.domain.proof import gate_table
from idumb.domain.settings import CheckoutSettings, GateSettings, Settings
from tests.support.cases import every
from tests.support.intake import SETTINGS, findings_of, plan, task

NOWHERE = StartState(no_programs=frozenset({"nowhere", "./nowhere"}))
TWO_FILES = (FileClaim("create", "a.txt"), FileClaim("create", "b.txt"))
CODE = (FileClaim("modify", "a.py"),)
PRECONDITION = (Condition("command", "nowhere"),)
BROKEN: dict[str, tuple[str, str, Plan]] = {
    "size, files": ("size", "limit.exceeded", plan(task(files=TWO_FILES, limits=Limits(files=1)))),
    "size, paths": ("size", "limit.exceeded", plan(task(files=TWO_FILES), limits=Limits(paths=("a.*",)))),
    "no class": ("change-class", "task.no-change-class", plan()),
    "added and preserving": (
        "change-class",
        "change.contradiction",
        plan(task(change="preserving", files=CODE, symbols=(SymbolClaim("add", "load"),))),
    ),
    "removed and modifying": (
        "change-class",
        "change.contradiction",
        plan(task(change="modifying", files=CODE, symbols=(SymbolClaim("remove", "Store.load"),))),
    ),
    "interface": ("specification", "interface.incomplete", plan(task(interfaces=(Interface("load", {}),)))),
    "removed interface": (
        "agreement",
        "symbol.contradiction",
        plan(task(interfaces=(Interface("load", {}),), symbols=(SymbolClaim("remove", "load"),))),
    ),
    "missing file": ("ledger", "path.missing", plan(task(files=(FileClaim("modify", "gone.txt"),)))),
    "non-goal": ("non-goals", "path.non-goal", plan(task(), non_goals=(NonGoal("NG-1", "no text", paths=("*.txt",)),))),
    "program of a criterion": (
        "criteria",
        "check.no-program",
        plan(task(acceptance=(Criterion("AC-1", "it holds", "check", "nowhere"),))),
    ),
    "unproven criterion": (
        "criteria",
        "criterion.unproven",
        plan(task(verify=(), acceptance=(*task().acceptance, Criterion("AC-2", "it is nice", "unproven")))),
    ),
    "program of a test": (
        "test-intent",
        "check.no-program",
        plan(task(tests=(TestIntent("nowhere", "fails", "passes", "it works"),))),
    ),
    "program of a precondition": ("conditions", "check.no-program", plan(task(preconditions=PRECONDITION))),
    "program of an invariant": (
        "invariants",
        "check.no-program",
        plan(task(), invariants=(Invariant("INV-1", "it holds", "nowhere"),)),
    ),
    "unproven success criterion": (
        "completion",
        "criterion.unproven",
        plan(task(), success_criteria=(Criterion("SC-1", "it is nice", "unproven"),)),
    ),
}


def severities(made: Plan, base: Settings = SETTINGS, **gates: int) -> dict[str, str]:
    named: dict[str, Any] = {name.replace("_", "-"): GateSettings(level=level) for name, level in gates.items()}
    found = findings_of(made, settings=replace(base, gates=named), present=NOWHERE)
    return {finding.code: finding.severity for finding in found}


@every("gate, code, made", BROKEN.values())
def test_at_level_2_what_a_plan_shows_of_a_gate_blocks_its_approval(gate: str, code: str, made: Plan) -> None:
    row = gate_table.of_name(gate)
    assert row is not None
    setting = row.name.replace("-", "_")
    assert severities(made).get(code) in (None, WARNING)
    assert severities(made, SETTINGS, **{setting: 1}).get(code) in (None, WARNING)
    assert severities(made, SETTINGS, **{setting: 2})[code] == ERROR
    others = {r.name.replace("-", "_"): 2 for r in gate_table.ROWS if r.name not in (gate, "plan")}
    assert severities(made, SETTINGS, **others).get(code) in (None, WARNING)


def _adds(name: str, *files: str) -> Plan:
    claims = tuple(FileClaim("modify", path) for path in files)
    return plan(task(change="preserving", files=claims, symbols=(SymbolClaim("add", name),)))


def _checks(*commands: str) -> Plan:
    criteria = [Criterion(f"AC-{n}", "it holds", "check", command) for n, command in enumerate(commands)]
    return plan(task(acceptance=tuple(criteria)))


HONEST = {
    "a test in a new file": _adds("TestLoad.test_a", "tests/test_a.py"),
    "a test beside the code": _adds("test_load", "load.py", "test_load.py"),
    "names in a script": _adds("load", "scripts/a.py"),
    "a function that is perhaps not exported": _adds("load", "src/a.ts"),
    "a helper that is perhaps the test's": _adds("make", "a.py", "tests/test_a.py"),
    "a name that moves between modules": plan(
        task(
            change="preserving", files=CODE, symbols=(SymbolClaim("add", "new.load"), SymbolClaim("remove", "old.load"))
        )
    ),
    "within its limits": plan(task(files=TWO_FILES, limits=Limits(files=2, paths=("*.txt",)))),
    "a glob counts as no file": plan(task(files=(*TWO_FILES, FileClaim("modify", "src/*")), limits=Limits(files=2))),
    "the class of its symbols": plan(task(change="extending", files=CODE, symbols=(SymbolClaim("add", "load"),))),
    "a private name": plan(task(change="preserving", files=CODE, symbols=(SymbolClaim("add", "_load"),))),
    "a name that moves": plan(
        task(
            change="preserving",
            files=CODE,
            symbols=(SymbolClaim("add", "load"), SymbolClaim("remove", "load")),
            interfaces=(Interface("load", {}),),
        )
    ),
}


@every("made", HONEST.values())
def test_an_honest_plan_contradicts_nothing(made: Plan) -> None:
    found = severities(made, limits=2, change_class=2, agreement=2)
    assert not {"limit.exceeded", "change.contradiction", "symbol.contradiction"} & set(found)


def test_documentation_needs_no_change_class_except_in_strict_mode() -> None:
    made = plan(task(files=(FileClaim("modify", "README.md"),)))
    assert "task.no-change-class" not in severities(made, change_class=2)
    assert severities(replace(made, mode="strict"))["task.no-change-class"] == ERROR


DOUBTFUL = {
    "a program of an environment": ("check.no-program", _checks(". .venv/bin/activate && nowhere -q")),
    "a program that a check installs": ("check.no-program", _checks("pip install nowhere && nowhere")),
    "a program that a check builds": ("check.no-program", _checks("go build -o nowhere . && ./nowhere")),
    "a program that an earlier check builds": ("check.no-program", _checks("make", "./nowhere --version")),
}


@every("code, made", DOUBTFUL.values())
def test_what_a_plan_does_not_show_for_certain_blocks_no_approval(code: str, made: Plan) -> None:
    found = severities(made, change_class=2, criteria=2)
    assert found.get(code) == WARNING


def test_a_program_that_the_project_prepares_blocks_no_approval() -> None:
    made = _checks("nowhere")
    assert severities(made, criteria=2)["check.no-program"] == ERROR
    prepared = replace(SETTINGS, checkout=CheckoutSettings(prepare=("npm ci",)))
    assert severities(made, prepared, criteria=2)["check.no-program"] == WARNING
