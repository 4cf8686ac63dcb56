"""Every command that runs a plan's commands requires a valid approval, and every approval can be revoked."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.test_step_plans import put
from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.approvals import CHECK, STRICT, approve, contract, refused, run, strict_task
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell, task, write

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


def _expire(home: Path) -> None:
    for place in (home / "state/idumb/consent").rglob("*.json"):
        text = re.sub(r'"expires": ?"[^"]+"', '"expires": "2020-01-01T00:00:00.000000Z"', place.read_text())
        place.write_text(text)


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
def test_verification_runs_nothing_under_an_expired_approval(ran: Project, home: Path, mode: str) -> None:
    """R-LOCK-4."""
    _expire(home)
    answer = _verify(ran)
    refused(answer, "approval.expired" if mode == "strict" else "consent.missing")
    assert "expired at 2020-01-01" in answer.error["message"]


def test_the_refusal_names_the_differences_from_a_guided_approval(project: Project) -> None:
    """R-LOCK-3, R-LOCK-4: a script, a plan or a revocation; a new approval is valid."""
    _plan(project, "guided")
    approve(project)
    project.repo.write(CHECK, EDITED)
    answer = run(project)
    details = refused(answer, "consent.missing")
    assert details["changed"] == ["files"]
    assert f"is void, because these changed: files ({CHECK})." in answer.error["message"]
    assert details["evidence"][0] in answer.error["message"]
    assert details["evidence"][1].startswith(f"files ({CHECK}): was ")
    project.repo.write(CHECK, "test -s a.txt\n")
    plan = project.folder / ".planning/phases/1/01-PLAN.md"
    plan.write_text(plan.read_text().replace("A plan of tests", "Another plan"))
    assert refused(run(project), "consent.missing")["changed"] == ["plans"]
    assert project.quick("approve", "1", "--revoke", "--json").code == 0
    answer = run(project)
    refused(answer, "consent.missing")
    assert "was revoked by " in answer.error["message"]


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


@pytest.mark.nightly
def test_invariants_are_not_judged_after_a_rollback_under_a_void_approval(project: Project) -> None:
    """R-LOCK-4: the files are restored anyway."""
    invariants = f"invariants: [{{id: I-1, text: it holds, check: sh {BACK}}}]\n"
    project.plan([strict_task("T1-01", "a.txt")], head=STRICT + invariants)
    approve(project)
    assert run(project, "--no-verify").code == 0
    project.repo.write(BACK, EDITED)
    answer = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert (answer.code, answer.data["invariants"]) == (0, [])
    undone = project.quick(*project.undoing(), "--json")
    assert (undone.code, undone.data["invariants"]) == (0, [])
    assert not project.exists("ran.log")


# Taking a word back


@pytest.mark.nightly
def test_an_approval_can_be_revoked_without_its_plan(project: Project) -> None:
    """R-LOCK-3, R-LOCK-4: it ends with the approval, however the phase is spelled."""
    _plan(project, "strict")
    folder = project.folder / ".planning/phases/1"
    text = (folder / "01-PLAN.md").read_text()
    for spelling, left in (("1", "---\nbroken\n"), ("1-name", text.replace('"1"', '"7"')), ("001", None), ("01", None)):
        approve(project)
        if left is None:
            shutil.rmtree(folder)
        else:
            (folder / "01-PLAN.md").write_text(left)
        answer = project.json("approve", spelling, "--revoke")
        assert (answer.code, answer.data["revoked"], answer.data["phase"]) == (0, 1, "1"), answer
        folder.mkdir(exist_ok=True)
        (folder / "01-PLAN.md").write_text(text)
        refused(run(project), "approval.revoked")


def test_revoking_1_revokes_an_approval_of_01_but_not_of_10(project: Project) -> None:
    """R-LOCK-4: revoking 1 revokes an approval of 01, but not one of 10."""
    project.plan([making("T01-01", "a.txt")], phase="01", folder="01")
    project.plan([making("T10-01", "b.txt")], phase="10", folder="10")
    for phase in ("01", "10"):
        contract_hash = project.quick("check-plan", phase, "--json").data["contract_hash"]
        assert project.quick("approve", phase, *project.answers(phase), "--hash", contract_hash, "--json").code == 0
    (project.folder / ".planning/phases/01/01-PLAN.md").write_text("---\nbroken\n")
    assert project.quick("approve", "1", "--revoke", "--json").data["revoked"] == 1
    assert project.quick("approve", "1", "--revoke", "--json").error["code"] == "approval.none"
    assert project.quick("approve", "10", "--revoke", "--json").data["revoked"] == 1


def test_the_approval_of_a_step_plan_can_be_revoked_by_its_path_with_or_without_the_file(project: Project) -> None:
    """R-LOCK-4."""
    put(project, write("one.txt", "x\n"), path="steps/one.yaml")
    checked = project.quick("check-plan", "steps/one.yaml", "--json")
    assert checked.code == 0, checked
    for named in ("steps/one.yaml", "./steps/one.yaml", "steps+one.yaml"):
        approved = project.quick(
            "approve",
            "steps/one.yaml",
            *project.answers("steps/one.yaml"),
            "--hash",
            checked.data["contract_hash"],
            "--json",
        )
        assert approved.code == 0, approved
        text = project.read("steps/one.yaml")
        (project.folder / "steps/one.yaml").unlink()
        assert project.quick("approve", named, "--revoke", "--json").data["revoked"] == 1
        project.repo.write("steps/one.yaml", text)


@pytest.mark.nightly
def test_guided_consent_can_be_revoked_too(project: Project) -> None:
    """R-LOCK-3."""
    _plan(project, "guided")
    assert run(project, "--approve", contract(project), "--no-verify").code == 0
    answer = project.quick("approve", "01", "--revoke", "--json")
    assert (answer.data["revoked"], answer.data["withdrawn"]) == (0, 1)
    refused(_verify(project), "consent.missing")
    assert project.quick("approve", "1", "--revoke", "--json").error["code"] == "approval.none"
    assert run(project, "--approve", contract(project), "--no-verify").code == 0
    approve(project)
    assert "1 approval and 1 consent withdrawn" in project.quick("approve", "1", "--revoke").out
