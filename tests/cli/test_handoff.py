"""Handoffs of completed tasks: written, saved, listed and updated, without ever blocking the run."""

from __future__ import annotations

import jsonschema
import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making
from tests.support.schemas import published

SCHEMA = published("handoff")
SEVERAL = (
    "- **Handoff to:**\n  - human (error recovery)\n  - verifier\n- **Priority:** high\n- **Notes:** look at <b>a</b>\n"
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """T1-01 has two receivers, T1-02 one that does not exist, T1-03 none on purpose."""
    project = projects.create(GitSandbox.create(tmp_path_factory.mktemp("handoff") / "repo"))
    project.plan(
        [
            making("T1-01", "a.txt", fields=SEVERAL),
            making("T1-02", "b.txt", fields="- **Handoff to:** nobody-here\n"),
            making("T1-03", "c.txt", fields="- **Handoff to:** human (never)\n"),
        ]
    )
    assert run(project, "--no-verify").code == 0
    return project


def handoff(project: Project, *words: str) -> Answer:
    answer = project.quick("handoff", *words, "--json")
    if answer.code == 0:
        jsonschema.Draft202012Validator(SCHEMA).validate(answer.data)
    return answer


def test_a_completed_task_writes_a_handoff_to_each_receiver_and_the_run_continues(ran: Project) -> None:
    """R-HAND-1."""
    listing = handoff(ran, "list").data
    assert [(h["task"], h["to_agent"], h["handoff_type"]) for h in listing["handoffs"]] == [
        ("T1-01", "human", "error_recovery"),
        ("T1-01", "verifier", "standard"),
    ]
    first = listing["handoffs"][0]
    operation = ran.events("--kind", "handoff.created")[0]["operation"]
    assert (first["from_agent"], first["request_id"], first["priority"]) == ("steps", operation, "high")
    assert (first["status"], first["deliverables"]) == ("pending", ["a.txt (created)"])
    assert first["acceptance_criteria"] == ["AC-1: it holds"]
    assert [(f["task"], f["to_agent"]) for f in listing["failed"]] == [("T1-02", "nobody-here")]
    assert [e["task"] for e in ran.events("--kind", "handoff.failed")] == ["T1-02"]
    assert set(ran.statuses().values()) == {"completed"}


def test_each_handoff_is_saved_as_markdown_and_committed_with_the_reports(ran: Project) -> None:
    """R-HAND-1."""
    for one in handoff(ran, "list").data["handoffs"]:
        text = ran.read(one["path"])
        assert f"to_agent: {one['to_agent']}\n" in text
        assert f"priority: {one['priority']}\n" in text
        assert "## Next steps\n\n```\nlook at <b>a</b>\n```\n" in text
    assert ran.repo.git("status", "--porcelain") == ""


def test_handoffs_are_filtered_by_run_phase_status_and_agent_and_counted(ran: Project) -> None:
    """R-HAND-2."""
    run = handoff(ran, "list").data["handoffs"][0]["run"]
    for chosen, count in (
        (("--run", run), 2),
        (("--run", "0000"), 0),
        (("--phase", "01"), 2),
        (("--phase", "2"), 0),
        (("--agent", "verifier"), 1),
        (("--status", "failed"), 0),
    ):
        listed = handoff(ran, "list", *chosen).data
        assert len(listed["handoffs"]) == listed["stats"]["total"] == count, chosen
    assert handoff(ran, "list").data["stats"]["by_agent"] == {"human": 1, "verifier": 1}
    assert "pending 2" in ran.quick("handoff", "list").out


def test_a_status_update_is_shown_in_the_list_and_the_document(ran: Project) -> None:
    """R-HAND-2; R-LOG-1: the events name run and task, and reports of the run stay as they are."""
    one = handoff(ran, "list", "--agent", "verifier").data["handoffs"][0]
    name = one["handoff_id"][:8]
    assert handoff(ran, "update", name, "in_progress", "--why", "begun").data["handoff"]["status"] == "in_progress"
    done = handoff(ran, "update", name, "complete").data["handoff"]
    assert [(s["status"], s["reason"]) for s in done["said"]] == [("in_progress", "begun"), ("complete", "")]
    assert "status: complete\n" in ran.read(one["path"])
    for kind in ("handoff.updated", "handoff.completed"):
        (event,) = ran.events("1", "--task", "T1-01", "--kind", kind)
        assert (event["run"], event["task"], event["attempt"]) == (one["run"], "T1-01", 1)
        assert event["payload"]["handoff_id"] == one["handoff_id"]
    assert ran.quick("doctor", "--json").code == 0
    assert handoff(ran, "list", "--status", "complete").data["handoffs"][0]["handoff_id"] == one["handoff_id"]
    assert "complete" in ran.quick("handoff", "list").out


def test_an_unknown_handoff_and_an_invalid_status_are_refused(ran: Project) -> None:
    for words, code in ((("show", "ffff-none"), "handoff.unknown"), (("show", "T1-01"), "handoff.ambiguous")):
        answer = handoff(ran, *words)
        assert (answer.code, answer.error["code"]) == (3, code), answer
    name = handoff(ran, "list").data["handoffs"][0]["handoff_id"]
    assert handoff(ran, "update", name, "done").error["code"] == "handoff.bad-status"
    assert handoff(ran, "update", name).code == 2


def test_a_document_that_cannot_be_written_stops_nothing(sandbox: GitSandbox) -> None:
    """R-HAND-1: a failed handoff is reported and never stops the run."""
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt", fields="- **Handoff to:** human\n")])
    (project.folder / ".idumb/brain/handoffs").write_text("in the way", encoding="utf-8")
    project.commit_own()
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert any("could not be written" in warning for warning in answer.object["warnings"])
    assert len(handoff(project, "list").data["handoffs"]) == 1
