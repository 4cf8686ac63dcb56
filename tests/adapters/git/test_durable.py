"""Forcing many files to disk: all of them, or an error. R-GIT-1."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.git import disk


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
