"""Restoring: path by path, compare-and-swap, all or nothing, never outside the tree. R-GIT-3, F1, F2, F17-F20."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import ANY, Mock

import pytest

from idumb.app.ports import Conflict
from idumb.domain.errors import Refusal
from idumb.git import discover, disk, path_state, tree_objects, write_back
from idumb.git.path_state import Spot
from idumb.git.trees import GitTrees
from tests.adapters.git.conftest import REF, edited
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox, work_tree


def test_restore_skips_a_path_that_already_matches(sandbox: GitSandbox, trees: GitTrees) -> None:
    base, after = edited(sandbox, trees, {"a": "1"}, {"a": "2"})
    place = sandbox.write("a", "1")
    stamp = place.stat().st_mtime_ns
    assert trees.restore(base, after, ["a"]) == ()
    assert place.stat().st_mtime_ns == stamp


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_permission_bits_that_git_does_not_store_stay_and_a_private_file_is_private_from_its_first_moment(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """F20."""
    place = sandbox.write("a", "1", mode=mode)
    base = trees.scan()
    place.write_text("2")
    seen, change = list[int](), os.fchmod

    def noted(file: int, mode: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(file).st_mode))
        change(file, mode)

    monkeypatch.setattr(os, "fchmod", noted)
    assert trees.restore(base, trees.scan(), ["a"]) == ()
    assert seen == [mode]
    assert stat.S_IMODE(place.stat().st_mode) == mode


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o755), (0o755, 0o644), (0o750, 0o640), (0o700, 0o600)])
def test_a_mode_change_alone_can_be_restored(sandbox: GitSandbox, trees: GitTrees, before: int, after: int) -> None:
    place = sandbox.write("a", "1", mode=before)
    base = trees.scan()
    place.chmod(after)
    assert trees.restore(base, trees.scan(), ["a"]) == ()
    assert stat.S_IMODE(place.stat().st_mode) == before


def test_a_new_file_gets_the_owner_of_the_old_one_if_that_is_allowed(
    sandbox: GitSandbox, trees: GitTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sandbox.write("a", "1").stat()
    other = os.stat_result((*before[:4], before.st_uid + 1, *before[5:]))
    want = trees.entry(trees.scan(), "a")
    assert want is not None
    change = Mock(side_effect=[None, PermissionError])
    monkeypatch.setattr(os, "fchown", change)
    writing = write_back.Writing(trees.repository, str(sandbox.root), write_back.Shelf(""), Mock())
    write_back._write_new(writing, str(tmp_path / "same"), want, before)
    assert change.mock_calls == []
    for name in ("allowed", "refused"):
        write_back._write_new(writing, str(tmp_path / name), want, other)
        change.assert_called_with(ANY, before.st_uid + 1, before.st_gid)
        assert (tmp_path / name).read_text() == "1"


def test_a_conflict_says_what_is_there(sandbox: GitSandbox, trees: GitTrees) -> None:
    """M3."""
    names = ("emptied", "mode", "pipe")
    base, after = edited(sandbox, trees, dict.fromkeys(names, "1"), dict.fromkeys(names, "2"))
    sandbox.write("emptied", "")
    (sandbox.root / "mode").chmod(0o755)
    sandbox.remove("pipe")
    os.mkfifo(sandbox.root / "pipe")
    pipe = Conflict("pipe", "is no longer a file or a link")
    assert trees.restore(base, after, names) == (
        Conflict("emptied", "is empty now; a crash may have cut it"),
        Conflict("mode", "was changed since"),
        pipe,
    )
    assert trees.restore(base, after, ["pipe"], force=True) == (pipe,)


@pytest.mark.parametrize("before", ["nothing", "link"])
@pytest.mark.parametrize("umask", [0o027, 0])
def test_a_new_file_gets_the_mode_of_the_umask(sandbox: GitSandbox, trees: GitTrees, before: str, umask: int) -> None:
    sandbox.write("run", "1", mode=0o755)
    sandbox.write("text", "1")
    base = trees.scan()
    for name in ("run", "text"):
        sandbox.remove(name)
        if before == "link":
            sandbox.link(name, "target")
    old = os.umask(umask)
    try:
        assert trees.restore(base, trees.scan(), ["run", "text"]) == ()
    finally:
        os.umask(old)
    modes = [stat.S_IMODE((sandbox.root / name).stat().st_mode) for name in ("run", "text")]
    assert modes == [0o777 & ~umask, 0o666 & ~umask]


_NEVER = [".git/config", ".GIT/config", "sub/.git/hooks/x", ".idumb/brain", ".planning/x", "../x", "/etc/x"]


@every("path", _NEVER)
def test_restore_of_a_protected_path_is_a_programming_error(trees: GitTrees, path: str) -> None:
    tree = trees.scan()
    with pytest.raises(ValueError, match="never restores"):
        trees.restore(tree, tree, [path])


def test_nothing_is_written_through_a_folder_that_became_a_link(
    sandbox: GitSandbox, trees: GitTrees, tmp_path: Path
) -> None:
    """F19."""
    base, after = edited(sandbox, trees, {"d/e/a": "1"}, {"d/e/a": "2"})
    outside = tmp_path / "outside"
    (outside / "e").mkdir(parents=True)
    (outside / "e/a").write_text("2")
    sandbox.remove("d")
    sandbox.link("d", str(outside))
    assert trees.restore(base, after, ["d/e/a"]) == (Conflict("d/e/a", "cannot be reached: d/ is a link now"),)
    assert trees.restore(base, after, ["d/e/a"], force=True) != ()
    assert (outside / "e/a").read_text() == "2"


def test_a_link_is_replaced_and_not_followed(sandbox: GitSandbox, trees: GitTrees, tmp_path: Path) -> None:
    sandbox.write("a", "1")
    base = trees.scan()
    (tmp_path / "outside").write_text("keep")
    sandbox.remove("a")
    sandbox.link("a", str(tmp_path / "outside"))
    assert trees.restore(base, trees.scan(), ["a"]) == ()
    assert (tmp_path / "outside").read_text() == "keep"
    assert not (sandbox.root / "a").is_symlink()
    assert sandbox.read("a") == "1"


def test_empty_folders_at_the_place_of_a_file_are_removed(sandbox: GitSandbox, trees: GitTrees) -> None:
    """Git has no empty folders, so no tree shows that there are any."""
    sandbox.write_all({"d/a": "1", "d/b": "1"})
    base = trees.scan()
    sandbox.remove("d/a")
    sandbox.remove("d/b")
    (sandbox.root / "d/a").mkdir(parents=True)
    (sandbox.root / "d/b/c/d").mkdir(parents=True)
    assert trees.restore(base, trees.scan(), ["d/a", "d/b"]) == ()
    assert [sandbox.read(f"d/{name}") for name in "ab"] == ["1", "1"]


def test_a_folder_with_a_foreign_file_is_not_removed(sandbox: GitSandbox, trees: GitTrees) -> None:
    base, after = edited(sandbox, trees, {"a": "file", ".gitignore": "*.log\n"}, {"a": None, "a/x": "x"})
    sandbox.write("a/mine.log", "ignored, so in no snapshot")
    expected = (Conflict("a", "is a folder now, which contains a/mine.log"),)
    assert trees.restore(base, after, ["a", "a/x"]) == expected
    assert trees.restore(base, after, ["a", "a/x"], force=True) == expected
    assert sandbox.read("a/x") == "x"


def test_emptied_folders_are_removed_and_others_stay(sandbox: GitSandbox, trees: GitTrees) -> None:
    made = dict.fromkeys(("keep/new", "made/by/task", "mixed/task"), "1")
    base, after = edited(sandbox, trees, {"keep/old": "1", ".gitignore": "*.log\n"}, {**made, "mixed/own.log": "1"})
    assert trees.restore(base, after, [*made]) == ()
    assert sorted(os.listdir(sandbox.root)) == [".git", ".gitignore", "keep", "mixed"]
    assert os.listdir(sandbox.root / "mixed") == ["own.log"]


def test_a_submodule_is_a_conflict(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F11."""
    empty = trees.scan()
    sandbox.add_submodule("lib")
    (conflict,) = trees.restore(empty, trees.scan(), ["lib"])
    assert "submodule" in conflict.why


def test_a_path_changed_during_the_restore_stops_it_there(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files written before the error stay written, and the next restore skips them."""
    base, after = edited(sandbox, trees, dict.fromkeys("abc", "1"), dict.fromkeys("abc", "2"))
    write = write_back._write

    def late(writing: write_back.Writing, step: path_state.Step) -> None:
        if step.path == "b":
            sandbox.write("b", "mine")
        write(writing, step)

    monkeypatch.setattr(write_back, "_write", late)
    assert trees.restore(base, after, ["a", "b", "c"]) == (Conflict("b", "was changed while it was restored"),)
    assert [sandbox.read(name) for name in "abc"] == ["1", "mine", "2"]
    assert trees.restore(base, after, ["a", "c"]) == ()
    assert [sandbox.read(name) for name in "abc"] == ["1", "mine", "1"]


_ELSEWHERE = "is on another file system than the working tree, where idumb does not write"
_CHANGED = "was changed while it was restored"


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EXDEV, _ELSEWHERE),
        *((each, _CHANGED) for each in (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY)),
        *((each, _CHANGED) for each in (errno.ELOOP, errno.EBUSY)),
        *((each, "") for each in (errno.EPERM, errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT)),
    ],
)
def test_a_failing_disk_is_an_error_and_a_changed_tree_is_a_conflict(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    base, after = edited(sandbox, trees, {"a": "1"}, {"a": "2"})
    monkeypatch.setattr(path_state, "exchange", Mock(side_effect=OSError(number, os.strerror(number))))
    if why:
        assert trees.restore(base, after, ["a"]) == (Conflict("a", why),)
    else:
        with pytest.raises(OSError, match="'a'") as caught:
            trees.restore(base, after, ["a"])
        assert caught.value.errno == number


@pytest.mark.parametrize("call", range(1, 5))
def test_a_process_that_no_longer_owns_the_tree_writes_no_further_path(sandbox: GitSandbox, call: int) -> None:
    """It is asked before each path, and again when the new file is complete."""
    place = discover.find(str(sandbox.root))
    trees = GitTrees(place)
    base, after = edited(sandbox, trees, dict.fromkeys("ab", "1"), dict.fromkeys("ab", "2"))
    place.guard = Mock(side_effect=[*(None,) * (call - 1), Refusal("lock.lost", "lost")])
    with pytest.raises(Refusal):
        trees.restore(base, after, ["a", "b"])
    assert [sandbox.read(name) for name in "ab"] == ["1" if call > 2 else "2", "2"]


def test_a_restore_killed_before_it_exchanges_a_file_leaves_nothing_behind(
    sandbox: GitSandbox, trees: GitTrees
) -> None:
    base, after = edited(sandbox, trees, {"d/a": "1"}, {"d/a": "2"})
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(os, "rename", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            trees.restore(base, after, ["d/a"])
    assert os.listdir(sandbox.root / "d") == ["a"]
    assert trees.release_displaced() == ()
    assert not (sandbox.git_dir / "idumb/displaced/main").exists()


def test_unusual_names_are_restored(sandbox: GitSandbox, trees: GitTrees) -> None:
    """F16."""
    odd = ["-rf", ":(top)x", "new\nline", "na\udcff", "sp ace /in", "~", "~$page", "C:\\page", "c:/page"]
    for name in odd:
        sandbox.write(name, name.encode("utf-8", "surrogateescape"))
    before, base = work_tree(sandbox.root), trees.scan()
    for name in odd:
        sandbox.remove(name)
    assert trees.restore(base, trees.scan(), odd) == ()
    assert work_tree(sandbox.root) == before


_STEPS = ("rename", "unlink", "rmdir", "mkdir", "fsync", "symlink")


def test_the_next_restore_finishes_one_killed_at_any_step(sandbox: GitSandbox, trees: GitTrees) -> None:
    """The restore is killed before each call that changes the disk; repeating it completes the restore."""
    sandbox.write_all({"a": "file", "b/c/inner": "x", "mod": "1", "gone/deep": "1"})
    sandbox.link("link", "a")
    before, base = work_tree(sandbox.root), trees.scan()
    for step in range(1000):
        for path in ("a", "b", "link", "gone"):
            sandbox.remove(path)
        sandbox.write_all({"a/x": "y", "b": "file", "mod": "2", "new/deep/file": "1", "link": "file"})
        after = trees.scan()
        paths = [change.path for change in trees.changes(base, after)]
        finished = _killed_at(step, trees, base, after, paths)
        assert trees.restore(base, after, paths) == ()
        assert trees.release_displaced() == ()
        assert work_tree(sandbox.root) == before
        if finished:
            return
    pytest.fail("the restore has no end")


def _killed_at(step: int, trees: GitTrees, base: str, after: str, paths: list[str]) -> bool:
    """Whether the restore came to its end before the step was reached."""
    calls = iter(range(1000))

    def killing(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if next(calls) == step:
                raise KeyboardInterrupt
            return call(*arguments, **options)

        return counted

    with pytest.MonkeyPatch.context() as patching:
        for name in _STEPS:
            patching.setattr(os, name, killing(getattr(os, name)))
        for name in ("exchange", "move_to_free"):
            patching.setattr(path_state, name, killing(getattr(path_state, name)))
        try:
            trees.restore(base, after, paths)
        except KeyboardInterrupt:
            return False
    return True


def test_a_link_in_place_of_a_folder_does_not_block_a_deletion(sandbox: GitSandbox, trees: GitTrees) -> None:
    """R-GIT-3: a run made the folder and removed it again; going back and forth meets the link of before."""
    sandbox.link("place", "nowhere")
    before = trees.scan()
    assert trees.restore(before, before, ["place/below"]) == ()
    assert os.path.islink(sandbox.root / "place")
    sandbox.remove("place")
    sandbox.write("place/below", "x")
    after = trees.scan()
    sandbox.remove("place")
    sandbox.link("place", "nowhere")
    assert trees.restore(after, before, ["place", "place/below"]) == ()
    assert sandbox.read("place/below") == "x"


@pytest.fixture
def forced(sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were forced to disk by name."""
    paths, force = list[str](), disk.force

    def noted(places: Iterable[str]) -> None:
        todo = list(places)
        paths.extend(os.path.relpath(place, sandbox.root) for place in todo)
        force(todo)

    monkeypatch.setattr(disk, "force", noted)
    return paths


def test_each_folder_that_changed_is_synced_once_however_many_paths_are_restored(
    sandbox: GitSandbox, trees: GitTrees, forced: list[str]
) -> None:
    """R-GIT-2: also one that lost a file or a folder."""
    names = [f"d{number % 3}/f{number}" for number in range(30)]
    new = dict.fromkeys(("d/new", "e/f/one/two/new"), "1")
    before = dict.fromkeys([*names, "d/stays", "e/f/stays"], "1")
    base, after = edited(sandbox, trees, before, {**dict.fromkeys(names, "2"), **new})
    forced.clear()
    assert trees.restore(base, after, [*names, *new]) == ()
    assert sorted(path for path in forced if (sandbox.root / path).is_dir()) == ["d", "d0", "d1", "d2", "e/f"]


def test_what_a_killed_restore_wrote_is_forced_to_disk_by_the_next(
    sandbox: GitSandbox, trees: GitTrees, forced: list[str]
) -> None:
    """R-GIT-2: it may not be on disk yet. A link has no bytes of its own."""
    sandbox.write("d/a", "1")
    sandbox.link("e/link", "nowhere")
    base = trees.scan()
    forced.clear()
    assert trees.restore(base, base, ["d/a", "e/link", "d/gone"]) == ()
    assert forced == ["d/a", "d", "e"]


def test_a_file_is_complete_and_on_disk_before_it_is_at_its_path(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-GIT-2."""
    base, after = edited(sandbox, trees, {"a": "12345"}, {"a": "2"})
    steps, sync, exchange = list[object](), os.fsync, path_state.exchange

    def noted(descriptor: int) -> None:
        status = os.fstat(descriptor)
        steps.append(status.st_size if stat.S_ISREG(status.st_mode) else "folder")
        sync(descriptor)

    def exchanged(one: Spot, other: Spot) -> bool:
        steps.append("exchange")
        return exchange(one, other)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(path_state, "exchange", exchanged)
    assert trees.restore(base, after, ["a"]) == ()
    assert steps == [5, "exchange", "folder"]


def test_a_large_file_is_restored_in_pieces(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F21: also if git has packed the object in the meantime."""
    monkeypatch.setattr(tree_objects, "LARGE", 1000)
    data = os.urandom(3000) * 700
    sandbox.write("big", data)
    base = trees.snapshot(REF, "before").tree
    for _ in range(2):
        sandbox.write("big", "small now")
        assert trees.restore(base, trees.scan(), ["big"]) == ()
        assert (sandbox.root / "big").read_bytes() == data
        sandbox.git("gc", "--quiet", "--prune=now")
