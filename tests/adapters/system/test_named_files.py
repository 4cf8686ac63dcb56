"""Files that commands name: their bytes, and whether they may have changed (R-LOCK-4)."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from idumb.system import clock, named_files
from idumb.system.named_files import NamedFiles
from tests.support.programs import script

LONG_AGO = (1_600_000_000, 1_600_000_000)


@pytest.fixture
def files(tmp_path: Path) -> NamedFiles:
    return NamedFiles(str(tmp_path))


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been written long before it is looked at."""
    monkeypatch.setattr(clock, "TICK", -(10**12))


def test_only_files_have_a_digest_and_links_are_followed(files: NamedFiles, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("none")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    digest = hashlib.sha256(b"x" * 3_000_000).hexdigest()
    digests = files.digests(["a", "link", "dangling", "folder", "pipe", "none", "a/b", "nul\0"])
    assert digests == {"a": digest, "link": digest}


@pytest.mark.usefixtures("coarse")
def test_a_signature_changes_only_with_its_file(files: NamedFiles, tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.write_text("one")
    os.utime(place, LONG_AGO)
    first = files.signature(["a", "b"])
    assert first is not None
    assert files.signature(["a", "b"]) == first
    (tmp_path / "c").write_text("other")
    assert files.signature(["a", "b"]) == first
    replacement = tmp_path / "new"
    replacement.write_text("two")
    os.utime(replacement, LONG_AGO)
    replacement.rename(place)  # the same size and the same time
    second = files.signature(["a", "b"])
    assert second != first
    (tmp_path / "b").write_text("")
    assert files.signature(["a", "b"]) != second


def test_a_file_written_just_now_has_no_signature_yet(files: NamedFiles, tmp_path: Path) -> None:
    """A write in the same tick of the file system's clock would not show."""
    place = tmp_path / "a"
    place.write_text("one")
    ahead = 4_000_000_000  # whatever the clock says, this is not behind it
    os.utime(place, (ahead, ahead))
    assert files.signature(["a"]) is None


def test_links_are_followed_and_plain_folders_are_omitted(tmp_path: Path) -> None:
    """R-LOCK-5."""
    root, away = tmp_path / "root", tmp_path / "away"
    (root / "plain/deep").mkdir(parents=True)
    for place in (away, tmp_path / "root-2"):
        place.mkdir()
    (root / "out").symlink_to(away)
    (root / "beside").symlink_to("../root-2")
    (root / "plain/in").symlink_to("deep")
    (root / "top").symlink_to(".")
    (root / "lost").symlink_to("nowhere")
    folders = ["plain", "plain/deep", "out", "out/more", "beside", "plain/in", "top", "top/plain/in", "lost", "no/a"]
    assert NamedFiles(str(root)).links(folders) == {
        "out": str(away),
        "out/more": f"{away}/more",
        "beside": f"{tmp_path}/root-2",
        "plain/in": "plain/deep",
        "top": "",
        "top/plain/in": "plain/deep",
        "lost": "nowhere",
    }


def test_programs_are_resolved_on_path_or_by_path_but_not_in_the_working_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ENV-1."""
    root, away = tmp_path / "work", tmp_path / "bin"
    for place in (root / "own", root / "here/prove", away / "prove", away / "other", away / "plain"):
        script(place, mode=0o644 if place.name == "plain" else 0o755)
    (away / "inside").symlink_to(root / "own")
    monkeypatch.setenv("PATH", f"{root / 'here'}:{away}")
    names = ["prove", "other", "plain", "gone", "inside", "./own", "own", str(away / "prove"), str(root / "own")]
    programs = NamedFiles(str(root)).programs(names)
    assert programs == {"other": str(away / "other"), str(away / "prove"): str(away / "prove")}


def test_a_path_with_tens_of_thousands_of_parts_is_behind_no_link(files: NamedFiles) -> None:
    assert files.links(["plain/missing" + "/a" * 30_000]) == {}


def test_no_more_bytes_are_read_than_requested_and_a_link_is_followed_if_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to("a")
    assert named_files.read(str(tmp_path / "a"), 3) == b"123"
    assert named_files.read(str(tmp_path / "a"), 9, links=False) == b"12345"
    assert named_files.read(str(tmp_path / "b"), 9) == b"12345"
    with pytest.raises(OSError, match="symbolic links"):
        named_files.read(str(tmp_path / "b"), 9, links=False)
    with pytest.raises(FileNotFoundError):
        named_files.read(str(tmp_path / "none"), 9)


def test_a_pipe_a_device_and_a_folder_are_refused_at_once_and_are_not_kept_open(tmp_path: Path) -> None:
    """F21: the pipe has no writer, so that opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="a pipe, a socket or a device"):
            named_files.read(str(place), 9)
    with pytest.raises(IsADirectoryError):
        named_files.read(str(tmp_path), 9)
    if sys.platform == "linux":  # it lists open files
        held = {os.path.realpath(f"/proc/self/fd/{handle}") for handle in os.listdir("/proc/self/fd")}
        assert not held & {str(tmp_path), str(tmp_path / "pipe"), "/dev/zero"}
