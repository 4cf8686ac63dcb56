"""A run and a rollback in each state of a repository; everything outside the run stays unchanged."""

from __future__ import annotations

import os
import pty
import select
import shutil

import pytest

from tests.support import ended_runs, warm
from tests.support import project as projects
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, making, shell, task

TASKS = (
    making("T1-01", "sub/a.txt", "one\n"),
    task(
        "T1-02",
        files="modify `README.md`",
        check="grep -q two README.md",
        after="T1-01",
        steps=[shell("echo two >> README.md")],
    ),
)


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan(TASKS)
    return project


@pytest.mark.nightly
def test_without_a_commit_yet(sandbox: GitSandbox) -> None:
    """R-GIT-7, F8: the first commit is the first task's, and rollback to the start works.

    Each task starts from all files of the user, not only the first.
    """
    project = projects.create(sandbox, commit=False)
    copying = making("T1-02", "b.txt", after="T1-01", steps=[shell("cp README.md b.txt")])
    project.plan([making("T1-01", "a.txt"), copying], commit=False)
    before = sandbox.ledger()
    answer = run(project)
    assert answer.code == 0, answer.out
    assert project.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert "README.md" not in sandbox.tree()  # the user's own first commit is still theirs to make
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert projects.user_bytes(before, sandbox.ledger()) == []


def test_without_commits_by_policy(project: Project) -> None:
    """R-GIT-2, R-GIT-3: hidden refs only; branch, index and status are the user's alone, and reports are files."""
    report = ".planning/phases/1/1-VERIFICATION.md"
    project.configure("git: {commit: none}\n")
    before = project.repo.ledger()
    answer = run(project)
    assert answer.code == 0, answer.out
    after = project.repo.ledger()
    assert (after.refs, after.head, after.index) == (before.refs, before.head, before.index)
    assert [row["commit"] for row in answer.data["tasks"]] == [None, None]
    assert any(ref.endswith("T1-02/1/checkpoint") for ref in project.repo.kept("refs/idumb/"))
    assert project.quick("rollback", "1", "--to", "T1-01", "--yes").code == 0
    assert project.read("README.md") == "# A project\n"
    assert project.exists("sub/a.txt")
    assert "\nstatus: unverified\n" in project.read(report)
    assert project.quick(*project.undoing()).code == 0
    assert "two" in project.read("README.md")
    assert project.repo.ledger().refs == before.refs
    assert project.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert projects.user_bytes(before, project.repo.ledger()) == []
    assert project.quick("resume", "1", "--json").code == 0
    assert "\nstatus: passed\n" in project.read(report)


# -- at a terminal ------------------------------------------------------------------------------------------------


PROMPT = "Your choice"


def at_terminal(project: Project, arguments: tuple[str, ...], *answers: str) -> tuple[int, str]:
    """Run at a pseudo-terminal and type one answer at each prompt. (exit code, screen)."""
    leader, follower = pty.openpty()
    environment = {"TERM": "dumb", "COLUMNS": "200"}
    terminal = os.ttyname(follower)
    started = warm.start(project.start, *arguments, environment=environment, terminal=terminal)
    ended = _end_of(started.pid)
    screen, waiting = "", list(answers)
    while True:
        ready, _, _ = select.select([leader, ended], [], [], 30)
        assert ready, f"nothing more came after: {screen}"
        if leader not in ready:
            break
        screen += os.read(leader, 65536).decode("utf-8", "replace")
        while waiting and screen.count(PROMPT) > len(answers) - len(waiting):
            os.write(leader, waiting.pop(0).encode() + b"\n")
    for descriptor in (leader, follower, ended):
        os.close(descriptor)
    assert not waiting, screen
    return started.wait().code, screen


def _end_of(process: int) -> int:
    """Return a descriptor that can be read once this process has ended."""
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        return os.open(os.devnull, os.O_RDONLY)


@pytest.mark.parametrize("answers", [("run",), ("nonsense", "")], ids=" ".join)
def test_consent_at_a_terminal_shows_what_runs_and_follows_the_answer(
    project: Project, answers: tuple[str, ...]
) -> None:
    """R-ASK-2, house (Consent): the question names tasks and commands; only an explicit answer runs anything."""
    code, screen = at_terminal(project, ("execute-phase", "1", "--no-verify"), *answers)
    assert "T1-01" in screen
    assert "test -s sub/a.txt" in screen
    assert project.exists("sub/a.txt") == (answers == ("run",))
    assert code == (0 if answers == ("run",) else 4)
    if answers == ("run",):
        assert project.resume("--no-verify").code == 0  # consent is on record


def test_a_rollback_is_confirmed_at_a_terminal(prepared: Prepared) -> None:
    """R-GIT-3, R-ASK-2."""
    project = prepared.get(ended_runs.done)
    code, screen = at_terminal(project, ("rollback", "1", "--to", "start"), "yes")
    assert (code, "a.txt" in screen, project.exists("a.txt")) == (0, True, False)


def test_an_unwritable_brain_folder_does_not_stop_a_run(project: Project) -> None:
    """Projections are not the source of truth: losing them loses nothing (R-LOG-4)."""
    shutil.rmtree(project.repo.root / ".idumb/brain", ignore_errors=True)
    (project.repo.root / ".idumb/brain").write_text("a file where a folder should be\n")
    answer = run(project, "--no-verify")
    assert answer.code == 0, answer.out
    assert project.statuses() == {"T1-01": "completed", "T1-02": "completed"}
