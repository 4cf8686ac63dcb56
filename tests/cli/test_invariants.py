"""A broken invariant names the task that broke it, and the version of the contract that it dates from (R-GATE-3)."""

from __future__ import annotations

import sys

import pytest

from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, failing_task, making, task, write

PARSES = "import ast, pathlib; [ast.parse(p.read_text()) for p in pathlib.Path('.').glob('*.py')]"
CHECKS = {
    "shell": ("test ! -e secret.txt", "secret.txt", "made\n"),
    "python": (f'{sys.executable} -c "{PARSES}" 2>/dev/null', "bad.py", "def f(:\n"),
    "grep": ("! grep -rq TODO --include=*.js .", "a.js", "// TODO\n"),
}


def head(check: str, more: str = "") -> str:
    return f"invariants:\n  - id: INV-1\n    text: it holds\n    check: |-\n      {check}\n{more}"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    return projects.create(sandbox)


def reason(project: Project, name: str, *flags: str) -> str:
    rows = project.execute("--max-attempts", "1", *flags).data["tasks"]
    return str({row["id"]: row["reason"] for row in rows}[name])


@pytest.mark.parametrize(("check", "path", "content"), CHECKS.values(), ids=CHECKS.keys())
def test_the_task_that_broke_it_and_the_version_are_named(
    project: Project, check: str, path: str, content: str
) -> None:
    project.plan([making("T1-01", "b.py", "x = 1\n"), making("T1-02", path, content, after="T1-01")], head=head(check))
    assert reason(project, "T1-02") == ("invariant INV-1 failed: T1-02 broke it; the contract has it since version 1")
    assert project.statuses()["T1-01"] == "completed"  # the invariant holds for honest work
    rows = project.json("show", "T1-02").data["attempts"][-1]["evidence"]
    (row,) = [row for row in rows if row["subject"] == "invariant INV-1"]
    assert row["violation"] == "T1-02 broke it; the contract has it since version 1"


def breaking(id: str, after: str = "none") -> str:
    """A task that breaks the invariant and does not check it."""
    return making(id, "secret.txt", after=after, fields="- **Invariants:** none\n")


def test_an_earlier_task_is_named_if_that_broke_it(project: Project) -> None:
    tasks = [making("T1-01", "a.txt"), breaking("T1-02", "T1-01"), making("T1-03", "c.txt", after="T1-02")]
    tasks.append(making("T1-04", "d.txt", after="T1-03"))
    project.plan(tasks, head=head(CHECKS["shell"][0]))
    assert reason(project, "T1-03").startswith("invariant INV-1 failed: T1-02 broke it; ")


def test_at_the_end_too(project: Project) -> None:
    """R-GATE-3, R-RUN-14."""
    project.plan([making("T1-01", "a.txt"), breaking("T1-02", "T1-01")], head=head(CHECKS["shell"][0]))
    answer = project.execute()
    assert answer.code == 1
    assert "invariant INV-1 failed: T1-02 broke it; the contract has it since version 1" in answer.error["message"]


def test_what_failed_before_the_run_is_no_task_s_fault(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox, files={"secret.txt": "s\n"})
    project.plan([making("T1-01", "a.txt")], head=head(CHECKS["shell"][0]))
    assert "it did not hold before the run either" in reason(project, "T1-01")


def test_an_amended_invariant_dates_from_its_version(project: Project) -> None:
    """R-GATE-3, R-LOCK-8: version 2 adds it, and version 3 only a task."""
    tasks = [making("T1-01", "a.txt"), failing_task("T1-02", "b.txt", after="T1-01")]
    project.plan(tasks)
    project.execute("--max-attempts", "1")
    tasks[1] = making("T1-02", "secret.txt", after="T1-01")
    for text, why in ((tasks, "no secrets"), ([*tasks, making("T1-03", "c.txt", after="T1-02")], "one more")):
        project.plan(text, head=head(CHECKS["shell"][0]), commit=False)
        answer = project.idumb("amend", "1", "--from-file", "--yes", "--why", why, "--json")
        assert answer.code == 0, answer
    rows = project.resume("--retry-failed", "--max-attempts", "1").data["tasks"]
    words = {row["id"]: row["reason"] for row in rows}["T1-02"]
    assert words == "invariant INV-1 failed: T1-02 broke it; the contract has it since version 2 (no secrets)"


def test_without_trees_of_its_own_it_says_less(project: Project) -> None:
    """`checks: here` cannot run anything on the tree before the task."""
    project.configure("checks: here\n")
    project.plan([making("T1-01", "secret.txt")], head=head(CHECKS["shell"][0]))
    assert "it does not hold after T1-01; the contract has it since version 1" in reason(project, "T1-01")


def test_what_cannot_run_is_not_explained(project: Project) -> None:
    """The program of the check is gone, which says nothing about the work."""
    step = write("a.txt", "a\n")
    project.plan([task("T1-01", files="create `a.txt`", check="true", steps=[step])], head=head("./missing-program"))
    assert reason(project, "T1-01") == "invariant INV-1 errored"
