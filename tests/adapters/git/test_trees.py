"""Trees compared, looked into, combined; as a commit has them; differences as text; patches. R-GIT-5, R-RUN-3."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Mapping
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ObjectType

from idumb.domain import paths
from idumb.domain.proof.ledger import Entry
from idumb.git import tree_objects
from idumb.git.history import GitHistory
from idumb.git.tree_objects import EMPTY_TREE, FILE
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import edited
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox, work_tree
from tests.support.seed import commit_seed


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
    for folder in ("d", "was"):
        sandbox.remove(folder)
    sandbox.write_all({"a": "2", "b": "2", "new/x": "n", "was": "now a file", "d": "file"})
    new = trees.scan()
    changed = [change.path for change in trees.changes(old, new)]
    assert trees.overlay(old, new, changed) == new
    assert trees.overlay(new, old, changed) == old
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert trees.overlay(old, empty, ["a", "b", "d/e/f", "was/file"]) == empty


def test_a_diff_uses_no_external_tool_no_conversion_and_no_colour(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.git("config", "diff.external", "false")
    sandbox.git("config", "diff.up.textconv", "false")
    sandbox.git("config", "color.ui", "always")
    sandbox.git("config", "diff.noprefix", "true")
    before = {".gitattributes": "*.t diff=up\n", "a.t": "1\n", "b": "1\n"}
    text = trees.diff(*edited(sandbox, trees, before, {"a.t": "2\n", "b": "2\n"}), ["a.t"])
    assert text.splitlines()[-3:] == ["@@ -1 +1 @@", "-1", "+2"]
    assert "+++ b/a.t" in text
    assert "b/b" not in text


def test_lines_are_counted_and_binary_files_have_none(sandbox: GitSandbox, trees: GitTrees) -> None:
    before = {"a": b"1\n2\n", "bin": b"\0\1"}
    old, new = edited(sandbox, trees, before, {"a": b"1\n3\n4\n", "bin": b"\0\2", "na\udcff": b"x\n"})
    assert trees.line_counts(old, new) == {"a": (2, 1), "bin": (None, None), "na\udcff": (1, 0)}


def test_attributes_in_the_working_tree_do_not_affect_stored_trees(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F19: reading a pipe would never end, and a task could hide its own change."""
    old, new = edited(sandbox, trees, {"a": "1\n"}, {"a": "1\n2\n"})
    plain = trees.diff(old, new)
    sandbox.write(".gitattributes", "* -diff\n")
    assert trees.line_counts(old, new) == {"a": (1, 0)}
    sandbox.remove(".gitattributes")
    os.mkfifo(sandbox.root / ".gitattributes")
    assert trees.diff(old, new) == plain
    assert trees.line_counts(new, old) == {"a": (0, 1)}


def test_a_patch_is_applied_to_the_working_tree(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.commit_with({"a": "1\n", "gone": "1\n", "bin": b"\0\1", "crlf": "1\r\n2\r\n"})
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
    patch = trees.diff(*edited(sandbox, trees, dict.fromkeys("ab", "1\n"), dict.fromkeys("ab", "2\n")))
    sandbox.write_all(dict.fromkeys("ab", "1\n"))
    before = work_tree(sandbox.root)
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


INSIDE = ["a.txt", "./a.txt", "d/../a.txt", "nowhere", "d/e/../../a.txt", ".", "to-a", "circle", ".gitignore"]
OUTSIDE = ["/etc/passwd", "/", "..", "../a.txt", "d/../../x", "to-out", "d/to-out/x", ".git/config", "d/../.git"]


@pytest.fixture
def linked(sandbox: GitSandbox) -> GitSandbox:
    sandbox.write_all({"a.txt": "a\n", "d/e/b.txt": "b\n"})
    sandbox.link("to-a", "a.txt")
    sandbox.link("circle", "circle")
    sandbox.link("to-out", "/nonexistent")
    sandbox.link("d/to-out", "../..")
    return sandbox


@every("target", [*INSIDE, *OUTSIDE])
def test_a_link_that_leads_out_is_reported_with_its_target(linked: GitSandbox, trees: GitTrees, target: str) -> None:
    (linked.root / "link").unlink(missing_ok=True)
    linked.link("link", target)
    assert trees.outside_target("link") == (target if target in OUTSIDE else None)


def test_the_location_of_the_link_decides_and_an_absolute_one_leads_out_of_every_clone(
    linked: GitSandbox, trees: GitTrees
) -> None:
    inside = str(linked.root / "a.txt")
    for name, target in {"d/e/up": "../../a.txt", "d/e/out": "../../../a.txt", "link": inside}.items():
        linked.link(name, target)
    assert [trees.outside_target(name) for name in ("d/e/up", "d/e/out", "link")] == [None, "../../../a.txt", inside]


def test_a_file_names_places_that_only_this_machine_has(
    linked: GitSandbox, trees: GitTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only absolute paths that exist count, and not those of the system."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "data.txt").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("idumb.git.trees._TEMPORARY", ())
    monkeypatch.setattr("tempfile.tempdir", str(home))
    inside = f"{linked.root}/a.txt"
    words = f'open("{inside}") {linked.root}. {home}/data.txt {home}/none {home} /usr/bin x{inside} ./{inside} a.txt'
    assert trees.places_of_machine(words.encode()) == {inside, str(linked.root), f"{home}/data.txt"}


@pytest.fixture
def inside(sandbox: GitSandbox) -> GitSandbox:
    """A submodule `lib` of the sandbox, with a committed file `f`."""
    sandbox.write("a", "a")
    library = sandbox.add_submodule("lib", {"f": "1", ".gitignore": "made/\n"})
    sandbox.commit()
    return GitSandbox(sandbox.root / "lib", library.environment)


def test_ignored_files_are_distinguished_from_other_unsaved_files(
    sandbox: GitSandbox, trees: GitTrees, inside: GitSandbox
) -> None:
    """R-GIT-1."""
    sandbox.write_all({".gitignore": "*.log\nbuild/\n", "x.log": "l", "build/out": "o", "d/y.log": "l", "d/x": ""})
    sandbox.write("only/z.log", "l")
    inside.write_all({"f": "mine", "made/x": "built"})
    GitSandbox.create(sandbox.root / "nested")
    trees.scan()
    assert trees.ignored() == ("build/", "d/y.log", "only/z.log", "x.log")
    omitted = trees.omitted()
    assert sorted(omitted) == ["build/", "d/y.log", "lib", "nested", "only/z.log", "x.log"]
    assert trees.ignored() == tuple(path for path, why in omitted.items() if why == paths.IGNORED_BY_GIT)
    sandbox.remove("x.log")
    assert trees.ignored() == ("build/", "d/y.log", "only/z.log")


def test_submodules_and_nested_repositories_are_listed_without_a_scan(
    sandbox: GitSandbox, history: GitHistory, inside: GitSandbox
) -> None:
    """R-GIT-7: a folder with tracked files is not a nested repository, whatever it contains."""
    sandbox.commit_with({"kept/a": "a"})
    GitSandbox.create(sandbox.root / "kept")
    GitSandbox.create(sandbox.root / "x/nested")
    assert history.repositories(()) == (inside.root.name,)
    assert history.repositories(["x/nested/a/b", "kept/a", "none/a"]) == ("lib", "x/nested")


_ROW = b"100644 a.txt\0" + bytes(range(20))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (ObjectType.BLOB, _ROW),
        (ObjectType.TREE, _ROW[:-1]),
        (ObjectType.TREE, _ROW + b"100644 b.txt"),
        (ObjectType.TREE, b"10x644 a.txt\0" + bytes(20)),
    ],
    ids=["a blob", "an id cut off", "no id", "no mode"],
)
def test_an_object_that_is_no_whole_tree_is_damaged(sandbox: GitSandbox, kind: ObjectType, data: bytes) -> None:
    opened = pygit2.Repository(sandbox.root)
    oid = opened.odb.write(kind, data)
    with pytest.raises(pygit2.GitError, match=str(oid)):
        tree_objects.rows(opened, str(oid))
    assert tree_objects.changes(opened, str(oid), str(oid)) == ()  # equal trees are not opened
    assert [*tree_objects.new_rows(opened, str(oid), str(oid))] == []


class Trees:
    """Writes trees straight into git's objects. The content of a file is its number."""

    def __init__(self, sandbox: GitSandbox) -> None:
        self.repository = pygit2.Repository(sandbox.root)

    def of(self, files: Mapping[str, int]) -> str:
        tree = EMPTY_TREE
        for path, number in files.items():
            tree = tree_objects.put(self.repository, tree, {path: Entry(FILE, self.blob(number))})
        return tree

    def blob(self, number: int) -> str:
        return str(self.repository.odb.write(ObjectType.BLOB, b"%d" % number))

    def overlay(self, tree: str, *sources: tuple[str, tuple[str, ...]]) -> str:
        return tree_objects.overlay(self.repository, tree, sources)


def test_overlays_written_together_are_those_written_one_after_the_other(sandbox: GitSandbox) -> None:
    """Files take the place of folders, and the reverse."""
    trees = Trees(sandbox)
    names = ("a", "a/b", "a/b/c", "d")
    each = [trees.of(files) for files in ({}, {"a": 1}, {"a/b": 2, "d": 2}, {"a/b/c": 3, "a/e": 3}, {"d/f": 4})]
    different = 0
    products = [*itertools.product(each, repeat=4)]
    for start, *sources in random.Random(commit_seed()).sample(products, 200):
        for chosen in (
            (("a",), ("a/b",), names),
            (("a/b/c", "d"), ("a/b",), ("a",)),
            (names, ("a",), ("a/b/c", "a/e")),
        ):
            steps = [*zip(sources, chosen, strict=True)]
            expected = start
            for step in steps:
                expected = trees.overlay(expected, step)
            assert trees.overlay(start, *steps) == expected, (start, steps)
            different += expected != start
    assert different > 200


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
    head = sandbox.commit_with({"old.txt": CRLF, "gone.txt": "x\n", "other.txt": "x\n"})
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
    head = sandbox.commit_with({"plain": "x\n"})
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


def test_a_file_that_a_sparse_checkout_omits_is_as_in_the_commit(sandbox: GitSandbox, trees: GitTrees) -> None:
    """A deletion of the user's is one, and so is a file that is there in spite of the patterns."""
    head = sandbox.commit_with({"near/x": "1\n", "far/x": "1\n"})
    sandbox.git("sparse-checkout", "set", "near")
    sandbox.remove("near/x")
    present = trees.scan(["far/x"])
    assert sandbox.git("ls-tree", "-r", "--name-only", trees.committed(head, present, ("far/x", "near/x"))) == "far/x"
    sandbox.write_all({"far/x": "2\n"})
    changed = trees.committed(head, trees.scan(["far/x"]), ("far/x",))
    assert sandbox.git("show", f"{changed}:far/x") == "2"


def test_attributes_that_go_with_the_commit_no_longer_apply(sandbox: GitSandbox, trees: GitTrees) -> None:
    """As after a rollback to before they came: the file is committed as it was."""
    head = sandbox.commit_with({"d/.gitattributes": "* text\n", "d/a.txt": "x\n"})
    sandbox.change({"d/.gitattributes": None, "d/a.txt": "a\r\n"})
    computed = trees.committed(head, trees.scan(), ("d/a.txt", "d/.gitattributes"))
    assert sandbox.git("cat-file", "-s", f"{computed}:d/a.txt") == "3"


@pytest.mark.parametrize("where", ["repository", "user", "folder", "commit"])
def test_attributes_apply_wherever_they_are(sandbox: GitSandbox, trees: GitTrees, where: str, tmp_path: Path) -> None:
    """Those of the commit apply although the file is gone: git reads the index then."""
    head = sandbox.commit_with({"d/e/a.txt": "x\n", **({"d/.gitattributes": "* text\n"} if where == "commit" else {})})
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
