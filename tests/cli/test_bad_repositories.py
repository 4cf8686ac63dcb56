"""Bad repository states on the command line: one clear line, an exit code, nothing changed."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import project as projects
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run
from tests.support.prepared import Prepared
from tests.support.project import Project, failing_task, making, task, write
from tests.support.refusals import EVERY, all_bytes


def test_outside_a_repository_and_in_a_bare_one_every_command_says_so(tmp_path: Path) -> None:
    """R-GIT-7: and writes nothing."""
    nowhere, bare = tmp_path / "nowhere", tmp_path / "bare.git"
    nowhere.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", bare], check=True)
    before = sorted(tmp_path.rglob("*"))
    for place, code in ((nowhere, "git.not-a-repository"), (bare, "git.bare")):
        project = Project(GitSandbox(place), place)
        for arguments in EVERY:
            answer = project.quick(*arguments, "--json")
            assert (answer.code, answer.error["code"]) == (4, code), arguments
        words = project.quick("status")
        assert (words.code, str(place) in words.err, f"[{code}]" in words.err) == (4, True, True), words
    assert sorted(tmp_path.rglob("*")) == before


def sha_256(place: Path) -> GitSandbox:
    return GitSandbox.create(place, options=("--object-format=sha256",))


def of_another_owner(place: Path) -> GitSandbox:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    repo = GitSandbox.create(place)
    for one in (repo.root / ".git", repo.root):
        os.chown(one, 65534, 65534)
    return repo


def dubious_to_git_alone(place: Path) -> GitSandbox:
    """Libgit2 looks at other owners than git does."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    repo = GitSandbox.create(place)
    os.chown(repo.root / ".git", 65534, 65534)
    return repo


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (sha_256, "git.unsupported-format"),
        (of_another_owner, "git.ownership"),
        (dubious_to_git_alone, "git.ownership"),
    ],
)
def test_nothing_is_written_in_a_place_where_later_commands_would_refuse(
    tmp_path: Path, make: Callable[[Path], GitSandbox], code: str
) -> None:
    """R-GIT-7: a SHA-256 repository and one with dubious ownership are refused in one line, before anything else."""
    project = Project(repo := make(tmp_path / "repo"), repo.root)
    for arguments in (("init",), ("install", "--host", "claude")):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (4, code), answer
        assert "\n" not in answer.error["message"]
        assert answer.error["hint"].startswith("git ")
    words = project.quick("init")
    assert [line.split(":")[0] for line in words.err.splitlines()] == ["idumb", "  next"], words.err
    assert [one.name for one in repo.root.iterdir()] == [".git"]
    assert not (repo.root / ".git" / "idumb").exists()


def merge(repo: GitSandbox) -> None:
    repo.git("switch", "--quiet", "-c", "other")
    repo.commit_with({"README.md": "theirs\n"}, "theirs", "README.md")
    repo.git("switch", "--quiet", "main")
    repo.commit_with({"README.md": "ours\n"}, "ours", "README.md")
    assert repo.try_git("merge", "other").returncode


def _failed(sandbox: GitSandbox) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt"), failing_task("T1-02", "b.txt")])
    assert run(project, "--max-attempts", "1").code == 1
    return project


def test_an_operation_in_progress_stops_every_command_that_writes(prepared: Prepared) -> None:
    """R-GIT-7: refused with one clear line before anything changes; `tests/states` has every operation."""
    project = prepared.get(_failed)
    consent = project.approval()
    merge(project.repo)
    before = all_bytes(project.repo)
    for arguments in (
        ("execute-phase", "1", "--approve", consent),
        ("resume", "1", "--retry-failed"),
        ("rollback", "1", "--to", "start", "--yes"),
        ("undo", "--yes"),
        ("accept", "T1-02", "--why", "a reason"),
    ):
        answer = project.quick(*arguments, "--json")
        assert (answer.code, answer.error["code"]) == (4, "git.merge-in-progress"), answer
        assert "git status" in f"{answer.error['message']} {answer.error['hint']}"
    assert all_bytes(project.repo) == before
    assert project.quick("status").code == 0


def test_uncommitted_user_changes_in_a_declared_path_are_a_question(project: Project) -> None:
    """R-GIT-6, F1: the user's change is kept; whether a glob names it or not. Here the index alone has it."""
    project.repo.commit_with({"a.txt": "old\n"}, "a", "a.txt")
    steps = [write("a.txt", "new\n")]
    project.plan([task("T1-01", files="modify `a.txt`", steps=steps)])
    project.plan([task("T2-01", files="modify `*.txt`", steps=steps)], phase="2")
    project.repo.write("a.txt", "mine\n")
    project.repo.git("add", "a.txt")
    project.repo.write("a.txt", "old\n")
    before = project.repo.ledger()
    for phase in ("1", "2"):
        answer = project.quick("execute-phase", phase, "--approve", project.approval(phase), "--json")
        assert (answer.code, answer.error["code"]) == (5, "run.waiting")
        (question,) = answer.data["decisions"]
        assert (question["id"], question["evidence"]) == (f"T{phase}-01.base.1", ["a.txt"])
        assert [choice["id"] for choice in question["choices"]] == ["commit", "mine", "stop"]
        assert project.events(phase, "--kind", "attempt.started") == []
    after = project.repo.ledger()
    assert projects.user_bytes(before, after) == []
    assert (after.index, after.refs, after.head) == (before.index, before.refs, before.head)


def started(project: Project) -> Answer:
    """Begin the task in the user's own tree, where nobody is asked."""
    return project.json("start", "T1-01", "--approve", project.approval())


def test_the_hint_about_files_with_changes_names_a_stash_that_works(project: Project) -> None:
    """R-GIT-6: a tracked file that is moved away is deleted, which is a change too."""
    project.repo.commit_with({"a b.txt": "old\n"}, "a", "a b.txt")
    project.plan([task("T1-01", files="modify `a b.txt`, modify `notes/*`")], head="builder: editor\n")
    project.repo.write("a b.txt", "mine\n")
    project.repo.write("notes/new.txt", "mine\n")
    hint = started(project).error["hint"]
    stash = "git stash push -a -- 'a b.txt' notes/new.txt"
    assert hint == f"Commit them (git commit) or stash them ({stash}), then idumb start T1-01"
    project.repo.git(*shlex.split(stash)[1:])
    assert started(project).code == 0


def test_before_the_first_commit_the_hint_names_no_stash(sandbox: GitSandbox) -> None:
    project = projects.create(sandbox, commit=False)
    project.plan([task("T1-01", files="modify `a.txt`")], head="builder: editor\n", commit=False)
    project.repo.write("a.txt", "mine\n")
    assert started(project).error["hint"] == "Commit them (git commit), then idumb start T1-01"
