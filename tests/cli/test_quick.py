"""`idumb quick`: one task described in a sentence, with every guarantee of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from idumb.domain.plans import new_task
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project

FOLDER = ".planning/quick/001-fix-the-typo"


def _project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox, files={"README.md": "# Teh project\n", "other.txt": "theirs\n"})
    building(project, "sed -i s/Teh/The/ README.md")
    return project


project = prepared_project(_project)


def building(project: Project, script: str) -> None:
    project.built_by(script, "run: {max_attempts: 1}\n")


def consented(project: Project, *arguments: str) -> Answer:
    refused = project.quick("quick", *arguments, "--json")
    assert refused.error["code"] == "consent.missing", refused.out
    return project.json("quick", *arguments, "--approve", refused.error["details"]["consent_hash"])


def test_a_quick_task_is_approved_run_proven_committed_and_rolled_back(project: Project) -> None:
    """R-RUN-3: the branch gets one commit, and a ref of the run keeps the plan, which is an ordinary one."""
    arguments = ("Fix the typo", "--files", "README.md", "--check", "grep -q The README.md")
    refused = project.quick("quick", *arguments, "--json")
    assert refused.code == 4
    assert refused.error["details"]["plan"] == f"{FOLDER}/01-PLAN.md"
    assert refused.error["hint"].startswith("idumb quick 'Fix the typo' --files README.md ")
    assert not project.exists(FOLDER)
    before = len(project.subjects())

    done = project.json("quick", *arguments, "--approve", refused.error["details"]["consent_hash"])

    assert done.code == 0, done.out
    assert project.read("README.md") == "# The project\n"
    assert not project.exists(".planning/quick")
    assert project.repo.git("status", "--porcelain") == ""
    assert project.subjects()[before:] == ["Fix the typo"]
    assert project.quick("show", "tq1-01", "--json").data["status"] == "completed"
    assert project.quick("rollback", "q1", "--to", "start", "--yes", "--json").code == 0
    assert project.read("README.md") == "# Teh project\n"


def test_without_a_check_a_change_of_the_named_file_is_the_proof_and_the_answer_says_so(project: Project) -> None:
    """`status` shows a task only until it is finished."""
    done = consented(project, "Fix the typo", "--files", "README.md")
    assert done.code == 0
    assert any("Without --check" in words for words in done.object["warnings"])
    assert "Q1" not in {row["phase"] for row in project.json("status").data["phases"]}
    building(project, "true")
    assert consented(project, "Fix it again", "--files", "README.md").code == 1
    shown = project.json("status").data
    assert "Q2" in {row["phase"] for row in shown["phases"]}
    assert (shown["next"]["phase"], shown["next"]["command"]) == ("Q2", "idumb decisions")


def test_without_a_terminal_the_files_must_be_named(project: Project) -> None:
    answer = project.quick("quick", "Fix the typo", "--json")
    assert (answer.code, answer.error["code"]) == (4, "quick.no-files")
    assert not project.exists(".planning/quick")


def test_an_impossible_plan_is_refused_and_nothing_is_written(project: Project) -> None:
    for path in ("../out.txt", ".planning/x", "/etc/passwd"):
        assert project.quick("quick", "Fix it", "--files", path, "--json").code == 3
    assert project.quick("quick", "Fix it", "--files", "README.md", "--builder", "nobody", "--json").code == 3
    assert not project.exists(".planning/quick")


@pytest.mark.nightly
def test_a_number_whose_run_began_meanwhile_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-3: without files, the log decides."""
    arguments = ("Fix the typo", "--files", "README.md", "--json")
    refused = project.quick("quick", *arguments)
    approve = ("--approve", refused.error["details"]["consent_hash"])
    meanwhile = _planned_before(new_task.quick_text, lambda: project.quick("quick", *arguments, *approve))
    monkeypatch.setattr(new_task, "quick_text", meanwhile)
    answer = project.quick("quick", *arguments, *approve)
    assert (answer.code, answer.error["code"]) == (4, "quick.number-taken"), answer.out
    assert project.trailers("Idumb-Task") == ["TQ1-01"]


def _planned_before(plan: Callable[..., Any], other: Callable[[], Any]) -> Callable[..., Any]:
    """Return `plan`, whose first call lets another command run before it returns."""
    calls: list[Any] = []

    def planned(*arguments: Any) -> Any:
        calls.append(plan(*arguments))
        if len(calls) == 1:
            assert other().code == 0
        return calls[0]

    return planned
