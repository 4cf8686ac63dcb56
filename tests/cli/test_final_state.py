"""The final check of a run: workspace state and derived call ids (R-RUN-2)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.app.attempt.record import call_id
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.project import Project, making, shell, task, write


@pytest.fixture
def project(sandbox: GitSandbox, tmp_path: Path) -> Project:
    """Two tasks with a moment between them in which a test can act: the second task waits at a door."""
    project = projects.create(sandbox)
    os.mkfifo(tmp_path / "at-work")
    os.mkfifo(tmp_path / "let-go")
    first = task(
        "T1-01",
        files="create `a.txt`, create `tool.sh`, create `seen.log`",
        steps=[write("a.txt", "a\n"), write("tool.sh", "#!/bin/sh\n"), write("seen.log", "x\n")],
    )
    wait = shell(f"echo x > {tmp_path}/at-work; cat {tmp_path}/let-go > b.txt")
    project.plan([first, task("T1-02", files="create `b.txt`", check="test -s b.txt", after="T1-01", steps=[wait])])
    return project


@pytest.fixture
def busy(project: Project, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with project.started("execute-phase", "1", "--approve", project.approval(), "--json") as process:
        (tmp_path / "at-work").read_text()
        assert project.quick("status", "--json").data["phases"][0]["session"] == "active"
        yield process


def ended(project: Project, process: subprocess.Popen[str], tmp_path: Path) -> Answer:
    (tmp_path / "let-go").write_text("go\n")
    out, err = process.communicate(timeout=60)
    return Answer(process.returncode, out, err)


def workspace(project: Project) -> dict[str, object]:
    return dict(project.events("--kind", "run.completed")[-1]["payload"]["workspace"])


def test_a_run_ends_with_every_file_as_its_tasks_left_it(
    project: Project, busy: subprocess.Popen[str], tmp_path: Path
) -> None:
    """R-RUN-2: the workspace is checked; ignored files are checked if a task declares them."""
    answer = ended(project, busy, tmp_path)
    assert (answer.code, answer.data["session"]) == (0, "closed")
    assert workspace(project) == {"wrong": [], "unexpected": [], "more": 0}
    assert project.quick("status", "--json").data["phases"][0]["session"] == "closed"
    again = project.quick("verify-work", "1", "--json")
    assert (again.code, again.data["mismatches"]) == (0, [])


def test_files_that_no_task_changed_are_named_and_stay(sandbox: GitSandbox, tmp_path: Path) -> None:
    """R-RUN-2, R-GIT-6: the user edits another file between two tasks; nothing fails, and it is reported."""
    project = projects.create(sandbox)
    mine = project.folder / "mine.txt"
    hook = project.repo.git_dir / "hooks" / "post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho mine > '{mine}'\n", encoding="utf-8")
    hook.chmod(0o755)
    project.plan([making("T1-01", "a.txt")])
    mine.unlink()
    answer = run(project)
    assert answer.code == 0
    assert workspace(project) == {"wrong": [], "unexpected": ["mine.txt"], "more": 0}
    assert "Changed since the run began, but not by its tasks: mine.txt" in answer.object["warnings"]
    assert project.read("mine.txt") == "mine\n"


def test_a_file_that_differs_from_its_task_s_result_is_reported(sandbox: GitSandbox) -> None:
    """R-RUN-2, R-RUN-13: its mode, its bytes, or that it is missing. Ids of calls are not random."""
    project = projects.create(sandbox)
    steps = [write("a.txt", "a\n"), write("tool.sh", "#!/bin/sh\n")]
    project.plan([task("T1-01", files="create `a.txt`, create `tool.sh`", steps=steps)])
    assert run(project, "--no-verify").code == 0
    calls = project.events("--kind", "step.finished")
    run_id = str(calls[0]["run"])
    assert [e["payload"]["call"] for e in calls] == [call_id(run_id, "T1-01", 1, index) for index in (0, 1)]
    assert len({e["payload"]["call"] for e in calls}) == 2
    changed = "a.txt is not as T1-01 left it"
    (project.folder / "a.txt").write_text("else\n")
    answer = project.quick("verify-work", "1", "--json")
    assert (answer.code, answer.data["workspace"]["wrong"]) == (1, [changed])
    assert changed in answer.data["mismatches"]
    (project.folder / "a.txt").unlink()
    (project.folder / "tool.sh").chmod(0o755)
    wrong = project.quick("verify-work", "1", "--json").data["workspace"]["wrong"]
    assert wrong == [changed, "tool.sh has mode 100755, and T1-01 left it with 100644"]


def test_an_existing_ignored_file_that_a_task_declares_is_not_unexpected(sandbox: GitSandbox) -> None:
    """R-RUN-2: no snapshot of the base has the file, so its presence proves nothing."""
    project = projects.create(sandbox)
    project.repo.write("local.log", "mine\n")
    project.plan(
        [making("T1-01", "a.txt"), task("T1-02", files="modify `local.log`", check="false", steps=[shell("true")])]
    )
    assert run(project, "--max-attempts", "1").code == 1
    assert project.quick("skip", "T1-02", "--why", "not now").code == 0
    assert project.quick("resume", "1", "--json").code == 0
    assert workspace(project) == {"wrong": [], "unexpected": [], "more": 0}
