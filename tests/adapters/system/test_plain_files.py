"""Files that a repository may have put there are read to an end, and only where they are files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idumb.system import plain_files


def test_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert plain_files.read(str(tmp_path / "a"), 3) == b"123"
    assert plain_files.read(str(tmp_path / "a"), 9) == b"12345"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")
    assert plain_files.read(str(tmp_path / "b"), 9) == b"1"


def test_a_pipe_a_device_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    """F21: the pipe has no writer, so that opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="a pipe, a socket or a device"):
            plain_files.read(str(place), 9)
    with pytest.raises(IsADirectoryError):
        plain_files.read(str(tmp_path), 9)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plain_files.read(str(tmp_path / "none"), 9)
