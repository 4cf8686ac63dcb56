"""Tasks that fail: attempts, feedback, blocked dependents, halting, `--retry-failed`, `accept` and `skip`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import ended_runs
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, shell, task, write


def test_retry_failed_runs_the_task_again_and_the_run_completes(project: Project, tmp_path: Path) -> None:
    """R-RUN-5, R-ADAPT-2: fix and `resume --retry-failed`."""
    door = tmp_path / "open"
    project.plan(
        [making("T1-01", "a.txt", fields=f"- **Verify:** `test -e {door}`\n"), making("T1-02", "b.txt", after="T1-01")]
    )
    assert run(project, "--max-attempts", "1").code == 1
    door.touch()
    assert project.quick("resume", "1", "--retry-failed", "--no-verify", "--json").code == 0
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]


def test_failed_work_is_judged_again_without_its_builder(project: Project, tmp_path: Path) -> None:
    """R-RUN-5: the check failed because of something outside the work."""
    door, calls = tmp_path / "open", tmp_path / "calls"
    argv = json.dumps(["sh", "-c", f"echo x >> {calls}; cat {calls} > a.txt"])
    project.configure(f"bindings:\n  agent: {{adapter: command, argv: {argv}}}\n")
    fields = "- **Builder:** agent\n"
    work = task("T1-01", files="create `a.txt`", check=f"test -s a.txt && test -e {door}", fields=fields)
    project.plan([work, making("T1-02", "b.txt", after="T1-01")])
    assert run(project, "--max-attempts", "1").code == 1
    again = project.quick("resume", "1", "--judge", "--max-attempts", "1", "--no-verify", "--json")
    assert (again.code, project.statuses()["T1-01"]) == (1, "failed")
    door.touch()
    done = project.quick("resume", "1", "--judge", "--no-verify", "--json")
    assert (done.code, project.read("a.txt"), calls.read_text()) == (0, "x\n", "x\n")
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.quick("resume", "1", "--judge", "--json").error["code"] == "resume.nothing-to-judge"


def test_accept_leaves_what_the_user_staged(prepared: Prepared) -> None:
    """R-GIT-6: the commit has what the task left; no byte that only the index had is lost."""
    project = prepared.get(ended_runs.failed)
    project.repo.write("a.txt", "staged\n")
    project.repo.git("add", "a.txt")
    project.repo.remove("a.txt")
    answer = project.quick("accept", "T1-01", "--why", "good", "--json")
    assert answer.code == 0, answer.out
    assert project.repo.git("show", "HEAD:a.txt") == "bad"
    assert project.repo.git("show", ":a.txt") == "staged"


def test_a_halted_run_names_the_task_that_halted_it(project: Project) -> None:
    """R-RUN-6, R-RUN-7: another task had failed before."""
    strays = shell("echo a > b.txt; echo c > c.txt")
    project.plan([failing_task("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[strays])])
    answer = run(project, "--on-deviation", "stop", "--max-attempts", "1")
    assert answer.error["code"] == "run.halted"
    assert str(answer.data["failure"]["step_id"]).startswith("T1-02")
    assert answer.data["next"][0] == answer.error["hint"] == "idumb show T1-02 --debug"


PROTECTED = (".idumb/config.yaml", ".planning/notes.md", ".env", "keep.txt")


def test_a_task_s_write_to_a_protected_path_is_not_delivered_by_accept(project: Project) -> None:
    """R-LOCK-5, R-RUN-5."""
    steps = [write("a.txt", "made\n"), *(shell(f"echo '# x' >> {path}") for path in PROTECTED)]
    project.plan([making("T1-01", "a.txt", steps=steps)], head="scope: {protected: [keep.txt]}\n")
    assert run(project, "--on-deviation", "stop", "--max-attempts", "1").code == 1
    before = [project.read(path) if project.exists(path) else None for path in PROTECTED]
    answer = project.quick("accept", "T1-01", "--why", "good enough", "--json")
    assert answer.code == 0, answer
    assert project.repo.git("show", "--format=", "--name-only").split() == ["a.txt"]
    assert [project.read(path) if project.exists(path) else None for path in PROTECTED] == before
