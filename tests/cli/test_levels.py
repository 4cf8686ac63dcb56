"""Levels of gates and roles, as a run obeys them (R-GATE-6)."""

from __future__ import annotations

from pathlib import Path

from idumb.domain import agent
from tests.support.project import Project, making, task, write

CONFIG = (
    "validator: reviewer\nbindings:\n  reviewer: {{adapter: command, argv: [{program}]}}\n"
    "gates:\n  validator: {{level: {level}}}\n"
)


def reviewed(project: Project, place: Path, level: int) -> None:
    """A task whose checks pass and whose validator says no."""
    program = place / "reviewer"
    program.write_text("#!/bin/sh\necho not good enough\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    project.configure(CONFIG.format(program=program, level=level))
    project.plan([making("T1-01", "a.txt")])


def test_an_informational_gate_reports_an_exceeded_limit(project: Project) -> None:
    """R-GATE-6, R-GATE-1, R-RUN-3: how strict it is; the limits of the plan hold for a task without its own."""
    two = task(
        "T1-01",
        files="create `a.txt`, create `b.txt`",
        check="test -s b.txt",
        steps=(write("a.txt", "a\n"), write("b.txt", "b\n")),
        fields="- **Limits:** files 1\n",
    )
    long = task("T1-02", files="create `c.txt`", steps=(write("c.txt", "a\nb\nc\n"),))
    project.plan([two, long], head="limits: {lines: 2}\n")
    exceeded = project.execute("--max-attempts", "1")
    assert ["limit files failed" in exceeded.data["tasks"][0]["reason"],
            "limit lines failed" in exceeded.data["tasks"][1]["reason"]] == [True, True]  # fmt: skip
    project.configure("gates: {size: {level: 0}}\n")
    assert project.execute("--force", "--no-verify").code == 0
    evidence = project.json("show", "T1-01").data["attempts"][-1]["evidence"]
    assert [(e["subject"], e["result"], e.get("level")) for e in evidence if "limit" in e["subject"]] == [
        ("limit files", "failed", 0)
    ]


OTHERS = [role for role in agent.ROLES if role != agent.VALIDATOR]


def test_every_role_accepts_a_level_and_an_informational_validator_blocks_nothing(
    project: Project, tmp_path: Path
) -> None:
    """R-GATE-6: it is shown at lock-in, and a run is locked under it. Level 0 is only reported."""
    reviewed(project, tmp_path, 0)
    levels = "".join(f"  {role}: {{level: 2}}\n" for role in OTHERS)
    project.configure(project.read(".idumb/config.yaml") + levels)
    answer = project.execute("--no-verify")
    assert answer.code == 0, answer
    for role in OTHERS:
        time = None if role == agent.BUILDER else 60.0
        assert {"name": role, "kind": "role", "level": 2, "timeout": time} in answer.data["lock_in"]["levels"]
    evidence = project.json("show", "T1-01").data["attempts"][0]["evidence"]
    assert [(e["subject"], e["result"], e.get("level")) for e in evidence] == [
        ("AC-1", "passed", None),
        ("validator reviewer", "failed", 0),
    ]
