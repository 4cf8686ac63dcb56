"""Every command that runs a plan's commands requires a valid approval, and every approval can be revoked."""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.approvals import CHECK, STRICT, approve, refused, run
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, shell, task, write

BACK = "tests/back.sh"
MODES = pytest.mark.parametrize("mode", seed.one_on_a_push(["guided", "strict"], "the mode of an approval"))
EDITED = "echo edited >> ran.log\n"


def _create(sandbox: GitSandbox) -> Project:
    files = {"README.md": "# A project\n", ".gitignore": "*.log\n", CHECK: "test -s a.txt\n", BACK: "echo back\n"}
    return projects.create(sandbox, files=files)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return _create(sandbox)


def _plan(project: Project, mode: str) -> None:
    """A plan whose success criterion runs a script, with one task that a script rolls back."""
    head = f"success_criteria: [{{text: it is there, check: sh {CHECK}}}]\n"
    if mode == "strict":
        head = STRICT.replace("test -s a.txt", f"sh {CHECK}")
    fields = "- **Requirements:** REQ-1\n- **Change:** extending\n" if mode == "strict" else ""
    fields += f"- **Rollback:** compensatable\n  - `sh {BACK}`\n"
    steps = (write("a.txt", "made\n"), shell("echo did >> outside.log"))
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps, fields=fields)], head=head)


def _ran(sandbox: GitSandbox, mode: str) -> Project:
    """The phase ran under an approval, is not verified yet, and its commands' files are as approved."""
    project = _create(sandbox)
    _plan(project, mode)
    approve(project, "--expires", "90m")
    assert run(project, "--no-verify").code == 0
    return project


def _ran_guided(sandbox: GitSandbox) -> Project:
    return _ran(sandbox, "guided")


def _ran_strict(sandbox: GitSandbox) -> Project:
    return _ran(sandbox, "strict")


@pytest.fixture
def ran(prepared: Prepared, mode: str) -> Project:
    return prepared.get(_ran_strict if mode == "strict" else _ran_guided)


def _verify(project: Project) -> Answer:
    return project.json("verify-work", "1")


@MODES
def test_verification_runs_nothing_under_a_void_approval(ran: Project, mode: str) -> None:
    """R-LOCK-4."""
    project = ran
    project.repo.write(CHECK, EDITED)
    answer = _verify(project)
    if mode == "strict":
        assert [c["id"] for c in refused(answer, "approval.void")["choices"]] == ["put-back", "approve", "no"]
    else:
        details = refused(answer, "consent.missing")
        assert (details["changed"], details["parts"][0]["keys"]) == (["files"], [CHECK])
        assert f"is void, because these changed: files ({CHECK})." in answer.error["message"]
    assert not project.exists("ran.log")
    assert not project.events("1", "--kind", "verification.recorded")


@MODES
def test_a_rollback_runs_no_command_under_a_void_approval(ran: Project, mode: str) -> None:
    """R-LOCK-4, R-GIT-4."""
    project = ran
    project.repo.write(BACK, EDITED)
    back = ("rollback", "1", "--to", "start", "--yes")
    answer = project.quick(*back, "--json")
    assert refused(answer, "approval.void" if mode == "strict" else "consent.missing")["changed"] == ["files"]
    assert f"files ({BACK})" in answer.error["message"]
    assert not project.exists("ran.log")
    assert project.exists("a.txt")
    assert project.quick(*back, "--past", "T1-01", "--json").code == 0
    assert not project.exists("ran.log")
    assert not project.exists("a.txt")


def test_a_rollback_needs_the_approval_of_the_locked_plan_and_not_of_the_current_one(prepared: Prepared) -> None:
    """R-LOCK-4, R-GIT-4."""
    project = prepared.get(_ran_strict)
    place = project.folder / ".planning/phases/1/01-PLAN.md"
    place.write_text(place.read_text().replace("A plan of tests", "Another plan"))
    project.repo.commit("another plan")
    answer = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert answer.code == 0, answer
    assert answer.data["compensated"] == ["T1-01"]


# Taking a word back
