"""Trees compared, looked into, combined; differences as text; patches. R-GIT-5."""

from __future__ import annotations

import os

import pytest

from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox, work_tree


def test_changes_agree_with_git(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({f"d{n % 7}/s{n % 3}/f{n}": str(n) for n in range(60)})
    old = trees.scan()
    sandbox.write_all({f"d{n % 7}/s{n % 3}/f{n}": "x" for n in range(0, 80, 9)})
    sandbox.remove("d1")
    sandbox.write_all({"d1": "a file now", "d1.c": "between a file and a folder of its name"})
    new = trees.scan()
    listed = sandbox.git("diff-tree", "-r", "--name-status", "--no-renames", old, new).splitlines()
    kinds = {"created": "A", "deleted": "D", "modified": "M"}
    rows = [f"{kinds[change.kind]}\t{change.path}" for change in trees.changes(old, new)]
    assert rows == sorted(listed, key=lambda row: row[2:])
    assert trees.changes(old, old) == ()


def test_overlay_takes_paths_from_another_tree(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "b": "1", "d/e/f": "1", "was/file": "1"})
    old = trees.scan()
    sandbox.remove("d")
    sandbox.remove("was")
    sandbox.write_all({"a": "2", "b": "2", "new/x": "n", "was": "now a file", "d": "file"})
    new = trees.scan()
    changed = [change.path for change in trees.changes(old, new)]
    assert trees.overlay(old, new, changed) == new
    assert trees.overlay(new, old, changed) == old
    half = trees.overlay(old, new, ["a", "new/x"])
    assert [change.path for change in trees.changes(old, half)] == ["a", "new/x"]
    assert trees.overlay(old, new, []) == old
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert trees.overlay(old, empty, ["a", "b", "d/e/f", "was/file"]) == empty


def test_a_diff_uses_no_external_tool_no_conversion_and_no_colour(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.git("config", "diff.external", "false")
    sandbox.git("config", "diff.up.textconv", "false")
    sandbox.git("config", "color.ui", "always")
    sandbox.git("config", "diff.noprefix", "true")
    sandbox.write_all({".gitattributes": "*.t diff=up\n", "a.t": "1\n", "b": "1\n"})
    old = trees.scan()
    sandbox.write_all({"a.t": "2\n", "b": "2\n"})
    text = trees.diff(old, trees.scan(), ["a.t"])
    assert text.splitlines()[-3:] == ["@@ -1 +1 @@", "-1", "+2"]
    assert "+++ b/a.t" in text
    assert "b/b" not in text


def test_lines_are_counted_and_binary_files_have_none(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1\n2\n", "bin": b"\0\1"})
    old = trees.scan()
    sandbox.write_all({"a": "1\n3\n4\n", "bin": b"\0\2", "na\udcff": "x\n"})
    assert trees.line_counts(old, trees.scan()) == {"a": (2, 1), "bin": (None, None), "na\udcff": (1, 0)}


def test_attributes_in_the_working_tree_do_not_affect_stored_trees(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F19: reading a pipe would never end, and a task could hide its own change."""
    sandbox.write("a", "1\n")
    old = trees.scan()
    sandbox.write("a", "1\n2\n")
    new = trees.scan()
    plain = trees.diff(old, new)
    sandbox.write(".gitattributes", "* -diff\n")
    assert trees.line_counts(old, new) == {"a": (1, 0)}
    sandbox.remove(".gitattributes")
    os.mkfifo(sandbox.root / ".gitattributes")
    assert trees.diff(old, new) == plain
    assert trees.line_counts(new, old) == {"a": (0, 1)}


def test_a_patch_is_applied_to_the_working_tree(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1\n", "gone": "1\n", "bin": b"\0\1", "crlf": "1\r\n2\r\n"})
    sandbox.commit()
    old = trees.scan()
    sandbox.write_all({"a": "2\n", "new/x": "n\n", "bin": b"\0\2\xff", "crlf": "1\r\n3\r\n"})
    sandbox.remove("gone")
    new, after = trees.scan(), work_tree(sandbox.root)
    patch = trees.diff(old, new)
    assert trees.restore(old, new, [change.path for change in trees.changes(old, new)]) == ()
    index = (sandbox.git_dir / "index").read_bytes()
    assert trees.apply_patch(patch, lambda _: None) == (True, "")
    assert trees.scan() == new
    assert work_tree(sandbox.root) == after
    assert (sandbox.git_dir / "index").read_bytes() == index


def test_a_patch_with_one_forbidden_path_writes_nothing(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1\n", "b": "1\n"})
    old, before = trees.scan(), work_tree(sandbox.root)
    sandbox.write_all({"a": "2\n", "b": "2\n"})
    patch = trees.diff(old, trees.scan())
    sandbox.write_all({"a": "1\n", "b": "1\n"})
    done = trees.apply_patch(patch, lambda path: "is not declared" if path == "b" else None)
    assert done == (False, "b: is not declared")
    assert work_tree(sandbox.root) == before


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "nonsense\n",
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-other\n+2\n",
        "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+2\n",
        "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+2\n",
    ],
)
def test_a_patch_that_does_not_apply_says_so(sandbox: GitSandbox, trees: GitTrees, patch: str) -> None:
    sandbox.write("a", "1\n")
    before = work_tree(sandbox.root)
    done, why = trees.apply_patch(patch, lambda _: None)
    assert not done
    assert why
    assert work_tree(sandbox.root) == before
