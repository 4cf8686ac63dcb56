"""Where reports go: one commit of them for a run, and messages in the project's own style."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, making, task, write

FAILING = task("T1-02", files="create `b.txt`", check="test -e ready", after="T1-01", steps=[write("b.txt", "b\n")])


def halted(sandbox: GitSandbox) -> Project:
    project = _project(sandbox, making("T1-01", "a.txt"), FAILING)
    assert project.execute("--max-attempts", "1").code == 1
    return project


def _project(sandbox: GitSandbox, *tasks: str, configuration: str = "") -> Project:
    project = projects.create(sandbox, files={"README.md": "# Project\n"})
    project.plan(tasks or (making("T1-01", "a.txt"), making("T1-02", "b.txt", after="T1-01")))
    if configuration:
        project.configure(configuration)
    project.commit_own()
    return project


def test_a_halt_commits_no_report_and_a_run_commits_its_reports_once(prepared: Prepared) -> None:
    """R-OPS-2: uncommitted reports are no change of the user's, so that the run continues over them."""
    project = prepared.get(halted)
    assert project.trailers("Idumb-Reports") == []
    assert any("1-SUMMARY.md" in line for line in project.repo.status())
    project.repo.write("ready", "")
    project.repo.git("add", "ready")
    project.repo.git("commit", "-qm", "ready", "ready")
    done = project.json("resume", "1", "--retry-failed")
    assert done.code == 0, done.out
    assert project.trailers("Idumb-Reports") == ["1"]
    assert project.repo.status() == []
    assert project.quick("verify-work", "1").code == 0
    assert project.trailers("Idumb-Reports") == ["1"]


NONE = "git: {reports: none}\n"
PLAN = ".planning/phases/1/01-PLAN.md"


def of_the_log(sandbox: GitSandbox) -> Project:
    project = _project(sandbox, configuration=NONE)
    before = project.repo.head()
    done = project.execute()
    assert (done.code, done.data["reports"]) == (0, "none")
    assert project.repo.git("rev-parse", "HEAD~2") == before
    return project


def test_only_the_log_has_the_reports(prepared: Prepared) -> None:
    """R-OPS-2, R-GIT-1."""
    project = prepared.get(of_the_log)
    assert project.subjects()[-2:] == ["Task T1-01", "Task T1-02"]
    assert project.repo.status() == []
    assert not project.exists(".idumb/brain/execution/1/checkpoint-T1-01.md")
    texts = {row["path"].rpartition("/")[2]: row["text"] for row in project.json("report", "1").data["reports"]}
    assert sorted(texts) == ["1-SUMMARY.md", "1-VERIFICATION.md", "checkpoint-T1-01.md", "checkpoint-T1-02.md"]
    assert project.json("doctor").code == 0
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert project.repo.status() == []
    texts = {row["path"].rpartition("/")[2]: row["text"] for row in project.json("report", "1").data["reports"]}
    assert "status: unverified" in texts["1-VERIFICATION.md"]


def test_report_writes_the_files_of_a_run_and_prints_what_it_would_write(prepared: Prepared, tmp_path: Path) -> None:
    """R-OPS-2. R-GIT-1: another working tree finds the plan of a commit, since all share one log."""
    project = prepared.get(of_the_log)
    project.repo.git("worktree", "add", "--quiet", str(tmp_path / "other"), "-b", "other")
    other = replace(project, start=tmp_path / "other")
    assert other.quick("show", project.trailers("Idumb-Plan")[-1], "--plan").out == project.read(PLAN)
    printed = project.quick("report", "1").out
    assert "# Phase 1" in printed
    written = project.json("report", "1", "--write").data["written"]
    assert ".planning/phases/1/1-SUMMARY.md" in written
    texts = {row["path"]: row["text"] for row in project.json("report", "1").data["reports"]}
    assert all(project.read(path) == text for path, text in texts.items() if "created:" not in text)
    assert project.resume().code == 0


@pytest.mark.nightly
def test_a_run_continues_without_the_file_of_its_plan_and_its_trailer_finds_the_plan(sandbox: GitSandbox) -> None:
    """R-GIT-1, R-LOG-9."""
    project = _project(sandbox, making("T1-01", "a.txt"), FAILING, configuration=NONE)
    text = project.read(PLAN)
    assert project.execute("--max-attempts", "1").code == 1
    project.repo.write("ready", "")
    project.repo.git("rm", "-q", PLAN)
    project.repo.git("add", "ready")
    project.repo.git("commit", "-qm", "no plan")
    assert not project.exists(PLAN)
    assert project.json("resume", "1", "--retry-failed").code == 0
    assert not project.exists(PLAN)
    digest = project.trailers("Idumb-Plan")[-1]
    for name in (digest, digest[:12], "T1-01"):
        assert project.quick("show", name, "--plan").out == text
    assert project.json("show", digest, "--plan").data["path"] == PLAN
    assert project.quick("show", "0" * 12, "--plan", "--json").error["code"] == "plan.unknown-digest"


def test_a_report_that_somebody_changed_is_kept_before_it_is_replaced(prepared: Prepared) -> None:
    """R-OPS-2: a halt leaves reports uncommitted, so only the file has what a person adds to one."""
    project = prepared.get(halted)
    assert project.quick("report", "1", "--write").code == 0
    assert _set_aside(project) == []  # what idumb wrote itself is no loss
    mine = project.read(SUMMARY) + "\nMy notes\n"
    project.repo.write(SUMMARY, mine)
    again = project.quick("resume", "1", "--retry-failed", "--max-attempts", "1")
    assert _set_aside(project) == [mine]
    assert "its content is kept in" in again.out + again.err
    assert "My notes" not in project.read(SUMMARY)
    project.repo.write(SUMMARY, "other notes\n")
    assert project.quick("report", "1", "--write").code == 0
    assert sorted(_set_aside(project)) == sorted([mine, "other notes\n"])


SUMMARY = ".planning/phases/1/1-SUMMARY.md"


def _set_aside(project: Project) -> list[str]:
    folder = project.repo.common_dir / "idumb/set-aside"
    return [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()]
