"""Levels of gates and roles, as a run obeys them (R-GATE-6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.domain import agent
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, task, write

CONFIG = (
    "validator: reviewer\nbindings:\n  reviewer: {{adapter: command, argv: [{program}]}}\n"
    "gates:\n  validator: {{level: {level}}}\n"
)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def reviewed(project: Project, place: Path, level: int) -> None:
    """A task whose checks pass and whose validator says no."""
    program = place / "reviewer"
    program.write_text("#!/bin/sh\necho not good enough\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    project.configure(CONFIG.format(program=program, level=level))
    project.plan([making("T1-01", "a.txt")])


def test_an_informational_validator_is_reported_and_blocks_nothing(project: Project, tmp_path: Path) -> None:
    """R-GATE-6: level 0."""
    reviewed(project, tmp_path, 0)
    answer = project.idumb("execute-phase", "1", "--approve", project.approval())
    assert answer.code == 0, answer.err
    assert "failed validator reviewer" in answer.err
    assert "(level 0: only reported)" in answer.err
    evidence = project.json("show", "T1-01").data["attempts"][0]["evidence"]
    assert [(e["subject"], e["result"], e.get("level")) for e in evidence] == [
        ("AC-1", "passed", None),
        ("validator reviewer", "failed", 0),
    ]


@pytest.mark.parametrize("level", [1, 2])
def test_a_validator_of_a_higher_level_blocks_the_task(project: Project, tmp_path: Path, level: int) -> None:
    """R-GATE-6, R-GATE-3, R-RUN-3."""
    reviewed(project, tmp_path, level)
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert "validator reviewer failed" in answer.data["tasks"][0]["reason"]
    rules = {rule["name"]: rule for rule in answer.data["lock_in"]["levels"]}
    assert rules["validator"]["level"] == level


def test_an_informational_gate_reports_an_exceeded_limit(project: Project) -> None:
    """R-GATE-6, R-GATE-1: the configuration decides how strict the limits gate is."""
    two = task(
        "T1-01",
        files="create `a.txt`, create `b.txt`",
        check="test -s b.txt",
        steps=(write("a.txt", "a\n"), write("b.txt", "b\n")),
        fields="- **Limits:** files 1\n",
    )
    project.plan([two])
    assert project.execute("--max-attempts", "1").code == 1
    project.configure("gates: {limits: {level: 0}}\n")
    assert project.execute("--force").code == 0
    evidence = project.json("show", "T1-01").data["attempts"][-1]["evidence"]
    assert [(e["subject"], e["result"], e.get("level")) for e in evidence if "limit" in e["subject"]] == [
        ("limit files", "failed", 0)
    ]


def test_a_timed_out_check_never_counts_as_passed(project: Project, tmp_path: Path) -> None:
    """R-GATE-6."""
    project.configure("run: {check_timeout: 1s}\n")
    project.plan([making("T1-01", "a.txt", criteria=f"  - [ ] it ends — check: `read line < {tmp_path}/fifo`\n")])
    os.mkfifo(tmp_path / "fifo")
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert "AC-1 timed_out" in answer.data["tasks"][0]["reason"]


def test_a_timed_out_validator_never_counts_as_passed(project: Project, tmp_path: Path) -> None:
    """R-GATE-6: it says PASS only after its time."""
    os.mkfifo(tmp_path / "fifo")
    program = tmp_path / "reviewer"
    program.write_text(f"#!/bin/sh\nread line < {tmp_path}/fifo\nexit 0\n", encoding="utf-8")
    program.chmod(0o755)
    project.configure(CONFIG.format(program=program, level=1) + "run: {validator_timeout: 1s}\n")
    project.plan([making("T1-01", "a.txt")])
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert "validator reviewer timed_out" in answer.data["tasks"][0]["reason"]


OTHERS = [role for role in agent.ROLES if role != agent.VALIDATOR]


@pytest.mark.parametrize("role", OTHERS)
def test_every_role_accepts_a_level(project: Project, role: str) -> None:
    """R-GATE-6: it is shown at lock-in, and a run is locked under it."""
    project.configure(f"gates: {{{role}: {{level: 2}}}}\n")
    project.plan([making("T1-01", "a.txt")])
    answer = project.execute("--no-verify")
    assert answer.code == 0, answer
    time = None if role == agent.BUILDER else 60.0
    assert {"name": role, "kind": "role", "level": 2, "timeout": time} in answer.data["lock_in"]["levels"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("builder: {level: 1, timeout: 60s}", "gates.builder.timeout is not allowed: the task or roles.builder sets"),
        ("planner: {level: 0, timeout: 60s}", "absent: level 0 has no timeout"),
        ("planner: {level: 1, timeout: 20m}", "between 30s and 300s"),
        ("planer: {level: 1}", "planner"),
    ],
)
def test_an_invalid_level_is_refused_with_its_line(project: Project, setting: str, words: str) -> None:
    """R-GATE-6."""
    project.configure(f"gates:\n  {setting}\n")
    refused = project.quick("check-plan", "1")
    assert refused.code == 3
    assert words in refused.err
    assert "config.yaml:2" in refused.err


def test_the_limits_of_a_plan_count_lines_too(project: Project) -> None:
    """R-GATE-1: the limits in the frontmatter hold for each task without its own."""
    steps = (write("a.txt", "a\nb\nc\n"),)
    project.plan([task("T1-01", files="create `a.txt`", steps=steps)], head="limits: {lines: 2}\n")
    answer = project.execute("--max-attempts", "1")
    assert answer.code == 1
    assert "limit lines failed" in answer.data["tasks"][0]["reason"]
