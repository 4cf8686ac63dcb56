"""Scanning: the exact bytes of tracked and untracked, not ignored files. R-GIT-1, F2-F5, F11-F21."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.git import discover, scanner
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import content, names, trees_of
from tests.support import permissions
from tests.support.gitrepo import GitSandbox


def test_a_scan_of_an_empty_working_tree_is_the_empty_tree(trees: GitTrees) -> None:
    assert trees.scan() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_change_while_git_reads_the_file_is_seen_by_the_next_scan(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the same second, and if the time of its modification is set back."""
    place, update = sandbox.write("a", "1"), scanner.Scanner._update
    os.utime(place, (1e9, 1e9))

    def late(self: scanner.Scanner, paths: set[bytes]) -> None:
        update(self, paths)
        place.write_text("2", encoding="ascii")
        os.utime(place, (1e9, 1e9))
        monkeypatch.undo()

    monkeypatch.setattr(scanner.Scanner, "_update", late)
    trees.scan()
    assert content(trees, trees.scan(), "a") == b"2"


def test_filters_and_line_endings_change_no_byte(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F13, F17."""
    sandbox.git("config", "filter.upper.clean", "tr a-z A-Z")
    sandbox.git("config", "filter.upper.smudge", "tr A-Z a-z")
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.commit_with({".gitattributes": "*.f filter=upper\n*.t text eol=crlf\n", "a.f": "abc\n", "b.t": "1\r\n2\n"})
    tree = trees.scan()
    assert content(trees, tree, "a.f") == b"abc\n"
    assert content(trees, tree, "b.t") == b"1\r\n2\n"


@pytest.mark.parametrize(
    "setting", ["core.ignoreStat=true", "core.fileMode=false", "core.symlinks=false", "core.ignoreCase=true"]
)
def test_no_setting_hides_a_change_or_a_file(sandbox: GitSandbox, trees: GitTrees, setting: str) -> None:
    sandbox.write_all({"a": "1", "new": "1"})
    sandbox.link("link", "a")
    for where in ("--local", "--global"):
        sandbox.git("config", where, *setting.split("="))
    trees.scan()
    sandbox.write("a", "22", mode=0o755)
    sandbox.remove("link")
    sandbox.write_all({"link": "no link", "A": "3"})
    modes = {path: mode for path, (mode, _) in sandbox.tree(trees_of(sandbox).scan()).items()}
    assert modes == {"A": "100644", "a": "100755", "link": "100644", "new": "100644"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_index_flags_hide_no_edit(sandbox: GitSandbox, trees: GitTrees, flag: str) -> None:
    """F5."""
    sandbox.commit_with({"a": "1"})
    sandbox.git("update-index", flag, "a")
    sandbox.write("a", "22")
    assert content(trees, trees.scan(), "a") == b"22"


def test_unusual_names_are_preserved(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F16."""
    odd = [b"-rf", b":(top)x", b"new\nline", b"na\xff", b"sp ace ", b"tab\t", b"\\q", b"*", b"[a]"]
    odd += ["é".encode(), "e\u0301".encode()]
    for name in odd:
        (sandbox.root / os.fsdecode(name)).write_bytes(name)
    sandbox.write(".gitignore", "ign*\n")
    tree = trees.scan()
    entries = sandbox.tree(tree)
    assert sorted(map(os.fsencode, entries)) == sorted([*odd, b".gitignore"])
    for name in odd:
        assert content(trees, tree, os.fsdecode(name)) == name


def test_links_are_stored_and_never_followed(sandbox: GitSandbox, trees: GitTrees, tmp_path: Path) -> None:
    """F19."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("s")
    sandbox.link("dir", str(tmp_path / "outside"))
    sandbox.link("dangling", "nowhere")
    tree = trees.scan()
    assert {path: mode for path, (mode, _) in sandbox.tree(tree).items()} == {"dir": "120000", "dangling": "120000"}
    assert content(trees, tree, "dangling") == b"nowhere"


def test_a_submodule_is_its_commit_and_a_file_in_its_place_is_a_file(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F11: the row of the submodule would hide the bytes of the file, and git would refuse the tree."""
    sandbox.add_submodule("lib")
    sandbox.commit()
    assert trees.scan() == sandbox.git("rev-parse", "HEAD^{tree}")
    inside = GitSandbox(sandbox.root / "lib")
    inside.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "moved")
    entry = trees.entry(trees.scan(), "lib")
    assert entry is not None
    assert entry.oid == inside.head()
    sandbox.git("submodule", "--quiet", "deinit", "--force", "lib")
    assert trees.scan() == sandbox.git("rev-parse", "HEAD^{tree}"), "it is not checked out, and so what the index says"
    assert trees.repositories() == ("lib",)
    sandbox.remove("lib")
    sandbox.write("lib", "a file now")
    tree = trees.scan()
    assert names(sandbox, tree) == [".gitmodules", "lib"]
    assert content(trees, tree, "lib") == b"a file now"
    assert trees.repositories() == ()
    sandbox.git("fsck", "--strict", tree)


def test_files_folders_links_and_pipes_take_each_other_s_place(sandbox: GitSandbox, trees: GitTrees) -> None:
    before = {"file": "1", "folder/inner": "1", "pipe": "1", "linked/b": "1", "a folder/b": "gone soon"}
    sandbox.write_all(before)
    sandbox.link("link", "folder")
    trees.scan()
    for path in ("file", "folder", "pipe", "linked", "a folder", "link"):
        sandbox.remove(path)
    sandbox.write_all({"file/inner": "1", "folder": "1", "link/a": "1"})
    sandbox.link("linked", "file")
    os.mkfifo(sandbox.root / "pipe")
    assert names(sandbox, trees.scan()) == ["file/inner", "folder", "link/a", "linked"]
    sandbox.write("link/b", "1")
    assert names(sandbox, trees.scan()) == ["file/inner", "folder", "link/a", "link/b", "linked"]
    assert trees.omitted() == {}


def test_a_large_file_is_stored_whole(sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-GIT-7: F21."""
    monkeypatch.setattr("idumb.git.tree_objects.LARGE", 1000)
    data = os.urandom(100_000)
    sandbox.write("big", data)
    assert content(trees, trees.scan(), "big") == data


@pytest.fixture
def deep(sandbox: GitSandbox) -> Iterator[int]:
    """A file below more folders than Python recurses; returns how many."""
    count = 1200
    here = os.open(sandbox.root, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    yield count
    # pytest's own cleaning recurses
    subprocess.run(["rm", "-rf", sandbox.root / "d"], check=True)


@pytest.mark.nightly
def test_deep_folders_need_no_deep_recursion(trees: GitTrees, deep: int) -> None:
    (change,) = trees.changes("4b825dc642cb6eb9a060e54bf8d69288fbee4904", trees.scan())
    assert change.path.count("/") == deep


def test_a_scan_of_a_sparse_checkout_has_the_files_that_exist(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F14: absent paths are in neither of the two trees, so they are not deletions."""
    sandbox.commit_with({"in/a": "1", "out/b": "2"})
    sandbox.git("sparse-checkout", "set", "in")
    before = trees.scan()
    sandbox.write("in/a", "3")
    assert [change.path for change in trees.changes(before, trees.scan())] == ["in/a"]


@pytest.mark.parametrize("where", ["--local", "--global"])
def test_a_name_that_the_user_s_git_allows_is_saved(sandbox: GitSandbox, trees: GitTrees, where: str) -> None:
    """By default, git refuses names that Windows takes for `.git`."""
    sandbox.git("config", where, "core.protectNTFS", "false")
    sandbox.write_all({"a": "1", "git~1": "2"})
    assert names(sandbox, trees.scan()) == ["a", "git~1"]
    assert trees.omitted() == {}


def test_files_below_a_nested_repository_are_included_if_git_lists_them(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F12: `git init` in a folder must not hide what the outer repository tracks, nor what is beside it."""
    sandbox.commit_with({"sub/inner": "1", ".gitignore": "*.log"})
    sandbox.write("scanned/inner", "1")
    trees.scan()
    for folder in ("sub", "scanned"):
        GitSandbox.create(sandbox.root / folder)
    sandbox.write_all({"sub/deep/new": "1", "sub/x.log": "1", "sub/own/f": "1", "scanned/inner": "2"})
    GitSandbox.create(sandbox.root / "sub/own")
    tree = trees.scan()
    assert names(sandbox, tree) == names(sandbox, trees.scan())
    assert names(sandbox, tree) == [".gitignore", "scanned/inner", "sub/deep/new", "sub/inner"]
    assert content(trees, tree, "scanned/inner") == b"2"


def test_nested_repositories_are_left_out_and_named_and_pipes_are_never_opened(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    """F12, F21."""
    os.mkfifo(sandbox.root / "pipe")
    sandbox.write("sub/inner", "i")
    GitSandbox.create(sandbox.root / "empty")
    nested = GitSandbox.create(sandbox.root / "nested")
    nested.commit_with({"file": "f"})
    assert names(sandbox, trees.scan()) == ["sub/inner"]
    assert trees.omitted() == dict.fromkeys(("empty", "nested"), scanner.NESTED)
    assert trees.repositories() == ("empty", "nested")


def test_an_untracked_file_above_the_limit_is_left_out_and_named(sandbox: GitSandbox) -> None:
    """R-GIT-7: F21. Our index has no file at all in the first scan."""
    large = "x" * 1_000_001
    sandbox.write_all({"committed": large, "tracked": "0", "disk.img": large, "small": "1"})
    sandbox.commit("work", "committed")
    sandbox.write("committed", f"{large}y")
    trees = GitTrees(discover.find(str(sandbox.root)), limit=lambda: 1)
    assert content(trees, trees.scan(), "committed") == f"{large}y".encode()
    sandbox.write("tracked", large)
    assert names(sandbox, trees.scan(["disk.img"])) == ["committed", "disk.img", "small", "tracked"]
    (sandbox.root / "other.img").write_bytes(bytes(1_000_001))
    assert names(sandbox, trees.scan()) == ["committed", "disk.img", "small", "tracked"]
    assert trees.omitted().keys() == {"other.img"}


def test_what_cannot_be_read_is_left_out_and_named(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "b": "1", "folder/c": "1"})
    trees.scan()
    sandbox.write("new", "1", mode=0)
    sandbox.write("a", "22")
    (sandbox.root / "a").chmod(0)
    (sandbox.root / "folder").chmod(0)

    def scan() -> None:
        assert names(sandbox, trees.scan()) == ["b"]
        assert trees.omitted().keys() == {"a", "new", "folder"}

    permissions.call_obeying(scan)
    (sandbox.root / "folder").chmod(0o700)


def test_a_name_that_git_does_not_hold_is_left_out_and_named(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "d/git~1": "1"})
    assert names(sandbox, trees.scan()) == ["a"]
    assert trees.omitted().keys() == {"d/git~1"}
    sandbox.write("a", "2")
    assert content(trees, trees.scan(), "a") == b"2"


def test_a_file_that_vanishes_between_listing_and_reading_is_left_out(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write_all({"a": "1", "gone": "1", "d/gone": "1"})
    update = scanner.Scanner._update

    def late(self: scanner.Scanner, paths: set[bytes]) -> None:
        sandbox.remove("gone")
        sandbox.remove("d")
        update(self, paths)

    monkeypatch.setattr(scanner.Scanner, "_update", late)
    assert names(sandbox, trees.scan()) == ["a"]
    assert trees.omitted() == {}
