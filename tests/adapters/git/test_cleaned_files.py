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
    [
        "",
        "* text=auto\n",
        "*.txt eol=crlf\n",
        "*.txt text\n",
        "*.txt ident\n",
        "*.txt filter=upper\n",
        "*.txt -text\n",
        "autocrlf",
    ],
)
def test_it_is_the_tree_that_git_commits(sandbox: GitSandbox, trees: GitTrees, rules: str) -> None:
    sandbox.git("config", "filter.upper.clean", "tr a-z A-Z")
    sandbox.git("config", "filter.upper.required", "true")
    if rules == "autocrlf":
        sandbox.git("config", "core.autocrlf", "true")
    else:
        sandbox.write(".gitattributes", rules)
    sandbox.write_all({"old.txt": CRLF, "gone.txt": "x\n", "other.txt": "x\n"})
    head = sandbox.commit()
    sandbox.write_all({"old.txt": CRLF + b"z\r\n", "d/new.txt": b"$Id$ a\r\n", "d/mixed.txt": b"a\r\nb\n"})
    sandbox.write_all({"other.txt": "not part of the commit\n"})
    sandbox.remove("gone.txt")
    changed = ("old.txt", "d/new.txt", "d/mixed.txt", "gone.txt")
    before = sandbox.ledger()
    computed = trees.committed(head, trees.scan(), changed)
    assert sandbox.ledger() == before
    assert not list(Path(sandbox.common_dir).rglob("index-*"))
    assert computed == expected(sandbox, *changed)


def test_without_trusted_modes_the_mode_is_that_of_the_index(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.git("config", "core.fileMode", "false")
    sandbox.write_all({"plain": "x\n"})
    head = sandbox.commit()
    sandbox.write("plain", "y\n", mode=0o755)
    sandbox.write("new", "y\n", mode=0o755)
    computed = trees.committed(head, trees.scan(), ("plain", "new"))
    assert computed == expected(sandbox, "plain", "new")


@pytest.mark.parametrize("is_first", [False, True])
def test_attributes_that_come_with_the_commit_apply(sandbox: GitSandbox, trees: GitTrees, *, is_first: bool) -> None:
    sandbox.write_all({"a.txt": "x\n"})
    head = None if is_first else sandbox.commit()
    sandbox.write_all({".gitattributes": "* text\n", "a.txt": CRLF, "b.txt": "left out\n"})
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
