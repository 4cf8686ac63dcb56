"""What a command says when it cannot do what you typed: each names something that works."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.support import ended_runs
from tests.support import project as projects
from tests.support.prepared import Prepared
from tests.support.project import Project, making, task

PLAN = ".planning/phases/1/01-PLAN.md"


@pytest.fixture
def done(prepared: Prepared) -> Project:
    return prepared.get(ended_runs.done)


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


def test_doctor_has_a_line_for_each_agent_and_both_ways_to_log_in(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ADAPT-1: found, version, logged in (asked as the vendor allows), and what it can do."""
    for name, code in (("claude", 0), ("codex", 1)):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\n[ "$*" = "auth status" ] || [ "$*" = "login status" ] && exit {code}\nexit 9\n')
        program.chmod(0o755)
    monkeypatch.setenv("A_KEY", "a-key")
    project.configure(
        f"""\
builder: keyed
validator: mine
bindings:
  keyed: {{adapter: claude, argv: [{tmp_path}/claude], environment: [A_KEY]}}
  mine: {{adapter: claude, argv: [{tmp_path}/claude], options: {{home: user, resume: true}}}}
  alone: {{adapter: claude, argv: [{tmp_path}/claude]}}
  theirs: {{adapter: codex, argv: [{tmp_path}/codex], options: {{home: user}}}}
  any: {{adapter: command, argv: [sh, -c, "true"]}}
  gone: {{adapter: gemini}}
"""
    )
    answer = project.quick("doctor")
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    begun = {line.split()[2].rstrip(":"): line for line in lines if " agents.bindings " in line and ": " in line}
    version = hashlib.sha256((tmp_path / "claude").read_bytes()).hexdigest()[:12]
    assert begun["keyed"].startswith(
        f"ok agents.bindings keyed: claude {version}, logged in with A_KEY; is the builder"
    )
    assert "logged in with your login; is the validator, continues a conversation" in begun["mine"]
    assert "nobody can ask about its login; has no role" in begun["any"]
    assert begun["alone"].startswith("problem")
    assert "not logged in: it has no key" in begun["alone"]
    both = "Set {} and name it in the binding's `environment`; or log in ({}) and set `home: user`"
    assert f"next: {both.format('ANTHROPIC_API_KEY', 'start claude and type /login')}" in lines
    assert f"next: {both.format('OPENAI_API_KEY', 'codex login')}" in lines
    assert "theirs: codex" in answer.out
    assert "Program gemini not found" in begun["gone"]


def test_status_shows_a_workflow_that_a_pull_brought(done: Project) -> None:
    """R-OPS-1: the view that is kept watches their folder, too."""
    assert done.json("status").data["next"]["command"] is None
    plan = projects.plan_text([making("TW1-01", "w.txt")], phase="W1")
    done.repo.write(".planning/workflows/001-more/PLAN.md", plan)
    assert "W1" in done.quick("status").out
