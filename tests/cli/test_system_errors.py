"""System errors in one line: what failed, where, the free space and the next step. R-RUN-8, F34, F35."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from idumb.cli import system_errors
from idumb.system.files import file_systems

if TYPE_CHECKING:
    import pytest


def problem(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path) if path else OSError(number, os.strerror(number))


def test_each_system_error_has_its_code_its_path_and_a_next_step() -> None:
    for number, code in (
        (errno.ENOSPC, "system.full"),
        (errno.EDQUOT, "system.full"),
        (errno.EROFS, "system.read-only"),
        (errno.EACCES, "system.denied"),
        (errno.EIO, "system.disk"),
        (errno.EMFILE, "system.files"),
        (errno.EAGAIN, "system.memory"),
        (errno.ELOOP, "system.refused"),
    ):
        explained = system_errors.explain(problem(number, "/somewhere/a.txt"))
        assert (explained.code, explained.exit_code) == (code, 4)
        assert "/somewhere/a.txt" in explained.message
        assert os.strerror(number) in explained.message
        assert explained.hint


def test_a_full_disk_is_named_with_the_free_space(tmp_path: Path) -> None:
    explained = system_errors.explain(problem(errno.ENOSPC, str(tmp_path / "missing" / "a.txt")))
    room = file_systems.room(str(tmp_path))
    assert f"({room.mount} has " in explained.message


def test_libgit2_messages_are_recognized_without_an_error_number() -> None:
    explained = system_errors.explain(OSError("failed to make directory '/x/.git/objects/e8': No space left on device"))
    assert explained.code == "system.full"
    assert explained.details == {"path": "/x/.git/objects/e8"}


def test_an_unusable_state_directory_is_named_with_the_variable_that_moves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file/state"))
    for number in (errno.ENOTDIR, errno.EACCES, errno.EROFS):
        for below in ("", "idumb", "idumb/consent/a.json"):
            explained = system_errors.explain(problem(number, str(tmp_path / "file/state" / below)))
            assert f"Cannot use the state directory {tmp_path / 'file/state/idumb'}" in explained.message
            assert explained.hint is not None
            assert "XDG_STATE_HOME" in explained.hint
