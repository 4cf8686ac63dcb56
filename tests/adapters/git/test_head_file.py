"""HEAD's commit, read from files, is what git and libgit2 say, or is not known."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.git import discover, head_file
from tests.support.gitrepo import GitSandbox


def commit(folder: Path) -> str | None:
    return head_file.commit(discover.at(str(folder)))


def nothing(_: GitSandbox) -> None:
    pass


def packed(sandbox: GitSandbox) -> None:
    sandbox.git("pack-refs", "--all")


def packed_and_moved(sandbox: GitSandbox) -> None:
    sandbox.git("pack-refs", "--all")
    sandbox.commit()


def among_others(sandbox: GitSandbox) -> None:
    for name in ("main2", "a/main", "x"):
        sandbox.git("branch", name, "HEAD~1")
    sandbox.git("tag", "-a", "-m", "a tag", "v1")
    sandbox.git("pack-refs", "--all")


def detached(sandbox: GitSandbox) -> None:
    sandbox.git("checkout", "--quiet", "--detach", "HEAD~1")


def a_branch_in_folders(sandbox: GitSandbox) -> None:
    sandbox.git("checkout", "--quiet", "-b", "feature/ä/b")
    sandbox.commit()


@pytest.mark.parametrize("change", [nothing, packed, packed_and_moved, among_others, detached, a_branch_in_folders])
def test_the_commit_is_that_of_git(sandbox: GitSandbox, change: Callable[[GitSandbox], None]) -> None:
    sandbox.commit()
    sandbox.commit()
    change(sandbox)
    assert commit(sandbox.root) == sandbox.git("rev-parse", "HEAD")


def test_a_linked_worktree_has_its_own(sandbox: GitSandbox, tmp_path: Path) -> None:
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", str(tmp_path / "side"))
    side = GitSandbox(tmp_path / "side")
    moved = side.commit()
    assert (commit(side.root), commit(sandbox.root)) == (moved, sandbox.git("rev-parse", "HEAD"))
    assert moved != commit(sandbox.root)


def unborn(sandbox: GitSandbox) -> None:
    sandbox.git("checkout", "--quiet", "--orphan", "empty")


def a_shallow_history(sandbox: GitSandbox) -> None:
    (sandbox.git_dir / "shallow").write_text(sandbox.git("rev-parse", "HEAD") + "\n")


def grafts(sandbox: GitSandbox) -> None:
    (sandbox.git_dir / "info").mkdir(exist_ok=True)
    (sandbox.git_dir / "info/grafts").write_text(sandbox.git("rev-parse", "HEAD") + "\n")


def a_branch_that_names_another(sandbox: GitSandbox) -> None:
    sandbox.git("branch", "other")
    sandbox.git("symbolic-ref", "refs/heads/main", "refs/heads/other")


def an_outside_file(sandbox: GitSandbox) -> None:
    (sandbox.git_dir / "away").write_text(sandbox.git("rev-parse", "HEAD") + "\n")
    (sandbox.git_dir / "HEAD").write_text("ref: refs/heads/../../away\n")


def refs_in_another_format(sandbox: GitSandbox) -> None:
    """What git writes for programs that do not know its format `reftable`."""
    (sandbox.git_dir / "HEAD").write_text("ref: refs/heads/.invalid\n")


def a_cut_branch(sandbox: GitSandbox) -> None:
    branch = sandbox.git_dir / "refs/heads/main"
    branch.write_text(branch.read_text()[:20])


def an_empty_branch(sandbox: GitSandbox) -> None:
    """The packed value is an older one."""
    sandbox.git("pack-refs", "--all")
    sandbox.commit()
    (sandbox.git_dir / "refs/heads/main").write_bytes(b"")


def a_zero_byte(sandbox: GitSandbox) -> None:
    (sandbox.git_dir / "HEAD").write_bytes(b"ref: refs/heads/ma\0in\n")


def a_pipe(sandbox: GitSandbox) -> None:
    branch = sandbox.git_dir / "refs/heads/main"
    branch.unlink()
    os.mkfifo(branch)


@pytest.mark.parametrize(
    "change",
    [
        unborn,
        a_shallow_history,
        grafts,
        a_branch_that_names_another,
        an_outside_file,
        refs_in_another_format,
        a_cut_branch,
        an_empty_branch,
        a_zero_byte,
        a_pipe,
    ],
)
def test_what_the_files_do_not_say_plainly_is_unknown(
    sandbox: GitSandbox, change: Callable[[GitSandbox], None]
) -> None:
    sandbox.commit()
    assert commit(sandbox.root) is not None
    change(sandbox)
    assert commit(sandbox.root) is None
