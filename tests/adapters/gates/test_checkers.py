"""The gates `types`, `lint` and the project's own: broken and honest changes (R-GATE-3, R-GATE-5)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import pytest

from idumb.domain.proof import evidence, gate_table, project_checkers
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs, Judged, Violation
from idumb.domain.settings import GateSettings
from idumb.gates.project import own as project_gates
from tests.support import changes

RETURNS = 'a.py:1: error: Incompatible return value type (got "int", expected "str")  [return-value]\n'
ASSIGNS = "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\n"
PRINTS = '# g\n./main.go:6:2: fmt.Printf format %d has arg "a" of wrong type string\n'
UNUSED = "a.py:4:8: F401 [*] `os` imported but unused\n"
UNDEFINED = "\nsrc/b.js\n  3:13  error  'c' is not defined  no-undef\n"
MISMATCH = 'src/main.rs:2:17: error[E0308]: mismatched types\nerror: could not compile `r` (bin "r")\n'
STOPPED = "b.py:1: error: invalid syntax  [syntax]\nFound 1 error in 1 file (errors prevented further checking)\n"


def ran(exit_code: int | None, output: str = "", **fields: Any) -> Evidence:
    result = evidence.PASSED if exit_code == 0 else evidence.ERRORED if exit_code == 127 else evidence.FAILED
    return dataclasses.replace(Evidence("", "", result, "x", exit_code=exit_code, output=output), **fields)


def judge(
    before: Evidence | None, after: Evidence, name: str = gate_table.TYPES, own: GateSettings | None = None
) -> Evidence:
    results = {True: before, False: after}

    def run(gate: str, command: str, *, before: bool) -> Evidence | None:
        assert (gate, command) == (name, "x")
        return results[before]

    inputs = changes.inputs({"a.rb": "1"}, {"a.rb": "2"})
    asked = {name: own or GateSettings(run=("x",), timeout=60)}
    return changes.judge(dataclasses.replace(inputs, asked=asked, run=run))[name]


CLEAN = ran(0)
BROKEN = {
    "Python, types": (CLEAN, ran(1, RETURNS), "a.py:1: error: Incompatible return value type"),
    "Python, one more": (ran(1, RETURNS), ran(1, RETURNS + RETURNS.replace(":1:", ":9:")), "a.py:9: error"),
    "Python, lint": (ran(1, UNUSED), ran(1, UNUSED + UNUSED.replace("os", "re")), "a.py:4: F401 `re` imported"),
    "Python, syntax": (ran(1, RETURNS), ran(2, STOPPED), "b.py:1: error: invalid syntax"),
    "TypeScript": (ran(2, ASSIGNS), ran(2, ASSIGNS + ASSIGNS.replace("a.ts", "b.ts")), "src/b.ts:1: error TS2322"),
    "Go": (CLEAN, ran(1, PRINTS), "main.go:6: fmt.Printf format %d"),
    "JavaScript": (ran(1, UNDEFINED), ran(1, UNDEFINED.replace("'c'", "'d'")), "src/b.js:3: error: 'd' is not defined"),
    "Rust": (CLEAN, ran(101, MISMATCH), "src/main.rs:2: error[E0308]: mismatched types"),
    "no place, and it passed before": (CLEAN, ran(1, "wrong licence\n"), "Its output ends with: wrong licence"),
}
HONEST = {
    "Python, nothing": (None, CLEAN),
    "Python, the same on other lines": (ran(1, RETURNS), ran(1, RETURNS.replace(":1:", ":7:"))),
    "Python, one less": (ran(1, RETURNS + UNUSED), ran(1, UNUSED.replace("4:8", "5:8"))),
    "TypeScript, the same": (ran(2, ASSIGNS), ran(2, ASSIGNS.replace("(1,7)", "(12,3)"))),
    "Go, the same": (ran(1, PRINTS), ran(1, PRINTS)),
    "JavaScript, a warning more": (
        ran(1, UNDEFINED),
        ran(1, UNDEFINED + "  4:1  warning  Unexpected console statement  no-console\n"),
    ),
    "Rust, nothing": (ran(101, MISMATCH), CLEAN),
}
UNKNOWN = {
    "not installed": (CLEAN, ran(127, "mypy: not found"), "not found or not executable. Install it where"),
    "not installed before": (ran(127), ran(1, RETURNS), "on the tree before the task it errored"),
    "too slow": (CLEAN, ran(None, "", result=evidence.TIMED_OUT), "needs more time: `gates: {types: {timeout: 10m}}`"),
    "no tree before": (None, ran(1, RETURNS), "with `checks: here` it cannot run on the tree before the task"),
    "no place": (ran(1, "wrong"), ran(1, "wrong"), "because it names no file with a line"),
    "too long": (ran(1, RETURNS), ran(1, RETURNS, truncated=True), "because it is too long"),
    "stopped before": (ran(2, STOPPED), ran(1, RETURNS), "so idumb cannot tell what is new: a.py:1"),
    "stopped after": (ran(2, STOPPED), ran(2, STOPPED), "correct it first: b.py:1: error: invalid"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_new_error_of_a_checker_is_named(before: Evidence, after: Evidence, words: str) -> None:
    proof = judge(before, after)
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert proof.words.startswith("gate types failed: ")
    assert judge(before, after, gate_table.LINT).result == evidence.FAILED


@pytest.mark.parametrize(("before", "after"), HONEST.values(), ids=HONEST.keys())
def test_an_honest_change_has_no_new_error(before: Evidence | None, after: Evidence) -> None:
    assert judge(before, after).passed


@pytest.mark.parametrize(("before", "after", "words"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_a_checker_that_cannot_say_what_is_new_is_not_a_pass(
    before: Evidence | None, after: Evidence, words: str
) -> None:
    proof = judge(before, after)
    assert proof.result in {evidence.ERRORED, evidence.TIMED_OUT}
    assert words in proof.output
    assert proof.words.startswith(("gate types could not run: ", "gate types timed out: "))


def test_a_checker_that_changes_what_it_judges_fails() -> None:
    proof = judge(CLEAN, ran(0, "fixed 1", result=evidence.FAILED, changed=("a.rb",)))
    assert (proof.result, proof.words) == (evidence.FAILED, "gate types changed a.rb, which it should judge")


def test_a_file_that_moved_keeps_its_errors() -> None:
    inputs = changes.inputs({"a.py": "x"}, {"b.py": "x"})
    results = {True: ran(1, RETURNS), False: ran(1, RETURNS.replace("a.py", "b.py"))}
    run = lambda gate, command, *, before: results[before]  # noqa: E731
    inputs = dataclasses.replace(inputs, asked={"types": GateSettings(run=("x",), timeout=60)}, run=run)
    assert changes.judge(inputs)["types"].passed


CONFIGURED = {
    "mypy": ({"pyproject.toml": "[tool.mypy]\nstrict = true\n[tool.x]\nfiles = 1\n"}, "types", ["mypy ."]),
    "mypy, with its files": ({"mypy.ini": "[mypy]\nfiles = src\n"}, "types", ["mypy"]),
    "mypy and pyright": ({"setup.cfg": "[a]\n[mypy]\n", "pyrightconfig.json": "{}"}, "types", ["mypy .", "pyright"]),
    "tsc": ({"tsconfig.json": "{}"}, "types", ["tsc --noEmit --pretty false"]),
    "go": ({"go.mod": "module a\n"}, "types", ["go vet ./..."]),
    "cargo": ({"Cargo.toml": "[package]\n"}, "types", ["cargo check --quiet --all-targets --message-format short"]),
    "ruff": ({"pyproject.toml": "[tool.ruff.lint]\n"}, "lint", ["ruff check --no-cache --output-format concise ."]),
    "eslint": ({"eslint.config.mjs": "", "package.json": "{}"}, "lint", ["eslint ."]),
    "eslint in package.json": ({"package.json": '{"eslintConfig": {}}'}, "lint", ["eslint ."]),
    "nothing": ({"pyproject.toml": "[project]\n# [tool.mypy]\n", "package.json": "{}"}, "types", []),
}


@pytest.mark.parametrize(("files", "name", "expected"), CONFIGURED.values(), ids=CONFIGURED.keys())
def test_the_checkers_that_the_project_configures_are_found(
    files: Mapping[str, str], name: str, expected: list[str]
) -> None:
    commands = [command for _, command in project_checkers.configured(name, files.get)]
    assert [command.rpartition('PATH" ')[2] for command in commands] == expected
    assert set(commands) <= set(project_checkers.commands(name))


def test_without_a_configured_checker_the_gate_cannot_run() -> None:
    proof = judge(None, CLEAN, own=GateSettings(timeout=60))
    assert proof.result == evidence.ERRORED
    words = "configures none of mypy, pyright, tsc, go vet, cargo check; name another command: `gates: {types: {run: "
    assert words in proof.output


@pytest.mark.parametrize(("after", "result"), [(CLEAN, evidence.PASSED), (ran(1, "no licence"), evidence.FAILED)])
def test_a_command_of_the_project_holds_if_it_exits_with_0(after: Evidence, result: str) -> None:
    proof = judge(None, after, "licence")
    assert (proof.result, proof.subject, proof.output) == (result, "gate licence", after.output)


def no_todo(inputs: Inputs) -> Judged | None:
    """A gate as another package has it."""
    found = []
    for change in inputs.changes:
        text = inputs.read(change.new, 1000) or b""
        found += [Violation(change.path, n, "a TODO") for n, line in enumerate(text.split(b"\n"), 1) if b"TODO" in line]
    return Judged(found, "no TODO") if inputs.changes else None


def wait_for_ever(inputs: Inputs) -> None:
    import threading

    threading.Event().wait(30)


def by_entry_point(monkeypatch: pytest.MonkeyPatch, function: str, after: Mapping[str, str]) -> Evidence:
    entry = metadata.EntryPoint("no-todo", f"{__name__}:{function}", "idumb.gates")
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: globals()[function])
    monkeypatch.setattr(metadata, "entry_points", lambda group, name: [entry] if name == "no-todo" else [])
    own = GateSettings(
        entry_point="missing" if function == "missing" else "no-todo", timeout=0 if "wait" in function else 60
    )
    inputs = dataclasses.replace(
        changes.inputs({"a.py": "", "a.go": ""}, after), asked={"todo": own}, run=lambda *_, **__: None
    )
    return changes.judge(inputs)["todo"]


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"a.py": "# TODO", "a.go": ""}, "a.py:1: a TODO"),
        ({"a.py": "", "a.go": "\n// TODO"}, "a.go:2: a TODO"),
        ({"a.py": "", "a.go": "", "b.go": "TODO"}, "b.go:1: a TODO"),
        ({"a.py": "done", "a.go": ""}, ""),
        ({"a.py": "", "a.go": "done"}, ""),
        ({"a.go": ""}, ""),
    ],
)
def test_an_entry_point_judges_the_change(
    monkeypatch: pytest.MonkeyPatch, after: Mapping[str, str], words: str
) -> None:
    proof = by_entry_point(monkeypatch, "no_todo", after)
    assert (proof.result, proof.output) == ((evidence.FAILED, words) if words else (evidence.PASSED, "no TODO"))


@pytest.mark.parametrize(
    ("function", "result", "words"),
    [
        ("missing", evidence.ERRORED, "LookupError: no installed package has the entry point missing of idumb.gates"),
        ("ran", evidence.ERRORED, "returned neither None nor"),
        ("judge", evidence.ERRORED, "TypeError: judge() missing 1 required positional argument"),
        ("wait_for_ever", evidence.TIMED_OUT, "did not answer within 0s"),
    ],
)
def test_an_entry_point_that_gives_no_answer_is_not_a_pass(
    monkeypatch: pytest.MonkeyPatch, function: str, result: str, words: str
) -> None:
    proof = by_entry_point(monkeypatch, function, {"a.py": "x"})
    assert (proof.result, words in proof.output) == (result, True)


def test_without_a_gate_in_the_configuration_nothing_runs() -> None:
    assert changes.judge(changes.inputs({"a.rb": "1"}, {"a.rb": "2"})) == {}
    assert project_gates.ENTRY_POINTS == "idumb.gates"
