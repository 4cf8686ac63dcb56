"""Attempts whose changes, checks or conditions do not match the plan."""

from __future__ import annotations

from tests.support.plans import run
from tests.support.project import Project, failing_task, making, task, write


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
    """R-ASK-1, R-ASK-3, R-GIT-5, R-GIT-6, R-RUN-2, R-GATE-4."""
    project.plan(straying())
    settings = project.read(".idumb/config.yaml")
    answer = run(project)
    assert (answer.code, answer.error["code"]) == (5, "run.waiting")
    assert "stray.txt" in answer.error["message"]
    assert all(answer.error["details"][name] for name in ("what", "why", "evidence"))
    assert all(choice["consequence"] and "command" in choice for choice in answer.error["details"]["choices"])
    (question,) = project.quick("decisions", "--json").data["decisions"]
    assert (question["id"], question["evidence"]) == ("T1-01.deviation.1", ["stray.txt"])
    set_it = "idumb config set run.on_deviation"
    assert [(choice["id"], choice.get("remember")) for choice in question["choices"]] == [
        ("keep", f"{set_it} keep"), ("leave-out", f"{set_it} leave-out"), ("stop", None),
    ]  # fmt: skip
    assert [path for path in ("stray.txt", "a.txt") if project.exists(path)] == []
    assert project.trailers("Idumb-Task") == []
    assert project.statuses()["T1-02"] == "pending"
    shown = project.quick("show", "T1-01", "--json").data["attempts"][0]
    assert shown["deviations"] == ["stray.txt"]
    assert {(line["path"], line["status"]) for line in shown["ledger"]} >= {("stray.txt", "undeclared")}
    accepted = project.quick("resume", "1", "--on-deviation", "keep", "--no-verify", "--json")
    assert accepted.code == 0, accepted.out
    assert project.read(".idumb/config.yaml") == settings
    assert project.repo.tree()["stray.txt"]
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0  # the task's ledger has it now
    assert not project.exists("stray.txt")


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
    """R-RUN-3, R-PLAN-3, R-PLAN-4, R-RUN-14, R-GATE-3."""
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
