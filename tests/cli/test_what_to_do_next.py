"""What a command says when it cannot do what you typed: each names something that works."""

from __future__ import annotations

from tests.support import ended_runs
from tests.support import project as projects
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, task

PLAN = ".planning/phases/1/01-PLAN.md"


done = prepared_project(ended_runs.done)


def test_a_word_of_another_program_is_answered_with_the_command(done: Project) -> None:
    """R-ASK-1."""
    assert "next: idumb execute-phase 1\n" in done.quick("run", "1").err
    assert done.quick("pause", "--json").error["hint"] == "idumb stop --after-task"


def test_a_rollback_without_a_checkpoint_lists_them(done: Project) -> None:
    """R-GIT-3."""
    refused = done.json("rollback", "1")
    assert refused.error["hint"] == "idumb rollback 1 --to start; or --to T1-01"


def test_an_unknown_run_has_no_events(done: Project) -> None:
    """R-LOG-2."""
    assert done.json("log", "--run", "nonsense").error["code"] == "run.unknown"


def test_a_missing_program_of_an_agent_is_an_error_before_a_run(project: Project) -> None:
    """R-ADAPT-1, R-PLAN-5, R-RUN-1: of `check-plan` and of `doctor`."""
    project.configure("builder: gone\nbindings:\n  gone: {adapter: command, argv: [/no/such/program]}\n")
    project.plan([task("T1-01", files="create `a.txt`")])
    assert [row["code"] for row in project.json("check-plan", "1").data["findings"] if row["severity"] == "error"] == [
        "agent.not-found"
    ]
    checks = {row["code"]: row["symptoms"] for row in project.json("doctor").data["checks"]}
    assert [symptom["state"] for symptom in checks["agents.bindings"]] == ["problem"]


def test_status_shows_a_workflow_that_a_pull_brought(done: Project) -> None:
    """R-OPS-1: the view that is kept watches their folder, too."""
    assert done.json("status").data["next"]["command"] is None
    plan = projects.plan_text([making("TW1-01", "w.txt")], phase="W1")
    done.repo.write(".planning/workflows/001-more/PLAN.md", plan)
    assert "W1" in done.quick("status").out
