"""`show --debug` reports all that is known about a failed task, and asks the debugger."""

from __future__ import annotations

import jsonschema

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task
from tests.support.schemas import published

SCHEMA = published("show-debug")
PLAN = ".planning/phases/1/01-PLAN.md"
ROLES = "bindings: {one: {adapter: command, argv: [sh, agent.sh]}}\nroles: {debugger: {binding: one}}\n"
CEILING = "ceilings: {run: {tokens: 9}}\n"
BROKEN = task(
    "T1-02",
    files="create `b.txt`",
    check="echo 'b is \x1b[31mwrong'; grep -q right b.txt",
    after="T1-01",
    steps=[shell("test -e b.txt && echo again >> b.txt || echo wrong > b.txt")],
)


def replying(project: Project) -> str:
    """An agent that works in a copy and answers with text from the project."""
    return f"cat > told.md; cat '{project.folder}/reply.md'\n"


def _failed(sandbox: GitSandbox) -> Project:
    """T1-01 is done, T1-02 failed twice."""
    project = projects.create(sandbox)
    (project.folder / "agent.sh").write_text(replying(project), encoding="utf-8")
    project.repo.commit("agent")
    project.configure(ROLES + CEILING)
    project.plan([making("T1-01", "a.txt"), BROKEN])
    assert run(project, "--max-attempts", "2").code == 1
    return project


project = prepared_project(_failed)


def debug(project: Project, *flags: str) -> Answer:
    alone = () if "--approve" in flags else ("--facts-only",)
    answer = project.quick("show", "T1-02", "--debug", *flags, *alone, "--json")
    if answer.code == 0:
        jsonschema.Draft202012Validator(SCHEMA).validate(answer.data)
    return answer


def test_debug_shows_attempts_their_changes_and_next_actions(project: Project) -> None:
    """R-ADAPT-6."""
    before = project.events()
    data = debug(project).data
    failed = data["task"]
    assert (failed["id"], failed["status"]) == ("T1-02", "failed")
    assert [a["outcome"] for a in failed["attempts"]] == ["failed", "failed"]
    assert "wrong" in failed["attempts"][1]["evidence"][0]["output"]
    assert [c["since"] for c in failed["changes"]] == ["start", "attempt 1"]
    assert failed["changes"][0]["files"] == [{"path": "b.txt", "added": 1, "removed": 0}]
    assert "+wrong" in failed["changes"][0]["diff"]
    offered = [one["command"] for one in data["checklist"]]
    assert "idumb dlq retry T1-02" in offered
    assert any("AC-1 fails" in one["text"] for one in data["checklist"])
    assert data["diagnosis"] is None
    assert project.events() == before
    words = project.quick("show", "t1-02", "--debug", "--facts-only").out
    assert "[ ] See the changes of the task.\n" in words
    assert (failed["envelope"], "model" in words) == ([], False)  # steps have none


def test_a_task_that_did_not_fail_is_shown_too_and_other_options_are_refused(project: Project) -> None:
    assert project.json("show", "T1-01", "--debug", "--facts-only").data["task"]["status"] == "completed"
    assert project.json("show", "T1-09", "--debug").error["code"] == "task.unknown"
    for options in (("--facts-only",), ("--diff", "--approve", "abc"), ("--debug", "--attempt", "1")):
        assert project.json("show", "T1-02", *options).error["code"] == "usage"


def answering(project: Project, reply: str) -> str:
    """Let the debugger answer so; the consent that asking it needs."""
    (project.folder / "reply.md").write_text(reply, encoding="utf-8")
    refused = project.quick("show", "T1-02", "--debug", "--json")
    assert (refused.code, refused.error["code"]) == (5, "consent.missing")
    return str(refused.error["details"]["consent_hash"])


def test_the_debugger_is_asked_once_a_person_consented(project: Project) -> None:
    """R-ADAPT-6, R-ADAPT-1: its text is shown as an opinion, and changes nothing."""
    before = project.read(PLAN)
    data = debug(project, "--approve", answering(project, "b.txt:1 says it.\n")).data
    assert data["diagnosis"] == {"binding": "one", "text": "b.txt:1 says it.\n", "failure": ""}
    assert project.read(PLAN) == before
    assert "Diagnosis by one (an opinion):" in project.quick("show", "T1-02", "--debug").out
