"""The tree of a commit is known before the commit is made: filters and line endings included (R-RUN-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox

CRLF = b"x\r\ny\r\n"


def expected(sandbox: GitSandbox, *paths: str) -> str:
    sandbox.git("add", "-f", "--", *paths)
    sandbox.git("commit", "-qm", "by git", "--only", "--", *paths)
    return sandbox.git("rev-parse", "HEAD^{tree}").strip()


@pytest.mark.parametrize(
    "rules",
    ["", "* text=auto\n", "*.txt eol=crlf\n", "*.txt text\n", "*.txt ident\n", "*.txt filter=upper\n", "*.txt -text\n"],
)
def test_it_is_the_tree_that_git_commits(sandbox: GitSandbox, trees: GitTrees, rules: str) -> None:
    sandbox.git("config", "filter.upper.clean", "tr a-z A-Z")
    sandbox.git("config", "filter.upper.required", "true")
    sandbox.write_all({".gitattributes": rules, "old.txt": CRLF, "gone.txt": "x\n", "other.txt": "x\n"})
    head = sandbox.commit()
    sandbox.write_all({"old.txt": CRLF + b"z\r\n", "d/new.txt": b"$Id$ a\r\n", "d/mixed.txt": b"a\r\nb\n"})
    sandbox.write_all({"other.txt": "not part of the commit\n"})
    sandbox.remove("gone.txt")
    changed = ("old.txt", "d/new.txt", "d/mixed.txt", "gone.txt")
    index = (sandbox.git_dir / "index").read_bytes()
    computed = trees.committed(head, trees.scan(), changed)
    assert (sandbox.git_dir / "index").read_bytes() == index
    assert computed == expected(sandbox, *changed)


def test_the_user_s_autocrlf_applies(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.write_all({"a.txt": "x\n"})
    head = sandbox.commit()
    sandbox.write_all({"a.txt": CRLF})
    computed = trees.committed(head, trees.scan(), ("a.txt",))
    assert computed == expected(sandbox, "a.txt")


def test_attributes_that_come_with_the_commit_apply(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a.txt": "x\n"})
    head = sandbox.commit()
    sandbox.write_all({".gitattributes": "* text\n", "a.txt": CRLF})
    computed = trees.committed(head, trees.scan(), (".gitattributes", "a.txt"))
    assert computed == expected(sandbox, ".gitattributes", "a.txt")


def test_before_the_first_commit(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({".gitattributes": "* text\n", "a.txt": CRLF, "b.txt": "left out\n"})
    computed = trees.committed(None, trees.scan(), (".gitattributes", "a.txt"))
    assert computed == expected(sandbox, ".gitattributes", "a.txt")


def test_nothing_but_objects_is_written(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({".gitattributes": "* text\n", "a.txt": CRLF})
    head = sandbox.commit()
    before = sandbox.ledger()
    trees.committed(head, trees.scan(), ("a.txt",))
    assert sandbox.ledger() == before
    assert not list(Path(sandbox.common_dir).rglob("index-*"))


def test_a_sparse_index_that_libgit2_cannot_read(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a.txt": "x\n", "in/a.txt": "x\n", "out/a.txt": "x\n", "out/deep/a.txt": "x\n"})
    head = sandbox.commit()
    sandbox.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    sandbox.write_all({"in/a.txt": "y\n"})
    computed = trees.committed(head, trees.scan(), ("in/a.txt",))
    assert computed == expected(sandbox, "in/a.txt")
