"""Warnings of `check-plan` before a run: what a plan relies on, and files that no commit has (R-PLAN-1)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from idumb.domain.intake import texts
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task, write

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    files = {"README.md": "# A project\n", ".gitignore": "*.log\n", "src/a.py": "a = 1\n", "src/keys.py": "k = 1\n"}
    project = projects.create(sandbox, files=files)
    project.configure("builder: human\n")
    return project


def warned(project: Project) -> list[tuple[str, str]]:
    """Return code and first word of every finding; each is a warning at a line of the plan."""
    checked = project.quick("check-plan", "1", "--json")
    assert checked.code == 0, checked
    assert {f["severity"] for f in checked.data["findings"]} <= {"warning"}
    assert all(f["line"] > 1 or f["code"] == "text.unfilled" for f in checked.data["findings"])
    return [(f["code"], f["message"].split()[0].rstrip(":")) for f in checked.data["findings"]]


def test_a_modified_file_must_exist_or_be_created_by_an_earlier_task(project: Project) -> None:
    """R-LOCK-1."""
    for verb in ("modify", "delete"):
        change = task("T1-02", files=f"{verb} `b.txt`", after="T1-01")
        last = task("T1-02", files=f"{verb} `src/a.py`", after="T1-01")
        for tasks, codes in (
            ([making("T1-01", "a.txt"), change], ["path.missing"]),
            ([making("T1-01", "b.txt"), change], []),
            ([task("T1-02", files=f"{verb} `src/a.py`")], []),
            ([task("T1-01", files="delete `src/a.py`"), last], ["path.missing"]),
        ):
            project.plan(tasks, commit=False)
            assert warned(project) == [(code, "T1-02") for code in codes], tasks


def test_a_created_file_must_not_exist(project: Project) -> None:
    """R-LOCK-1."""
    project.plan([making("T1-01", "src/a.py")], commit=False)
    assert warned(project) == [("path.exists", "T1-01")]
    again = task("T1-02", files="create `a.txt`", check="grep -q x a.txt", after="T1-01")
    project.plan([making("T1-01", "a.txt"), again], commit=False)
    assert warned(project) == [("path.exists", "T1-02")]
    project.plan([task("T1-01", files="delete `src/a.py`"), making("T1-02", "src/a.py", after="T1-01")], commit=False)
    assert warned(project) == []
    project.plan([task("T1-01", files="move `src/keys.py` to `src/a.py`")], commit=False)
    assert warned(project) == [("path.exists", "T1-01")]


def test_results_and_leftovers_of_a_run_are_not_findings(project: Project) -> None:
    """R-LOCK-1, R-RUN-8."""
    failing = task("T1-02", files="create `b.txt`", check="false", steps=(write("b.txt", "b\n"),), after="T1-01")
    project.plan([making("T1-01", "a.txt"), failing])
    assert project.execute("--max-attempts", "1").code == 1
    assert warned(project) == []


PROGRAMS = (
    ("grpe -q a a.txt", True),
    ("test -s a.txt && X=1 grpe a a.txt", True),
    ("test -s a.txt || (cd src; ./gone.sh)", False),
    ("./gone.sh", True),
    ("timeout -k 5 60 time -p nice -n 5 grpe a", True),
    ("time -p stdbuf -o L ./build.sh --all", False),
    ("./made.log", False),
    ('"$CC" -v && if true; then echo grpe; fi # grpe', False),
    ("sh -c 'git --version'", False),
    ("time { timeout 1d stdbuf --output L ./build.sh; }", False),
)


def test_the_program_of_a_check_is_on_path_or_created_by_a_task(project: Project) -> None:
    """R-LOCK-1."""
    for check, gone in PROGRAMS:
        project.plan([task("T1-01", files="create `build.sh`", check=check)], commit=False)
        assert warned(project) == ([("check.no-program", "T1-01")] if gone else []), check


@pytest.mark.parametrize("name", ["plan.md", "phase-plan.md"])
def test_each_unreplaced_template_sentence_is_named(project: Project, name: str) -> None:
    """R-LOCK-1, R-PLAN-10."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    assert [sentence for sentence in texts.SENTENCES if sentence in text]
    for name_of_value, value in (("phase_yaml", '"1"'), ("title_yaml", "Greet"), ("goal_yaml", "It greets")):
        text = text.replace(f"${name_of_value}", value)
    text = text.replace("$builder_yaml", "human").replace("$title_prose", "Greet").replace("$phase", "1")
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    place.parent.mkdir(parents=True)
    place.write_text(text, encoding="utf-8")
    findings = project.quick("check-plan", "1", "--json").data["findings"]
    assert "text.unfilled" in {f["code"] for f in findings}


def test_the_question_for_consent_shows_foreseeable_failures(project: Project) -> None:
    """R-ASK-1, R-LOCK-1."""
    project.plan([task("T1-01", files="modify `gone.txt`", check="grpe -q a gone.txt")])
    refused = project.quick("execute-phase", "1", "--json")
    assert (refused.code, refused.error["code"]) == (5, "consent.missing")
    shown = [line for line in refused.error["details"]["evidence"] if line.startswith("warning ")]
    assert ["gone.txt" in line or "grpe" in line for line in shown] == [True, True]


PLAN = ".planning/phases/1/01-PLAN.md"
CONFIGURATION = ".idumb/config.yaml"


def test_a_command_of_a_gate_that_cannot_fail_is_named_at_its_line(project: Project) -> None:
    """R-LOCK-1."""
    project.plan([making("T1-01", "a.txt")], commit=False)
    place = project.folder / CONFIGURATION
    place.write_text("# Gates\ngates:\n  syntax: {level: 1}\n  one: {run: 'true'}\n", encoding="utf-8")
    [found] = project.quick("check-plan", "1", "--json").data["findings"]
    assert (found["code"], found["path"], found["line"]) == ("check.cannot-fail", CONFIGURATION, 4)


@pytest.fixture
def uncommitted(sandbox: GitSandbox) -> Project:
    """idumb is set up and a plan is written, but neither is added to git."""
    sandbox.commit_with({"README.md": "# A project\n"}, "begin")
    project = Project(sandbox, sandbox.root)
    assert project.quick("init").code == 0
    project.plan([making("T1-01", "a.txt")], commit=False)
    return project


def commit(project: Project, untracked: dict[str, Any]) -> None:
    subprocess.run(["sh", "-ec", untracked["command"]], cwd=project.folder, check=True)


def test_check_plan_names_new_plans_until_they_are_committed(uncommitted: Project) -> None:
    """R-PLAN-1."""
    untracked = uncommitted.json("check-plan", "1").data["untracked"]
    assert untracked["paths"] == [CONFIGURATION, PLAN]
    output = uncommitted.quick("check-plan", "1").out
    assert f"Not committed: {CONFIGURATION}, {PLAN}." in output
    assert untracked["command"] in output
    uncommitted.repo.git("add", "--", CONFIGURATION)
    assert uncommitted.json("check-plan", "1").data["untracked"] == untracked
    uncommitted.repo.git("add", "--", PLAN)
    assert uncommitted.json("check-plan", "1").data["untracked"] == untracked
    commit(uncommitted, untracked)
    assert uncommitted.json("check-plan", "1").data["untracked"] is None
    assert "Not committed" not in uncommitted.quick("check-plan", "1").out


def test_policy_and_templates_count_and_unusual_names_are_quoted(uncommitted: Project) -> None:
    """R-PLAN-1."""
    policy, template = ".idumb/policy/tools.yaml", ".idumb/prompts/terse.md"
    for path, text in ((policy, "allow: [run, write_file]\n"), (template, "{task}\n")):
        (uncommitted.folder / path).parent.mkdir(exist_ok=True)
        (uncommitted.folder / path).write_text(text, encoding="utf-8")
    odd = uncommitted.plan([making("T2-01", "b.txt")], phase="2", folder="02-it's odd", commit=False)
    path = odd.relative_to(uncommitted.folder).as_posix()
    answer = uncommitted.json("check-plan", "2")
    assert answer.data, answer
    untracked = answer.data["untracked"]
    assert untracked["paths"] == sorted([CONFIGURATION, policy, template, path])
    commit(uncommitted, untracked)
    assert uncommitted.json("check-plan", "2").data["untracked"] is None


def test_ignored_files_are_omitted(uncommitted: Project) -> None:
    """R-PLAN-1: there the reports stay out of git as well."""
    (uncommitted.folder / ".gitignore").write_text(".planning/\n.idumb/\n", encoding="utf-8")
    assert uncommitted.json("check-plan", "1").data["untracked"] is None
