"""The working tree in which checks run holds exactly one tree, whatever checks leave in it (R-RUN-3)."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.git import discover, proving_files, proving_folders
from idumb.git.history import GitHistory
from idumb.git.proving_tree import ProvingTree
from idumb.system.files import private_folders
from tests.support.gitrepo import GitSandbox
from tests.support.proving import create, show, shown, tree


def test_it_holds_what_is_committed_and_nothing_else(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n", "d/run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n", "x.log": "ignored\n"})
    os.chmod(sandbox.root / "d/run.sh", 0o755)
    sandbox.link("l", "a.txt")
    sandbox.commit()
    sandbox.write_all({"a.txt": "not committed\n", "new.txt": "untracked\n"})
    root = show(proving, sandbox)
    assert shown(proving) == {".gitignore": b"*.log\n", "a.txt": b"a\n", "d/run.sh": b"#!/bin/sh\n", "l": b"a\n"}
    assert os.readlink(root / "l") == "a.txt"
    assert os.access(root / "d/run.sh", os.X_OK)
    assert not os.access(root / "a.txt", os.X_OK)


def test_what_a_check_mounted_is_not_removed_with_the_tree(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    """It may be files of the user: a bind mount, or a disk of another machine. The next check has another folder."""
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root, mine = show(proving, sandbox), tmp_path / "mine"
    (root / "m").mkdir()
    mine.mkdir()
    (mine / "file").write_text("mine\n")
    if subprocess.run(["mount", "--bind", mine, root / "m"], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount")
    try:
        proving.renew()
        assert show(proving, sandbox) != root
        assert shown(proving) == {"a.txt": b"a\n"}
        proving.close()
        proving_folders.clear()
        show(proving, sandbox)
        proving.close()
        assert (root / "m" / "file").read_text() == "mine\n"
    finally:
        subprocess.run(["umount", root / "m"], check=True)
    assert (mine / "file").read_text() == "mine\n"
    proving_folders.clear()
    assert not root.parent.exists()


@pytest.mark.parametrize("place", ["left", "../left"])
def test_what_cannot_be_removed_stays_behind(
    sandbox: GitSandbox, proving: ProvingTree, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A container that a check starts may leave files of another user."""
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root, remove = show(proving, sandbox), private_folders.remove_tree
    (root / place).mkdir()
    stuck = os.path.realpath(root / place)
    monkeypatch.setattr(private_folders, "remove_at", raising(PermissionError))
    monkeypatch.setattr(
        private_folders, "remove_tree", lambda path: None if f"{stuck}/".startswith(f"{path}/") else remove(path)
    )
    proving.renew()
    assert show(proving, sandbox) != root
    assert shown(proving) == {"a.txt": b"a\n"}


def raising(kind: type[Exception]) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise kind

    return fail


def test_a_check_may_leave_folders_of_any_depth(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    subprocess.run(["mkdir", "-p", "/".join(["d"] * 1200)], cwd=root, check=True)
    proving.renew()
    assert show(proving, sandbox) == root
    assert sorted(os.listdir(root)) == [".git", "a.txt"]


def test_it_follows_a_new_tree_by_the_difference(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"same.txt": "same\n", "gone/old.txt": "x\n", "folder/file.txt": "x\n", "file": "x\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    unchanged = os.stat(root / "same.txt")
    sandbox.remove("gone/old.txt")
    sandbox.remove("file")
    sandbox.remove("folder/file.txt")
    sandbox.write_all({"file/now-a-folder": "x\n", "folder.txt": "x\n", "new.txt": "new\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert set(shown(proving)) == {"same.txt", "file/now-a-folder", "folder.txt", "new.txt"}
    assert os.stat(root / "same.txt").st_ino == unchanged.st_ino
    assert not (root / "gone").exists()


def test_a_folder_that_only_an_earlier_tree_had_is_an_output(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n", "d/b.txt": "b\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    (sandbox.root / "d/b.txt").unlink()
    sandbox.write_all({"e/c.txt": "c\n"})
    sandbox.commit()
    show(proving, sandbox)
    (root / "d").mkdir()
    (root / "d/output").write_text("of a check\n")
    (root / "e/output").write_text("of a check\n")
    proving.renew()
    show(proving, sandbox)
    assert shown(proving) == {"a.txt": b"a\n", "e/c.txt": b"c\n"}
    assert not (root / "d").exists()


def test_a_tracked_file_that_a_check_changes_is_restored_and_named(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "aaa\n", "b.txt": "b\n", "c.txt": "c\n", "d/e.txt": "e\n"})
    sandbox.link("l", "a.txt")
    sandbox.commit()
    root = show(proving, sandbox)
    times = os.stat(root / "a.txt")
    (root / "a.txt").write_text("bbb\n")  # as long, and with the old time
    os.utime(root / "a.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    (root / "b.txt").unlink()
    os.chmod(root / "c.txt", 0o755)
    subprocess.run(["rm", "-r", str(root / "d")], check=True)
    (root / "d").symlink_to("/tmp")
    (root / "l").unlink()
    (root / "l").write_text("no link\n")
    assert proving.restore() == ("a.txt", "b.txt", "c.txt", "d/e.txt", "l")
    assert shown(proving) == {"a.txt": b"aaa\n", "b.txt": b"b\n", "c.txt": b"c\n", "d/e.txt": b"e\n", "l": b"aaa\n"}
    assert proving.restore() == ()


def test_a_file_that_is_only_touched_is_not_changed(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    os.utime(root / "a.txt", (1, 1))
    assert proving.restore() == ()


def test_outputs_stay_for_the_next_check_and_go_with_the_next_tree(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    for path in ("out.txt", "build/deep/x", "cache/kept"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("made by a check\n")
    assert proving.restore() == ()
    show(proving, sandbox)
    assert (root / "out.txt").exists()
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert set(shown(proving)) == {"a.txt", "cache/kept"}


def test_a_changed_file_is_newer_than_each_output_that_stays(sandbox: GitSandbox, proving: ProvingTree) -> None:
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    (root / "cache").mkdir()
    (root / "cache/out").write_text("x\n")
    ahead = os.stat(root / "a.txt").st_mtime_ns + 5_000_000_000
    os.utime(root / "cache/out", ns=(ahead, ahead))
    assert (proving.restore(), proving.cached) == ((), ())
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert os.stat(root / "a.txt").st_mtime_ns > ahead
    assert proving.cached == ("cache",)


def test_what_no_check_left_in_a_cache_is_removed(sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path) -> None:
    """A builder could write there while it works."""
    sandbox.write_all({"a.txt": "a\n", ".gitignore": "cache/\n"})
    sandbox.commit()
    root, ready = show(proving, sandbox), tmp_path / "ready"
    (ready / "below").mkdir(parents=True)
    (ready / "below/out").write_text("planted\n")
    for name in ("kept", "changed", "replaced"):
        (root / "cache" / name).mkdir(parents=True)
        (root / "cache" / name / "out").write_text("x\n")
    assert proving.restore() == ()
    noted = (root.parent / "verified").stat().st_ctime_ns
    while clock_of(tmp_path / "clock") <= noted:
        pass
    (root / "cache/changed/out").write_text("planted\n")
    (root / "cache/replaced/out").rename(tmp_path / "moved")
    ready.rename(root / "cache/changed/moved")
    proving.renew()
    show(proving, sandbox)
    assert shown(proving) == {".gitignore": b"cache/\n", "a.txt": b"a\n", "cache/kept/out": b"x\n"}
    assert proving.cached == ("cache",)


def clock_of(path: Path) -> int:
    """Return the time with which the file system stamps a change now."""
    path.touch()
    return path.stat().st_ctime_ns


def test_it_is_outside_the_repository_and_below_no_manifest(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Node, pytest and cargo search the folders above."""
    state, repository = tmp_path / "state", discover.find(str(sandbox.root))
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    assert proving_folders.place(repository).startswith(f"{state}/idumb-proving/")
    (tmp_path / "package.json").write_text("{}\n")
    assert proving_folders.place(repository).startswith("/var/tmp/idumb-proving-")
    (tmp_path / "package.json").unlink()
    (state / "idumb-proving").mkdir(parents=True)
    (state / "idumb-proving").chmod(0o777)  # another user could write there
    assert proving_folders.place(repository).startswith("/var/tmp/idumb-proving-")
    monkeypatch.setenv("XDG_STATE_HOME", str(sandbox.root / "state"))
    assert proving_folders.place(repository).startswith("/var/tmp/idumb-proving-")


def test_closing_removes_it_and_the_next_command_removes_that_of_a_killed_one(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    code = (
        "import sys; from idumb.git import discover, proving_folders, proving_tree\n"
        "place = discover.find(sys.argv[1])\n"
        "made = proving_tree.ProvingTree(place, proving_folders.place(place)); made.show(sys.argv[2], None)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = [sys.executable, "-c", code, str(sandbox.root), tree(sandbox)]
    subprocess.run(killed, check=False)
    assert len(list((tmp_path / "state").rglob("a.txt"))) == 1
    GitHistory(discover.find(str(sandbox.root))).remove_stale_files(None)
    assert not (tmp_path / "state" / "idumb-proving").exists()
    subprocess.run(killed, check=False)
    first, second = (create(sandbox) for _ in range(2))
    show(first, sandbox)
    show(second, sandbox)
    assert first.root != second.root
    assert len(list((tmp_path / "state").rglob("a.txt"))) == 2
    proving_folders.clear()
    assert len(list((tmp_path / "state").rglob("a.txt"))) == 2
    first.close()
    second.close()
    assert not (tmp_path / "state" / "idumb-proving").exists()


def test_a_check_that_replaces_it_by_a_link_leads_idumb_nowhere(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    """Otherwise idumb would remove there what the tree does not hold."""
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    own = {"a.txt": "mine\n", "precious.txt": "mine\n", ".git/config": "mine\n"}
    for depth in range(3):
        users = tmp_path / f"user{depth}"
        root = show(proving, sandbox)
        at = [root, root.parent, root.parent.parent][depth]
        below = root.relative_to(at)
        for path, text in own.items():
            (users / below / path).parent.mkdir(parents=True, exist_ok=True)
            (users / below / path).write_text(text)
        at.rename(tmp_path / f"moved{depth}")
        at.symlink_to(users)
        assert proving.restore() == ("a.txt",)
        show(proving, sandbox)
        assert shown(proving) == {"a.txt": b"a\n"}
        assert {path: (users / below / path).read_text() for path in own} == own


def test_what_a_check_puts_beside_it_is_removed_and_never_followed(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine\n")
    sandbox.write_all({"a.txt": "a\n"})
    sandbox.commit()
    root = show(proving, sandbox)
    (root.parent / "verified").unlink()
    (root.parent / "verified").symlink_to(precious)
    (root.parent / "node_modules/helper").mkdir(parents=True)
    (root.parent / "conftest.py").write_text("")
    assert proving.restore() == ()
    sandbox.write_all({"a.txt": "b\n"})
    sandbox.commit()
    show(proving, sandbox)
    assert precious.read_text() == "mine\n"
    assert sorted(os.listdir(root.parent)) == ["verified", "work"]


def test_a_link_among_the_folders_of_proving_trees_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "mine/1").mkdir(parents=True)
    (tmp_path / "state/idumb-proving").mkdir(parents=True, mode=0o700)
    (tmp_path / "state/idumb-proving/x").symlink_to(tmp_path / "mine")
    proving_folders.clear()
    assert (tmp_path / "mine/1").exists()


def test_a_file_that_is_linked_elsewhere_is_a_file_of_its_own_again(
    sandbox: GitSandbox, proving: ProvingTree, tmp_path: Path
) -> None:
    """Otherwise the next check could write through it into another file, or another program into the tree."""
    sandbox.write_all({"a.txt": "a\n", "run.sh": "#!/bin/sh\n"})
    os.chmod(sandbox.root / "run.sh", 0o755)
    sandbox.commit()
    root = show(proving, sandbox)
    for name in ("a.txt", "run.sh"):
        os.link(root / name, tmp_path / name)
    assert proving.restore() == ()
    assert [(root / name).stat().st_nlink for name in ("a.txt", "run.sh")] == [1, 1]
    assert os.access(root / "run.sh", os.X_OK)


def test_a_write_through_memory_is_found_although_it_leaves_no_time(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="idumb-test-") as folder:
        monkeypatch.setenv("XDG_STATE_HOME", folder)
        sandbox.write_all({"a.txt": "a\n"})
        sandbox.commit()
        proving = create(sandbox)
        root = show(proving, sandbox)
        assert str(root).startswith(folder)
        with (root / "a.txt").open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
            assert mapped[0] == ord("a")  # pages that were read are written without a stamp
            started = (root / "a.txt").stat().st_ctime_ns
            while (root.parent / "verified").stat().st_ctime_ns < started + 25_000_000:
                assert proving.restore() == ()
            mapped[0] = ord("b")
        assert proving.restore() == ("a.txt",)
        assert shown(proving) == {"a.txt": b"a\n"}
        proving.close()


def test_a_full_disk_is_one_clear_line_and_nothing_of_the_user_changes(
    sandbox: GitSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tree is written again as soon as there is room."""
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "x", small], check=False).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        monkeypatch.setenv("XDG_STATE_HOME", str(small))
        sandbox.write_all({"a.txt": "a\n", "big.bin": b"x" * 100_000})
        sandbox.commit()
        before = sandbox.ledger()
        proving = create(sandbox)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left") as full:
                show(proving, sandbox)
            assert full.value.errno == errno.ENOSPC
            assert full.value.filename == proving.root
        assert sandbox.ledger().changed_paths(before) == []
        subprocess.run(["mount", "-o", "remount,size=1m", small], check=True)
        show(proving, sandbox)
        assert set(shown(proving)) == {"a.txt", "big.bin"}
        proving.close()
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_a_folder_that_is_swapped_while_files_are_written_leads_nowhere_else(tmp_path: Path) -> None:
    """A process that escaped its check can swap folders at any moment."""
    root, precious = tmp_path / "root", tmp_path / "precious"
    (root / "d/e").mkdir(parents=True)
    precious.mkdir()
    status = root.stat()
    folders = proving_files.OpenFolders(str(root), (status.st_dev, status.st_ino))
    at = folders.at("d/e")
    (root / "d/e").rename(tmp_path / "moved")
    (root / "d/e").symlink_to(precious)
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at))
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["file"]
    assert folders.at("") != folders.at("d")
    with pytest.raises(OSError, match="e"):
        folders.at("d/e")
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=folders.at("d/e", make=True)))
    assert [path.name for path in (root / "d/e").iterdir()] == ["file"]
    folders.close()
    assert list(precious.iterdir()) == []
    root.rename(tmp_path / "away")
    root.mkdir()
    with pytest.raises(NotADirectoryError):
        proving_files.OpenFolders(str(root), (status.st_dev, status.st_ino))
