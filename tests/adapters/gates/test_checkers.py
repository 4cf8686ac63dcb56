"""The gates `types`, `lint` and the project's own: broken and honest changes (R-GATE-3, R-GATE-5)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import idumb
from idumb.domain.proof import evidence, gate_table, project_checkers
from idumb.domain.proof.evidence import Evidence
from idumb.domain.settings import GateSettings
from idumb.gates import own_gate
from tests.support import changes
from tests.support.cases import every
from tests.support.seed import one_on_a_push

RETURNS = 'a.py:1: error: Incompatible return value type (got "int", expected "str")  [return-value]\n'
ASSIGNS = "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\n"
PRINTS = '# g\n./main.go:6:2: fmt.Printf format %d has arg "a" of wrong type string\n'
UNUSED = "a.py:4:8: F401 [*] `os` imported but unused\n"
UNDEFINED = "\nsrc/b.js\n  3:13  error  'c' is not defined  no-undef\n"
MISMATCH = 'src/main.rs:2:17: error[E0308]: mismatched types\nerror: could not compile `r` (bin "r")\n'
STOPPED = "b.py:1: error: invalid syntax  [syntax]\nFound 1 error in 1 file (errors prevented further checking)\n"


def ran(exit_code: int | None, output: str = "", **fields: Any) -> Evidence:
    result = evidence.PASSED if exit_code == 0 else evidence.ERRORED if exit_code == 127 else evidence.FAILED
    return replace(Evidence("", "", result, "x", exit_code=exit_code, output=output), **fields)


def judge(
    before: Evidence | None, after: Evidence, name: str = gate_table.TYPES, own: GateSettings | None = None
) -> Evidence:
    results = {True: before or after, False: after}

    def run(gate: str, command: str, *, before: bool) -> Evidence:
        assert (gate, command) == (name, "x")
        return results[before]

    inputs = changes.inputs({"a.rb": "1"}, {"a.rb": "2"})
    asked = {name: own or GateSettings(run=("x",), timeout=60)}
    return changes.judge(replace(inputs, asked=asked, run=run))[name]


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
    "no place": (ran(1, "wrong"), ran(1, "wrong"), "because it names no file with a line"),
    "no output": (ran(1), ran(1), "because it names no file with a line. It wrote nothing"),
    "no place before": (ran(1, "wrong"), ran(1, RETURNS), "because it names no file with a line"),
    "too long": (ran(1, RETURNS), ran(1, RETURNS, truncated=True), "because it is too long"),
    "too long before": (ran(1, RETURNS, truncated=True), ran(1, RETURNS + UNUSED), "because it is too long"),
    "stopped before": (ran(2, STOPPED), ran(1, RETURNS), "so idumb cannot tell what is new: a.py:1"),
    "stopped after": (ran(2, STOPPED), ran(2, STOPPED), "correct it first: b.py:1: error: invalid"),
}  # fmt: skip


@every("before, after, words", BROKEN.values())
def test_a_new_error_of_a_checker_is_named(before: Evidence, after: Evidence, words: str) -> None:
    proof = judge(before, after)
    assert proof.result == evidence.FAILED
    assert words in proof.output
    assert proof.words.startswith("gate types failed: ")
    assert judge(before, after, gate_table.LINT).result == evidence.FAILED


@every("before, after", HONEST.values())
def test_an_honest_change_has_no_new_error(before: Evidence | None, after: Evidence) -> None:
    assert judge(before, after).passed


@every("before, after, words", UNKNOWN.values())
def test_a_checker_that_cannot_say_what_is_new_is_not_a_pass(before: Evidence, after: Evidence, words: str) -> None:
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
    inputs = replace(inputs, asked={"types": GateSettings(run=("x",), timeout=60)}, run=run)
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


@every("files, name, expected", CONFIGURED.values())
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


@every("after, result", [(CLEAN, evidence.PASSED), (ran(1, "no licence"), evidence.FAILED)])
def test_a_command_of_the_project_holds_if_it_exits_with_0(after: Evidence, result: str) -> None:
    proof = judge(None, after, "licence")
    assert (proof.result, proof.subject, proof.output) == (result, "gate licence", after.output)


HOUSE_GATES = """
from idumb.domain.proof.gate import Judged, Violation


def no_todo(inputs):
    print("what a gate prints is no answer")
    found = []
    for change in inputs.changes:
        text = inputs.read(change.new, 1000) or b""
        lines = enumerate(text.split(b"\\n"), 1)
        found += [Violation(change.path, n, "a TODO") for n, line in lines if b"TODO" in line]
    return Judged(found, "no TODO") if inputs.changes else None


def beside(inputs):
    rest = inputs.read(inputs.entry("rest.txt"), 100), inputs.read(inputs.entry("a.py"), 100)
    return Judged((), f"{inputs.task.id} {inputs.plan.path} {rest} {inputs.entry('link')} {inputs.line_counts()}")


def nothing(inputs):
    return None


def wrong(inputs):
    return "fine"


def leaves(inputs):
    raise SystemExit(0)


def without(first, second):
    return None


def dies(inputs):
    import os

    os._exit(0)
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """An installed package with entry points, and the tree that checks judge, in which it runs."""
    (tmp_path / "installed/house_gates-1.dist-info").mkdir(parents=True)
    (tmp_path / "installed/house_gates.py").write_text(HOUSE_GATES)
    (tmp_path / "installed/house_gates-1.dist-info/METADATA").write_text("Name: house-gates\nVersion: 1\n")
    names = ["no_todo", "beside", "nothing", "wrong", "leaves", "without", "dies"]
    lines = "\n".join(["[idumb.gates]", *(f"{name} = house_gates:{name}" for name in names)])
    (tmp_path / "installed/house_gates-1.dist-info/entry_points.txt").write_text(lines)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "rest.txt").write_text("rest")
    (tree / "link").symlink_to("rest.txt")
    return tmp_path


def started(command: str, house: Path, **fields: Any) -> Evidence:
    argv = ("/bin/sh", "-c", command)
    done = subprocess.run(argv, cwd=house / "tree", capture_output=True, text=True, check=False)
    return ran(done.returncode, done.stdout + done.stderr, **fields)


def by_entry_point(
    monkeypatch: pytest.MonkeyPatch, house: Path, name: str, after: Mapping[str, str], **ended: Any
) -> Evidence | None:
    monkeypatch.setattr(
        own_gate, "PYTHON", f"PYTHONPATH={house / 'installed'}:{Path(idumb.__file__).parents[1]} {sys.executable}"
    )

    def run(gate: str, command: str, *, before: bool) -> Evidence:
        assert (gate, before) == ("todo", False)
        return started(command, house, sandbox="bwrap", **ended)

    asked = {"todo": GateSettings(entry_point=name, timeout=60)}
    inputs = changes.inputs({"a.py": "", "a.go": ""}, after)
    return changes.judge(replace(inputs, asked=asked, run=run)).get("todo")


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"a.py": "# TODO", "a.go": "\n// TODO", "b.go": "TODO"}, "a.go:2: a TODO\na.py:1: a TODO\nb.go:1: a TODO"),
        ({"a.go": "done"}, ""),
    ],
)
def test_an_entry_point_judges_the_change(
    monkeypatch: pytest.MonkeyPatch, house: Path, after: Mapping[str, str], words: str
) -> None:
    proof = by_entry_point(monkeypatch, house, "no_todo", after)
    assert proof is not None
    assert (proof.subject, proof.sandbox, proof.command) == ("gate todo", "bwrap", None)
    assert (proof.result, proof.output) == ((evidence.FAILED, words) if words else (evidence.PASSED, "no TODO"))


def test_an_entry_point_can_read_the_rest_of_the_tree_and_follows_no_link(
    monkeypatch: pytest.MonkeyPatch, house: Path
) -> None:
    proof = by_entry_point(monkeypatch, house, "beside", {"a.py": "x", "a.go": ""})
    assert proof is not None
    assert proof.output == "T1-01 p (b'rest', b'x') None {}"
    assert by_entry_point(monkeypatch, house, "nothing", {"a.py": "x", "a.go": ""}) is None


@pytest.mark.parametrize(
    ("name", "words"),
    one_on_a_push(
        [
            ("missing", "LookupError: no installed package has the entry point missing of idumb.gates"),
            ("wrong", "returned neither None nor"),
            ("leaves", "SystemExit: 0"),
            ("without", "TypeError: without() missing 1 required positional argument"),
            ("dies", "it gave no answer. It wrote nothing"),
        ],
        "a broken entry point",
    ),
)
def test_an_entry_point_that_gives_no_answer_is_not_a_pass(
    monkeypatch: pytest.MonkeyPatch, house: Path, name: str, words: str
) -> None:
    proof = by_entry_point(monkeypatch, house, name, {"a.py": "x"})
    assert proof is not None
    assert (proof.result, words in proof.output) == (evidence.ERRORED, True)


@every(
    "ended, result, words",
    [
        ({"result": evidence.TIMED_OUT}, evidence.TIMED_OUT, "it did not answer within 60s"),
        ({"changed": ("a.py",)}, evidence.FAILED, "it changed files that it should judge"),
    ],
)
def test_an_entry_point_that_is_late_or_changes_files_is_not_a_pass(
    monkeypatch: pytest.MonkeyPatch, house: Path, ended: dict[str, Any], result: str, words: str
) -> None:
    proof = by_entry_point(monkeypatch, house, "no_todo", {"a.go": "x"}, **ended)
    assert proof is not None
    assert (proof.result, proof.output) == (result, words)


def test_an_entry_point_of_the_working_tree_is_none_of_the_installed_environment(house: Path) -> None:
    """A repository must not bring its own gate: the interpreter finds only what is installed."""
    for file in (house / "installed").rglob("*"):
        if file.is_file():
            place = house / "tree" / file.relative_to(house / "installed")
            place.parent.mkdir(exist_ok=True)
            place.write_text(file.read_text())
    inputs = changes.inputs({"a.py": ""}, {"a.py": "x"})

    def run(gate: str, command: str, *, before: bool) -> Evidence:
        return started(command, house)

    asked = {"todo": GateSettings(entry_point="no_todo", timeout=60)}
    proof = changes.judge(replace(inputs, asked=asked, run=run))["todo"]
    assert (proof.result, "no installed package has the entry point no_todo" in proof.output) == (
        evidence.ERRORED,
        True,
    )
