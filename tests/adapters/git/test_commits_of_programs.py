"""Of the `.git` that programs see, only the messages of their commits are read, whatever they put there (R-GIT-2)."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.git.checkouts import commits_of_programs
from tests.support.gitrepo import GitSandbox


def messages(repo: GitSandbox, head: str | None = None) -> tuple[str, ...]:
    folder = os.open(repo.root, os.O_RDONLY)
    try:
        return commits_of_programs.messages(folder, head)
    finally:
        os.close(folder)


def commit(repo: GitSandbox, *words: str) -> str:
    for message in words:
        repo.git("commit", "--quiet", "--allow-empty", "-m", message)
    return repo.head()


def test_messages_above_the_base_are_read_from_any_branch_and_none_below(sandbox: GitSandbox) -> None:
    base = commit(sandbox, "base")
    sandbox.git("switch", "--quiet", "-c", "own/branch")
    commit(sandbox, "one\n\nWhy.", "two")
    assert messages(sandbox, base) == ("one\n\nWhy.", "two")
    sandbox.git("switch", "--quiet", "--detach")
    assert messages(sandbox, base) == ("one\n\nWhy.", "two")
    assert messages(sandbox, sandbox.head()) == ()


def test_at_most_fifty_messages_are_read_and_each_is_cut(sandbox: GitSandbox) -> None:
    commit(sandbox, *("x" * 5000,) * 51)
    read = messages(sandbox)
    assert (len(read), {len(words) < 4000 for words in read}) == (50, {True})


def pipe_for_head(git: Path) -> None:
    (git / "HEAD").unlink()
    os.mkfifo(git / "HEAD")


def name_outside(git: Path) -> None:
    (git / "HEAD").write_text("ref: ../outside\n")
    (git.parent / "outside").write_text((git / "refs/heads/main").read_text())


def linked_objects(git: Path) -> None:
    (git / "objects").rename(git / "elsewhere")
    (git / "objects").symlink_to("elsewhere")


def linked_git(git: Path) -> None:
    git.rename(git.parent / "elsewhere")
    git.symlink_to("elsewhere")


def commit_file(git: Path) -> Path:
    oid = (git / "refs/heads/main").read_text().strip()
    place = git / "objects" / oid[:2] / oid[2:]
    place.unlink()
    return place


def pipe_for_commit(git: Path) -> None:
    os.mkfifo(commit_file(git))


def no_commit(git: Path) -> None:
    commit_file(git).write_bytes(zlib.compress(b"blob 3\0\n\nx"))


def no_data(git: Path) -> None:
    commit_file(git).write_bytes(b"x")


@pytest.mark.parametrize(
    "plant",
    [pipe_for_head, name_outside, linked_objects, linked_git, pipe_for_commit, no_commit, no_data],
    ids=lambda plant: plant.__name__,
)
def test_what_a_program_puts_there_is_not_followed(sandbox: GitSandbox, plant: Callable[[Path], None]) -> None:
    commit(sandbox, "secret of another place")
    plant(sandbox.root / ".git")
    assert messages(sandbox) == ()


def test_an_object_that_unpacks_to_much_is_cut(sandbox: GitSandbox) -> None:
    commit(sandbox, "x")
    bomb = zlib.compress(b"commit 9\0tree 1\n\n" + b"x" * (200 << 20))
    commit_file(sandbox.root / ".git").write_bytes(bomb)
    assert [len(words) < 4000 for words in messages(sandbox)] == [True]
