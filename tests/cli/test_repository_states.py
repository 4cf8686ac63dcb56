"""A run and a rollback in each state of a repository; everything outside the run stays unchanged."""

from __future__ import annotations

import os
import pty
import select
import shutil
from pathlib import Path

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


def run_and_take_back(project: Project, *flags: str) -> None:
    """Run to the end, roll back to the start; whatever is not the run's is as it was in between and at the end."""
    before, staged = project.repo.ledger(), staged_of_user(project)
    answer = run(project, *flags)
    assert answer.code == 0, answer.out
    after = project.repo.ledger()
    assert set(projects.user_bytes(before, after)) == {"README.md", "sub", "sub/a.txt"}
    assert staged_of_user(project) == staged
    back = project.quick("rollback", "1", "--to", "start", "--yes", "--json")
    assert back.code == 0, back.out
    assert projects.user_bytes(before, project.repo.ledger()) == []
    assert staged_of_user(project) == staged
    assert project.repo.ledger().head.startswith("ref:") == before.head.startswith("ref:")
    assert project.repo.try_git("fsck", "--no-dangling").returncode == 0


def staged_of_user(project: Project) -> str:
    """Return the index entries except the paths of the run and of idumb."""
    rows = project.repo.git("ls-files", "--stage", "-v").splitlines()
    return "\n".join(row for row in rows if not row.endswith(("README.md", "sub/a.txt")) and "\t." not in row)


@pytest.mark.nightly
def test_on_a_detached_head_from_a_subfolder(project: Project) -> None:
    """R-GIT-7, F7, R-GIT-8: HEAD stays detached, the commits are on it; paths are still those of the root."""
    project.repo.write("app/main.py", "pass\n")
    project.repo.commit("app", "app")
    project.repo.git("checkout", "--quiet", "--detach")
    main = project.repo.refs("refs/heads/")
    run_and_take_back(Project(project.repo, project.folder / "app"))
    assert project.repo.refs("refs/heads/") == main
    assert project.repo.try_git("symbolic-ref", "HEAD").returncode != 0


@pytest.mark.nightly
def test_with_a_dirty_index_and_untracked_and_ignored_files_elsewhere(project: Project) -> None:
    """R-GIT-7, R-GIT-1, F2, F3, F5: every kind of entry and file stays as it is; snapshots include untracked files."""
    project.repo.write_all({"staged.txt": "1\n", "part.txt": "1\n", "gone.txt": "1\n", "flag.txt": "1\n"})
    project.repo.commit("more", "staged.txt", "part.txt", "gone.txt", "flag.txt")
    project.repo.write_all({"staged.txt": "2\n", "part.txt": "2\n", "new.txt": "new\n", "intended.txt": "x\n"})
    project.repo.git("add", "staged.txt", "part.txt", "new.txt")
    project.repo.git("add", "--intent-to-add", "intended.txt")
    project.repo.git("rm", "--quiet", "--cached", "gone.txt")
    project.repo.git("update-index", "--assume-unchanged", "flag.txt")
    project.repo.write_all({"part.txt": "3\n", "flag.txt": "2\n"})
    project.repo.write_all({"mine.txt": "mine\n", "deep/er/mine.bin": b"\0\xff", "debug.log": "ignored\n"})
    project.repo.write("odd \u00e9\nname", "odd\n")
    (project.folder / "empty").mkdir()
    status = project.repo.status()
    run_and_take_back(project)
    assert project.repo.status() == status
    assert project.repo.git("show", ":part.txt") == "2"
    held = project.repo.tree(project.quick("show", "T1-02", "--json").data["attempts"][0]["snapshot"])
    assert "worktree/deep/er/mine.bin" in held
    assert "worktree/debug.log" not in held
    assert project.repo.try_git("rev-parse", "refs/stash").returncode != 0


@pytest.mark.nightly
def test_in_a_linked_worktree(project: Project, tmp_path: Path) -> None:
    """R-GIT-7, F10: its own branch and owner; the other working tree is unchanged."""
    project.repo.git("worktree", "add", "--quiet", str(tmp_path / "two"), "-b", "two")
    two = Project(GitSandbox(tmp_path / "two"), tmp_path / "two")
    main = project.repo.ledger()
    assert run(two, "--no-verify").code == 0
    assert two.trailers("Idumb-Task") == ["T1-01", "T1-02"]
    assert project.repo.head() == main.refs["refs/heads/main"]
    assert projects.user_bytes(main, project.repo.ledger()) == []
    assert project.statuses() == {"T1-01": "ready", "T1-02": "pending"}
    assert run(project, "--no-verify").code == 0
    assert project.trailers("Idumb-Run") != two.trailers("Idumb-Run")
    assert two.quick("rollback", "1", "--to", "start", "--yes").code == 0
    assert not two.exists("sub/a.txt")
    assert project.exists("sub/a.txt")
    assert set(project.statuses().values()) == {"completed"}


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
