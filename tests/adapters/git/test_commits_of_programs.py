"""Of the `.git` that programs see, only the messages of their commits are read, whatever they put there (R-GIT-2)."""

from __future__ import annotations

import os
import subprocess
import zlib

import pytest

from idumb.git.checkouts import user_git
from tests.support.gitrepo import GitSandbox


def messages(repo: GitSandbox, head: str | None = None) -> tuple[str, ...]:
    folder = os.open(repo.root, os.O_RDONLY)
    try:
        return user_git.messages(folder, head)
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


def test_only_so_many_messages_are_read_and_each_is_cut(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_git, "_MOST", 3)
    commit(sandbox, *("x" * 5000,) * 4)
    read = messages(sandbox)
    assert (len(read), {len(words) < 4000 for words in read}) == (3, {True})


OBJECT = "o=objects/$(sed 's,..,&/,' refs/heads/main); rm -f $o"
PLANTED = {
    "a pipe for HEAD": "rm HEAD; mkfifo HEAD",
    "a name outside": "cp refs/heads/main ../outside; echo ref: ../outside > HEAD",
    "linked objects": "mv objects elsewhere; ln -s elsewhere objects",
    "a linked .git": "cd ..; mv .git elsewhere; ln -s elsewhere .git",
    "a pipe for the commit": f"{OBJECT}; mkfifo $o",
    "a blob for the commit": f"{OBJECT}; mv objects/$(echo x | git hash-object -w --stdin | sed 's,..,&/,') $o",
    "no object": f"{OBJECT}; echo x > $o",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_a_program_puts_there_is_not_followed(sandbox: GitSandbox, planted: str) -> None:
    commit(sandbox, "secret of another place")
    subprocess.run(PLANTED[planted], shell=True, cwd=sandbox.root / ".git", check=True)
    assert messages(sandbox) == ()


def test_an_object_that_unpacks_to_much_is_cut(sandbox: GitSandbox) -> None:
    oid = commit(sandbox, "x")
    place = sandbox.object_file(oid)
    place.unlink()
    place.write_bytes(zlib.compress(b"commit 9\0tree 1\n\n" + b"x" * (20 << 20)))
    assert [len(words) < 4000 for words in messages(sandbox)] == [True]
