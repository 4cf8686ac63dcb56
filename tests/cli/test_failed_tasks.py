"""Tasks that fail: attempts, feedback, halting, `--retry-failed`, `accept`, `skip`, and dead letters."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.test_secrets import built_by_hand
from tests.support import ended_runs
from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared, prepared_project
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
    project.built_by(f"echo x >> {calls}; cat {calls} > a.txt")
    work = task("T1-01", files="create `a.txt`", check=f"test -s a.txt && test -e {door}")
    project.plan([work, making("T1-02", "b.txt", after="T1-01")])
    assert run(project, "--max-attempts", "1").code == 1
    again = project.quick("resume", "1", "--judge", "--no-verify", "--json")
    assert (again.code, project.statuses()["T1-01"], calls.read_text()) == (1, "failed", "x\n")
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
    assert project.json("accept", "T1-01", "--why", "good").code == 0
    assert [project.repo.git("show", f"{place}:a.txt") for place in ("HEAD", "")] == ["bad", "staged"]


@pytest.mark.nightly
def test_accept_takes_the_work_of_a_person_as_it_is_in_the_working_tree(project: Project) -> None:
    built_by_hand(project, "create `a.txt`", {"a.txt": "mine\n"})
    project.repo.write("a.txt", "better\n")
    assert project.json("accept", "T1-01", "--why", "good").code == 0
    assert project.repo.git("show", "HEAD:a.txt") == "better"


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
    before = [project.exists(path) and project.read(path) for path in PROTECTED]
    assert project.json("accept", "T1-01", "--why", "good enough").code == 0
    assert project.repo.git("show", "--format=", "--name-only").split() == ["a.txt"]
    assert [project.exists(path) and project.read(path) for path in PROTECTED] == before


def _parked(sandbox: GitSandbox) -> Project:
    """T1-01 and T1-02 failed all their attempts, T1-03 is completed; T1-01 succeeds as soon as `ready` is committed."""
    project = projects.create(sandbox)
    project.plan(
        [
            task("T1-01", files="create `a.txt`", check="test -e ready", steps=[shell("touch a.txt")]),
            task("T1-02", check="false", steps=[shell("true")]),
            making("T1-03", "c.txt"),
        ]
    )
    assert run(project, "--max-attempts", "2").code == 1
    return project


failing = prepared_project(_parked)


def dlq(project: Project, *words: str) -> Answer:
    return project.quick("dlq", *words, "--json")


def parked(project: Project, *words: str) -> list[str]:
    return [one["task"] or "run" for one in dlq(project, "list", *words).data["dead_letters"]]


def test_failed_tasks_and_their_run_become_dead_letters_with_a_class(failing: Project) -> None:
    """R-HAND-3; R-RUN-5, R-OPS-4: there are as many attempts as `--max-attempts` says."""
    letters = dlq(failing, "list").data["dead_letters"]
    assert [(one["kind"], one["task"], one["class"]) for one in letters] == [
        ("task", "T1-01", "permanent"),
        ("task", "T1-02", "permanent"),
        ("run", None, "permanent"),
    ]
    first = letters[0]
    assert (first["attempts"], first["can_retry"], first["agent"]) == (2, True, "steps")
    assert "AC-1" in first["reason"]
    assert parked(failing, "--class", "transient") == []
    assert parked(failing, "--agent", "steps", "--phase", "01") == ["T1-01", "T1-02"]
    assert parked(failing, "--agent", "steps", "--retryable") == ["T1-01", "T1-02"]
    shown = dlq(failing, "show", "T1-02").data["dead_letter"]
    assert shown["events"][-1]["kind"] == "task.failed"
    assert "T1-01" in failing.quick("dlq", "list").out
    assert "\n  or: idumb dlq retry" in failing.quick("dlq", "show", "T1-01").out
    assert "\n\nAttempt 2 by steps: failed" in failing.quick("show", "T1-01").out
    assert "  created a.txt, as declared\n" in failing.quick("show", "T1-01").out


def test_a_retry_is_one_attempt_of_that_task_alone_and_the_letter_counts_all_attempts(failing: Project) -> None:
    """R-HAND-3, R-OPS-2: of a task, and of each that failed in a run; `resume --retry-failed` has them all again."""

    def attempts() -> dict[str, int]:
        rows = dlq(failing, "list").data["dead_letters"]
        return {row["task"] or "run": row["attempts"] for row in rows}

    assert attempts() == {"T1-01": 2, "T1-02": 2, "run": 4}
    whole = next(row["id"] for row in dlq(failing, "list").data["dead_letters"] if row["kind"] == "run")
    assert dlq(failing, "retry", whole).code == 1
    assert attempts() == {"T1-01": 3, "T1-02": 3, "run": 6}
    asked = [row["id"] for row in failing.quick("decisions", "--json").data["decisions"]]
    assert sorted(asked) == ["T1-01.exhausted.3", "T1-02.exhausted.3"]
    failing.repo.write("ready")
    failing.repo.commit("ready", "ready")
    assert dlq(failing, "retry", "T1-01").code == 1  # under the same checks; T1-02 is as failed as before
    assert failing.statuses() == {"T1-01": "completed", "T1-02": "failed", "T1-03": "completed"}
    assert parked(failing) == ["T1-02", "run"]
    assert [e["task"] for e in failing.events("--kind", "attempt.started")].count("T1-03") == 1
    assert failing.quick("resume", "1", "--retry-failed", "--max-attempts", "2", "--json").code == 1
    assert attempts()["T1-02"] == 5
    failed = failing.read(".planning/phases/1/1-SUMMARY.md").split("## Failed Tasks")[1].split("###")[0]
    assert [row.split("|")[-2].strip() for row in failed.splitlines() if "T1-0" in row] == ["5"]


def test_a_dropped_letter_is_gone_and_an_unknown_one_is_refused(failing: Project) -> None:
    """R-HAND-3: the failure stays in the log; a later run of the phase has its own letters."""
    (way,) = [way for way in dlq(failing, "show", "T1-02").data["dead_letter"]["next"] if "drop" in way]
    assert failing.quick(*shlex.split(way)[1:], "--json").data["tasks"] == ["T1-02"]
    assert parked(failing) == ["T1-01", "run"]
    assert [e["task"] for e in failing.events("--kind", "task.failed")] == ["T1-01", "T1-02"]
    for unknown in ("T1-02", "nothing"):
        refused = dlq(failing, "show", unknown)
        assert (refused.code, refused.error["code"]) == (3, "dead-letter.unknown")
    failing.plan([making("T1-01", "a.txt"), making("T1-03", "c.txt")])
    assert run(failing, "--no-verify").code == 0
    assert parked(failing) == []
    assert dlq(failing, "retry").code == 2


def _left(sandbox: GitSandbox) -> Project:
    """A run whose agent wrote two files, one of them wrong."""
    project = projects.create(sandbox, files={"b.txt": "one\n"})
    steps = [write("a.txt", "wrong\n"), write("b.txt", "two\n")]
    files = "create `a.txt`, modify `b.txt`"
    project.plan([task("T1-01", files=files, check="grep -q right a.txt && grep -q t b.txt", steps=steps)])
    assert project.execute("--max-attempts", "1", "--no-verify").code in (1, 5)
    assert not project.exists("a.txt")
    return project


taken = prepared_project(_left)


def test_the_work_of_an_agent_is_corrected_by_hand_judged_and_committed(taken: Project) -> None:
    assert taken.json("take", "T1-01").code == 0
    assert (taken.read("a.txt"), taken.read("b.txt")) == ("wrong\n", "two\n")
    assert taken.json("submit", "T1-01", "--no-verify").code == 1
    taken.repo.write("a.txt", "right\n")
    assert taken.json("take", "T1-01").code == 0
    assert taken.json("submit", "T1-01", "--no-verify").code == 0
    assert taken.statuses() == {"T1-01": "completed"}
    assert taken.repo.git("show", "HEAD:a.txt") == "right"


@pytest.mark.nightly
def test_a_file_that_the_user_corrected_already_stays_as_it_is(taken: Project) -> None:
    """R-RUN-5: the correction alone does not continue the run. Different line endings are no correction."""
    taken.repo.git("config", "core.autocrlf", "true")
    taken.repo.write("a.txt", "right\n")
    resumed = taken.json("resume", "1", "--no-verify")
    assert (resumed.code, "idumb take T1-01" in [way["command"] for way in resumed.object["ways"]]) == (1, True)
    refused = taken.json("accept", "T1-01", "--why", "it is fine")
    assert (refused.code, refused.error["code"]) == (4, "task.changed-since")
    assert refused.error["hint"] == "idumb take T1-01"
    took = taken.json("take", "T1-01")
    assert (took.code, "You changed a.txt since: they stay as you have them" in took.out) == (0, True)
    assert ((taken.folder / "a.txt").read_bytes(), (taken.folder / "b.txt").read_bytes()) == (b"right\n", b"two\r\n")
    assert taken.json("submit", "T1-01", "--no-verify").code == 0


def test_giving_up_takes_the_work_out_of_the_tree_again(taken: Project) -> None:
    """Uncommitted changes from before `take` come back."""
    taken.repo.write("a.txt", "mine\n")
    taken.json("take", "T1-01")
    taken.repo.write_all({"a.txt": "better\n", "b.txt": "better\n"})
    refused = taken.quick("resume", "1", "--judge", "--json")
    ways = [way["command"] for way in refused.object["ways"]]
    assert ways == ["idumb submit T1-01", "idumb give-up T1-01 --why REASON"]
    assert taken.json("give-up", "T1-01", "--why", "later").data["next"] == ["idumb resume 1"]
    assert (taken.read("a.txt"), taken.repo.git("status", "--porcelain", "a.txt", "b.txt")) == ("mine\n", "?? a.txt")
    for words in (("take", "T1-01"), ("give-up", "T1-01", "--why", "again")):
        assert taken.json(*words).code == 0
    assert taken.read("a.txt") == "mine\n"
