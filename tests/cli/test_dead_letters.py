"""Dead letters: failed tasks are listed, retried under the same checks, or dropped; nothing is lost."""

from __future__ import annotations

import jsonschema

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import prepared_project
from tests.support.project import Project, making, shell, task
from tests.support.schemas import published

SCHEMA = published("dlq")


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


project = prepared_project(_parked)


def dlq(project: Project, *words: str) -> Answer:
    answer = project.quick("dlq", *words, "--json")
    if answer.code == 0 and words[0] != "retry":
        jsonschema.Draft202012Validator(SCHEMA).validate(answer.data)
    return answer


def parked(project: Project, *words: str) -> list[str]:
    return [one["task"] or "run" for one in dlq(project, "list", *words).data["dead_letters"]]


def test_failed_tasks_and_their_run_become_dead_letters_with_a_class(project: Project) -> None:
    """R-HAND-3; R-RUN-5, R-OPS-4: there are as many attempts as `--max-attempts` says."""
    letters = dlq(project, "list").data["dead_letters"]
    assert [(one["kind"], one["task"], one["class"]) for one in letters] == [
        ("task", "T1-01", "permanent"),
        ("task", "T1-02", "permanent"),
        ("run", None, "permanent"),
    ]
    first = letters[0]
    assert (first["attempts"], first["can_retry"], first["agent"]) == (2, True, "steps")
    assert "AC-1" in first["reason"]
    assert parked(project, "--class", "transient") == []
    assert parked(project, "--agent", "steps", "--phase", "01") == ["T1-01", "T1-02"]
    assert parked(project, "--agent", "steps", "--retryable") == ["T1-01", "T1-02"]
    shown = dlq(project, "show", "T1-02").data["dead_letter"]
    assert shown["events"][-1]["kind"] == "task.failed"
    assert "T1-01" in project.quick("dlq", "list").out
    assert "idumb dlq retry" in project.quick("dlq", "show", "T1-01").out


def test_a_retry_is_one_attempt_of_that_task_alone_and_the_letter_counts_all_attempts(project: Project) -> None:
    """R-HAND-3, R-OPS-2: of a task, and of each that failed in a run; `resume --retry-failed` has them all again."""

    def attempts() -> dict[str, int]:
        rows = dlq(project, "list").data["dead_letters"]
        return {row["task"] or "run": row["attempts"] for row in rows}

    assert attempts() == {"T1-01": 2, "T1-02": 2, "run": 4}
    whole = next(row["id"] for row in dlq(project, "list").data["dead_letters"] if row["kind"] == "run")
    assert dlq(project, "retry", whole).code == 1
    assert attempts() == {"T1-01": 3, "T1-02": 3, "run": 6}
    asked = [row["id"] for row in project.quick("decisions", "--json").data["decisions"]]
    assert sorted(asked) == ["T1-01.exhausted.3", "T1-02.exhausted.3"]
    project.repo.write("ready")
    project.repo.commit("ready", "ready")
    assert dlq(project, "retry", "T1-01").code == 1  # under the same checks; T1-02 is as failed as before
    assert project.statuses() == {"T1-01": "completed", "T1-02": "failed", "T1-03": "completed"}
    assert parked(project) == ["T1-02", "run"]
    assert [e["task"] for e in project.events("--kind", "attempt.started")].count("T1-03") == 1
    assert project.quick("resume", "1", "--retry-failed", "--max-attempts", "2", "--json").code == 1
    assert attempts()["T1-02"] == 5
    failed = project.read(".planning/phases/1/1-SUMMARY.md").split("## Failed Tasks")[1].split("###")[0]
    assert [row.split("|")[-2].strip() for row in failed.splitlines() if "T1-0" in row] == ["5"]


def test_a_dropped_letter_is_gone_and_an_unknown_one_is_refused(project: Project) -> None:
    """R-HAND-3: the failure stays in the log; a later run of the phase has its own letters."""
    (way,) = [way for way in dlq(project, "show", "T1-02").data["dead_letter"]["next"] if "drop" in way]
    assert project.quick("dlq", "remove", "T1-02", "--why", "known", "--json").data["tasks"] == ["T1-02"], way
    assert parked(project) == ["T1-01", "run"]
    assert [e["task"] for e in project.events("--kind", "task.failed")] == ["T1-01", "T1-02"]
    for unknown in ("T1-02", "nothing"):
        refused = dlq(project, "show", unknown)
        assert (refused.code, refused.error["code"]) == (3, "dead-letter.unknown")
    project.plan([making("T1-01", "a.txt"), making("T1-03", "c.txt")])
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer
    assert parked(project) == []
    assert dlq(project, "retry").code == 2
