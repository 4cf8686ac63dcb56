"""Irreversible tasks run only after a person has accepted exactly that task."""

from __future__ import annotations

import pytest

from tests.support import approvals, seed
from tests.support.approvals import FIELDS, STRICT, approve, contract, refused, run, strict_task
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task, write
from tests.support.terminal import answering

project = prepared_project(approvals.create)


def _irreversible(project: Project, *, head: str = "") -> None:
    fields = FIELDS if head else ""
    last = task(
        "T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01",
        steps=(write("b.txt", "x"), shell("echo told >> $IDUMB_REPOSITORY/outside.log")),
        fields=f"{fields}- **Rollback:** irreversible: it tells the world\n",
    )  # fmt: skip
    project.plan([making("T1-01", "a.txt", fields=fields), last], head=head)


@pytest.mark.parametrize("head", seed.one_on_a_push(["", STRICT], "guided or strict"))
def test_an_irreversible_task_runs_only_if_that_task_was_accepted(project: Project, head: str) -> None:
    """R-LOCK-9, R-GIT-4."""
    _irreversible(project, head=head)
    answer = approve(project)
    assert any("T1-02" in warning for warning in answer.object["warnings"])
    details = refused(run(project, "--approve", contract(project)), "irreversible.not-accepted")
    assert details["tasks"] == ["T1-02"]
    assert details["choices"][0]["command"].endswith("--accept-irreversible T1-02")
    assert not project.exists("a.txt")
    approve(project, "--accept-irreversible", "T1-02")
    assert run(project, "--no-verify").code == 0
    assert project.read("outside.log") == "told\n"
    project.quick("approve", "1", "--revoke", "--json")
    assert project.resume("--no-verify").code == 0, "nothing runs any more, so nothing needs an approval"


def test_accepting_one_irreversible_task_accepts_no_other(project: Project) -> None:
    """R-LOCK-9."""
    effect = "- **Rollback:** irreversible: it tells the world\n"
    project.plan([making("T1-01", "a.txt", fields=effect), making("T1-02", "b.txt", fields=effect)])
    approve(project, "--accept-irreversible", "T1-02")
    details = refused(run(project, "--approve", contract(project)), "irreversible.not-accepted")
    assert details["tasks"] == ["T1-01"]
    assert not project.exists("b.txt")


def test_the_acceptance_of_an_irreversible_task_expires_with_its_approval(project: Project) -> None:
    """R-LOCK-9."""
    _irreversible(project)
    approve(project, "--accept-irreversible", "T1-02")
    project.configure("run: {max_attempts: 2}\n")
    refused(run(project, "--approve", contract(project)), "irreversible.not-accepted")


def test_only_irreversible_tasks_can_be_accepted_and_only_by_name(project: Project) -> None:
    """R-LOCK-9."""
    _irreversible(project)
    for name in ("T1-01", "T1-09", "all"):
        answer = project.quick(
            "approve", "1", *project.answers(), "--hash", contract(project), "--accept-irreversible", name, "--json"
        )
        assert (answer.code, answer.error["code"]) == (3, "approval.not-irreversible")
        assert "T1-02" in answer.error["message"]


@pytest.mark.parametrize(("typed", "code"), seed.one_on_a_push([("yes", 0), ("", 4)], "an answer about an effect"))
def test_a_guided_run_asks_about_each_irreversible_task_at_the_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    """R-LOCK-9, R-ASK-2."""
    _irreversible(project)
    screen = answering(monkeypatch, "run", typed)
    assert project.quick("execute-phase", "1", "--no-verify").code == code
    assert "it tells the world" in screen.getvalue()
    assert project.exists("outside.log") == (code == 0)


def test_approving_again_without_the_task_withdraws_its_acceptance(project: Project) -> None:
    """R-LOCK-9."""
    project.plan(
        [strict_task("T1-01", "a.txt", fields="- **Rollback:** irreversible: it mails everybody\n")], head=STRICT
    )
    approve(project, "--accept-irreversible", "T1-01")
    approval = approve(project).data
    assert approval["no_longer_accepted"] == ["T1-01"]
    assert "this approval ends the acceptance of T1-01" in approval["shown"]
    refused(run(project), "irreversible.not-accepted")
    assert approve(project, "--accept-irreversible", "T1-01").data["no_longer_accepted"] == []
