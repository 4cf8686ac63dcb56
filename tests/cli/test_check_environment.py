"""Checks have a private home; what decides which program they run must not change during a run (R-RUN-3, T12)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.support.answer import Answer
from tests.support.plans import run
from tests.support.project import Project, shell, task

CHANGED, CHANGE = ".npmrc", "echo registry=http://127.0.0.1/ > $HOME/.npmrc"


def plan(project: Project, command: str, check: str = "test -s a.txt", **more: Any) -> None:
    steps = [shell(f"echo made > a.txt; {command}")]
    project.plan([task("T1-01", files="create `a.txt`", check=check, steps=steps)], **more)


def strict(project: Project) -> Answer:
    approved = project.quick("approve", "1", *project.answers(), "--hash", project.approval())
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


def test_a_changed_entry_point_weakens_the_evidence_of_a_guided_run(project: Project) -> None:
    plan(project, CHANGE)
    ran = run(project)
    verification_names(project, ran, f"{CHANGED} changed during the run")
    (path,) = evidence(project)["entry_points"]
    assert path.endswith(CHANGED)
    (report,) = project.folder.glob("**/checkpoint-T1-01*.md")
    assert f"{CHANGED} changed during the run" in report.read_text().replace("\\", "")


def test_a_changed_entry_point_fails_a_task_of_a_strict_run(project: Project) -> None:
    plan(project, CHANGE)
    answer = strict(project)
    assert answer.code == 1, answer
    assert project.statuses() == {"T1-01": "failed"}
    assert CHANGED in answer.out
    assert "changed during the run" in answer.out


def test_a_change_by_the_last_check_leaves_a_strict_phase_unverified(project: Project, home: Path) -> None:
    plan(project, "true", f"test -s a.txt && echo x=1 > {home}/.npmrc")
    answer = strict(project)
    assert answer.code != 0
    assert project.statuses() == {"T1-01": "completed"}
    assert ".npmrc changed during the run" in answer.out


def needs_home(project: Project, home: Path) -> None:
    """Plan a task whose check reads and damages a file of the home, and says nothing."""
    (home / "token").write_text("secret\n")
    project.repo.write("check.sh", 'test -s "$HOME/token" && rm "$HOME/token"\n')
    project.repo.commit("check")
    plan(project, "true", "test -s a.txt && sh check.sh")


def test_a_check_that_needs_the_home_stops_the_run_with_the_line(project: Project, home: Path) -> None:
    """R-RUN-3: found by a run that sees the home and cannot change it; the attempt does not count."""
    project.configure("checks: {regression: end}\n")
    needs_home(project, home)
    answer = run(project)
    assert answer.code == 1
    assert "T1-01: AC-1 needs your HOME. Replace `checks` in" in answer.out
    assert "by `checks: {home: user, regression: end}`, then idumb execute-phase 1" in answer.out
    assert (home / "token").read_text() == "secret\n"
    assert project.statuses() == {"T1-01": "ready"}
    (ended,) = project.events("--kind", "attempt.finished")
    assert ended["payload"]["failure"] == "not-around"
    assert project.quick("debug", "1", "--task", "T1-01").code == 0


def test_a_check_that_fails_with_the_home_too_is_the_builder_s(project: Project, home: Path) -> None:
    needs_home(project, home)
    (home / "token").unlink()
    answer = run(project, "--max-attempts", "1")
    assert project.statuses() == {"T1-01": "failed"}
    assert answer.data["tasks"][0]["reason"] == "AC-1 failed"


def test_a_folder_beside_the_repository_is_shown_to_a_failed_check_once(project: Project) -> None:
    """R-RUN-3."""
    beside = project.repo.root.parent / "shared-lib"
    beside.mkdir()
    (beside / "lib.txt").write_text("x\n")
    plan(project, "true", "test -s a.txt && cat ../shared-lib/lib.txt && rm ../shared-lib/lib.txt")
    answer = run(project)
    assert "AC-1 needs ../shared-lib. Add `checks: here`" in answer.out
    assert (beside / "lib.txt").exists()


def test_what_a_builder_changes_in_another_process_is_seen(project: Project, home: Path) -> None:
    """Between `start` and `submit`, and before a kill, idumb does not run."""
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt")], head="builder: editor\n")
    assert project.quick("start", "T1-01", "--by", "an agent", "--approve", project.approval()).code == 0
    (project.folder / "a.txt").write_text("made\n")
    (home / ".npmrc").write_text("registry=http://127.0.0.1/\n")
    assert project.quick("submit", "T1-01").code == 0
    assert evidence(project)["entry_points"] == [str(home / ".npmrc")]


def test_checks_in_the_working_tree_or_with_the_user_s_home_are_recorded_as_weaker(
    project: Project, home: Path
) -> None:
    project.configure("checks: {tree: here, home: user}\n")
    plan(project, "true", f'test "$HOME" = {home}')
    assert run(project, "--no-verify").code == 0
    tree, whose = "it judges the files of the working tree, not the commit (checks: here)", "HOME is the user's"
    assert evidence(project)["weaker"] == [tree, f"{whose} (checks.home: user)"]


def test_a_check_gets_a_home_of_its_own_which_is_removed_and_the_evidence_is_not_weaker(
    project: Project, home: Path
) -> None:
    """Strict too: what a builder leaves in other folders of the home is no entry point."""
    check = f'test "$HOME" != {home} && touch "$HOME/left" && test -d "$TMPDIR" && test -s a.txt'
    plan(project, "mkdir -p $HOME/.cache/tool; echo x > $HOME/.cache/tool/x", check)
    approved = project.quick("approve", "1", *project.answers(), "--hash", project.approval())
    assert approved.code == 0, approved
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        ran = project.idumb("execute-phase", "1", "--mode", "strict", "--json", environment={"TMPDIR": short})
        assert list(Path(short).iterdir()) == []
    assert ran.code == 0, ran
    assert ran.data["verification"]["weaker"] == []
    assert not (home / "left").exists()
    assert "weaker" not in evidence(project)
