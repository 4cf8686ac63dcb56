"""A rollback, undo or report that was killed or refused is made by the next command, as in an undisturbed run."""

from __future__ import annotations

import pytest

from tests.crash import harness
from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.prepared import Prepared
from tests.support.project import Project, delete, making, task, write

POINTS = (
    "GitTrees.snapshot", "GitTrees.keep ", "SqliteEventLog.append .*rollback.intended", "GitTrees.restore",
    "path_state.exchange", "path_state.move_to_free", "write_back._move_aside", "GitHistory.make", "GitHistory.advance",
    "SqliteEventLog.append .*rollback.completed", "GitTrees.release_displaced",
)  # fmt: skip


def _edited(sandbox: GitSandbox) -> Project:
    """Task 2 edits a file, deletes one and makes one."""
    project = projects.create(sandbox)
    steps = [write("a.txt", "two\n"), write("b.txt", "two\n"), delete("README.md")]
    files = "modify `a.txt`, create `b.txt`, delete `README.md`"
    second = task("T1-02", files=files, check="true", after="T1-01", steps=steps)
    project.plan([making("T1-01", "a.txt"), second])
    assert project.execute().code == 0
    return project


@pytest.mark.nightly
@pytest.mark.parametrize("point", POINTS)
def test_a_rollback_killed_at_any_point_is_finished_by_the_same_command(prepared: Prepared, point: str) -> None:
    """R-GIT-3, R-LOG-6: docs/design/restore.md lists the points."""
    project = prepared.get(_edited)
    before = project.repo.ledger()
    words = ("rollback", "1", "--to", "T1-01", "--yes")
    assert harness.run(project, *words, at=f"before {point}", fine=True).code == harness.KILLED
    done = project.json(*words)
    assert (done.code, "saved while" in done.out) == (0, False), done
    assert (project.read("a.txt"), project.exists("b.txt"), project.exists("README.md")) == ("made\n", False, True)
    assert project.repo.status() == []
    assert len(project.trailers("Idumb-Rollback")) == 1
    assert project.quick(*project.undoing()).code == 0
    assert not (project.repo.git_dir / "idumb/displaced/main").exists()
    assert projects.user_bytes(before, project.repo.ledger()) == []


def _rolled_back(sandbox: GitSandbox) -> Project:
    project = _edited(sandbox)
    assert project.json("rollback", "1", "--to", "T1-01", "--yes").code == 0
    return project


UNDO_POINTS = (
    "GitTrees.restore", "path_state.move_to_free", "GitHistory.advance", "path_state.exchange",
    "SqliteEventLog.append .*undo.completed", "GitTrees.release_displaced",
)  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("point", UNDO_POINTS)
def test_an_undo_killed_at_any_point_is_finished_by_the_same_command(prepared: Prepared, point: str) -> None:
    """R-GIT-3."""
    project = prepared.get(_rolled_back)
    words = project.undoing()
    assert harness.run(project, *words, at=f"before {point}", fine=True).code == harness.KILLED
    finished = project.json(*words)
    assert finished.data["what"] == "rollback of phase 1 to T1-01"
    assert "not restored" not in finished.out
    assert project.repo.status() == []
    assert (project.read("a.txt"), project.read("b.txt"), project.exists("README.md")) == ("two\n", "two\n", False)


BEFORE = ("checkpoint.recorded", "run.completed", "verification.recorded", "reports.committed")


@pytest.mark.parametrize("before", seed.one_on_a_push(BEFORE, "reports"))
def test_resume_writes_the_reports_of_a_killed_run_once(sandbox: GitSandbox, before: str) -> None:
    """R-OPS-2: the last is the moment after their commit and before the event that records it."""
    project = projects.create(sandbox, files={"README.md": "# Project\n"})
    project.plan([making("T1-01", "a.txt")])
    point = f"before SqliteEventLog.append .*{before}"
    killed = harness.run(project, "execute-phase", "1", "--approve", project.approval(), at=point)
    assert killed.code == harness.KILLED, killed
    for _ in range(2):
        assert project.json("resume", "1").code == 0
        assert len(project.trailers("Idumb-Reports")) == 1
        assert len(project.trailers("Idumb-Task")) == 1
        assert project.repo.status() == []
    assert len(project.events("--kind", "reports.committed")) == 1
