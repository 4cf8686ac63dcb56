"""Leftovers of a kill, a power cut or a failed rename: adopted, removed, or named with the command that helps."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from idumb.git import discover
from idumb.git.trees import GitTrees
from tests.crash import harness
from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task

MIDDLE = "after SqliteEventLog.append attempt.started"


@dataclass(frozen=True, slots=True)
class Killed:
    """A run that was killed when its second task had just begun."""

    project: Project
    consent: str

    @property
    def repo(self) -> GitSandbox:
        return self.project.repo

    def resume(self) -> Answer:
        return self.project.json("resume", "1", "--approve", self.consent)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    project = projects.create(GitSandbox.create(tmp_path_factory.mktemp("killed") / "template"))
    more = task("T1-02", files="modify `a.txt`", check="true", after="T1-01", steps=[shell("echo more >> a.txt")])
    project.plan([making("T1-01", "a.txt"), more])
    project.repo.write("mine.txt", "mine\n")
    consent = project.approval()
    run = harness.run(project, "execute-phase", "1", "--approve", consent, at=MIDDLE, occurrence=2)
    assert run.code == harness.KILLED
    return Killed(project, consent)


@pytest.fixture
def killed(template: Killed, tmp_path: Path) -> Killed:
    return Killed(harness.copy(template.project.folder, tmp_path / "copy"), template.consent)


REF_LOCK = "refs/idumb/worktrees/main/runs/r/T9/1/base.lock"
LOCKS = ("index.lock", "HEAD.lock", "refs/heads/main.lock", REF_LOCK)


@pytest.mark.parametrize("name", seed.one_on_a_push(LOCKS, "lock"))
def test_a_lock_of_the_killed_command_is_removed(killed: Killed, name: str) -> None:
    """R-LOG-6, F30: it has no live owner, and it is not older than the killed command."""
    killed.repo.write(f".git/{name}", "")
    answer = killed.resume()
    assert answer.code == 0, answer
    assert not (killed.repo.git_dir / name).exists()
    assert killed.project.read("a.txt") == "made\nmore\n"


def test_a_lock_older_than_the_killed_command_stays(killed: Killed) -> None:
    """It is never removed, and the refusal names it."""
    lock = killed.repo.git_dir / "index.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    answer = killed.resume()
    assert (answer.code, answer.error["code"]) == (4, "git.index-locked")
    assert str(lock) in answer.error["message"]
    assert lock.exists()


@pytest.fixture
def editing(killed: Killed, tmp_path: Path) -> Iterator[Killed]:
    """The user commits in another terminal: git holds the lock while their editor is open."""
    os.mkfifo(tmp_path / "door")
    killed.repo.write("mine.txt", "new\n")
    killed.repo.git("add", "mine.txt")
    editor = f"sh -c 'echo > {tmp_path}/door; sleep 600'"
    with subprocess.Popen(
        ["git", "commit", "--quiet", "mine.txt"],
        cwd=killed.project.folder,
        env={**os.environ, "GIT_EDITOR": editor},
        start_new_session=True,
    ) as git:
        try:
            (tmp_path / "door").read_text()
            yield killed
        finally:
            os.killpg(git.pid, 9)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="without /proc no lock is ever removed")
def test_a_lock_that_a_live_git_may_hold_stays(editing: Killed) -> None:
    lock = editing.repo.git_dir / "index.lock"
    assert lock.exists()
    answer = editing.resume()
    assert (answer.code, answer.error["code"]) == (4, "git.index-locked")
    assert lock.exists()


@pytest.mark.nightly
def test_a_lock_without_a_killed_command_stays(killed: Killed) -> None:
    assert killed.resume().code == 0
    lock = killed.repo.git_dir / "index.lock"
    lock.touch()
    answer = killed.project.json("rollback", "1", "--to", "start", "--yes")
    assert (answer.code, answer.error["code"]) == (4, "git.index-locked")
    assert lock.exists()


@pytest.mark.nightly
def test_temporary_files_of_a_killed_command_are_removed_and_others_stay(killed: Killed) -> None:
    ours = (".idumb/brain/.state.json.999999-0123abcd.tmp", ".git/idumb/.state.json.999999-0123abcd.tmp")
    theirs = ("sub/.idumb-displaced-0", "sub/.idumb-mine.tmp", ".idumb/brain/.notes.tmp", "x.tmp")
    for name in (*ours, *theirs):
        killed.repo.write(name, "half")
    answer = killed.resume()
    assert answer.code == 0, answer
    assert [name for name in ours if killed.project.exists(name)] == []
    assert [name for name in theirs if not killed.project.exists(name)] == []


def test_the_deleted_ref_of_a_checkpoint_is_restored(killed: Killed) -> None:
    """R-LOG-6: the log names an existing commit, so its ref is restored before `git gc` can remove it."""
    (ref,) = [name for name in killed.repo.kept("refs/idumb/") if name.endswith("T1-01/1/checkpoint")]
    oid = killed.repo.kept("refs/idumb/")[ref]
    killed.repo.git("update-ref", "-d", ref)
    assert killed.project.json("doctor", "--fix").code == 0
    assert killed.repo.kept("refs/idumb/")[ref] == oid


def test_an_object_emptied_by_another_program_s_crash_is_written_again(sandbox: GitSandbox) -> None:
    """F31: git itself finds an empty object and writes it no more; a snapshot needs it whole."""
    sandbox.write("a", "1")
    oid = sandbox.git("hash-object", "-w", "a")
    sandbox.object_file(oid).write_bytes(b"")
    trees = GitTrees(discover.find(str(sandbox.root)))
    snapshot = trees.snapshot("refs/idumb/worktrees/main/runs/r/base", "r")
    assert sandbox.git("cat-file", "blob", f"{snapshot.commit}:worktree/a") == "1"


_NOT_MINE = "check: `! grep mine a.txt`"


@pytest.mark.parametrize(
    ("verb", "proof", "code"), [("create", _NOT_MINE, 5), ("create", "human", 5), ("modify", _NOT_MINE, 0)]
)
def test_the_index_keeps_nothing_of_work_that_is_taken_back(
    sandbox: GitSandbox, verb: str, proof: str, code: int
) -> None:
    """R-GIT-6: idumb was killed between index and branch, and the user committed another version.

    Of a file that the task creates, a person says whose version counts; of another one, the task is built again.
    """
    project = projects.create(sandbox)
    if verb == "modify":
        sandbox.commit_with({"a.txt": "0\n", "b.txt": "0\n"})
    files, criteria = f"{verb} `a.txt`, {verb} `b.txt`", f"  - [ ] it holds — {proof}\n"
    project.plan([task("T1-01", files=files, criteria=criteria, steps=[shell("echo 1 | tee a.txt > b.txt")])])
    words: tuple[str, ...] = ("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    if proof == "human":
        assert project.quick(*words).code == 5
        assert project.quick("decide", "T1-01.AC-1.1", "yes").code == 0
        words = ("resume", "1", "--no-verify")
    assert harness.run(project, *words, at="before GitHistory.advance").code == harness.KILLED
    sandbox.git("add", "a.txt", "b.txt")  # as `advance` does first
    sandbox.write("a.txt", "mine\n")
    sandbox.git("commit", "-qm", "mine", "--", "a.txt")
    assert project.resume("--no-verify", "--max-attempts", "1").code == code
    assert [line for line in sandbox.status() if line.endswith(".txt")] == []


def test_line_endings_are_no_change_of_the_user_after_a_kill(sandbox: GitSandbox) -> None:
    """R-GIT-6: git calls the file unmodified, whatever bytes it has since then."""
    project = projects.create(sandbox, files={"b.txt": "one\n"})
    sandbox.git("config", "core.autocrlf", "true")
    project.plan([task("T1-01", files="modify `b.txt`", check="grep two b.txt", steps=[shell("echo two > b.txt")])])
    words = ("execute-phase", "1", "--approve", project.approval(), "--no-verify")
    assert harness.run(project, *words, at="before GitTrees.restore").code == harness.KILLED
    (sandbox.root / "b.txt").write_bytes(b"one\r\n")
    assert project.resume("--no-verify").data["outcome"] == "complete"
    assert project.read("b.txt") == "two\r\n"


@pytest.mark.nightly
def test_a_commit_that_a_hook_changed_is_proven_after_a_kill(sandbox: GitSandbox) -> None:
    """The kill comes after the commit and before its delivery: nobody saw yet what the hook committed."""
    project = projects.create(sandbox)
    project.plan([task("T1-01", files="create `a.txt`", check="test ! -e extra.txt", steps=[shell("echo a > a.txt")])])
    project.commit_own()
    hook = "#!/bin/sh\necho x > extra.txt\ngit add extra.txt\n"
    project.repo.write(".git/hooks/pre-commit", hook, mode=0o755)
    say = ("execute-phase", "1", "--approve", project.approval(), "--max-attempts", "1")
    assert harness.run(project, *say, at="after GitHistory.make").code == harness.KILLED
    harness.run(project, "resume", "1", "--approve", project.approval())
    assert project.statuses() == {"T1-01": "failed"}
    assert not project.exists("a.txt")
