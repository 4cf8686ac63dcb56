"""Scans keep an index from one process to the next; no damage to it and no failure of git loses a file (R-GIT-1)."""

from __future__ import annotations

import fcntl
import os

import pytest

from idumb.domain.errors import Refusal
from idumb.git import git_program, scanner
from idumb.git.trees import GitTrees
from idumb.system import clock
from tests.adapters.git.conftest import REF, content, names, trees_of
from tests.support import seed
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


@pytest.mark.parametrize("first", ["one process", "the index of the user"])
def test_a_change_that_only_its_own_time_shows_is_seen_by_the_next_process(sandbox: GitSandbox, first: str) -> None:
    place = sandbox.write("a", "1")
    os.utime(place, (1e9, 1e9))
    sandbox.git("add", "a")
    if first == "one process":
        trees_of(sandbox).scan()
        place.write_text("2", encoding="ascii")
        os.utime(place, (1e9, 1e9))
    assert content(trees_of(sandbox), trees_of(sandbox).scan(), "a") == place.read_bytes()
    place.write_text("3", encoding="ascii")
    os.utime(place, (1e9, 1e9))
    assert content(trees_of(sandbox), trees_of(sandbox).scan(), "a") == b"3"


def test_another_process_scans_the_same_tree_from_the_same_index(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "d/b": "2"})
    first = trees.scan()
    assert trees_of(sandbox).scan() == first
    sandbox.write("a", "3")
    second = trees_of(sandbox).scan()
    assert content(trees, second, "a") == b"3"
    assert trees.scan() == second, "this process does not rely on what it knew of the index"


def test_a_file_of_which_only_the_time_differs_is_read_once_and_not_in_each_scan(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = clock.nanoseconds() + 10**10
    monkeypatch.setattr(clock, "nanoseconds", lambda: later)  # what was changed just now is read again anyway
    place = sandbox.write("a", "1")
    os.utime(place, (1e9, 1e9))
    tree = trees_of(sandbox).scan()
    os.utime(place, (1e9 - 9, 1e9 - 9))
    folders = {"GIT_DIR": sandbox.git_dir / "idumb/shadow/main", "GIT_OBJECT_DIRECTORY": sandbox.git_dir / "objects"}
    ours = GitSandbox(sandbox.root, {name: str(path) for name, path in folders.items()})
    assert ours.git("--work-tree=.", "diff-files", "--name-only") == "a"
    assert trees_of(sandbox).scan() == tree
    assert ours.git("--work-tree=.", "diff-files", "--name-only") == ""


@pytest.mark.parametrize("damage", ["removed", "locked"])
def test_an_index_of_ours_that_is_gone_or_locked_is_made_anew(
    sandbox: GitSandbox, trees: GitTrees, damage: str
) -> None:
    sandbox.write_all({"a": "1", "d/b": "2", "ignored": "3", ".gitignore": "ignored\n"})
    tree = trees.scan(["ignored"])
    index = sandbox.git_dir / "idumb/shadow/main/index"
    index.unlink() if damage == "removed" else index.with_name("index.lock").touch()
    assert trees.scan(["ignored"]) == trees_of(sandbox).scan(["ignored"]) == tree
    assert "ignored" in names(sandbox, tree)


def test_wherever_an_index_of_ours_was_cut_off_no_file_is_overlooked(sandbox: GitSandbox, trees: GitTrees) -> None:
    """git reads zeros after the end of the file, and an entry without a name hides the file that it was for."""
    sandbox.write_all({"a": "1", "d/b": "2", "ignored": "3", ".gitignore": "ignored\n"})
    tree = trees.scan(["ignored"])
    index = sandbox.git_dir / "idumb/shadow/main/index"
    whole = index.read_bytes()
    for length in range(seed.one_of(range(41), "length of an index"), len(whole), 41):
        index.write_bytes(whole[:length])
        assert (trees if length % 2 else trees_of(sandbox)).scan(["ignored"]) == tree, length


@pytest.mark.parametrize("name", ["HEAD", "config", "info/attributes"])
def test_a_file_of_our_git_folder_that_a_power_cut_emptied_is_written_again(
    sandbox: GitSandbox, trees: GitTrees, name: str
) -> None:
    sandbox.write(".gitattributes", "* text=auto\n")
    trees.scan()
    sandbox.git_dir.joinpath("idumb/shadow/main", name).write_bytes(b"")
    sandbox.write("a", "1\r\n")
    again = trees_of(sandbox)
    assert content(again, again.scan(), "a") == b"1\r\n"


@pytest.mark.parametrize("damage", [b"", b"abc", bytes(40), b"\xff"])
def test_a_damaged_note_about_the_last_snapshot_stops_no_other(
    sandbox: GitSandbox, trees: GitTrees, damage: bytes
) -> None:
    trees.snapshot(REF, "before")
    sandbox.git_dir.joinpath("idumb/shadow/main/verified").write_bytes(damage)
    assert trees_of(sandbox).snapshot(REF, "again").tree == trees.scan()


def test_objects_that_git_removed_are_written_again(sandbox: GitSandbox, trees: GitTrees) -> None:
    """What only our index knows is garbage to git."""
    sandbox.write_all({"a": "only here", "d/b": "2"})
    trees.scan()
    sandbox.git("gc", "--quiet", "--prune=now")
    sandbox.write("d/b", "3")
    tree = trees.snapshot(REF, "r").tree
    assert (names(sandbox, tree), content(trees, tree, "a")) == (["a", "d/b"], b"only here")
    assert sandbox.git("fsck", "--no-dangling") == ""


def fail(monkeypatch: pytest.MonkeyPatch, sandbox: GitSandbox, command: str, *results: git_program.Result) -> None:
    """Let a command end with each of these results once. A git that dies leaves the lock of our index."""
    git, failures = scanner.Scanner._git, [*results]

    def failing(
        self: scanner.Scanner, arguments: list[str], stdin: bytes = b"", *, strict: bool = False
    ) -> git_program.Result:
        if arguments[0] == command and "--refresh" not in arguments and failures:
            sandbox.git_dir.joinpath("idumb/shadow/main/index.lock").touch()
            return failures.pop()
        return git(self, arguments, stdin, strict=strict)

    monkeypatch.setattr(scanner.Scanner, "_git", failing)


def test_after_a_scan_that_failed_what_is_newly_tracked_is_saved(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write_all({"build/k": "k", ".gitignore": "build/\n"})
    trees.scan()
    sandbox.git("add", "-f", "build/k")
    fail(monkeypatch, sandbox, "update-index", git_program.Result(128, b"", b"fatal: no space left"))
    with pytest.raises(Refusal):
        trees.scan()
    assert names(sandbox, trees.scan()) == [".gitignore", "build/k"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (-7, b""),
        (128, b"fatal: confused by unstable object source data for 1734"),
        (128, b"error: short read while indexing a\nfatal: Unable to process path a"),
    ],
)
def test_a_file_that_is_written_while_git_reads_it_is_read_again(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch, status: int, words: bytes
) -> None:
    sandbox.write("a", "1")
    fail(monkeypatch, sandbox, "update-index", git_program.Result(status, b"", words))
    assert names(sandbox, trees.scan()) == ["a"]


def test_a_tree_that_cannot_be_written_three_times_is_a_refusal(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write("a", "1")
    fail(monkeypatch, sandbox, "write-tree", *[git_program.Result(128, b"", b"fatal: no")] * 3)
    with refusing("git.failed", "could not be saved: fatal: no"):
        trees.scan()


def test_a_scan_waits_for_another_one_and_gives_up_after_a_while(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write("a", "1")
    trees.scan()
    with open(sandbox.git_dir / "idumb/shadow/main/lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: None)
        with refusing("git.scanning"):
            trees.scan()
        monkeypatch.setattr(clock.SystemClock, "pause", lambda *_: fcntl.flock(lock, fcntl.LOCK_UN))
        assert names(sandbox, trees.scan()) == ["a"]
