"""Scanning: the exact bytes of tracked and untracked, not ignored files. R-GIT-1, F2-F5, F11-F21."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from idumb.git import discover, git_program, guarded_files, scanner
from idumb.git.trees import GitTrees
from idumb.system import clock
from tests.adapters.git.conftest import REF
from tests.support import seed
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


def names(sandbox: GitSandbox, tree: str) -> list[str]:
    return sorted(sandbox.tree(tree))


def content(trees: GitTrees, tree: str, path: str) -> bytes:
    entry = trees.entry(tree, path)
    assert entry is not None
    return trees.read(entry.oid)


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


@pytest.mark.parametrize("first", ["one process", "the index of the user"])
def test_a_change_that_only_its_own_time_shows_is_seen_by_the_next_process(sandbox: GitSandbox, first: str) -> None:
    place = sandbox.write("a", "1")
    os.utime(place, (1e9, 1e9))
    sandbox.git("add", "a")
    if first == "one process":
        process(sandbox).scan()
        place.write_text("2", encoding="ascii")
        os.utime(place, (1e9, 1e9))
    assert content(process(sandbox), process(sandbox).scan(), "a") == place.read_bytes()
    place.write_text("3", encoding="ascii")
    os.utime(place, (1e9, 1e9))
    assert content(process(sandbox), process(sandbox).scan(), "a") == b"3"


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
def test_no_setting_hides_a_change_or_a_file(
    sandbox: GitSandbox, trees: GitTrees, listing: Callable[[str], dict[str, tuple[str, str]]], setting: str
) -> None:
    sandbox.write_all({"a": "1", "new": "1"})
    sandbox.link("link", "a")
    for where in ("--local", "--global"):
        sandbox.git("config", where, *setting.split("="))
    trees.scan()
    sandbox.write("a", "22", mode=0o755)
    sandbox.remove("link")
    sandbox.write_all({"link": "no link", "A": "3"})
    modes = {path: mode for path, (mode, _) in listing(process(sandbox).scan()).items()}
    assert modes == {"A": "100644", "a": "100755", "link": "100644", "new": "100644"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_index_flags_hide_no_edit(sandbox: GitSandbox, trees: GitTrees, flag: str) -> None:
    """F5."""
    sandbox.commit_with({"a": "1"})
    sandbox.git("update-index", flag, "a")
    sandbox.write("a", "22")
    assert content(trees, trees.scan(), "a") == b"22"


def test_a_tracked_file_that_git_ignores_is_included_again_after_it_was_away(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    """F4: git does not list it as new, and the user's index did not change."""
    sandbox.write_all({"build/kept": "k", ".gitignore": "build/\n"})
    sandbox.git("add", "-f", "build/kept")
    trees.scan()
    sandbox.remove("build/kept")
    assert names(sandbox, trees.scan()) == [".gitignore"]
    for text in ("new", "dated back"):
        sandbox.write("build/kept", text)
        os.utime(sandbox.root / "build/kept", (1, 1))
        trees.scan()
        assert names(sandbox, trees.scan()) == [".gitignore", "build/kept"]


def test_an_ignored_file_is_included_if_declared(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"build/out": "o", "build/other": "o", ".gitignore": "build/\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    assert names(sandbox, trees.scan(["build/out", "build/absent"])) == [".gitignore", "build/out"]


def test_rules_that_are_removed_or_added_bring_files_back(sandbox: GitSandbox, trees: GitTrees) -> None:
    rows = [
        (".gitignore", ".gitignore"),
        ("d/.gitignore",) * 2,
        (".git/info/exclude",) * 2,
        (".gitignore", "d/.gitignore"),
    ]
    for number, (rules, later) in enumerate(rows):
        sandbox.write_all({f"d/{number}.log": "l", rules: f"{number}.*\n"})
        assert f"d/{number}.log" not in names(sandbox, trees.scan())
        sandbox.write(later, f"!{number}.log\n")
        assert f"d/{number}.log" in names(sandbox, trees.scan())


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


def test_ignored_files_of_a_declared_folder_are_included_if_it_took_the_place_of_a_file(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    sandbox.write_all({".gitignore": "*.log\n", "out": "a file\n"})
    sandbox.commit("first")
    trees.scan(["out"])
    (sandbox.root / "out").unlink()
    sandbox.write("out/a.log", "ignored\n")
    assert trees.entry(trees.scan(["out"]), "out/a.log") is not None


@pytest.mark.parametrize("options", [(), ("--split-index",), ("--index-version", "4")])
def test_ignored_files_are_included_from_when_they_are_tracked(
    sandbox: GitSandbox, trees: GitTrees, options: tuple[str, ...]
) -> None:
    """In each format of the user's index."""
    sandbox.write_all({"build/kept": "k", "build/out": "o", "build/later": "k", ".gitignore": "build/\n"})
    assert names(sandbox, trees.scan()) == [".gitignore"]
    sandbox.git("add", "-f", "build/kept")
    sandbox.git("update-index", *options)
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept"]
    sandbox.git("add", "-f", "build/later")
    assert names(sandbox, trees.scan()) == [".gitignore", "build/kept", "build/later"]


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


def process(sandbox: GitSandbox) -> GitTrees:
    """The trees of another process."""
    return GitTrees(discover.find(str(sandbox.root)))


def test_the_next_process_evaluates_rules_again(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"x.log": "l", "y.log": "y", "kept.log": "k", "d.log": "d"})
    sandbox.git("add", "kept.log")
    trees.scan()
    sandbox.write(".gitignore", "*.log\n")
    assert "x.log" in names(sandbox, trees.scan()), "within a process no file may look deleted"
    again = process(sandbox)
    assert names(sandbox, again.scan(["d.log"])) == [".gitignore", "d.log", "kept.log"]
    sandbox.write(".git/info/exclude", "new*\n")
    sandbox.write("newest", "n")
    assert names(sandbox, again.scan()) == [".gitignore", "d.log", "kept.log"]


def test_another_process_scans_the_same_tree_from_the_same_index(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "d/b": "2"})
    first = trees.scan()
    assert process(sandbox).scan() == first
    sandbox.write("a", "3")
    second = process(sandbox).scan()
    assert content(trees, second, "a") == b"3"
    assert trees.scan() == second, "this process does not rely on what it knew of the index"


@pytest.mark.parametrize("damage", ["removed", "locked"])
def test_an_index_of_ours_that_is_gone_or_locked_is_made_anew(
    sandbox: GitSandbox, trees: GitTrees, damage: str
) -> None:
    sandbox.write_all({"a": "1", "d/b": "2", "ignored": "3", ".gitignore": "ignored\n"})
    tree = trees.scan(["ignored"])
    index = sandbox.git_dir / "idumb/shadow/main/index"
    index.unlink() if damage == "removed" else index.with_name("index.lock").touch()
    assert trees.scan(["ignored"]) == process(sandbox).scan(["ignored"]) == tree
    assert "ignored" in names(sandbox, tree)


def test_wherever_an_index_of_ours_was_cut_off_no_file_is_overlooked(sandbox: GitSandbox, trees: GitTrees) -> None:
    """git reads zeros after the end of the file, and an entry without a name hides the file that it was for."""
    sandbox.write_all({"a": "1", "d/b": "2", "ignored": "3", ".gitignore": "ignored\n"})
    tree = trees.scan(["ignored"])
    index = sandbox.git_dir / "idumb/shadow/main/index"
    whole = index.read_bytes()
    for length in range(seed.one_of(range(15), "length of an index"), len(whole), 15):
        index.write_bytes(whole[:length])
        assert (trees if length % 2 else process(sandbox)).scan(["ignored"]) == tree, length


@pytest.mark.parametrize("name", ["HEAD", "config", "info/attributes"])
def test_a_file_of_our_git_folder_that_a_power_cut_emptied_is_written_again(
    sandbox: GitSandbox, trees: GitTrees, name: str
) -> None:
    sandbox.write(".gitattributes", "* text=auto\n")
    trees.scan()
    sandbox.git_dir.joinpath("idumb/shadow/main", name).write_bytes(b"")
    sandbox.write("a", "1\r\n")
    again = process(sandbox)
    assert content(again, again.scan(), "a") == b"1\r\n"


@pytest.mark.parametrize("damage", [b"", b"abc", bytes(40), b"\xff"])
def test_a_damaged_note_about_the_last_snapshot_stops_no_other(
    sandbox: GitSandbox, trees: GitTrees, damage: bytes
) -> None:
    trees.snapshot(REF, "before")
    sandbox.git_dir.joinpath("idumb/shadow/main/verified").write_bytes(damage)
    assert process(sandbox).snapshot(REF, "again").tree == trees.scan()


def test_objects_that_git_removed_are_written_again(sandbox: GitSandbox, trees: GitTrees) -> None:
    """What only our index knows is garbage to git."""
    sandbox.write_all({"a": "only here", "d/b": "2"})
    trees.scan()
    sandbox.git("gc", "--quiet", "--prune=now")
    sandbox.write("d/b", "3")
    tree = trees.snapshot(REF, "r").tree
    assert (names(sandbox, tree), content(trees, tree, "a")) == (["a", "d/b"], b"only here")
    assert sandbox.git("fsck", "--no-dangling") == ""


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


def unprivileged() -> bool:
    return os.geteuid() != 0


@pytest.mark.skipif(not unprivileged(), reason="root may read everything")
def test_what_cannot_be_read_is_left_out_and_named(sandbox: GitSandbox, trees: GitTrees) -> None:
    sandbox.write_all({"a": "1", "b": "1", "folder/c": "1"})
    trees.scan()
    sandbox.write("new", "1", mode=0)
    sandbox.write("a", "22")
    (sandbox.root / "a").chmod(0)
    (sandbox.root / "folder").chmod(0)
    assert names(sandbox, trees.scan()) == ["b"]
    assert trees.omitted().keys() == {"a", "new", "folder"}
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


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("name", [".gitignore", "d/.gitattributes", ".git/info/exclude", ".git/info/attributes"])
def test_a_pipe_in_the_place_of_rules_is_refused_by_name_instead_of_waiting_for_it(
    sandbox: GitSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, linked: bool
) -> None:
    """F19. Also in the folder that linked worktrees share, and for a command that saves nothing."""
    monkeypatch.setattr(git_program, "_PATIENCE", 0.2)
    sandbox.commit_with({"a": "1", "d/b": "1"})
    if linked:
        sandbox.git("worktree", "add", "-q", str(tmp_path / "linked"))
    root = tmp_path / "linked" if linked else sandbox.root
    pipe = (sandbox.root if name.startswith(".git/") else root) / name
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    (root / "a").write_text("2", encoding="ascii")
    trees = GitTrees(discover.find(str(root)))
    with refusing("git.waits-for-pipe", f"{name} is a pipe"):
        git_program.output(str(root), ["status", "--porcelain"]) if "info/a" in name else trees.scan()
    pipe.unlink()
    assert names(sandbox, trees.scan()) == ["a", "d/b"]


@pytest.mark.parametrize("name", [".git/info/exclude", "ignore"])
def test_rules_that_cannot_be_read_are_a_refusal_and_save_no_ignored_file(
    sandbox: GitSandbox, trees: GitTrees, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """R-GIT-1: git itself warns, and goes on without the rules."""
    rules, read = (sandbox.root if "/" in name else home / "config/git") / name, guarded_files._read
    rules.parent.mkdir(parents=True, exist_ok=True)
    sandbox.write_all({"a": "1", "secret.env": "s", str(rules): "*.env\n"})
    assert names(sandbox, trees.scan()) == ["a"]

    def refused(path: str) -> bytes:
        if path == str(rules):
            raise PermissionError(13, "Permission denied", path)
        return read(path)

    with monkeypatch.context() as patching:
        patching.setattr(guarded_files, "_read", refused)
        with pytest.raises(Refusal, match=f"{rules} says what git ignores") as caught:
            trees.scan()
    assert caught.value.code == "git.rules-unreadable"
    rules.unlink()
    rules.mkdir()
    with pytest.raises(Refusal, match="Is a directory"):
        trees.scan()
    rules.rmdir()
    rules.symlink_to("/dev/null")
    assert names(sandbox, trees.scan()) == ["a", "secret.env"]


def test_without_a_file_of_rules_by_an_empty_setting_nothing_of_the_user_is_ignored(
    sandbox: GitSandbox, trees: GitTrees, home: Path
) -> None:
    """R-GIT-1: git does not read the usual file then."""
    sandbox.write_all({"a": "1", "b.env": "1", "config": "1", str(home / "config/git/ignore"): "*.env\n"})
    assert names(sandbox, trees.scan()) == ["a", "config"]
    sandbox.git("config", "core.excludesFile", "")
    assert names(sandbox, trees.scan()) == ["a", "b.env", "config"]


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
