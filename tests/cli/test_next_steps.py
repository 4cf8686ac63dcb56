"""Following a refusal's next step works: it never leads in a circle or names something that does not exist."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest

from tests.cli.test_amend import validate
from tests.support import ended_runs, seed
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import edit
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell, task, write


def _create(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox, files={"README.md": "# A project\n"})


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return _create(sandbox)


@pytest.fixture
def verified(prepared: Prepared) -> Project:
    return prepared.get(ended_runs.done)


def _on_branch(sandbox: GitSandbox) -> Project:
    """A phase is verified on branch `work`, and `main` is checked out."""
    project = _create(sandbox)
    project.plan([making("T1-01", "a.txt", "a\n")])
    assert _run(project, "--branch", "work") == 0
    project.repo.git("switch", "--quiet", "main")
    return project


def _run(project: Project, *more: str) -> int:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, "--json", *more).code


def _type(project: Project, line: str) -> None:
    subprocess.run(line, shell=True, cwd=project.repo.root, check=True, capture_output=True)


@pytest.mark.nightly
def test_the_suggested_command_recovers_a_run_whose_branch_was_deleted(prepared: Prepared) -> None:
    project = prepared.get(_on_branch)
    refused = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert refused.error["hint"] == "git switch work"
    project.repo.git("branch", "--quiet", "-D", "work")
    _type(project, project.quick("rollback", "1", "--to", "start", "--yes", "--json").error["hint"])
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("a.txt")


@pytest.mark.nightly
def test_the_suggested_command_restores_a_deleted_plan(project: Project) -> None:
    """`git clean` takes plans that were never committed; the run kept their bytes."""
    project.plan([making("T1-01", "a.txt", "a\n")], commit=False)
    assert _run(project, "--no-verify") == 0
    was = project.read(".planning/phases/1/01-PLAN.md")
    (project.repo.root / ".planning/phases/1/01-PLAN.md").unlink()
    assert project.quick("next", "--json").data["next"]["command"] == "idumb check-plan 1"
    assert project.quick("resume", "1", "--json").error["hint"].startswith("git show ")
    _type(project, project.quick("check-plan", "1", "--json").error["hint"])
    assert project.read(".planning/phases/1/01-PLAN.md") == was
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0


def test_a_git_folder_moved_away_during_a_run_is_not_created_again(project: Project) -> None:
    """Moved back, it would land inside the newly created one."""
    steps = [shell('mv "$IDUMB_REPOSITORY/.git" "$IDUMB_REPOSITORY/away"'), write("a.txt", "a\n")]
    project.plan([task("T1-01", files="create `a.txt`", check="true", steps=steps)])
    place = project.repo.git_dir
    assert _run(project) != 0
    assert not place.exists()
    (project.repo.root / "away").rename(place)
    assert project.quick("next").code == 0


def test_a_warning_of_git_is_not_called_a_refusal(verified: Project) -> None:
    """R-GIT-5: with `core.autocrlf` git warns of line ends, and commits."""
    verified.repo.git("config", "core.autocrlf", "true")
    answer = verified.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert answer.code == 0
    assert answer.object["warnings"] == []


def test_documents_of_a_run_on_another_branch_do_not_block_it(prepared: Prepared) -> None:
    """Untracked, they would stop `git switch` and `git merge`."""
    project = prepared.get(_on_branch)
    answer = project.quick("doctor", "--fix", "--json")
    assert answer.code == 0
    assert "checkpoint" not in str(answer.data["fixed"])
    project.repo.git("switch", "--quiet", "work")


@pytest.mark.parametrize(
    "command", seed.one_on_a_push([(("rollback", "1", "--to", "start"),), (("deinit",),)], "a question")
)
def test_one_interrupt_leaves_a_question(verified: Project, command: tuple[str, ...]) -> None:
    before = verified.repo.ledger()
    master, slave = pty.openpty()
    with verified.beside(*command, terminal=os.ttyname(slave)) as process:
        output = b""
        while b"Your choice" not in output:
            output += os.read(master, 4096)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait().code == 130
    os.close(slave)
    os.close(master)
    assert verified.repo.ledger().changed_paths(before) == []
    assert verified.quick("rollback", "1", "--to", "start", "--yes").code == 0


def test_the_next_step_after_the_plan_of_a_verified_phase_is_that_of_status(verified: Project) -> None:
    """R-ASK-1: execute-phase would refuse it, and resume has nothing to do."""
    checked, compared = verified.quick("check-plan", "1").out, verified.quick("check-plan", "1", "--diff").out
    assert checked.endswith("\nThis contract is verified.\n")
    assert compared == "No changes in phase 1 since run 1.\n"
    verified.plan([making("T2-01", "b.txt")], phase="2")
    following = verified.json("status").data["next"]["command"]
    assert following == "idumb execute-phase 2"
    for schema, view in (("check-plan", ()), ("check-plan-diff", ("--diff",))):
        answer = verified.json("check-plan", "1", *view).data
        validate(answer, schema)
        assert (answer["verified"], answer["next"]) == (True, [following])
        assert verified.quick("check-plan", "1", *view).out.endswith(f"\nNext: {following}\n")


def test_status_says_whether_the_plan_or_the_configuration_changed_since_the_run(prepared: Prepared) -> None:
    """R-PLAN-11."""
    project = prepared.get(ended_runs.failed)
    configuration = project.folder / ".idumb/config.yaml"
    before = configuration.read_text(encoding="utf-8")
    configuration.write_text(before + "\nprotected: [x.txt]\n", encoding="utf-8")
    assert "it continues with the changed configuration, at T1-0" in project.quick("status").out
    configuration.write_text(before, encoding="utf-8")
    edit(project, "Task T1-01", "Another title")
    assert "it continues with the changed plan, at T1-0" in project.quick("status").out
