"""Work that a person did or accepted: what is committed, verified and asked about it (R-PLAN-12, R-RUN-3)."""

from __future__ import annotations

import pytest

from tests.support.project import Project, failing_task, making, shell, task, write

BY_HAND = "- **Kind:** human-action\n"
VALUE = "Zx9kQ2mN8pL4vB7t"


def by_hand(id: str, path: str, verb: str = "create") -> str:
    return task(id, files=f"{verb} `{path}`", check=f"test -s {path}", fields=BY_HAND)


def done(project: Project, task_id: str) -> None:
    assert project.quick("decide", f"{task_id}.work.1", "done").code == 0


@pytest.mark.nightly
def test_a_known_secret_in_a_person_s_work_is_asked_about(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYTOKEN", VALUE)
    project.configure("bindings: {one: {adapter: command, argv: ['true'], environment: [MYTOKEN]}}\n")
    project.plan([by_hand("T1-01", "a.txt")])
    assert project.execute().code == 5
    project.repo.write("a.txt", f"{VALUE}\n")
    done(project, "T1-01")
    assert project.resume().code == 5
    assert [row["kind"] for row in project.json("decisions").data["decisions"]] == ["secret"]
    assert project.trailers("Idumb-Task") == []


@pytest.mark.nightly
def test_what_he_had_staged_of_it_is_in_the_commit_and_leaves_the_index(project: Project) -> None:
    project.plan([by_hand("T1-01", "README.md", "modify")])
    assert project.execute().code == 5
    project.repo.write("README.md", "one\n")
    project.repo.git("add", "README.md")
    project.repo.write("README.md", "one\ntwo\n")
    done(project, "T1-01")
    assert project.resume().code == 0
    assert project.repo.git("show", "HEAD~1:README.md") == "one\ntwo"
    assert project.repo.git("status", "--porcelain") == ""


@pytest.mark.nightly
def test_an_acceptance_ends_the_verification_before_it(project: Project) -> None:
    broken = task("T1-02", files="modify `a.txt`", check="false", after="T1-01", steps=[write("a.txt", "x\n")])
    tail = "\n## Success criteria\n\n- [ ] It is made — check: `grep -q made a.txt`\n"
    project.plan([making("T1-01", "a.txt"), broken], tail=tail)
    assert project.execute("--max-attempts", "1").code == 1
    assert project.quick("drop", "T1-02", "--why", "no").code == 0
    assert project.resume().code == 0
    assert project.quick("accept", "T1-02", "--why", "yes").code == 0
    assert project.json("status").data["phases"][0]["state"] != "verified"
    assert project.resume().code == 1, "its success criterion no longer holds"


@pytest.mark.nightly
def test_accepted_work_on_a_file_of_an_earlier_task_can_be_verified(project: Project) -> None:
    more = task("T1-02", files="modify `a.txt`", check="false", after="T1-01", steps=[shell("echo more >> a.txt")])
    project.plan([making("T1-01", "a.txt"), more])
    assert project.execute("--max-attempts", "1").code == 1
    shown = project.json("show", "T1-02", "--diff").data
    assert ([row["path"] for row in shown["files"]], "+more" in shown["diff"]) == (["a.txt"], True)
    assert project.quick("accept", "T1-02", "--why", "yes").code == 0
    assert project.resume().code == 0


@pytest.mark.nightly
def test_nothing_is_accepted_on_top_of_work_that_the_branch_lost(project: Project) -> None:
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "b.txt"), failing_task("T1-03", "c.txt")])
    assert project.execute("--max-attempts", "1").code == 1
    project.repo.git("reset", "-q", "--hard", "HEAD~1")
    refused = project.json("accept", "T1-02", "--why", "yes")
    assert (refused.code, refused.error["code"]) == (4, "run.history-changed")
