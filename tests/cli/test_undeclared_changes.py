"""Attempts whose changes, checks or conditions do not match the plan."""

from __future__ import annotations

import pytest

from tests.support.plans import run
from tests.support.project import Project, failing_task, making, shell, task, write


def straying() -> list[str]:
    return [
        task(
            "T1-01",
            files="create `a.txt`",
            check="test -s a.txt",
            steps=[write("a.txt", "a\n"), write("stray.txt", "s\n")],
        ),
        making("T1-02", "b.txt", after="T1-01"),
    ]


def test_an_undeclared_change_stops_the_run_and_is_named_kept_and_never_committed(project: Project) -> None:
    """R-ASK-1, R-GIT-5, R-GIT-6, R-RUN-2, R-GATE-4."""
    project.plan(straying())
    answer = run(project)
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    assert "stray.txt" in answer.error["message"]
    assert all(answer.error["details"][name] for name in ("what", "why", "evidence"))
    assert all(choice["consequence"] and "command" in choice for choice in answer.error["details"]["choices"])
    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert (question["id"], question["evidence"]) == ("T1-01.deviation.1", ["stray.txt"])
    assert [choice["id"] for choice in question["choices"]] == ["keep", "leave-out", "stop"]
    assert [path for path in ("stray.txt", "a.txt") if project.exists(path)] == []
    assert project.trailers("Idumb-Task") == []
    assert project.statuses()["T1-02"] == "pending"
    shown = project.quick("show", "T1-01", "--json").data["attempts"][0]
    assert shown["deviations"] == ["stray.txt"]
    assert {(line["path"], line["status"]) for line in shown["ledger"]} >= {("stray.txt", "undeclared")}
    accepted = project.quick("resume", "1", "--on-deviation", "keep", "--no-verify", "--json")
    assert accepted.code == 0, accepted.out
    assert project.repo.tree()["stray.txt"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0  # the task's ledger has it now
    assert not project.exists("stray.txt")


@pytest.mark.nightly
def test_an_accepted_change_is_judged_as_it_was_although_the_plan_has_the_answer(project: Project) -> None:
    """R-ASK-2: neither idumb's record of the answer nor an edit of the user's is a fault of the checks."""
    project.plan(straying())
    assert run(project).code == 5
    assert project.quick("decide", "T1-01.deviation.1", "keep").code == 0
    project.repo.write("README.md", "mine\n")
    resumed = project.quick("resume", "1", "--no-verify", "--json")
    assert resumed.code == 0, resumed.out
    assert [row["outcome"] for row in project.quick("show", "T1-01", "--json").data["attempts"]] == ["completed"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.read("README.md") == "mine\n"


@pytest.mark.nightly
def test_a_task_whose_changes_were_kept_is_not_done_again_when_another_is_retried(project: Project) -> None:
    first, _ = straying()
    project.plan([first, failing_task("T1-02", "b.txt", after="T1-01")])
    assert run(project).code == 5
    assert project.quick("decide", "T1-01.deviation.1", "keep").code == 0
    assert project.quick("resume", "1").code == 1
    assert project.quick("resume", "1", "--retry-failed").code == 1
    assert [e["attempt"] for e in project.events("--kind", "attempt.started", "--task", "T1-01")] == [1]


@pytest.mark.nightly
def test_a_protected_path_among_undeclared_changes_can_only_be_left_out(project: Project) -> None:
    """R-LOCK-5."""
    steps = [write("a.txt", "a\n"), shell("echo s > stray.txt; echo x >> .planning/notes.md")]
    project.plan([task("T1-01", files="create `a.txt`", check="test -s a.txt", steps=steps)])
    assert run(project).code == 5
    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert [choice["id"] for choice in question["choices"]] == ["leave-out", "stop"]
    assert project.quick("resume", "1", "--on-deviation", "keep", "--json").code != 0
    assert project.quick("resume", "1", "--on-deviation", "leave-out", "--no-verify", "--json").code == 0
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").split() == ["a.txt"]
    assert [path for path in ("stray.txt", ".planning/notes.md") if project.exists(path)] == []


def test_a_failed_task_has_a_checkpoint_too(project: Project) -> None:
    """R-GIT-2: a snapshot before each attempt, and after each the files as it left them, with error and attempts."""
    project.plan([failing_task("T1-01", "a.txt")])
    head = project.repo.head()
    assert run(project, "--max-attempts", "2").code == 1
    refs = project.repo.kept("refs/idumb/")
    for attempt in (1, 2):
        (base,) = [oid for ref, oid in refs.items() if ref.endswith(f"/T1-01/{attempt}/base")]
        (after,) = [oid for ref, oid in refs.items() if ref.endswith(f"/T1-01/{attempt}/checkpoint")]
        assert "worktree/a.txt" not in project.repo.tree(base)
        assert "worktree/a.txt" in project.repo.tree(after)
    document = project.read(".idumb/brain/execution/1/checkpoint-T1-01.md")
    for line in ("status: failed", f'git_hash: "{head}"', '  - "a.txt"', "validation_result: fail"):
        assert line in document
    for line in ("retry_count: 1", "attempt: 2", 'error_message: "AC-1 failed"'):
        assert line in document


def test_conditions_and_invariants_are_checked(project: Project) -> None:
    """R-PLAN-3, R-PLAN-4, R-RUN-14, R-GATE-3."""
    invariants = 'invariants: [{id: INV-1, text: no secrets, check: "test ! -e secret.txt"}]\n'
    project.plan(
        [
            making(
                "T1-01",
                "a.txt",
                fields="- **Preconditions:** file exists README.md\n- **Postconditions:** file exists a.txt\n",
            ),
            making("T1-02", "b.txt", fields="- **Preconditions:** file exists nowhere.txt\n"),
            making("T1-03", "c.txt", fields="- **Postconditions:** file absent c.txt\n"),
            making("T1-04", "secret.txt"),
        ],
        head=invariants,
    )
    answer = run(project, "--max-attempts", "1")
    assert answer.code == 5
    assert project.statuses() == {"T1-01": "completed", "T1-02": "waiting", "T1-03": "failed", "T1-04": "failed"}
    assert not project.exists("b.txt")  # refused before anything was built
    question = next(d for d in project.quick("decisions", "--json").data["decisions"] if d["task"] == "T1-02")
    assert (question["id"], question["evidence"]) == (
        "T1-02.precondition.1",
        ["precondition 1: file exists nowhere.txt (failed)"],
    )
    assert "INV-1" in {row["id"]: row["reason"] for row in answer.data["tasks"]}["T1-04"]


@pytest.mark.nightly
def test_an_invariant_of_a_project_without_tests_stops_no_task_but_does_not_verify_the_phase(project: Project) -> None:
    """R-RUN-3, R-RUN-13."""
    project.repo.write("test.sh", "echo '==== no tests ran in 0.01s ===='\n")
    project.repo.commit()
    project.plan(
        [making("T1-01", "a.txt")], head="invariants: [{id: INV-1, text: the tests pass, check: sh test.sh}]\n"
    )
    answer = run(project)
    assert project.statuses() == {"T1-01": "completed"}
    assert (answer.code, answer.error["code"]) == (1, "verification.partial")
    assert answer.error["message"].endswith("invariant INV-1 has no proof")
    proofs = project.quick("show", "T1-01", "--json").data["attempts"][0]["evidence"]
    assert [(proof["subject"], proof["result"]) for proof in proofs][-1] == ("invariant INV-1", "unproven")
