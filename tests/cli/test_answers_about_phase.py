"""Answers of a person to a success criterion count for the work that the person saw, and for no other."""

from __future__ import annotations

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task

CRITERION = (
    "\n## Success criteria\n\n- [ ] x.py is there — check: `{check}`\n- [ ] The API reads well — human\n  - Read x.py\n"
)
QUESTION = "1.AC-2.1"


def _waiting(sandbox: GitSandbox) -> Project:
    """A phase whose task is done and whose criterion waits for a person; the builder writes what draft.log says."""
    project = projects.create(sandbox)
    draft(project, "first = 1\n")
    build = task(
        "T1-01", files="create `x.py`", check="test -s x.py", steps=[shell("cat $IDUMB_REPOSITORY/draft.log > x.py")]
    )
    project.plan([build], tail=CRITERION.format(check="test -e README.md"))
    assert project.execute().code == 5
    assert listed(project) == [QUESTION]
    return project


def _answered(sandbox: GitSandbox) -> Project:
    project = _waiting(sandbox)
    assert project.json("decide", QUESTION, "yes").code == 0
    assert project.json("verify-work", "1").code == 0
    return project


project = prepared_project(_waiting)
"""Its criterion waits for a person."""


answered = prepared_project(_answered)
"""Its criterion is answered with yes, and the phase is verified."""


def draft(project: Project, text: str) -> None:
    (project.folder / "draft.log").write_text(text, encoding="utf-8")


def listed(project: Project) -> list[str]:
    return [row["id"] for row in project.json("decisions").data["decisions"]]


def proof(answer: Answer) -> str:
    """Return the result of the person's criterion in the answer of verify-work."""
    return next(str(row["result"]) for row in answer.data["evidence"] if row["subject"] == "AC-2")


def rolled_back(project: Project) -> None:
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert not project.exists("x.py")


def built_again(project: Project) -> None:
    """The work is built, and the phase waits for a person."""
    assert project.resume().code == 5
    assert listed(project) == [QUESTION]


def test_a_question_about_rolled_back_work_is_void_until_the_work_is_built_again(project: Project) -> None:
    """R-PLAN-12, R-ASK-2: nobody can judge work that is not there."""
    rolled_back(project)
    assert listed(project) == []
    assert project.json("next").data["next"]["command"] == "idumb resume 1"
    assert project.json("status").data["next"]["command"] == "idumb resume 1"
    before = project.events("--kind", "decision.answered")
    void = project.json("decide", QUESTION, "yes")
    assert (void.code, void.error["code"], void.error["hint"]) == (4, "decision.void", "idumb resume 1")
    assert "T1-01 (pending) is not done" in void.error["message"]
    assert project.events("--kind", "decision.answered") == before
    draft(project, "second = 2\n")
    built_again(project)
    assert project.json("decide", QUESTION, "yes").code == 0


def test_an_answer_from_before_a_rollback_does_not_count_for_other_bytes(project: Project) -> None:
    """R-PLAN-12, R-GIT-3."""
    assert project.json("decide", QUESTION, "yes").code == 0
    rolled_back(project)
    draft(project, "second = 2\n")
    built_again(project)


def test_an_undone_rollback_brings_the_answer_back_with_the_work(project: Project) -> None:
    """R-PLAN-12, R-GIT-3: the person saw exactly this work."""
    assert project.json("decide", QUESTION, "yes").code == 0
    rolled_back(project)
    assert project.json(*project.undoing()).code == 0
    assert project.read("x.py") == "first = 1\n"
    assert proof(project.json("verify-work", "1")) == "passed"


@pytest.mark.nightly
def test_an_answer_does_not_count_for_work_that_an_amendment_adds(answered: Project) -> None:
    """R-PLAN-12, R-LOCK-8."""
    place = answered.repo.write("../task.md", making("T1-02", "y.py"))
    assert answered.json("amend", "1", "--add-task", str(place), "--yes").code == 0
    assert listed(answered) == []
    assert answered.json("decide", QUESTION, "yes").error["code"] == "decision.void"
    built_again(answered)


def test_an_answer_does_not_count_for_a_criterion_that_says_something_else(project: Project) -> None:
    """R-PLAN-12, R-LOCK-8."""
    assert project.json("decide", QUESTION, "yes").code == 0
    plan = project.folder / ".planning/phases/1/01-PLAN.md"
    plan.write_text(plan.read_text(encoding="utf-8").replace("The API reads well", "The API is safe"), encoding="utf-8")
    assert project.json("amend", "1", "--from-file", "--yes").code == 0
    judged = project.json("verify-work", "1")
    assert (judged.code, proof(judged)) == (5, "waiting"), judged
    (row,) = project.json("decisions").data["decisions"]
    assert "The API is safe" in row["what"]
