"""Forcing many files to disk: all of them, or an error. R-GIT-1."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.git.objects import durable_files
from tests.support.cases import every


@pytest.mark.parametrize("count", [1, 20])
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


@every("missing", [0, 5])
def test_a_path_that_cannot_be_synced_is_an_error(tmp_path: Path, missing: int) -> None:
    paths = [tmp_path / str(n) for n in range(6)]
    for number, path in enumerate(paths):
        if number != missing:
            path.write_text("x")
    with pytest.raises(FileNotFoundError):
        durable_files.force(map(str, paths))
