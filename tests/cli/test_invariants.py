"""A broken invariant names the task that broke it (R-GATE-3)."""

from __future__ import annotations

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import amend, run, versions
from tests.support.project import Project, failing_task, making

CHECK = "test ! -e secret.txt"


def head(check: str, more: str = "") -> str:
    return f"invariants:\n  - id: INV-1\n    text: it holds\n    check: |-\n      {check}\n{more}"


def reason(project: Project, name: str, *flags: str) -> str:
    rows = run(project, "--max-attempts", "1", *flags).data["tasks"]
    return str({row["id"]: row["reason"] for row in rows}[name])


def test_the_task_that_broke_it_is_named(project: Project) -> None:
    project.plan([making("T1-01", "a.txt"), making("T1-02", "secret.txt", after="T1-01")], head=head(CHECK))
    assert reason(project, "T1-02") == "invariant INV-1 failed: T1-02 broke it"
    assert project.statuses()["T1-01"] == "completed"  # the invariant holds for honest work
    rows = project.quick("show", "T1-02", "--json").data["attempts"][-1]["evidence"]
    (row,) = [row for row in rows if row["subject"] == "invariant INV-1"]
    assert row["violation"] == "T1-02 broke it"


def breaking(id: str, after: str = "none") -> str:
    """A task that breaks the invariant and does not check it."""
    return making(id, "secret.txt", after=after, fields="- **Invariants:** none\n")


def test_an_earlier_task_is_named_if_that_broke_it(project: Project) -> None:
    tasks = [making("T1-01", "a.txt"), breaking("T1-02", "T1-01"), making("T1-03", "c.txt", after="T1-02")]
    project.plan(tasks, head=head(CHECK))
    assert reason(project, "T1-03") == "invariant INV-1 failed: T1-02 broke it"


def test_at_the_end_too(project: Project) -> None:
    """R-GATE-3, R-RUN-14."""
    project.plan([breaking("T1-01")], head=head(CHECK))
    answer = run(project)
    assert answer.code == 1
    assert "invariant INV-1 failed: T1-01 broke it" in answer.error["message"]


def test_what_failed_before_the_run_is_no_task_s_fault(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox, files={"secret.txt": "s\n"})
    gone = "  - {id: INV-2, text: it runs, check: ./missing-program}\n"  # which says nothing about the work
    project.plan([making("T1-01", "a.txt")], head=head(CHECK, gone))
    words = reason(project, "T1-01")
    assert "it did not hold before the run either" in words
    assert "invariant INV-2 errored" in words
    assert "INV-2 failed" not in words


def test_the_log_names_the_amendment_that_added_an_invariant(project: Project) -> None:
    """R-GATE-3, R-LOCK-8."""
    tasks = [making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")]
    project.plan(tasks)
    run(project, "--max-attempts", "1", "--no-verify")
    project.plan([tasks[0], making("T1-02", "secret.txt", after="T1-01")], head=head(CHECK), commit=False)
    assert amend(project, "--from-file", "--yes", "--why", "no secrets").code == 0
    (version,) = versions(project)
    assert (version["version"], version["why"]) == (2, "no secrets")
    assert [line for line in version["what"] if ": invariants + " in line and "INV-1" in line], version["what"]


def test_without_trees_of_its_own_it_says_less(project: Project) -> None:
    """`checks: here` cannot run anything on the tree before the task."""
    project.configure("checks: here\n")
    project.plan([making("T1-01", "secret.txt")], head=head(CHECK))
    assert "it does not hold after T1-01" in reason(project, "T1-01")
