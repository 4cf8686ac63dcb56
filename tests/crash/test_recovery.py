"""Leftovers of a kill or a power cut, one by one: adopted, removed, or named with the command that helps."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from idumb.app.attempt import record
from idumb.git import discover
from idumb.git.trees import GitTrees
from tests.crash import harness
from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.plans import run_killed_before
from tests.support.project import Project, making, shell, task
from tests.support.warm import Warm

ARM = "tests.crash.killing:arm"
MIDDLE = "after SqliteEventLog.append attempt.started"


@dataclass(frozen=True, slots=True)
class Killed:
    """A run that was killed when its second task had just begun."""

    project: Project
    warm: Warm
    consent: str

    @property
    def repo(self) -> GitSandbox:
        return self.project.repo

    def resume(self) -> Answer:
        return self.warm.run(self.project.folder, "resume", "1", "--approve", self.consent, "--json")

    def read(self, path: str) -> str:
        return self.project.read(path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    folder = tmp_path_factory.mktemp("killed")
    project = projects.create(GitSandbox.create(folder / "template"))
    more = task("T1-02", files="modify `a.txt`", check="true", after="T1-01", steps=[shell("echo more >> a.txt")])
    project.plan([making("T1-01", "a.txt"), more])
    project.repo.write("mine.txt", "mine\n")
    with Warm(folder / "out") as warm:
        consent = project.approval()
        say = ("execute-phase", "1", "--approve", consent, "--json")
        assert warm.run(project.folder, *say, hook=ARM, given={"at": MIDDLE, "occurrence": 2}).code == harness.KILLED
        yield Killed(project, warm, consent)


@pytest.fixture
def killed(template: Killed, tmp_path: Path) -> Killed:
    return Killed(harness.copy(template.project.folder, tmp_path / "copy"), template.warm, template.consent)


REF_LOCK = "refs/idumb/worktrees/main/runs/r/T9/1/base.lock"
LOCKS = ("index.lock", "HEAD.lock", "refs/heads/main.lock", REF_LOCK)


@pytest.mark.parametrize("name", seed.one_on_a_push(LOCKS, "lock"))
def test_a_lock_of_the_killed_command_is_removed(killed: Killed, name: str) -> None:
    """R-LOG-6, F30: it has no live owner, and it is not older than the killed command."""
    killed.repo.write(f".git/{name}", "")
    answer = killed.resume()
    assert answer.code == 0, answer
    assert not (killed.repo.git_dir / name).exists()
    assert killed.read("a.txt") == "made\nmore\n"


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
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="without /proc no lock is ever removed")
def test_the_lock_of_a_ref_stays_while_git_works_in_another_working_tree(killed: Killed, tmp_path: Path) -> None:
    """A `git gc` there locks this ref too."""
    killed.repo.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "other"))
    (ref,) = [name for name in killed.repo.kept() if name.endswith("T1-02/1/base")]
    lock = killed.repo.git_dir / ref.replace("/1/base", "/2/base.lock")
    lock.parent.mkdir()
    lock.touch()
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=tmp_path / "other", stdin=subprocess.PIPE) as git:
        answer = killed.resume()
        assert git.poll() is None
        assert git.stdin is not None
        git.stdin.close()
    assert (answer.code, answer.error["code"]) == (4, "git.ref-moved")
    assert answer.error["hint"].startswith("idumb doctor")
    assert lock.exists()


@pytest.mark.nightly
def test_a_lock_without_a_killed_command_stays(killed: Killed) -> None:
    assert killed.resume().code == 0
    lock = killed.repo.git_dir / "index.lock"
    lock.touch()
    answer = killed.warm.run(killed.project.folder, "rollback", "1", "--to", "start", "--yes", "--json")
    assert (answer.code, answer.error["code"]) == (4, "git.index-locked")
    assert lock.exists()


@pytest.mark.nightly
def test_temporary_files_of_a_killed_command_are_removed_and_others_stay(killed: Killed) -> None:
    ours = (
        ".idumb/brain/.state.json.999999-0123abcd.tmp",
        ".git/idumb/.state.json.999999-0123abcd.tmp",
    )
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


@pytest.mark.nightly
def test_a_file_committed_as_empty_counts_as_the_user_s_edit(killed: Killed) -> None:
    killed.repo.write("a.txt", "")
    killed.repo.git("commit", "--quiet", "-m", "empty", "--", "a.txt")
    assert killed.resume().code == 0
    assert killed.read("a.txt") == "more\n"


def test_an_object_emptied_by_another_program_s_crash_is_written_again(sandbox: GitSandbox) -> None:
    """F31: git itself finds an empty object and writes it no more; a snapshot needs it whole."""
    sandbox.write("a", "1")
    oid = sandbox.git("hash-object", "-w", "a")
    place = sandbox.git_dir / "objects" / oid[:2] / oid[2:]
    place.chmod(0o600)
    place.write_bytes(b"")
    trees = GitTrees(discover.find(str(sandbox.root)))
    snapshot = trees.snapshot("refs/idumb/worktrees/main/runs/r/base", "r")
    assert sandbox.git("cat-file", "blob", f"{snapshot.commit}:worktree/a") == "1"


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


def killed_before(sandbox: GitSandbox, function: Callable[..., Any]) -> Project:
    project = projects.create(sandbox)
    project.plan([making("T1-01", "a.txt")])
    run_killed_before(project, function, "execute-phase", "1", "--approve", project.approval())
    return project


@pytest.mark.nightly
def test_a_proven_task_is_committed_although_git_packed_the_refs_meanwhile(sandbox: GitSandbox) -> None:
    """R-LOG-6: the folder of idumb's ref is gone, and its value need not change."""
    project = killed_before(sandbox, record.complete)
    sandbox.git("pack-refs", "--all", "--prune")
    assert not (sandbox.git_dir / "refs/idumb/worktrees").exists()
    assert project.resume().code == 0
    assert project.trailers("Idumb-Task") == ["T1-01"]


@pytest.mark.nightly
def test_a_task_s_commit_is_found_again_after_its_parent_was_rewritten_and_pruned(sandbox: GitSandbox) -> None:
    """R-LOG-6: even if the refs that idumb kept are deleted too."""
    project = killed_before(sandbox, record.finish)
    parent, words = sandbox.git("rev-parse", "HEAD~1").strip(), sandbox.git("log", "-1", "--format=%B")
    instead = sandbox.git("commit-tree", "-p", "HEAD~2", "-m", "reworded", "HEAD~1^{tree}").strip()
    again = sandbox.git("commit-tree", "-p", instead, "-m", words, "HEAD^{tree}").strip()
    sandbox.git("update-ref", "HEAD", again)
    for ref in sandbox.git("for-each-ref", "--format=%(refname)", "refs/idumb").split():
        sandbox.git("update-ref", "-d", ref)
    sandbox.git("reflog", "expire", "--expire=now", "--all")
    sandbox.git("gc", "--quiet", "--prune=now")
    assert sandbox.try_git("cat-file", "-e", parent).returncode != 0
    answer = project.resume()
    assert answer.code == 0, answer
    assert project.trailers("Idumb-Task") == ["T1-01"]
    assert project.statuses() == {"T1-01": "completed"}
