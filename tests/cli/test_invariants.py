"""A broken invariant names the task that broke it, and the version of the contract that it dates from (R-GATE-3).

`unit/app/test_invariants.py` has which task broke it.
"""

from __future__ import annotations

from tests.support.plans import run
from tests.support.project import Project, failing_task, making

CHECK = "test ! -e secret.txt"


def head(check: str, more: str = "") -> str:
    return f"invariants:\n  - id: INV-1\n    text: it holds\n    check: |-\n      {check}\n{more}"


def breaking(id: str, after: str = "none") -> str:
    """A task that breaks the invariant and does not check it."""
    return making(id, "secret.txt", after=after, fields="- **Invariants:** none\n")


def test_at_the_end_too(project: Project) -> None:
    """R-GATE-3, R-RUN-14."""
    project.plan([breaking("T1-01")], head=head(CHECK))
    answer = run(project)
    assert answer.code == 1
    assert "invariant INV-1 failed: T1-01 broke it; the contract has it since version 1" in answer.error["message"]


def test_an_amended_invariant_dates_from_its_version(project: Project) -> None:
    """R-GATE-3, R-LOCK-8: version 2 adds it, and version 3 only a task."""
    tasks = [making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")]
    project.plan(tasks)
    run(project, "--max-attempts", "1", "--no-verify")
    tasks[1] = making("T1-02", "secret.txt", after="T1-01")
    for text, why in ((tasks, "no secrets"), ([*tasks, making("T1-03", "c.txt", after="T1-02")], "one more")):
        project.plan(text, head=head(CHECK), commit=False)
        answer = project.quick("amend", "1", "--from-file", "--yes", "--why", why, "--json")
        assert answer.code == 0, answer
    rows = project.quick("resume", "1", "--retry-failed", "--max-attempts", "1", "--json").data["tasks"]
    words = {row["id"]: row["reason"] for row in rows}["T1-02"]
    assert words == "invariant INV-1 failed: T1-02 broke it; the contract has it since version 2 (no secrets)"
