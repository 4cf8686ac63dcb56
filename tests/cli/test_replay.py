"""The replay adapter: the same bytes and verdicts as a recorded run, without any agent (R-ADAPT-2, R-ENV-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, task

BUILDER = """\
folder=out/$(echo $IDUMB_TASK | tr T t); mkdir -p $folder; cd $folder
head -c 40 /dev/urandom > data
if [ -e data2 ] || [ $IDUMB_TASK = T1-02 ]; then
    head -c 8 /dev/urandom > done; rm -f data2; chmod 755 done; ln -s data link
else
    echo half > data2
fi
"""
TASKS = (
    task("T1-01", files="create `out/t1-01/**`", check="test -x out/t1-01/done"),
    task("T1-02", files="create `out/t1-02/**`", check="test -s out/t1-02/data", after="T1-01"),
)


def configuration(script: Path, name: str = "", *, builder: str, validator: str) -> str:
    return (
        f"builder: {builder}\nvalidator: {validator}\nbindings:\n"
        f"  odd: {{adapter: command, argv: [sh, '{script}']}}\n"
        "  judge: {adapter: command, argv: ['/bin/sh', '-c', 'test -x out/t1-01/done']}\n"
        f"  again: {{adapter: replay, options: {{run: '{name or 0}'}}}}\n"
    )


def replaying(name: str, script: Path = Path("builder.py"), *, builder: str = "again") -> str:
    return configuration(script, name, builder=builder, validator="again")


def bytes_of(project: Project) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(project.folder)): (p.lstat().st_mode, p.read_bytes())
        for p in sorted(project.folder.glob("out/**/*"))
        if not p.is_dir()
    }


def script_of(project: Project) -> Path:
    return project.folder.parent / "builder-of-recordings.sh"


def _recorded(sandbox: GitSandbox) -> Project:
    """A project in which a run has ended that no builder would make a second time; it was rolled back."""
    project = projects.create(sandbox)
    script = script_of(project)
    script.write_text(BUILDER, encoding="utf-8")
    project.configure(configuration(script, builder="odd", validator="judge"))
    project.plan(TASKS)
    assert run(project, "--no-verify").code == 0
    (project.folder.parent / "recorded-files").write_text(repr(bytes_of(project)), encoding="utf-8")
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert bytes_of(project) == {}
    return project


@pytest.fixture
def recorded(prepared: Prepared) -> tuple[Project, str]:
    """The project, and the id of the run."""
    project = prepared.get(_recorded)
    return project, str(project.events("--kind", "run.started")[0]["run"])


def trees(project: Project, name: str) -> list[tuple[str, int, str, str]]:
    """Task, attempt, verdict and bytes of every checkpoint; the tree of `out` alone, for plans differ."""
    return [
        (
            e["task"],
            e["attempt"],
            e["payload"]["verdict"],
            project.repo.git("rev-parse", f"{e['payload']['tree']}:out"),
        )
        for e in project.events("--run", name, "--kind", "checkpoint.recorded")
    ]


def test_a_replayed_run_ends_in_the_same_trees_byte_for_byte(recorded: tuple[Project, str]) -> None:
    """R-ENV-3."""
    project, recording = recorded
    recorded_files = (project.folder.parent / "recorded-files").read_text(encoding="utf-8")
    project.configure(replaying(recording))
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert repr(bytes_of(project)) == recorded_files
    again = answer.data["run"]
    assert again != recording
    assert trees(project, again) == trees(project, recording)
    assert [t[:3] for t in trees(project, recording)] == [
        ("T1-01", 1, "FAIL"),
        ("T1-01", 2, "PASS"),
        ("T1-02", 1, "PASS"),
    ]


@pytest.mark.parametrize(
    ("builder", "other"), seed.one_on_a_push([("odd", "out/t1-01/data"), ("again", "README.md")], "a recorded verdict")
)
def test_a_recorded_verdict_counts_only_for_the_bytes_that_were_judged(
    recorded: tuple[Project, str], builder: str, other: str
) -> None:
    """R-ENV-3: whether the builder or another person made the change."""
    project, recording = recorded
    if builder == "again":
        project.repo.commit_with({"README.md": "other\n"}, "other")
    project.configure(replaying(recording, script_of(project), builder=builder))
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1, answer
    assert project.statuses()["T1-01"] == "failed"
    evidence = [e["payload"] for e in project.events("--kind", "evidence.recorded", "--run", answer.data["run"])]
    judged = [p for p in evidence if p["subject"] == "validator again"]
    assert {p["result"] for p in judged} == {"errored"}
    assert all(p["text"].startswith("the recording judged different files: ") and other in p["text"] for p in judged)


def test_requests_and_files_that_differ_from_the_recording_are_refused(recorded: tuple[Project, str]) -> None:
    """R-ENV-3: a task with another text is not replayed; concurrent changes are not overwritten."""
    project, recording = recorded
    project.configure(replaying(recording))
    place = project.plan((TASKS[0].replace("Task T1-01", "Another task"), TASKS[1]))
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1, answer
    assert "has changed since run" in answer.out
    assert bytes_of(project) == {}
    place.write_text(place.read_text(encoding="utf-8").replace("Another task", "Task T1-01"), encoding="utf-8")
    (project.folder / "out/t1-01").mkdir(parents=True)
    (project.folder / "out/t1-01/data").write_text("mine\n", encoding="utf-8")
    project.repo.commit("mine")
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 1, answer
    assert "out/t1-01/data differs from the recording" in answer.out
    assert project.read("out/t1-01/data") == "mine\n"


def test_a_missing_recording_is_reported_before_anything_changes(project: Project) -> None:
    """R-ENV-3."""
    project.plan(TASKS)
    for options, code in (
        ("{run: '0123456789abcdef'}", "agent.no-recording"),
        ("{}", "agent.bad-option"),
        ("{run: x, speed: 2}", "agent.bad-option"),
    ):
        project.configure(f"builder: again\nbindings:\n  again: {{adapter: replay, options: {options}}}\n")
        answer = run(project)
        assert (answer.code, answer.error["code"]) == (4, code), answer
