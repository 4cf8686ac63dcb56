"""Room on the disk is looked for before anything is written; forcing files to it is all of them, or an error. F21."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.git import disk
from idumb.git.trees import GitTrees
from tests.support.errors import refusing
from tests.support.gitrepo import GitSandbox


def test_every_path_is_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / str(n) for n in range(20)]
    for path in paths:
        path.write_text("x")
    forced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        forced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    disk.force([*map(str, paths), str(paths[0])])
    assert sorted(forced) == sorted(path.stat().st_ino for path in paths)
    for missing in (paths[0], paths[5]):
        missing.unlink()
        with pytest.raises(FileNotFoundError, match=missing.name):
            disk.force(map(str, paths))
        missing.write_text("x")


def leave(monkeypatch: pytest.MonkeyPatch, *, pages: int, files: int = 1000) -> None:
    """A file system that says it has so much left; a real full one is in the fault programmes."""
    answer = os.statvfs_result((4096, 4096, pages, pages, pages, files, files, files, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: answer)


def objects(sandbox: GitSandbox) -> str:
    return sandbox.git("count-objects", "-v")


def test_a_scan_that_does_not_fit_is_refused_before_any_object_is_written(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F34: the error names the file system, the required and free space, and the largest of the files."""
    sandbox.write_all({"small": "1", "large": os.urandom(40_000)})
    before = objects(sandbox)
    leave(monkeypatch, pages=9)
    with refusing("system.full", r"2 files of 44096 bytes.*large \(/.*36864"):
        trees.scan()
    leave(monkeypatch, pages=1000, files=1)
    with refusing("system.full", "1 files") as inodes:
        trees.scan()
    assert inodes.value.details["files"] == 2
    assert objects(sandbox) == before
    leave(monkeypatch, pages=11)
    trees.scan()


def test_files_that_are_as_in_the_index_of_the_user_need_no_space(
    sandbox: GitSandbox, trees: GitTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.commit_with({"large": os.urandom(40_000), "d/other": "2"})
    leave(monkeypatch, pages=1)
    assert trees.scan() == sandbox.git("rev-parse", "HEAD^{tree}")
