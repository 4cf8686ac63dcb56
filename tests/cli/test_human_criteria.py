"""Criteria that only a person can prove: questions, answers, and tasks that continue."""

from __future__ import annotations

import json

from tests.support.project import Project, making, shell, task


def test_a_criterion_for_a_person_waits_and_the_answer_completes_the_task(project: Project) -> None:
    """R-ASK-1, R-ASK-2, R-ASK-3, R-PLAN-12, R-RUN-3: pending, exit 5, answered later, in the record."""
    criteria = "  - [ ] it is there — check: `test -s a.txt`\n  - [ ] it reads well — human\n    - Read it aloud\n"
    project.plan([making("T1-01", "a.txt", criteria=criteria), making("T1-02", "b.txt", after="T1-01")])
    answer = project.execute()
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    (decision,) = project.json("decisions").data["decisions"]
    assert "Read it aloud" in decision["evidence"]
    assert [choice["id"] for choice in decision["choices"]] == ["yes", "no"]
    assert all(choice["consequence"] for choice in decision["choices"])
    assert decision["why"]
    assert project.json("status").data["next"]["command"] == "idumb decisions"
    assert decision["id"] in project.quick("decisions").out
    assert project.trailers("Idumb-Task") == []
    assert project.resume().code == 5  # no answer means no
    assert "## Decisions" not in project.read(".planning/phases/1/01-PLAN.md")
    wrong = project.json("decide", decision["id"], "perhaps")
    assert (wrong.code, wrong.error["code"]) == (3, "decision.bad-choice")
    assert project.json("decide", "T9-99.x", "yes").error["code"] == "decision.unknown"
    decided = project.json("decide", decision["id"], "yes", "--guidance", "reads like a song")
    assert decided.code == 0
    assert "idumb resume 1" in decided.data["next"]
    assert project.json("decide", decision["id"], "no").error["code"] == "decision.answered"
    assert project.resume("--no-verify").code == 0
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.json("decisions").data["decisions"] == []
    assert "reads like a song" in json.dumps(project.json("show", "T1-01").data)


def test_tasks_for_a_person_wait_while_others_continue(project: Project) -> None:
    """R-PLAN-12, R-ASK-2: human-verify, decision and human-action; a denied criterion fails the attempt."""
    project.plan(
        [
            task("T1-01", criteria="  - [ ] it is so — human\n", fields="- **Kind:** human-action\n"),
            task(
                "T1-02",
                criteria="  - [ ] chosen — human\n",
                fields="- **Kind:** decision\n- **Options:**\n  - red: the warm one\n  - blue: the cold one\n",
            ),
            task(
                "T1-03", criteria="  - [ ] it looks right — human\n", fields="- **Kind:** human-verify\n", after="T1-04"
            ),
            task("T1-04", steps=[shell("true")]),
            task("T1-05", after="T1-01, T1-02, T1-03", steps=[shell("true")]),
            making("T1-06", "c.txt", criteria="  - [ ] it reads well — human\n"),
        ]
    )
    answer = project.execute()
    assert answer.code == 5
    assert project.statuses()["T1-04"] == "completed"
    decisions = {row["task"]: row for row in project.json("decisions").data["decisions"]}
    assert set(decisions) == {"T1-01", "T1-02", "T1-03", "T1-06"}
    assert [choice["id"] for choice in decisions["T1-02"]["choices"]] == ["red", "blue"]
    for id, choice in (("T1-01", "done"), ("T1-02", "blue"), ("T1-03", "yes"), ("T1-06", "no")):
        assert project.quick("decide", decisions[id]["id"], choice).code == 0
    assert project.resume("--max-attempts", "1").code == 1
    status = project.statuses()
    assert status.pop("T1-06") == "failed"
    assert set(status.values()) == {"completed"}
    assert "blue" in json.dumps(project.json("show", "T1-02").data)


def test_what_a_person_made_is_committed_unless_he_did_it_himself(project: Project) -> None:
    """R-PLAN-12, R-RUN-3: what proves the task is in the commit."""
    by_hand = "- **Kind:** human-action\n"
    project.plan(
        [
            task("T1-01", files="create `a.txt`", check="test -s a.txt", fields=by_hand),
            task("T1-02", files="create `b.txt`", check="test -s b.txt", fields=by_hand, after="T1-01"),
            making("T1-03", "c.txt", after="T1-02"),
        ]
    )
    assert project.execute().code == 5
    project.repo.write("a.txt", "mine\n")
    assert project.quick("decide", "T1-01.work.1", "done").code == 0
    assert project.resume().code == 5
    project.repo.write("b.txt", "mine\n")
    project.repo.commit("by hand", "b.txt")
    assert project.quick("decide", "T1-02.work.1", "done").code == 0
    assert project.resume().code == 0
    assert [word for word in project.subjects() if word != "plan"][-4:-1] == ["Task T1-01", "by hand", "Task T1-03"]
    assert project.json("prove", "1").code == 0
