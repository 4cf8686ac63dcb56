"""Checks have a private home; what decides which program they run must not change during a run (R-RUN-3, T12)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.support.answer import Answer
from tests.support.plans import run
from tests.support.project import Project, shell, task

CHANGED, CHANGE = "~/package.json", "echo {} > $HOME/package.json"
"""Node looks for it in each folder above the tree of a check."""


def plan(project: Project, command: str, check: str = "test -s a.txt", **more: Any) -> None:
    steps = [shell(f"echo made > a.txt; {command}")]
    project.plan([task("T1-01", files="create `a.txt`", check=check, steps=steps)], **more)


def strict(project: Project) -> Answer:
    approved = project.quick("approve", "1", *project.answers(), "--hash", project.contract_hash())
    assert approved.code == 0, approved
    return project.quick("execute-phase", "1", "--mode", "strict", "--max-attempts", "1", "--json")


def evidence(project: Project) -> dict[str, Any]:
    (event,) = project.events("--kind", "evidence.recorded")
    payload = event["payload"]
    assert isinstance(payload, dict)
    return payload


def verification_names(project: Project, ran: Answer, reason: str) -> None:
    """The end of the run, a later `verify-work` and the report name what weakens the evidence of T1-01."""
    (row,) = ran.data["verification"]["weaker"]
    assert row == {"reason": row["reason"], "subjects": ["T1-01 AC-1"]}
    assert row["reason"].endswith(reason)
    verified = project.quick("verify-work", "1")
    assert f"{reason}: T1-01 AC-1" in verified.out
    (report,) = project.folder.glob("**/1-VERIFICATION.md")
    text = report.read_text().replace("\\", "")
    assert f"{reason}: T1-01 AC-1" in text
    assert "## Success criteria\n\nNone declared." in text
    assert "| T1-01 AC-1: it holds | proven |" in text.partition("## Checks of the tasks, run again")[2]
    (summary,) = project.folder.glob("**/1-SUMMARY.md")
    assert f"{reason} (T1-01 AC-1)" in summary.read_text().replace("\\", "")


def test_a_changed_program_weakens_the_evidence_of_a_guided_run(project: Project) -> None:
    plan(project, CHANGE)
    ran = run(project)
    verification_names(project, ran, f"{CHANGED} changed during the run")
    (path,) = evidence(project)["changed_programs"]
    assert path.endswith("/package.json")
    (report,) = project.folder.glob("**/checkpoint-T1-01*.md")
    assert f"{CHANGED} changed during the run" in report.read_text().replace("\\", "")


def test_a_changed_program_fails_a_task_of_a_strict_run(project: Project) -> None:
    plan(project, CHANGE)
    answer = strict(project)
    assert answer.code == 1, answer
    assert project.statuses() == {"T1-01": "failed"}
    assert "/package.json" in answer.out
    assert "changed during the run" in answer.out


def test_checks_with_the_user_s_home_are_recorded_as_weaker(project: Project, home: Path) -> None:
    project.configure("checks: {home: user}\n")
    plan(project, "true", f'test "$HOME" = {home}')
    assert run(project, "--no-verify").code == 0
    assert evidence(project)["weaker"] == ["HOME is the user's (checks.home: user)"]


def test_a_check_gets_a_home_of_its_own_which_is_removed_and_the_evidence_is_not_weaker(
    project: Project, home: Path
) -> None:
    """Strict too: what a builder leaves in other folders of the home decides no program."""
    check = f'test "$HOME" != {home} && touch "$HOME/left" && test -d "$TMPDIR" && test -s a.txt'
    plan(project, "mkdir -p $HOME/.cache/tool; echo x > $HOME/.cache/tool/x", check)
    approved = project.quick("approve", "1", *project.answers(), "--hash", project.contract_hash())
    assert approved.code == 0, approved
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        ran = project.idumb("execute-phase", "1", "--mode", "strict", "--json", environment={"TMPDIR": short})
        assert list(Path(short).iterdir()) == []
    assert ran.code == 0, ran
    assert ran.data["verification"]["weaker"] == []
    assert not (home / "left").exists()
    assert "weaker" not in evidence(project)
