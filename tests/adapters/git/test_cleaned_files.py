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


def test_without_trusted_modes_the_mode_is_that_of_the_index(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.git("config", "core.fileMode", "false")
    sandbox.write_all({"plain": "x\n"})
    head = sandbox.commit()
    sandbox.write("plain", "y\n", mode=0o755)
    sandbox.write("new", "y\n", mode=0o755)
    computed = trees.committed(head, trees.scan(), ("plain", "new"))
    assert computed == expected(sandbox, "plain", "new")


def test_attributes_that_come_with_the_commit_apply(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a.txt": "x\n"})
    head = sandbox.commit()
    sandbox.write_all({".gitattributes": "* text\n", "a.txt": CRLF})
    computed = trees.committed(head, trees.scan(), (".gitattributes", "a.txt"))
    assert computed == expected(sandbox, ".gitattributes", "a.txt")


@pytest.mark.parametrize("where", ["repository", "user", "folder", "commit"])
def test_attributes_apply_wherever_they_are(sandbox: GitSandbox, trees: GitTrees, where: str, tmp_path: Path) -> None:
    """Those of the commit apply although the file is gone: git reads the index then."""
    sandbox.write_all({"d/e/a.txt": "x\n", **({"d/.gitattributes": "* text\n"} if where == "commit" else {})})
    head = sandbox.commit()
    if where == "commit":
        sandbox.remove("d/.gitattributes")
    elif where == "folder":
        sandbox.write_all({"d/.gitattributes": "* text\n"})
    elif where == "user":
        (tmp_path / "attributes").write_text("* text\n", encoding="utf-8")
        sandbox.git("config", "core.attributesFile", str(tmp_path / "attributes"))
    else:
        (sandbox.common_dir / "info").mkdir(exist_ok=True)
        (sandbox.common_dir / "info" / "attributes").write_text("* text\n", encoding="utf-8")
    sandbox.write_all({"d/e/a.txt": CRLF})
    computed = trees.committed(head, trees.scan(), ("d/e/a.txt",))
    assert computed == expected(sandbox, "d/e/a.txt")
    assert sandbox.git("cat-file", "-s", "HEAD:d/e/a.txt") == "4"


def test_without_attributes_they_are_not_read_for_each_path(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libgit2 looks for six files for each attribute of each path."""
    sandbox.write_all({"d/a.txt": "x\n"})
    head = sandbox.commit()
    sandbox.write_all({"d/a.txt": CRLF})
    read: list[bytes] = []
    monkeypatch.setattr(type(trees.repository), "get_attr", lambda _, path, __: read.append(path))
    assert trees.committed(head, trees.scan(), ("d/a.txt",)) == expected(sandbox, "d/a.txt")
    assert read == []


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
    sandbox.write_all({".gitattributes": "# none\n"})
    sandbox.write_all({"a.txt": "x\n", "in/a.txt": "x\n", "out/a.txt": "x\n", "out/deep/a.txt": "x\n"})
    head = sandbox.commit()
    sandbox.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    sandbox.write_all({"in/a.txt": "y\n"})
    computed = trees.committed(head, trees.scan(), ("in/a.txt",))
    assert computed == expected(sandbox, "in/a.txt")
