"""`idumb pause`: a run waits after the task that it is at, or from now on, until it is resumed (R-RUN-12)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from tests.support import ended_runs, warm
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell, task, user_bytes

SCHEMA = Path(__file__).parents[2] / "docs/schemas/pause.json"
WAYS = ["replan", "go-on", "start-fresh"]


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    """Its first task opens two doors: it tells that it is at work, and waits until it is let go."""
    project = projects.create(sandbox)
    os.mkfifo(tmp_path / "at-work")
    os.mkfifo(tmp_path / "let-go")
    step = shell(f"echo x > {tmp_path}/at-work; cat {tmp_path}/let-go > b.txt")
    slow = task("T1-01", files="create `b.txt`", check="test -s b.txt", steps=[step])
    project.plan([slow, making("T1-02", "c.txt", after="T1-01")])
    return project


@pytest.fixture
def busy(project: Project, tmp_path: Path) -> Iterator[warm.Started]:
    with project.beside("execute-phase", "1", "--approve", project.approval(), "--json") as process:
        (tmp_path / "at-work").read_text()
        yield process


def _halted(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan(
        [making("T1-01", "a.txt"), task("T1-02", check="test -e later.txt", after="T1-01", steps=[shell("true")])]
    )
    assert project.execute("--max-attempts", "1").code == 1
    return project


@pytest.fixture
def halted(prepared: Prepared) -> Project:
    """A run that stopped because a task failed."""
    return prepared.get(_halted)


@pytest.fixture
def paused(halted: Project) -> Project:
    """The same, paused."""
    pause(halted, "--why", "first")
    return halted


def pause(project: Project, *flags: str) -> Answer:
    answer = project.json("pause", "1", *flags)
    if answer.code == 0:
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(answer.data)
    return answer


def paused_events(project: Project) -> list[dict[str, object]]:
    return [dict(e["payload"]) for e in project.events("--kind", "run.paused")]


def test_a_run_pauses_after_the_current_task_and_resume_continues(
    project: Project, busy: warm.Started, tmp_path: Path
) -> None:
    """R-RUN-12: the task is finished and committed, the next one is not begun, and the reason is kept."""
    paused = pause(project, "--why", "the plan is out of date")
    assert (paused.code, paused.data["ended"], paused.data["paused"]) == (0, "asked", False)
    assert paused.data["owner"]["pid"] == busy.pid
    (tmp_path / "let-go").write_text("go\n")
    answer = busy.wait()
    assert (answer.code, answer.data["outcome"], answer.error["code"]) == (5, "paused", "run.paused")
    assert [choice["id"] for choice in answer.data["choices"]] == WAYS
    assert project.statuses() == {"T1-01": "completed", "T1-02": "ready"}
    (event,) = paused_events(project)
    assert event["why"] == "the plan is out of date"
    assert event["reason"] == f"paused by {event['by']}: the plan is out of date"
    shown = project.json("status").data
    assert (shown["phases"][0]["state"], shown["next"]["command"]) == ("paused", "idumb resume 1")
    assert "the plan is out of date" in project.quick("status").out
    assert not (project.repo.common_dir / "idumb/worktrees/main/pause.json").exists()
    assert project.resume("--no-verify").code == 0
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]


def test_a_pause_request_to_a_killed_owner_does_not_pause_the_next_one(
    project: Project, busy: warm.Started, tmp_path: Path
) -> None:
    """R-RUN-12: the pause request names the owner's token."""
    pause(project)
    os.kill(busy.pid, signal.SIGKILL)
    busy.wait()
    for door in ("at-work", "let-go"):
        (tmp_path / door).unlink()
    (tmp_path / "let-go").write_text("go\n")
    assert project.resume("--no-verify").code == 0
    assert project.statuses()["T1-02"] == "completed"


def test_a_stopped_run_waits_for_resume_and_shows_the_next_actions(halted: Project) -> None:
    """R-RUN-12: execute-phase does not continue silently, and each next action is a command with its consequence."""
    before = halted.repo.ledger()
    answer = pause(halted, "--why", "think first")
    assert (answer.data["ended"], answer.data["paused"]) == ("paused", True)
    assert [(c["id"], c["command"]) for c in answer.data["choices"]] == [
        ("replan", "idumb plan-diff 1; idumb amend 1 --from-file"),
        ("go-on", "idumb resume 1"),
        ("start-fresh", "idumb rollback 1 --to start"),
    ]
    assert user_bytes(before, halted.repo.ledger()) == []
    refused = halted.execute()
    assert (refused.code, refused.error["code"]) == (4, "run.paused")
    assert [c["id"] for c in refused.error["details"]["choices"]] == WAYS
    assert halted.quick("next").out.startswith("Next: idumb resume 1  (paused by ")
    assert halted.quick("pause", "7", "--json").code == 3


def test_a_completed_phase_cannot_be_paused(prepared: Prepared) -> None:
    assert pause(prepared.get(ended_runs.done)).error["code"] == "pause.done"


def test_pausing_twice_is_reported_and_recorded_once(paused: Project) -> None:
    """R-RUN-12."""
    again = pause(paused, "--why", "second")
    assert (again.data["ended"], again.data["reason"].endswith("first")) == ("paused already", True)
    assert len(paused_events(paused)) == 1
    assert "Next actions:" in paused.quick("pause", "01").out


def test_the_next_actions_of_a_paused_run_work(paused: Project) -> None:
    """R-RUN-12: a fresh start from the beginning, and a run of the changed plan."""
    assert paused.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not paused.exists("a.txt")
    paused.plan([making("T1-01", "a.txt")])
    assert paused.execute("--no-verify").code == 0


def test_a_reason_with_control_characters_is_escaped(halted: Project) -> None:
    pause(halted, "--why", "a\x1b[31mb\nc")
    assert "c" in halted.quick("status").out
    assert "c" in halted.quick("pause", "1").out


def test_a_paused_run_adopts_the_changed_plan_and_continues_with_resume_alone(halted: Project) -> None:
    """R-RUN-12: replanning; it stays the same run, stays paused and keeps completed work."""
    pause(halted, "--why", "the check was wrong")
    plan = halted.folder / ".planning/phases/1/01-PLAN.md"
    plan.write_text(plan.read_text(encoding="utf-8").replace("later.txt", "a.txt"), encoding="utf-8")
    assert halted.json("plan-diff", "1").code == 0
    amended = halted.json("amend", "1", "--from-file", "--yes")
    assert amended.code == 0, amended
    assert halted.json("status").data["phases"][0]["state"] == "paused"
    assert halted.json("execute-phase", "1").error["code"] == "run.paused"
    resumed = halted.resume("--retry-failed", "--no-verify")
    assert resumed.code == 0, resumed
    assert [e["attempt"] for e in halted.events("--kind", "attempt.started", "--task", "T1-01")] == [1]
