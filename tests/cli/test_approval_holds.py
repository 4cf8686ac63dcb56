"""Approvals: what a person sees and answers before one, and that exactly what was approved runs, also later."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.test_repository_states import at_terminal
from tests.support import approvals, seed
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.approvals import CHECK, STRICT, approve, contract, may_start, refused, run, strict_task
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared, prepared_project
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


@pytest.mark.nightly
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


strict = prepared_project(approvals.create)


def open_questions(project: Project) -> list[str]:
    return [one["id"] for one in project.quick("check-plan", "1", "--json").data["open_questions"]]


def test_a_strict_plan_needs_an_answer_to_each_unjudged_question(strict: Project) -> None:
    """R-LOCK-6, R-ASK-1."""
    questions = open_questions(strict)
    assert questions == ["interfaces", "invariants", "design"]
    given = ("approve", "1", "--hash", contract(strict))
    for some in ((), ("--answer", "design=yes")):
        details = refused(strict.quick(*given, *some, "--json"), "approval.unanswered")
        assert [one["id"] for one in details["questions"]] == [
            one for one in questions if not (some and one == "design")
        ]
    refused(run(strict), "approval.missing")
    command = shlex.split(details["choices"][0]["command"])[1:]
    answer = strict.quick(*command, "--json")
    assert answer.code == 0, answer
    assert [(one["question"], one["answer"]) for one in answer.data["answers"]] == [
        ("design", "yes"),
        ("interfaces", "yes"),
        ("invariants", "yes"),
    ]
    assert {one["by"] for one in answer.data["answers"]} == {answer.data["by"]}
    may_start(strict)


def test_answering_no_to_a_self_check_question_approves_nothing(strict: Project) -> None:
    """R-LOCK-6."""
    flags = ("--answer", "interfaces,invariants=yes", "--answer", "design=no", "--json")
    details = refused(strict.quick("approve", "1", "--hash", contract(strict), *flags), "approval.answered-no")
    assert details["evidence"] == ["design: Is the quality of the design acceptable? no"]
    refused(run(strict), "approval.missing")


def test_an_answer_to_a_question_that_is_not_open_is_bad_input(strict: Project) -> None:
    """R-LOCK-6."""
    given = ("approve", "1", "--hash", contract(strict), "--json", "--answer")
    answer = strict.quick(*given, "rollback=yes")
    assert (answer.code, answer.error["code"]) == (3, "approval.unknown-question")


def test_an_unstated_requirement_is_answered_by_its_id(strict: Project) -> None:
    """R-LOCK-6."""
    strict.plan([strict_task("T1-01", "a.txt")], head=STRICT.replace("{REQ-1: files}", "[REQ-1]"))
    assert open_questions(strict)[-1] == "REQ-1"
    assert "REQ-1" in [one["question"] for one in approve(strict).data["answers"]]


def test_at_a_terminal_the_question_shows_what_yes_means_and_records_who_answered(strict: Project) -> None:
    """R-LOCK-6."""
    ended, output = at_terminal(strict, ("approve", "1"), "yes")
    assert ended == 0, output
    assert "you answer yes to design: Is the quality of the design acceptable?" in output
    assert strict.json("approve", "1", "--revoke").data["revoked"] == 1


def test_the_question_for_consent_lists_what_is_not_judged(strict: Project) -> None:
    """R-LOCK-6."""
    strict.plan([making("T1-01", "a.txt", fields="- **Estimate:** 3h\n")])
    shown = refused(run(strict), "consent.missing")["evidence"]
    (unjudged,) = [line for line in shown if line.startswith("not judged by idumb: ")]
    assert "design" in unjudged
    assert unjudged.endswith(" (idumb check-plan 1 --verbose shows the questions)")
    assert [line for line in shown if line.startswith("warning ")] == [
        "warning .planning/phases/1/01-PLAN.md:19: T1-01 is large: an estimate of 3 hours."
    ]
