"""`idumb drop` abandons a phase, a quick task, or a task with all that depends on it; `undo` reverses it (R-RUN-5)."""

from __future__ import annotations

import shlex

import jsonschema
import pytest

from tests.support.answer import Answer
from tests.support.project import Project, making, shell, task
from tests.support.schemas import published


def dropped(project: Project, *words: str) -> Answer:
    answer = project.json("drop", *words, "--why", "not wanted")
    if answer.code == 0:
        schema = published("drop")
        jsonschema.Draft202012Validator(schema).validate(answer.data)
    return answer


def failing(id: str, after: str = "none") -> str:
    return task(id, files=f"create `{id}.txt`", check="false", after=after, steps=[shell(f"touch {id}.txt")])


@pytest.fixture
def stopped(project: Project) -> Project:
    """T1-01 is done, T1-02 failed, T1-03 depends on it, T1-04 on nothing; phase 2 has not begun."""
    last = making("T1-04", "d.txt")
    project.plan([making("T1-01", "a.txt"), failing("T1-02"), making("T1-03", "c.txt", after="T1-02"), last])
    project.plan([making("T2-01", "e.txt")], phase="2")
    assert project.execute("--max-attempts", "1").code == 1
    return project


def test_a_dropped_task_takes_along_what_depends_on_it_and_the_phase_can_end(stopped: Project) -> None:
    before = stopped.statuses()
    answer = dropped(stopped, "T1-02")
    assert (answer.code, answer.data["tasks"], answer.data["next"][0]) == (0, ["T1-02", "T1-03"], "idumb resume 1")
    assert stopped.json("show", "T1-03").data["reason"] == "dropped: not wanted"
    ended = stopped.resume()
    assert (ended.code, ended.data["verification"]["skipped"]) == (0, ["T1-02", "T1-03"])
    assert stopped.json("status").data["phases"][0]["state"] == "verified"
    assert stopped.json("undo", "--yes", "--operation", answer.data["operation"]).code == 0
    assert stopped.statuses() == before


@pytest.mark.nightly
def test_a_dropped_phase_is_not_what_comes_next_and_undo_takes_it_up_again(stopped: Project) -> None:
    before = stopped.statuses()
    answer = dropped(stopped, "1")
    assert (answer.code, answer.data["tasks"], answer.data["phase"]) == (0, ["T1-02", "T1-03"], "1")
    row, _ = stopped.json("status").data["phases"]
    assert (row["state"], row["reason"], row["decisions"]) == ("dropped", "not wanted", [])
    assert stopped.json("next").data["next"]["command"] == "idumb execute-phase 2"
    for words in (["execute-phase", "1"], ["resume", "1"], ["verify-work", "1"], ["accept", "T1-02", "--why", "good"]):
        refused = stopped.json(*words)
        assert (refused.code, refused.error["code"]) == (4, "phase.dropped"), words
    assert stopped.json("prove", "1").data["proven"]
    assert stopped.json(*shlex.split(refused.error["hint"])[1:]).code == 0
    assert stopped.statuses() == before
    assert stopped.json("next").data["next"]["command"] == "idumb decisions"
    assert stopped.json(*stopped.undoing()).code == 0
    assert stopped.json("status").data["phases"][0]["state"] == "dropped"


def test_an_unwanted_quick_task_can_be_dropped_and_next_forgets_it(project: Project) -> None:
    words = ("quick", "Fix it", "--files", "README.md", "--check", "false", "--builder", "human")
    consent = project.json(*words).error["details"]["consent_hash"]
    assert project.json(*words, "--approve", consent).code == 5
    assert project.json("next").data["next"]["phase"] == "Q1"
    assert dropped(project, "q1").code == 0
    assert project.json("next").data["next"].get("phase") != "Q1"
    assert project.quick("decisions").out.strip() == "No questions are waiting for an answer."


@pytest.mark.nightly
def test_what_is_done_cannot_be_dropped(stopped: Project) -> None:
    assert dropped(stopped, "T1-01").error["code"] == "drop.nothing-left"
    project = stopped
    assert project.json("execute-phase", "2", "--approve", project.approval("2")).code == 0
    refused = dropped(project, "2")
    assert (refused.code, refused.error["code"]) == (4, "drop.nothing-left")
    assert project.json("drop", "1", "--why", " ").error["code"] == "task.no-reason"
