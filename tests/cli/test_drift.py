"""A builder moves the user's refs, commits the user's work, changes the index or deletes idumb's own refs."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from tests.support import project as projects
from tests.support import seed
from tests.support.answer import Answer
from tests.support.gitrepo import GitSandbox
from tests.support.project import Project, making, shell, task, write

WHO = "git -c user.name=Pat -c user.email=pat@example.invalid"


@pytest.fixture
def project(sandbox: GitSandbox) -> Project:
    """The user has a branch, an edit, a staged change and a note; the second task runs the given script."""
    project = projects.create(sandbox, files={"README.md": "one\n", "src.txt": "one\n"})
    sandbox.git("tag", "v1")
    sandbox.git("update-ref", "refs/heads/feature", other_commit(sandbox))
    steps = [write("b.txt", "b\n"), shell("sh ../actor")]
    project.plan([making("T1-01", "a.txt"), task("T1-02", files="create `b.txt`", after="T1-01", steps=steps)])
    sandbox.write_all({"src.txt": "two\n", "notes.txt": "mine\n", "staged.txt": "staged\n"})
    sandbox.git("add", "staged.txt")
    return project


def other_commit(repo: GitSandbox) -> str:
    return repo.git("commit-tree", "-p", "HEAD", "-m", "unique", "HEAD^{tree}")


def run(project: Project, *commands: str) -> Answer:
    act(project, *commands)
    return project.execute("--max-attempts", "1", "--no-verify")


def act(project: Project, *commands: str) -> None:
    (project.folder.parent / "actor").write_text("\n".join((*commands, "exit 0", "")))


def refused(answer: Answer, code: str) -> dict[str, object]:
    assert answer.code == 4, answer
    assert answer.error["code"] == code, answer.error
    return dict(answer.error)


def say(project: Project, command: str) -> None:
    subprocess.run(["sh", "-ec", command], cwd=project.folder, check=True)


def index(project: Project) -> bytes:
    return (project.repo.git_dir / "index").read_bytes()


def goes_on(project: Project) -> None:
    act(project)
    assert project.resume("--no-verify").data["outcome"] == "complete"


REFS = ("refs/heads/feature", "refs/tags/v1", "refs/notes/mine")


@pytest.mark.parametrize("ref", seed.one_on_a_push(REFS, "moved refs"))
def test_a_ref_moved_by_a_builder_is_named_and_the_printed_command_restores_it(project: Project, ref: str) -> None:
    """R-GIT-6, F58: also if its only commit is in no reflog any more and garbage is collected."""
    project.repo.git("update-ref", ref, other_commit(project.repo))
    was, now = project.repo.git("rev-parse", ref), project.repo.git("rev-parse", "HEAD~1")
    answer = run(project, f"git update-ref {ref} {now}", "git reflog expire --expire=now --all")
    error = refused(answer, "git.refs-moved")
    assert f"{ref} ({was[:12]} -> {now[:12]})" in str(error["message"])
    project.repo.git("gc", "--quiet", "--prune=now")
    command = str(error["hint"]).partition("  (")[0]
    assert command == f"git update-ref {ref} {was} {now}"
    project.repo.git(*shlex.split(command)[1:])
    assert project.repo.git("rev-parse", ref) == was
    assert ref in project.quick("show", "T1-02").out
    goes_on(project)


def test_new_refs_and_a_fast_forwarded_branch_are_reported_and_stop_nothing(project: Project) -> None:
    """R-GIT-6: people and other runs create these in other working trees."""
    forward = f"$({WHO} commit-tree -p feature -m x HEAD^{{tree}})"
    answer = run(project, "git branch new", f"git update-ref refs/heads/feature {forward}")
    assert answer.code == 0, answer
    (warning,) = [words for words in answer.object["warnings"] if "refs" in words and "T1-02" in words]
    assert "refs/heads/feature (" in warning
    assert "refs/heads/new (nothing -> " in warning


def test_a_replace_ref_is_not_a_harmless_new_ref(project: Project) -> None:
    """R-GIT-6: git would show other bytes for the same name."""
    answer = run(project, "git replace $(git rev-parse HEAD:README.md) $(git rev-parse HEAD:a.txt)")
    error = refused(answer, "git.refs-moved")
    assert str(error["hint"]).startswith("git update-ref -d refs/replace/")


def test_a_builder_s_commit_is_reported_and_the_printed_commands_remove_it(project: Project) -> None:
    """R-GIT-6: with the user's own work in it; no file changes, the commit is kept, the staged state is back."""
    before = project.repo.git("ls-files", "--stage"), index(project)
    answer = run(project, f"git add -A; {WHO} commit -qm mine")
    error = refused(answer, "git.committed-meanwhile")
    details = dict(answer.error["details"])
    assert {"notes.txt", "staged.txt", "src.txt"} <= set(details["undeclared"])
    assert re.search(r"src.txt.*, which T1-02 does not declare", str(error["message"]))
    files = {name: project.read(name) for name in ("notes.txt", "staged.txt", "src.txt", "b.txt")}
    for command in details["back"]:
        assert command in str(error["hint"])
        say(project, command)
    assert project.repo.git("rev-parse", "HEAD") == details["was"]
    assert project.repo.git("ls-files", "--stage").splitlines()[0] == before[0].splitlines()[0]
    assert project.repo.git("diff", "--cached", "--name-only").splitlines() == ["staged.txt"]
    assert files == {name: project.read(name) for name in files}
    project.repo.git("reflog", "expire", "--expire=now", "--all")
    project.repo.git("gc", "--quiet", "--prune=now")
    project.repo.git("cat-file", "-e", f"{details['is']}:notes.txt")
    goes_on(project)
    assert "commits were made on main" in project.quick("show", "T1-02").out
    assert project.repo.git("show", "--name-only", "--format=", "HEAD~1").splitlines() == ["b.txt"]
    assert project.repo.git("diff", "--cached", "--name-only").splitlines() == ["staged.txt"]


STAGING = """cd {folder}
git update-index --cacheinfo 100644,$(printf 'one half\n' | git hash-object -w --stdin),src.txt
git add --intent-to-add notes.txt
git rm -q --cached README.md
git update-index --chmod=+x staged.txt
exit 0
"""


WAYS = [("task", ()), ("none", ()), ("task", ("--workspace", "clone")), ("builder", ()), ("task", ("--mode", "strict"))]


@pytest.mark.parametrize(("policy", "flags"), seed.one_on_a_push(WAYS, "staged meanwhile"))
def test_changes_staged_by_the_user_during_a_task_stay_and_are_in_no_commit(
    project: Project, policy: str, flags: tuple[str, ...]
) -> None:
    """R-GIT-6, F5: half an edit, an intent to add, a staged deletion, a mode; wherever tasks run and are committed."""
    project.configure(f"git: {{commit: {policy}}}\n")
    (project.folder.parent / "actor").write_text(STAGING.format(folder=shlex.quote(str(project.folder))))
    step = shell(f"sh {shlex.quote(str(project.folder.parent / 'actor'))}")
    project.plan([making("T1-01", "a.txt"), making("T1-02", "b.txt", steps=[write("b.txt", "made\n"), step])])
    if "strict" in flags:
        assert project.quick("approve", "1", "--hash", project.approval(), "--json").code == 0
    answer = project.execute(*flags, "--max-attempts", "1", "--no-verify")
    assert answer.code == 0, answer
    assert project.repo.git("ls-files", "--stage", "README.md") == ""
    assert project.repo.git("show", ":src.txt") == "one half"
    assert project.repo.git("ls-files", "--stage", "staged.txt").startswith("100755 ")
    assert "1 .A N... 000000 000000 100644" in project.repo.git("status", "--porcelain=v2", "notes.txt")
    assert {"README.md", "src.txt", "notes.txt", "staged.txt"}.isdisjoint(committed(project))
    assert (project.read("src.txt"), project.read("README.md")) == ("two\n", "one\n")


def committed(project: Project) -> set[str]:
    """Return the paths that idumb's commits changed."""
    return set(project.repo.git("log", "--grep=^Idumb-", "--name-only", "--format=").split())


def told_of_index(answer: Answer) -> str:
    (warning,) = [words for words in answer.object["warnings"] if "the index changed" in words]
    return str(warning)


def test_changes_staged_by_a_builder_stay_and_the_printed_command_restores_the_index(project: Project) -> None:
    """R-GIT-6, F5: its author is unknown; the task's commit stays, and garbage collection removes no blob."""
    repo = project.repo
    repo.write("src.txt", "one half\n")
    repo.git("add", "src.txt")
    repo.write("src.txt", "two\n")
    repo.git("add", "notes.txt")
    before = index_of(project)
    commands = ("git add -A", "git reset -q staged.txt", "git update-index --force-remove README.md notes.txt")
    answer = run(project, *commands, "git update-index --assume-unchanged a.txt", "git gc --quiet --prune=now")
    assert answer.code == 0, answer
    told = told_of_index(answer)
    assert {"README.md", "a.txt", "notes.txt", "src.txt"} <= set(re.findall(r"[\w.]+", told))
    assert "because you may have changed it" in told
    assert repo.git("ls-files", "README.md") == ""
    assert repo.git("show", ":src.txt") == "two"
    assert {"README.md", "src.txt", "notes.txt", "staged.txt"}.isdisjoint(committed(project))
    repo.git("gc", "--quiet", "--prune=now")
    say(project, told.partition("Earlier state: ")[2])
    after = index_of(project)
    assert {path: entry for path, entry in after.items() if path not in ("a.txt", "b.txt")} == before
    assert repo.git("show", ":src.txt") == "one half"
    assert repo.git("diff", "--cached", "--name-only").splitlines() == ["notes.txt", "src.txt", "staged.txt"]


def index_of(project: Project) -> dict[str, str]:
    """Path to its entry with flags, and what `git status` says of it; without idumb's."""
    rows = project.repo.git("ls-files", "-v", "--stage").splitlines()
    status = project.repo.git("status", "--porcelain=v2", "--untracked-files=no").splitlines()
    staged = {row.split(" ", 8)[-1]: row.split(" ")[1] for row in status}
    rows_by_path = {row.partition("\t")[2]: row.partition("\t")[0] for row in rows}
    return {path: f"{entry} {staged.get(path)}" for path, entry in rows_by_path.items() if not path.startswith(".")}


def test_a_task_file_staged_with_other_content_can_be_staged_again(
    project: Project,
) -> None:
    """R-GIT-6, F5: commit and index have the task's result, so that the next task finds a clean index."""
    after = task("T1-03", files="modify `b.txt`", after="T1-02", steps=[write("b.txt", "c\n")])
    steps = [write("b.txt", "half\n"), shell("git add b.txt"), write("b.txt", "b\n")]
    second_task = task("T1-02", files="create `b.txt`", after="T1-01", steps=steps)
    project.plan([making("T1-01", "a.txt"), second_task, after])
    answer = project.execute("--max-attempts", "1", "--no-verify")
    assert answer.code == 0, answer
    (warning,) = [words for words in answer.object["warnings"] if "was staged with other content" in words]
    assert warning.startswith("b.txt was staged with other content than T1-02 left")
    assert project.repo.git("show", "HEAD:b.txt") == project.repo.git("show", ":b.txt") == "c"
    project.repo.git("gc", "--quiet", "--prune=now")
    say(project, warning.partition("To stage it again: ")[2])
    assert project.repo.git("show", ":b.txt") == "half"


def test_refreshed_index_times_and_staged_declared_files_are_not_index_changes(project: Project) -> None:
    """R-GIT-6."""
    answer = run(project, "touch README.md; git update-index -q --refresh; git add b.txt")
    assert answer.code == 0, answer
    assert not [words for words in answer.object["warnings"] if "the index changed" in words]


def test_a_run_stops_when_a_builder_removes_everything_that_idumb_keeps(project: Project) -> None:
    """R-GIT-6: the snapshot of the attempt is gone too, and what is staged cannot be compared with it."""
    gone = (
        "git for-each-ref --format='delete %(refname)' refs/idumb | git update-ref --stdin",
        "git reflog expire --expire=now --all",
        "git gc -q --prune=now",
    )
    error = refused(run(project, " && ".join(gone)), "git.own-refs-changed")
    assert "Their commits are gone too: refs/idumb/worktrees/main/" in str(error["message"])
    project.repo.git("gc", "--quiet")  # it fails if a ref reaches a missing object
    assert project.repo.git("fsck", "--full", "--no-dangling", "--no-progress") == ""


def test_deleted_or_moved_refs_of_idumb_are_restored_and_the_run_stops(project: Project) -> None:
    """R-GIT-6, R-GIT-2: snapshots must not be lost to the next garbage collection."""
    project.repo.write("more.txt", "1")
    commands = (
        "git for-each-ref --format='delete %(refname)' refs/idumb | git update-ref --stdin",
        "git update-ref refs/idumb/worktrees/main/mine HEAD",
    )
    error = refused(run(project, *commands), "git.own-refs-changed")
    assert "idumb has restored them" in str(error["message"])
    assert project.json("doctor").code == 0
    goes_on(project)
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    assert project.json("audit", "workspace", "1").code in {0, 1}


def test_plans_that_are_no_longer_kept_anywhere_are_one_clear_refusal(project: Project) -> None:
    """R-RUN-14: the refs were deleted between two commands."""
    assert run(project).code == 0
    assert project.json("rollback", "1", "--to", "start", "--yes").code == 0
    project.repo.git("pack-refs", "--all")
    for ref in project.repo.refs():
        if ref.startswith("refs/idumb/"):
            project.repo.git("update-ref", "-d", ref)
    error = refused(project.json("audit", "workspace", "1"), "plan.kept-gone")
    assert "idumb doctor --fix" in str(error["hint"])


def test_a_commit_of_declared_files_alone_is_reported_and_stops_nothing(project: Project) -> None:
    """R-GIT-6: the commit contains nothing of the user, and idumb's own commit names the proof."""
    answer = run(project, f"git add b.txt; {WHO} commit -qm mine -- b.txt")
    assert answer.code == 0, answer
    assert [words for words in answer.object["warnings"] if "commits of its declared files were made" in words]
    assert project.repo.git("diff", "--cached", "--name-only").splitlines() == ["staged.txt"]
