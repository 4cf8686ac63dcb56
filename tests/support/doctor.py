"""A healthy project for `doctor`, and what it reports and fixes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making

DEAD = 2**22 - 3  # above the numbers that Linux gives to processes by default


def create(sandbox: GitSandbox) -> Project:
    """Return a project with one completed phase of two tasks."""
    sandbox.write("README.md", "# A project\n")
    project = Project(sandbox, sandbox.root)
    assert project.quick("init").code == 0
    project.plan([making("T1-01", "a.txt", "a\n"), making("T1-02", "b.txt", "b\n", after="T1-01")], commit=False)
    sandbox.commit("plan")
    approval = project.quick("check-plan", "1", "--json").data["consent_hash"]
    assert project.quick("execute-phase", "1", "--json", "--approve", approval).code == 0
    return project


def doctor(project: Project, *flags: str) -> Answer:
    answer = project.quick("doctor", "--json", *flags)
    assert answer.code in {0, 1}, answer.out
    assert answer.data["healthy"] == (answer.code == 0)
    return answer


def problems(answer: Answer, code: str) -> list[dict[str, Any]]:
    """The symptoms of a check that are not ok."""
    check = next(check for check in answer.data["checks"] if check["code"] == code)
    return [symptom for symptom in check["symptoms"] if symptom["state"] != "ok"]


def symptoms_of(project: Project, code: str, state: str) -> list[dict[str, Any]]:
    """The symptoms of one check, all in this state, each with its meaning and a next step."""
    symptoms = problems(doctor(project), code)
    assert symptoms
    assert {one["state"] for one in symptoms} == {state}
    assert all(one["means"] for one in symptoms)
    return symptoms


def fixed(project: Project, code: str) -> list[str]:
    """Return what `--fix` did. Afterwards the check is ok, so that a second `--fix` has nothing to do."""
    before = user_and_git(project)
    answer = doctor(project, "--fix")
    assert answer.data["fixed"], answer.out
    assert problems(answer, code) == []
    assert user_and_git(project) == before
    return list(answer.data["fixed"])


def user_and_git(project: Project) -> tuple[object, ...]:
    """Return what `--fix` may never change: the user's files, index, branches, HEAD and configuration."""
    ledger = project.repo.ledger()
    files = {p: e for p, e in ledger.entries.items() if not p.startswith(".idumb")}
    return files, ledger.index, ledger.refs, ledger.head, ledger.config


def store(project: Project) -> Path:
    return project.repo.common_dir / "idumb" / "store.db"
