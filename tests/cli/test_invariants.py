"""An invariant that breaks at the end of a run is named with its task (R-GATE-3).

`unit/app/test_invariants.py` has which task broke it.
"""

from __future__ import annotations

from tests.support.plans import amend, run, versions
from tests.support.project import Project, failing_task, making

CHECK = "test ! -e secret.txt"


def head(check: str, more: str = "") -> str:
    return f"invariants:\n  - id: INV-1\n    text: it holds\n    check: |-\n      {check}\n{more}"


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
