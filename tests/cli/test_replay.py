"""The replay adapter: the same bytes and verdicts as a recorded run, without any agent (R-ADAPT-2, R-ENV-3)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, task

BUILDER = """\
import os, pathlib, sys
name = os.environ["IDUMB_TASK"].lower()
folder = pathlib.Path("out") / name
folder.mkdir(parents=True, exist_ok=True)
(folder / "data").write_bytes(os.urandom(40))
if (folder / "data2").exists() or os.environ["IDUMB_TASK"] == "T1-02":
    (folder / "done").write_bytes(os.urandom(8))
    (folder / "data2").unlink(missing_ok=True)
    os.chmod(folder / "done", 0o755)
    (folder / "link").symlink_to("data")
else:
    (folder / "data2").write_text("half\\n")
print("built", name)
"""
TASKS = (
    task("T1-01", files="create `out/t1-01/**`", check="test -x out/t1-01/done"),
    task("T1-02", files="create `out/t1-02/**`", check="test -s out/t1-02/data", after="T1-01"),
)


def execute(project: Project, *more: str) -> Answer:
    consent = project.quick("check-plan", "1", "--json").data["contract_hash"]
    return project.quick("execute-phase", "1", "--approve", consent, *more, "--json")


def configuration(script: Path, run: str = "", *, builder: str, validator: str) -> str:
    return (
        f"builder: {builder}\nvalidator: {validator}\nbindings:\n"
        f"  odd: {{adapter: command, argv: ['{sys.executable}', '{script}']}}\n"
        "  judge: {adapter: command, argv: ['/bin/sh', '-c', 'test -x out/t1-01/done']}\n"
        f"  again: {{adapter: replay, options: {{run: '{run or 0}'}}}}\n"
    )


def replaying(run: str, script: Path = Path("builder.py"), *, builder: str = "again") -> str:
    return configuration(script, run, builder=builder, validator="again")


def bytes_of(project: Project) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(project.folder)): (p.lstat().st_mode, p.read_bytes())
        for p in sorted(project.folder.glob("out/**/*"))
        if not p.is_dir()
    }


@pytest.fixture
def recorded(sandbox: GitSandbox, tmp_path: Path) -> tuple[Project, str]:
    """A project in which a run has ended that no builder would make a second time, and its id."""
    project = projects.create(sandbox)
    script = tmp_path / "builder.py"
    script.write_text(BUILDER, encoding="utf-8")
    project.configure(configuration(script, builder="odd", validator="judge"))
    project.plan(TASKS)
    answer = execute(project)
    assert answer.code == 0, answer
    return project, answer.data["run"]


def trees(project: Project, run: str) -> list[tuple[str, int, str, str]]:
    """Task, attempt, verdict and bytes of every checkpoint; the tree of `out` alone, for plans differ."""
    return [
        (
            e["task"],
            e["attempt"],
            e["payload"]["verdict"],
            project.repo.git("rev-parse", f"{e['payload']['tree']}:out"),
        )
        for e in project.events("--run", run, "--kind", "checkpoint.recorded")
    ]


@pytest.mark.parametrize("workspace", ["here", "clone"])
def test_a_replayed_run_ends_in_the_same_trees_byte_for_byte(recorded: tuple[Project, str], workspace: str) -> None:
    """R-ENV-3."""
    project, run = recorded
    recorded_files = bytes_of(project)
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert bytes_of(project) == {}
    project.configure(replaying(run))
    answer = execute(project, "--workspace", workspace)
    assert answer.code == 0, answer
    assert bytes_of(project) == recorded_files
    again = answer.data["run"]
    assert again != run
    assert trees(project, again) == trees(project, run)
    assert [t[:3] for t in trees(project, run)] == [
        ("T1-01", 1, "FAIL"),
        ("T1-01", 2, "PASS"),
        ("T1-02", 1, "PASS"),
    ]


@pytest.mark.parametrize(("builder", "other"), [("odd", "out/t1-01/data"), ("again", "README.md")])
def test_a_recorded_verdict_counts_only_for_the_bytes_that_were_judged(
    recorded: tuple[Project, str], tmp_path: Path, builder: str, other: str
) -> None:
    """R-ENV-3: whether the builder or another person made the change."""
    project, run = recorded
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    if builder == "again":
        project.repo.write("README.md", "other\n")
        project.repo.commit("other")
    project.configure(replaying(run, tmp_path / "builder.py", builder=builder))
    answer = execute(project)
    assert answer.code == 1, answer
    assert project.statuses()["T1-01"] == "failed"
    evidence = [e["payload"] for e in project.events("--kind", "evidence.recorded", "--run", answer.data["run"])]
    judged = [p for p in evidence if p["subject"] == "validator again"]
    assert {p["result"] for p in judged} == {"errored"}
    assert all(p["text"].startswith("the recording judged different files: ") and other in p["text"] for p in judged)


def test_requests_and_files_that_differ_from_the_recording_are_refused(recorded: tuple[Project, str]) -> None:
    """R-ENV-3: a task with another text is not replayed; concurrent changes are not overwritten."""
    project, run = recorded
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    project.configure(replaying(run))
    place = project.plan((TASKS[0].replace("Task T1-01", "Another task"), TASKS[1]))
    answer = execute(project)
    assert answer.code == 1, answer
    assert "has changed since run" in answer.out
    assert bytes_of(project) == {}
    place.write_text(place.read_text(encoding="utf-8").replace("Another task", "Task T1-01"), encoding="utf-8")
    (project.folder / "out/t1-01").mkdir(parents=True)
    (project.folder / "out/t1-01/data").write_text("mine\n", encoding="utf-8")
    project.repo.commit("mine")
    answer = execute(project)
    assert answer.code == 1, answer
    assert "out/t1-01/data differs from the recording" in answer.out
    assert project.read("out/t1-01/data") == "mine\n"


@pytest.mark.parametrize("options", ["{run: '0123456789abcdef'}", "{}", "{run: x, speed: 2}"])
def test_a_missing_recording_is_reported_before_anything_changes(sandbox: GitSandbox, options: str) -> None:
    """R-ENV-3."""
    project = projects.create(sandbox)
    project.configure(f"builder: again\nbindings:\n  again: {{adapter: replay, options: {options}}}\n")
    project.plan(TASKS)
    answer = execute(project)
    assert answer.code == 4, answer
    assert answer.error["code"] in {"agent.no-recording", "agent.bad-option"}
