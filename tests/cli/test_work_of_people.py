"""Work that a person did or accepted: what is committed, verified and asked about it (R-PLAN-12, R-RUN-3)."""

from __future__ import annotations

import pytest

from tests.support.project import Project, task

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
