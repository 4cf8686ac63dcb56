"""The gates `types` and `lint`, and those of the project's own, in real runs (R-GATE-3, R-GATE-5)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import approvals
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making, task, write

MYPY = f"{sys.executable} -m mypy --no-incremental --no-error-summary ."
RUFF = f"{sys.executable} -m ruff check --isolated --no-cache --select F --output-format concise ."
OLD = "import os\n\n\ndef old() -> str:\n    return 1\n"
TYPES, LINT = "awk -f types.awk a.py", "awk -f lint.awk a.py"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """A project with an error of each checker, and a task that changes its file."""
    checkers = {
        "types.awk": printing("return [0-9]", " error: Incompatible return value type"),
        "lint.awk": printing("^import", "8: F401 imported but unused"),
    }
    return projects.create(sandbox, files={"a.py": OLD, **checkers})


def printing(pattern: str, message: str) -> str:
    """A program for awk that prints what a checker prints about each line with the pattern."""
    return f'/{pattern}/ {{ print FILENAME ":" FNR ":{message}"; found = 1 }}\nEND {{ exit found }}\n'


def changing(text: str) -> str:
    return task("T1-01", files="modify `a.py`", check="test -s a.py", steps=[write("a.py", text)])


def change(project: Project, text: str) -> None:
    project.plan([changing(text)])


def of_gate(project: Project, name: str) -> list[dict[str, object]]:
    rows = project.quick("show", "T1-01", "--json").data["attempts"][-1]["evidence"]
    return [row for row in rows if row["subject"] == f"gate {name}"]


@pytest.mark.parametrize(("types", "lint"), [(TYPES, LINT), pytest.param(MYPY, RUFF, marks=pytest.mark.nightly)])
def test_only_new_errors_of_the_project_s_checkers_fail_the_task(project: Project, types: str, lint: str) -> None:
    """R-GATE-3. The file shifts by two lines, and its old errors with it."""
    project.configure(f"gates: {{types: {{level: 1, run: {types}}}, lint: {{level: 1, run: {lint}}}}}\n")
    change(project, "# one\n# two\n" + OLD + "\n\ndef new() -> str:\n    return 2\n")
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1
    reason = answer.data["tasks"][0]["reason"]
    assert "gate types failed: a.py:11: error: Incompatible return value type" in reason
    assert "gate lint" not in reason
    (row,) = of_gate(project, "lint")
    assert (row["result"], row["output"], row["command"]) == ("passed", "reports nothing new; 1 as before", lint)


def test_a_checker_that_is_not_installed_is_not_a_pass(project: Project) -> None:
    project.configure("gates: {types: {level: 1, run: no-such-checker .}}\n")
    change(project, "x = 1\n")
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1
    reason = answer.data["tasks"][0]["reason"]
    assert "gate types could not run: its program was not found or not executable. Install it where checks" in reason
    assert "name another command: `gates: {types: {run: COMMAND}}`" in reason


def test_the_tree_after_one_task_is_checked_once_and_is_the_tree_before_the_next(
    project: Project, tmp_path: Path
) -> None:
    """R-GATE-3: a result is remembered by tree, command and environment as long as idumb runs."""
    count = tmp_path / "count"
    checker = f"echo >> {count}; echo a.py:1:1: E1 old; exit 1"
    project.configure(f"gates: {{lint: {{level: 1, run: '{checker}'}}}}\n")
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert run(project, "--no-verify").code == 0
    assert count.read_text() == "\n" * 3  # before the first task, after it, after the second one


LICENCE = "grep -L licence *.py | { ! grep . ; }"


def test_a_command_of_the_project_is_a_gate_with_name_level_and_timeout(project: Project) -> None:
    """R-GATE-5: the same record as a built-in gate, in the evidence, at its level."""
    project.configure(f"gates:\n  licence: {{level: 1, run: '{LICENCE}', timeout: 40s}}\n")
    project.plan([changing("# licence\n"), making("T1-02", "b.py", "x = 1\n", after="T1-01")])
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1
    assert "gate licence failed: b.py" in answer.data["tasks"][1]["reason"]
    (passed,) = of_gate(project, "licence")
    assert (passed["result"], passed["command"]) == ("passed", LICENCE)


def test_the_commands_of_gates_are_part_of_consent_and_approval(project: Project) -> None:
    """R-GATE-5: no command of a configuration runs before a person saw and approved it."""
    change(project, "x = 1\n")
    project.configure("gates: {licence: {run: 'true'}, types: {level: 0}}\n")
    refused = project.quick("execute-phase", "1")
    assert refused.code == 5
    assert "gate licence: true" in refused.err
    assert "gate types: those of mypy, pyright, tsc, go vet, cargo check that the project configures" in refused.err
    commands = approvals.approve(project).data["bound"]["commands"]["value"]
    assert "true" in commands
    assert commands[2].endswith('PATH" mypy .')
    project.configure("gates: {licence: {run: 'false'}, types: {level: 0}}\n")
    details = approvals.refused(approvals.run(project, "--mode", "strict"), "approval.void")
    assert details["changed"] == ["commands", "configuration"]
