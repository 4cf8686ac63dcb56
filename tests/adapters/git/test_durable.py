"""Forcing many files to disk: all of them, or an error. R-GIT-1."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from idumb.domain import errors
from idumb.git import discover
from idumb.git.objects import durable_files
from idumb.git.trees import GitTrees
from tests.support.cases import every
from tests.support.gitrepo import GitSandbox


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_every_path_is_synced_once(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / str(n) for n in range(count)]
    for path in paths:
        path.write_text("x")
    forced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        forced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    durable_files.force([*map(str, paths), str(paths[0])])
    assert sorted(forced) == sorted(path.stat().st_ino for path in paths)


@every("missing", [0, 1, 5])
def test_a_path_that_cannot_be_synced_is_an_error(tmp_path: Path, missing: int) -> None:
    paths = [tmp_path / str(n) for n in range(6)]
    for number, path in enumerate(paths):
        if number != missing:
            path.write_text("x")
    with pytest.raises(FileNotFoundError):
        durable_files.force(map(str, paths))


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
def test_nothing_refers_to_objects_that_could_not_be_synced(
    sandbox: GitSandbox, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F32: the failed fsync is not tried again, no cache remembers the objects, the next process writes them again."""
    sandbox.write("a.txt", "one\n")
    sandbox.commit()
    sandbox.write_all({f"new/{n}.txt": f"{n}\n" for n in range(5)})
    seen: list[str] = []
    real, one_by_one = durable_files._force, threading.Lock()

    def failing(path: str) -> None:
        if path in durable_files.failed:
            raise durable_files.failed_before(path)
        with one_by_one:  # several threads force files to disk
            seen.append(path)
            fails = len(seen) == nth
        if fails:
            durable_files.failed.add(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        real(path)

    monkeypatch.setattr(durable_files, "failed", set())
    monkeypatch.setattr(durable_files, "_force", failing)
    trees = GitTrees(discover.find(str(sandbox.root)))
    with pytest.raises(OSError, match="Input/output"):
        trees.snapshot("refs/idumb/worktrees/main/one", "one")
    trees.close()
    assert seen.count(seen[nth - 1]) == 1
    durable_files.failed.clear()  # another process
    kept = GitTrees(discover.find(str(sandbox.root))).snapshot("refs/idumb/worktrees/main/two", "two")
    assert sandbox.tree(kept.tree).keys() == {"a.txt", *(f"new/{n}.txt" for n in range(5))}
    sandbox.git("fsck", "--strict")


@pytest.mark.parametrize("nth", [1, 3, 5])
def test_no_cache_remembers_objects_that_were_not_stored(
    sandbox: GitSandbox, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F34: the next process finds them missing, and writes them."""
    sandbox.write_all({f"new/{n}.txt": f"{n}\n" for n in range(9)})
    trees = GitTrees(discover.find(str(sandbox.root)))
    stored: list[str] = []
    real = os.makedirs

    def failing(path: str, **options: Any) -> None:
        if "/.git/objects/" in path:
            stored.append(path)
            if len(stored) == nth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        real(path, **options)

    monkeypatch.setattr(os, "makedirs", failing)
    with pytest.raises(OSError, match="No space"):
        trees.scan()
    trees.close()
    tree = GitTrees(discover.find(str(sandbox.root))).scan()
    assert sandbox.tree(tree).keys() == {f"new/{n}.txt" for n in range(9)}


def test_an_object_that_is_missing_after_its_write_is_an_error(sandbox: GitSandbox) -> None:
    """F34: on a disk without free inodes, libgit2 has returned an id without writing the object."""
    sandbox.write("a.txt", "one\n")
    trees = GitTrees(discover.find(str(sandbox.root)))
    trees.writer.blob(b"never seen before\n")
    (lost,) = (sandbox.git_dir / "idumb" / "incoming").glob("*/*/*")
    lost.unlink()
    with pytest.raises(errors.Refusal, match=lost.name):
        trees.writer.flush()


def test_a_forked_child_can_sync_too(tmp_path: Path) -> None:
    paths = [str(tmp_path / str(n)) for n in range(6)]
    for path in paths:
        Path(path).write_text("x")
    durable_files.force(paths)
    child = os.fork()
    if child == 0:
        durable_files.force(paths)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
