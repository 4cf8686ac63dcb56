"""What a person sees and answers before an approval: vague words, warnings and self-check questions."""

from __future__ import annotations

import shlex

from tests.cli.test_repository_states import at_terminal
from tests.support import approvals
from tests.support.approvals import STRICT, approve, contract, may_start, refused, run, strict_task
from tests.support.prepared import prepared_project
from tests.support.project import Project, making

project = prepared_project(approvals.create)


def open_questions(project: Project) -> list[str]:
    return [one["id"] for one in project.quick("check-plan", "1", "--json").data["open_questions"]]


def test_a_strict_plan_needs_an_answer_to_each_unjudged_question(project: Project) -> None:
    """R-LOCK-6, R-ASK-1."""
    questions = open_questions(project)
    assert questions == ["interfaces", "invariants", "design"]
    given = ("approve", "1", "--hash", contract(project))
    for some in ((), ("--answer", "design=yes")):
        details = refused(project.quick(*given, *some, "--json"), "approval.unanswered")
        assert [one["id"] for one in details["questions"]] == [
            one for one in questions if not (some and one == "design")
        ]
    refused(run(project), "approval.missing")
    command = shlex.split(details["choices"][0]["command"])[1:]
    answer = project.quick(*command, "--json")
    assert answer.code == 0, answer
    assert [(one["question"], one["answer"]) for one in answer.data["answers"]] == [
        ("design", "yes"),
        ("interfaces", "yes"),
        ("invariants", "yes"),
    ]
    assert {one["by"] for one in answer.data["answers"]} == {answer.data["by"]}
    may_start(project)


def test_answering_no_to_a_self_check_question_approves_nothing(project: Project) -> None:
    """R-LOCK-6."""
    flags = ("--answer", "interfaces,invariants=yes", "--answer", "design=no", "--json")
    details = refused(project.quick("approve", "1", "--hash", contract(project), *flags), "approval.answered-no")
    assert details["evidence"] == ["design: Is the quality of the design acceptable? no"]
    refused(run(project), "approval.missing")


def test_an_answer_to_a_question_that_is_not_open_is_bad_input(project: Project) -> None:
    """R-LOCK-6."""
    given = ("approve", "1", "--hash", contract(project), "--json", "--answer")
    answer = project.quick(*given, "rollback=yes")
    assert (answer.code, answer.error["code"]) == (3, "approval.unknown-question")
    assert project.quick(*given, "design=maybe").code == 2


def test_an_unstated_requirement_is_answered_by_its_id(project: Project) -> None:
    """R-LOCK-6."""
    project.plan([strict_task("T1-01", "a.txt")], head=STRICT.replace("{REQ-1: files}", "[REQ-1]"))
    assert open_questions(project)[-1] == "REQ-1"
    assert "REQ-1" in [one["question"] for one in approve(project).data["answers"]]


def test_at_a_terminal_the_question_shows_what_yes_means_and_records_who_answered(project: Project) -> None:
    """R-LOCK-6."""
    ended, output = at_terminal(project, ("approve", "1"), "yes")
    assert ended == 0, output
    assert "you answer yes to design: Is the quality of the design acceptable?" in output
    assert project.json("approve", "1", "--revoke").data["revoked"] == 1


def test_the_question_for_consent_lists_what_is_not_judged(project: Project) -> None:
    """R-LOCK-6."""
    project.plan([making("T1-01", "a.txt", fields="- **Estimate:** 3h\n")])
    shown = refused(run(project), "consent.missing")["evidence"]
    (unjudged,) = [line for line in shown if line.startswith("not judged by idumb: ")]
    assert "design" in unjudged
    assert unjudged.endswith(" (idumb check-plan 1 --verbose shows the questions)")
    assert [line for line in shown if line.startswith("warning ")] == [
        "warning .planning/phases/1/01-PLAN.md:19: T1-01 is large: an estimate of 3 hours."
    ]
