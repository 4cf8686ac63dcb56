"""Scanning: the exact bytes of tracked and untracked, not ignored files. R-GIT-1, F2-F5, F11-F21."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from idumb.domain import errors
from idumb.git import discover
from idumb.git.objects import object_writer, tree_objects
from idumb.git.scan.scanner import Scanner
from idumb.git.trees import GitTrees
from tests.support.gitrepo import GitSandbox


def names(sandbox: GitSandbox, tree: str) -> list[str]:
    return sorted(sandbox.tree(tree))


def content(trees: GitTrees, tree: str, path: str) -> bytes:
    entry = trees.entry(tree, path)
    assert entry is not None
    return trees.read(entry.oid)


def test_a_scan_has_tracked_and_untracked_but_not_ignored_files(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({".gitignore": "*.log\nbuild/\n", "a": "a", "build/out": "o", "x.log": "l", "d/e/f": "f"})
    assert names(sandbox, trees.scan()) == [".gitignore", "a", "d/e/f"]


def test_a_scan_of_a_clean_checkout_is_the_tree_of_head(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a.b": "1", "a-b": "2", "a/b": "3", "a0": "4", "z/y/x": "3"})
    sandbox.write("run", "#!/bin/sh\n", mode=0o755)
    sandbox.link("link", "a/b")
    sandbox.commit()
    assert trees.scan() == sandbox.git("rev-parse", "HEAD^{tree}")


def test_a_scan_of_an_empty_working_tree_is_the_empty_tree(trees: GitTrees) -> None:
    assert trees.scan() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_scan_sees_modified_created_and_deleted_files(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "b": "1", "d/c": "1"})
    before = trees.scan()
    sandbox.write("a", "2")
    sandbox.remove("d")
    sandbox.write("new/deep/file", "n")
    after = trees.scan()
    assert [(change.path, change.kind) for change in trees.changes(before, after)] == [
        ("a", "modified"),
        ("d/c", "deleted"),
        ("new/deep/file", "created"),
    ]


def test_a_scan_sees_a_change_with_restored_size_and_mtime(sandbox: GitSandbox, trees: GitTrees) -> None:
    place = sandbox.write("a", "one")
    os.utime(place, ns=(10**18, 10**18))
    first = trees.scan()
    assert trees.scan() == first
    place.write_bytes(b"two")
    os.utime(place, ns=(10**18, 10**18))
    assert content(trees, trees.scan(), "a") == b"two"


def test_a_scan_sees_each_of_many_fast_changes_of_equal_size(sandbox: GitSandbox, trees: GitTrees) -> None:
    place = sandbox.write("a", "000")
    for number in range(100):
        place.write_bytes(b"%03d" % number)
        assert content(trees, trees.scan(), "a") == b"%03d" % number


def test_unchanged_files_are_hashed_once_even_across_processes(sandbox: GitSandbox, trees: GitTrees) -> None:
    for number in range(20):
        os.utime(sandbox.write(f"f{number}", str(number)))
    tree = trees.scan()
    while trees.scans.counted:  # files written in the very tick of the scan are hashed again
        trees.scans.counted = 0
        trees.scan()
    trees.scans.counted = 1
    trees.close()
    again = GitTrees(discover.find(str(sandbox.root)))
    assert again.scan() == tree
    assert again.scans.counted == 0


def test_a_damaged_cache_is_discarded(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("a", "1")
    tree = trees.scan()
    trees.close()
    cache = sandbox.git_dir / "idumb/worktrees/main/scan.cache"
    data = bytearray(cache.read_bytes())
    data[-3] ^= 255
    cache.write_bytes(data)
    assert GitTrees(discover.find(str(sandbox.root))).scan() == tree


def test_a_cache_that_cannot_be_stored_leaves_no_temporary_file(sandbox: GitSandbox, trees: GitTrees) -> None:
    (sandbox.git_dir / "idumb/worktrees/main/scan.cache/taken").mkdir(parents=True)
    sandbox.write("a", "1")
    trees.scan()
    trees.close()
    assert not list(sandbox.git_dir.rglob("scan.cache.*"))


def test_a_cache_with_collected_objects_is_not_trusted(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("a", "only here")
    tree = trees.scan()
    trees.close()
    sandbox.git("update-ref", "-d", "refs/idumb/worktrees/main/scan")
    sandbox.git("gc", "--quiet", "--prune=now")
    again = GitTrees(discover.find(str(sandbox.root)))
    assert again.scan() == tree
    assert content(again, tree, "a") == b"only here"


def test_filters_and_line_endings_change_no_byte(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F13, F17."""
    sandbox.git("config", "filter.upper.clean", "tr a-z A-Z")
    sandbox.git("config", "filter.upper.smudge", "tr A-Z a-z")
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.write_all({".gitattributes": "*.f filter=upper\n*.t text eol=crlf\n", "a.f": "abc\n", "b.t": "1\r\n2\n"})
    sandbox.commit()
    tree = trees.scan()
    assert content(trees, tree, "a.f") == b"abc\n"
    assert content(trees, tree, "b.t") == b"1\r\n2\n"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_index_flags_hide_no_edit(sandbox: GitSandbox, trees: GitTrees, flag: str) -> None:
    """F5."""
    sandbox.write("a", "1")
    sandbox.commit()
    sandbox.git("update-index", flag, "a")
    sandbox.write("a", "22")
    assert content(trees, trees.scan(), "a") == b"22"


def test_ignored_files_are_included_if_tracked(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"build/kept": "k", "build/out": "o", ".gitignore": "build/\n"})
    sandbox.git("add", "-f", "build/kept")
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept"]


def test_a_file_is_included_from_when_it_becomes_tracked(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"build/out": "o", ".gitignore": "build/\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    sandbox.git("add", "-f", "build/out")
    assert names(sandbox, trees.scan()) == [".gitignore", "build/out"]


def test_an_ignored_file_is_included_if_declared(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"build/out": "o", "build/other": "o", ".gitignore": "build/\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    assert names(sandbox, trees.scan(["build/out", "build/absent"])) == [".gitignore", "build/out"]


def test_a_rule_written_during_a_run_does_not_make_a_file_look_deleted(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F4."""
    sandbox.write("notes", "mine")
    trees.scan()
    sandbox.write(".gitignore", "notes\n")
    assert names(sandbox, trees.scan()) == [".gitignore", "notes"]


@pytest.mark.parametrize("rules", [".gitignore", "d/.gitignore", ".git/info/exclude"])
def test_removing_a_rule_brings_the_file_back(sandbox: GitSandbox, trees: GitTrees, rules: str) -> None:
    sandbox.write_all({"d/x.log": "l", "d/y": "y", rules: "*.log\n"})
    assert "d/x.log" not in names(sandbox, trees.scan())
    sandbox.write(rules, "#\n")
    assert "d/x.log" in names(sandbox, trees.scan())


def test_a_new_rule_file_can_bring_a_file_back(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"d/x.log": "l", ".gitignore": "*.log\n"})
    assert "d/x.log" not in names(sandbox, trees.scan())
    sandbox.write("d/.gitignore", "!x.log\n")
    assert "d/x.log" in names(sandbox, trees.scan())


def test_the_user_s_own_rules_count(sandbox: GitSandbox, trees: GitTrees, home: Path) -> None:
    sandbox.write_all({"x.swp": "", "y": ""})
    (home / "mine").write_text("*.swp\n")
    (home / "gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    assert names(sandbox, trees.scan()) == ["y"]
    (home / "mine").write_text("")
    assert names(sandbox, trees.scan()) == ["x.swp", "y"]


def test_the_next_process_evaluates_rules_again(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"x.log": "l", "y": "y"})
    trees.scan()
    trees.close()
    sandbox.write(".gitignore", "*.log\n")
    again = GitTrees(discover.find(str(sandbox.root)))
    assert names(sandbox, again.scan()) == [".gitignore", "y"]


def test_steady_scans_start_no_process(sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.write_all({".gitignore": "*.log\n", "a": "1", "x.log": "l"})
    trees.scan()
    sandbox.write("a", "2")
    monkeypatch.setattr(subprocess, "Popen", None)
    trees.scan()


def test_unusual_names_are_preserved(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F16."""
    odd = [
        b"-rf",
        b":(top)x",
        b"new\nline",
        b"na\xff",
        b"sp ace ",
        b"tab\t",
        "é".encode(),
        "e\u0301".encode(),
        b"\\q",
        b"*",
        b"[a]",
    ]
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


def test_special_files_and_nested_repositories_are_skipped(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F12, F21: a FIFO is never opened, which would wait forever."""
    os.mkfifo(sandbox.root / "pipe")
    sandbox.write("sub/inner", "i")
    GitSandbox.create(sandbox.root / "nested").write("file", "f")
    assert names(sandbox, trees.scan()) == ["sub/inner"]
    assert trees.scans.top.skipped == {"pipe": "neither file, link nor folder", "nested": "a repository of its own"}


def test_a_repository_created_in_a_known_folder_hides_nothing(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("sub/inner", "1")
    trees.scan()
    GitSandbox.create(sandbox.root / "sub")
    sandbox.write("sub/inner", "2")
    assert content(trees, trees.scan(), "sub/inner") == b"2"


def test_a_submodule_is_recorded_as_its_commit(sandbox: GitSandbox, trees: GitTrees, tmp_path: Path) -> None:
    """F11."""
    library = GitSandbox.create(tmp_path / "library")
    library.write("f", "1")
    library.commit()
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    sandbox.commit()
    assert trees.scan() == sandbox.git("rev-parse", "HEAD^{tree}")
    inside = GitSandbox(sandbox.root / "lib")
    inside.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "moved")
    entry = trees.entry(trees.scan(), "lib")
    assert entry is not None
    assert entry.oid == inside.head()


def test_a_file_in_place_of_a_submodule_is_its_only_row(sandbox: GitSandbox, trees: GitTrees, tmp_path: Path) -> None:
    """F11: the row of the submodule would hide the bytes of the file, and git would refuse the tree."""
    library = GitSandbox.create(tmp_path / "library")
    library.write("f", "1")
    library.commit()
    sandbox.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    sandbox.commit()
    trees.scan()
    sandbox.remove("lib")
    sandbox.write("lib", "a file now")
    tree = trees.scan()
    assert names(sandbox, tree) == [".gitmodules", "lib"]
    assert content(trees, tree, "lib") == b"a file now"
    assert trees.repositories() == ()
    sandbox.git("fsck", "--strict", tree)


def test_a_remembered_submodule_hides_no_file_of_its_name(sandbox: GitSandbox, trees: GitTrees) -> None:
    """Earlier versions could save such a memory."""
    sandbox.write_all({"lib": "a file", "d/lib/inner": "in a folder"})
    tree = trees.scan()
    for folder in (trees.scans.top, trees.scans.top.folders["d"]):
        folder.links["lib"] = object_writer.encoded_row(tree_objects.SUBMODULE, "lib", b"1" * 20)
        folder.tree = None
    assert trees.scan() == tree
    assert trees.repositories() == ()


def test_a_file_and_a_folder_can_swap_places(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "file", "b/inner": "x"})
    trees.scan()
    sandbox.remove("a")
    sandbox.remove("b")
    sandbox.write_all({"a/inner": "x", "b": "file"})
    assert names(sandbox, trees.scan()) == ["a/inner", "b"]


def test_the_executable_bit_is_seen(sandbox: GitSandbox, trees: GitTrees) -> None:
    place = sandbox.write("a", "1", mode=0o644)
    before = trees.scan()
    place.chmod(0o755)
    (change,) = trees.changes(before, trees.scan())
    assert change.new is not None
    assert change.new.mode == 0o100755


def test_a_large_file_is_stored_whole(sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-GIT-7: F21."""
    monkeypatch.setattr("idumb.git.objects.tree_objects.LARGE", 1000)
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


def test_deep_folders_need_no_deep_recursion(trees: GitTrees, deep: int) -> None:
    (change,) = trees.changes("4b825dc642cb6eb9a060e54bf8d69288fbee4904", trees.scan())
    assert change.path.count("/") == deep


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write("a", "1", mode=0)
    with pytest.raises(errors.Refusal, match="a cannot be read"):
        trees.scan()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_in_a_folder_that_nobody_may_enter_is_named_with_its_folder(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    sandbox.write("folder/a", "1")
    trees.scan()
    (sandbox.root / "folder").chmod(0o400)
    with pytest.raises(errors.Refusal, match="folder/a cannot be read"):
        trees.scan()


def test_a_linked_worktree_is_scanned_by_itself(sandbox: GitSandbox, tmp_path: Path) -> None:
    """F10."""
    sandbox.write("a", "1")
    sandbox.commit()
    sandbox.git("worktree", "add", "-q", str(tmp_path / "side"))
    (tmp_path / "side/b").write_text("2")
    side = GitTrees(discover.find(str(tmp_path / "side")))
    assert names(sandbox, side.scan()) == ["a", "b"]


def test_a_scan_of_a_sparse_checkout_has_the_files_that_exist(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F14: absent paths are in neither of the two trees, so they are not deletions."""
    sandbox.write_all({"in/a": "1", "out/b": "2"})
    sandbox.commit()
    sandbox.git("sparse-checkout", "set", "in")
    before = trees.scan()
    sandbox.write("in/a", "3")
    assert [change.path for change in trees.changes(before, trees.scan())] == ["in/a"]


@pytest.mark.parametrize("options", [("--split-index",), ("--index-version", "4")])
def test_other_index_formats_are_read(sandbox: GitSandbox, trees: GitTrees, options: tuple[str, ...]) -> None:
    sandbox.write_all({"build/kept": "k", "build/out": "o", "build/kept2": "k", ".gitignore": "build/\n"})
    sandbox.git("add", "-f", "build/kept")
    sandbox.git("update-index", *options)
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept"]
    sandbox.git("add", "-f", "build/kept2")
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept", "build/kept2"]


def test_tracked_files_below_a_nested_repository_are_included(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F12: `git init` in a folder must not hide what the outer repository tracks."""
    sandbox.write_all({"sub/inner": "1"})
    sandbox.commit()
    GitSandbox.create(sandbox.root / "sub")
    assert names(sandbox, trees.scan()) == ["sub/inner"]


def test_a_file_changed_in_the_clock_tick_of_its_scan_is_hashed_again(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = sandbox.write("a", "1")
    monkeypatch.setattr(Scanner, "_filesystem_time", lambda _: place.stat().st_ctime_ns)
    trees.scan()
    trees.scan()
    assert trees.scans.counted == 2
    monkeypatch.setattr(Scanner, "_filesystem_time", lambda _: place.stat().st_ctime_ns + 1)
    trees.scan()
    trees.scan()
    assert trees.scans.counted == 3


def test_a_huge_file_is_refused_by_name_before_it_is_read(sandbox: GitSandbox, trees: GitTrees) -> None:
    """R-GIT-7: F21."""
    os.truncate(sandbox.write("disk.img"), 5 << 30)
    with pytest.raises(errors.Refusal, match=r"disk\.img has 5120 MiB") as caught:
        trees.scan()
    assert caught.value.code == "git.file-too-large"
    sandbox.write(".gitignore", "*.img\n")
    assert names(sandbox, trees.scan()) == [".gitignore"]


def test_a_file_that_becomes_a_folder_does_not_hide_a_deleted_folder(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a/b": "gone soon\n", "d": "a file\n"})
    trees.scan()
    sandbox.remove("a")
    sandbox.remove("d")
    sandbox.write("d/e", "a folder now\n")
    assert list(sandbox.tree(trees.scan())) == ["d/e"]


def test_files_uncovered_by_changed_rules_are_distinguished_from_new_ones(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({".gitignore": "*.log\n", "old.log": "old\n", "changed.log": "old\n"})
    trees.snapshot("refs/idumb/worktrees/main/test", "before")
    sandbox.write_all({".gitignore": "#\n", "new.log": "new\n", "changed.log": "changed\n"})
    assert names(sandbox, trees.scan()) == [".gitignore", "changed.log", "new.log", "old.log"]
    assert [name for name in ("changed.log", "new.log", "old.log", "absent") if trees.unignored(name)] == ["old.log"]
