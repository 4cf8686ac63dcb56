"""Untrusted files are read up to a limit, and only if they are regular files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from idumb.system import named_files


def test_no_more_bytes_are_read_than_requested(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert named_files.read(str(tmp_path / "a"), 3) == b"123"
    assert named_files.read(str(tmp_path / "a"), 9) == b"12345"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")
    assert named_files.read(str(tmp_path / "b"), 9) == b"1"


def test_a_pipe_a_device_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    """F21: the pipe has no writer, so that opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="a pipe, a socket or a device"):
            named_files.read(str(place), 9)
    with pytest.raises(IsADirectoryError):
        named_files.read(str(tmp_path), 9)


def test_a_link_is_refused_if_links_are_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        named_files.read(str(tmp_path / "b"), 9, links=False)
    assert named_files.read(str(tmp_path / "a"), 9, links=False) == b"1"


@pytest.mark.skipif(sys.platform != "linux", reason="open files are listed by /proc")
def test_a_refused_file_is_not_kept_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match=r"directory|pipe"):
            named_files.read(str(place), 9)
    held = {os.path.realpath(f"/proc/self/fd/{handle}") for handle in os.listdir("/proc/self/fd")}
    assert not held & {str(tmp_path), str(tmp_path / "pipe")}


def test_a_missing_file_is_reported_as_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        named_files.read(str(tmp_path / "none"), 9)
