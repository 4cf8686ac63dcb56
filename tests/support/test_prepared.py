"""Prepared projects are the same for each test, and no test sees what another did to one."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, making

BUILT: list[str] = []


def verified(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    assert project.execute().code == 0
    BUILT.append("once")
    return project


def other(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def test_a_prepared_project_is_built_once_and_restored_with_its_log_and_consent(prepared: Prepared) -> None:
    first = prepared.get(verified)
    before, operations = first.repo.ledger(), first.events()
    first.repo.write("a.txt", "spoiled")
    first.repo.write(".git/refs/heads/other", first.repo.head() + "\n")
    assert prepared.get(other).events() == []
    again = prepared.get(verified)
    assert BUILT == ["once"]
    assert again.repo.ledger() == before
    assert again.events() == operations
    assert again.repo.status() == []
    again.plan([making("T2-01", "b.txt")], phase="2")
    assert again.execute(phase="2").code == 0
    assert again.quick("audit", "verify").code == 0
