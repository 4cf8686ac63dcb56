"""What checks need and run: their environment, what is installed for them, and checkers of a project (R-RUN-3)."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support import approvals
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making, shell, task, write

CHANGED, CHANGE = "~/package.json", "echo {} > $HOME/package.json"
"""Node looks for it in each folder above the tree of a check."""


def plan(project: Project, command: str, check: str = "test -s a.txt", **more: Any) -> None:
    steps = [shell(f"echo made > a.txt; {command}")]
    project.plan([task("T1-01", files="create `a.txt`", check=check, steps=steps)], **more)


def evidence(project: Project) -> dict[str, Any]:
    (event,) = project.events("--kind", "evidence.recorded")
    payload = event["payload"]
    assert isinstance(payload, dict)
    return payload


def verification_names(project: Project, ran: Answer, reason: str) -> None:
    """The end of the run, a later `verify-work` and the report name what weakens the evidence of T1-01."""
    (row,) = ran.data["verification"]["weaker"]
    assert row == {"reason": row["reason"], "subjects": ["T1-01 AC-1"]}
    assert row["reason"].endswith(reason)
    verified = project.quick("verify-work", "1")
    assert f"{reason}: T1-01 AC-1" in verified.out
    (report,) = project.folder.glob("**/1-VERIFICATION.md")
    text = report.read_text().replace("\\", "")
    assert f"{reason}: T1-01 AC-1" in text
    assert "## Success criteria\n\nNone declared." in text
    assert "| T1-01 AC-1: it holds | proven |" in text.partition("## Checks of the tasks, run again")[2]
    (summary,) = project.folder.glob("**/1-SUMMARY.md")
    assert f"{reason} (T1-01 AC-1)" in summary.read_text().replace("\\", "")


def test_a_run_waits_for_the_set_up_that_its_plan_needs(project: Project, tmp_path: Path) -> None:
    """R-PLAN-4: its check sees the user's machine, and the files of the project."""
    mark = tmp_path / "ready"
    check = f"test -s README.md && test -e {mark}"
    head = f"setup:\n  - service: mail\n    why: it is sent\n    env: [HOME]\n    check: {check}\n"
    project.plan([making("T1-01", "a.txt")], head=head)
    answer = project.execute("--no-verify")
    words = f"mail is not set up (`{check}` failed). It is needed because: it is sent"
    assert (answer.code, answer.error["code"], answer.error["message"]) == (4, "setup.missing", words)
    mark.touch()
    assert project.resume("--no-verify").code == 0


def test_a_changed_program_weakens_the_evidence_of_a_guided_run(project: Project) -> None:
    plan(project, CHANGE)
    ran = run(project)
    verification_names(project, ran, f"{CHANGED} changed during the run")
    (path,) = evidence(project)["changed_programs"]
    assert path.endswith("/package.json")
    (report,) = project.folder.glob("**/checkpoint-T1-01*.md")
    assert f"{CHANGED} changed during the run" in report.read_text().replace("\\", "")


def test_a_changed_program_fails_a_task_of_a_strict_run(project: Project) -> None:
    plan(project, CHANGE)
    answer = approvals.strict(project, "--max-attempts", "1")
    assert answer.code == 1, answer
    assert project.statuses() == {"T1-01": "failed"}
    assert "/package.json" in answer.out
    assert "changed during the run" in answer.out


def test_checks_with_the_user_s_home_are_recorded_as_weaker(project: Project, home: Path) -> None:
    project.configure("checks: {home: user}\n")
    plan(project, "true", f'test "$HOME" = {home}')
    assert run(project, "--no-verify").code == 0
    assert evidence(project)["weaker"] == ["HOME is the user's (checks.home: user)"]


def test_a_check_gets_a_home_of_its_own_which_is_removed_and_the_evidence_is_not_weaker(
    project: Project, home: Path
) -> None:
    """Strict too: what a builder leaves in other folders of the home decides no program."""
    check = f'test "$HOME" != {home} && touch "$HOME/left" && test -d "$TMPDIR" && test -s a.txt'
    plan(project, "mkdir -p $HOME/.cache/tool; echo x > $HOME/.cache/tool/x", check)
    approvals.approve(project)
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        ran = project.idumb("execute-phase", "1", "--mode", "strict", "--json", environment={"TMPDIR": short})
        assert list(Path(short).iterdir()) == []
    assert ran.code == 0, ran
    assert ran.data["verification"]["weaker"] == []
    assert not (home / "left").exists()
    assert "weaker" not in evidence(project)


def test_a_variable_that_leads_into_the_working_tree_leads_programs_into_their_checkout(project: Project) -> None:
    project.configure("environment: [LIBRARY]\n")
    here = 'test "$LIBRARY" = "$PWD/lib:/usr/lib"'
    plan(project, here, f"{here} && test -s a.txt")
    approved = ("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert project.idumb(*approved, environment={"LIBRARY": f"{project.folder}/lib:/usr/lib"}).code == 0


def _commit(project: Project, files: dict[str, str], ignored: str) -> None:
    project.repo.commit_with({**files, ".gitignore": f"{project.read('.gitignore')}{ignored}\n"}, "project")


def _plan(project: Project, check: str, *names: str) -> None:
    tasks = [
        task(f"T1-0{i}", files=f"create `{n}`", check=check, steps=[write(n, "x\n")]) for i, n in enumerate(names, 1)
    ]
    project.plan(tasks)


def _runs(folder: Path) -> int:
    counted = folder / "runs"
    return len(counted.read_text().splitlines()) if counted.exists() else 0


@pytest.fixture
def made(project: Project, tmp_path: Path) -> Project:
    """Return a project whose check needs what `make deps` installs; each installation is counted."""
    makefile = f"deps:\n\techo run >> {tmp_path}/runs\n\tmkdir -p deps\n\tcp list.lock deps/list\n\ttouch deps/mine\n"
    _commit(project, {"Makefile": makefile, "requirements.txt": "one\n", "list.lock": "one\n"}, "/deps")
    project.configure("checkout: {prepare: [make deps]}\n")
    return project


def test_what_checks_need_is_installed_once_and_kept_for_later_commands(made: Project, tmp_path: Path) -> None:
    _plan(made, "grep one deps/list", "a.txt", "b.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 0, answer.out
    assert not made.exists("deps")
    assert _runs(tmp_path) == 1
    proof = made.events("--kind", "evidence.recorded")[-1]["payload"]
    assert "weaker" not in proof
    assert "deps <- checkout.prepare" in proof["locations"]
    assert made.quick("verify-work", "1").code == 0
    assert _runs(tmp_path) == 1
    proven = made.quick("prove", "1")
    assert proven.code == 0, proven.out
    assert _runs(tmp_path) == 2, "in a fresh clone, they are installed again"
    assert "Installing what checks need: make deps" in proven.out + proven.err


@pytest.mark.nightly
def test_a_program_that_a_builder_replaced_does_not_install_unseen(
    made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The builder puts another `make` on PATH, which installs what the check expects."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    plant = f"echo x > a.txt; printf '#!/bin/sh\\nmkdir deps; echo two > deps/list\\n' > {programs}/make"
    steps = [shell(f"{plant}; chmod +x {programs}/make")]
    made.plan([task("T1-01", files="create `a.txt`", check="grep two deps/list", steps=steps)])
    assert run(made, "--no-verify").code == 0
    proof = made.events("--kind", "evidence.recorded")[0]["payload"]
    assert proof["changed_programs"] == [f"{programs}/make"]
    assert [words for words in proof["weaker"] if words.endswith("changed during the run")]


@pytest.mark.nightly
def test_a_command_that_fails_stops_the_run_and_does_not_count(made: Project) -> None:
    made.configure("checkout: {prepare: ['echo no such package; exit 3']}\n")
    _plan(made, "test -e deps/list", "a.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 1
    assert "`echo no such package; exit 3` (checkout.prepare) failed: exit 3" in answer.out
    assert "Correct checkout.prepare in .idumb/config.yaml" in answer.out
    assert "idumb execute-phase 1" in answer.out
    assert made.statuses()["T1-01"] != "failed"
    made.configure("checkout: {prepare: [make deps]}\n")
    assert run(made, "--no-verify").code == 0


def test_a_command_that_changes_committed_files_is_refused(made: Project) -> None:
    made.configure("checkout: {prepare: ['make deps && echo two > requirements.txt']}\n")
    _plan(made, "true", "a.txt")
    answer = run(made, "--no-verify")
    assert answer.code == 1
    assert "checkout.prepare changed requirements.txt, which the commit holds" in answer.out
    assert made.read("requirements.txt") == "one\n"


def test_consent_names_the_commands_and_covers_them(made: Project, tmp_path: Path) -> None:
    _plan(made, "test -e deps/list", "a.txt")
    asked = made.quick("execute-phase", "1")
    assert (asked.code, _runs(tmp_path)) == (5, 0)
    assert "before checks: make deps" in asked.err
    consent = re.findall("--approve ([0-9a-f]{64})", asked.err)[0]
    made.configure("checkout: {prepare: [make deps, 'echo more']}\n")
    other = made.quick("execute-phase", "1", "--approve", consent)
    assert other.code != 0
    assert re.search("would run now has the hash [0-9a-f]{64}", other.err)
    assert _runs(tmp_path) == 0


MYPY = f"{sys.executable} -m mypy --no-incremental --no-error-summary ."
RUFF = f"{sys.executable} -m ruff check --isolated --no-cache --select F --output-format concise ."
OLD = "import os\n\n\ndef old() -> str:\n    return 1\n"
TYPES, LINT = "awk -f types.awk a.py", "awk -f lint.awk a.py"


@pytest.fixture
def pointed(sandbox: GitSandbox) -> Project:
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
def test_only_new_errors_of_the_project_s_checkers_fail_the_task(pointed: Project, types: str, lint: str) -> None:
    """R-GATE-3. The file shifts by two lines, and its old errors with it."""
    pointed.configure(f"gates: {{types: {{level: 1, run: {types}}}, lint: {{level: 1, run: {lint}}}}}\n")
    change(pointed, "# one\n# two\n" + OLD + "\n\ndef new() -> str:\n    return 2\n")
    answer = run(pointed, "--max-attempts", "1")
    assert answer.code == 1
    reason = answer.data["tasks"][0]["reason"]
    assert "gate types failed: a.py:11: error: Incompatible return value type" in reason
    assert "gate lint" not in reason
    (row,) = of_gate(pointed, "lint")
    assert (row["result"], row["output"], row["command"]) == ("passed", "reports nothing new; 1 as before", lint)


def test_a_checker_that_is_not_installed_is_not_a_pass(pointed: Project) -> None:
    pointed.configure("gates: {types: {level: 1, run: no-such-checker .}}\n")
    change(pointed, "x = 1\n")
    answer = run(pointed, "--max-attempts", "1")
    assert answer.code == 1
    reason = answer.data["tasks"][0]["reason"]
    assert "gate types could not run: its program was not found or not executable. Install it where checks" in reason
    assert "name another command: `gates: {types: {run: COMMAND}}`" in reason


def test_the_tree_after_one_task_is_checked_once_and_is_the_tree_before_the_next(
    pointed: Project, tmp_path: Path
) -> None:
    """R-GATE-3: a result is remembered by tree, command and environment as long as idumb runs."""
    count = tmp_path / "count"
    checker = f"echo >> {count}; echo a.py:1:1: E1 old; exit 1"
    pointed.configure(f"gates: {{lint: {{level: 1, run: '{checker}'}}}}\n")
    pointed.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")])
    assert run(pointed, "--no-verify").code == 0
    assert count.read_text() == "\n" * 3  # before the first task, after it, after the second one


LICENCE = "grep -L licence *.py | { ! grep . ; }"


def test_a_command_of_the_project_is_a_gate_with_name_level_and_timeout(pointed: Project) -> None:
    """R-GATE-5: the same record as a built-in gate, in the evidence, at its level."""
    pointed.configure(f"gates:\n  licence: {{level: 1, run: '{LICENCE}', timeout: 40s}}\n")
    pointed.plan([changing("# licence\n"), making("T1-02", "b.py", "x = 1\n", after="T1-01")])
    answer = run(pointed, "--max-attempts", "1")
    assert answer.code == 1
    assert "gate licence failed: b.py" in answer.data["tasks"][1]["reason"]
    (passed,) = of_gate(pointed, "licence")
    assert (passed["result"], passed["command"]) == ("passed", LICENCE)


def test_the_commands_of_gates_are_part_of_consent_and_approval(pointed: Project) -> None:
    """R-GATE-5: no command of a configuration runs before a person saw and approved it."""
    change(pointed, "x = 1\n")
    pointed.configure("gates: {licence: {run: 'true'}, types: {level: 0}}\n")
    refused = pointed.quick("execute-phase", "1")
    assert refused.code == 5
    assert "gate licence: true" in refused.err
    assert "gate types: those of mypy, pyright, tsc, go vet, cargo check that the project configures" in refused.err
    commands = approvals.approve(pointed).data["bound"]["commands"]["value"]
    assert "true" in commands
    assert commands[2].endswith('PATH" mypy .')
    pointed.configure("gates: {licence: {run: 'false'}, types: {level: 0}}\n")
    details = approvals.refused(approvals.run(pointed, "--mode", "strict"), "approval.void")
    assert details["changed"] == ["commands", "configuration"]
