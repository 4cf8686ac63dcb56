"""Files that are whole or absent, and reports that no link leads astray (R-LOG-4)."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from pathlib import Path

import pytest

from idumb.system import atomic_write, private_folders, rooted_files, user_folders
from idumb.system.rooted_files import HostFiles, LinkInTheWay, ProjectFiles
from tests.support import python
from tests.support.cases import every


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


@every("durable", [True, False])
def test_a_file_is_created_and_replaced_without_leftovers(tmp_path: Path, *, durable: bool) -> None:
    place = tmp_path / "a"
    atomic_write.write(str(place), b"one", durable=durable)
    atomic_write.write(str(place), b"two" * 100_000, durable=durable)
    assert place.read_bytes() == b"two" * 100_000
    assert names(tmp_path) == ["a"]


def test_a_file_may_have_the_longest_name(tmp_path: Path) -> None:
    place = tmp_path / ("語" * 85)  # 255 bytes
    atomic_write.write(str(place), b"x")
    assert names(tmp_path) == [place.name]


def test_a_replaced_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.touch()
    place.chmod(0o750)
    atomic_write.write(str(place), b"x")
    assert stat.S_IMODE(place.stat().st_mode) == 0o750
    before = os.umask(0o027)
    try:
        atomic_write.write(str(tmp_path / "b"), b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o640


def test_a_link_is_replaced_and_its_target_is_unchanged(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "link").symlink_to(target)
    atomic_write.write(str(tmp_path / "link"), b"new")
    assert target.read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").touch()
    with pytest.raises(OSError, match="directory"):
        atomic_write.write(str(tmp_path / "folder"), b"x")
    assert names(tmp_path) == ["folder"]


WRITE_FOR_EVER = """
import sys
from idumb.system import atomic_write, private_folders
print("started", flush=True)
while True:
    for letter in (b"a", b"b"):
        atomic_write.write(sys.argv[1], letter * 300_000, durable=False)
"""


def test_a_kill_at_any_moment_leaves_a_complete_file(tmp_path: Path) -> None:
    """R-LOG-6."""
    place = tmp_path / "file"
    place.write_bytes(b"a" * 300_000)
    for _ in range(5):
        process = python.start(WRITE_FOR_EVER, place)
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(50):
            data = place.read_bytes()
            assert data in {b"a" * 300_000, b"b" * 300_000}
        process.send_signal(signal.SIGKILL)
        process.communicate()
    data = place.read_bytes()
    assert data in {b"a" * 300_000, b"b" * 300_000}


def test_create_never_replaces_an_existing_file(tmp_path: Path) -> None:
    atomic_write.create(str(tmp_path / "a"), b"one")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("a", "link"):
        with pytest.raises(FileExistsError):
            atomic_write.create(str(tmp_path / name), b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert not (tmp_path / "elsewhere").exists()


def test_every_new_level_of_a_private_folder_is_private(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    private_folders.make(str(tmp_path / "old/new/newer"))
    private_folders.make(str(tmp_path / "old/new/newer"))
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "old/new", "old/new/newer")]
    assert modes == [0o755, 0o700, 0o700]


def test_the_state_directory_is_in_the_home_unless_xdg_says_otherwise(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert user_folders.path() == str(home / "state/idumb")
    for value in ("", "relative/state"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert user_folders.path() == str(home / ".local/state/idumb")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert user_folders.path() == str(home / ".local/state/idumb")


@every("home", ["", "relative"])
def test_without_a_home_no_folder_of_idumb_is_below_the_current_one(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user of a container that has no entry in its table of users; here HOME says it."""
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", home)
    for folder in (user_folders.path(), user_folders.checkouts()[0], user_folders.configuration()):
        assert os.path.isabs(folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "repo"
    place.mkdir()
    return place


@pytest.fixture
def reports(root: Path) -> ProjectFiles:
    return ProjectFiles(str(root))


def test_a_report_is_written_read_and_removed(reports: ProjectFiles, root: Path) -> None:
    path = ".idumb/brain/checkpoints/T1-01.md"
    assert reports.read(path) is None
    assert not reports.exists(path)
    reports.write(path, "Ümlaut und \udcff\r\n")
    assert reports.exists(path)
    assert reports.read(path) == "Ümlaut und \udcff\r\n"
    assert (root / path).read_bytes() == "Ümlaut und ".encode() + b"\xff\r\n"
    reports.remove(path)
    reports.remove(path)
    assert not reports.exists(path)


@pytest.mark.parametrize("linked", [".idumb", ".idumb/brain"])
def test_a_folder_that_is_a_link_is_refused_and_nothing_is_written(
    reports: ProjectFiles, root: Path, tmp_path: Path, linked: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / linked).parent.mkdir(exist_ok=True)
    (root / linked).symlink_to(outside)
    (outside / "state.json").write_text("{}")
    path = f"{linked}/state.json"
    with pytest.raises(LinkInTheWay, match="link or not a folder"):
        reports.write(path, "x")
    with pytest.raises(LinkInTheWay, match="link or not a folder"):
        reports.read(path)
    with pytest.raises(LinkInTheWay, match="link or not a folder"):
        reports.remove(path)
    assert not reports.exists(path)
    assert (outside / "state.json").read_text() == "{}"


def test_a_report_that_is_a_link_is_replaced_and_not_read(reports: ProjectFiles, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "a.md").symlink_to(tmp_path / "secret")
    with pytest.raises(LinkInTheWay):
        reports.read("a.md")
    assert not reports.exists("a.md")
    reports.write("a.md", "report")
    assert (tmp_path / "secret").read_text() == "secret"
    assert reports.read("a.md") == "report"


def test_a_file_in_place_of_a_folder_is_refused(reports: ProjectFiles, root: Path) -> None:
    (root / ".idumb").write_text("a file")
    with pytest.raises(LinkInTheWay, match="`\\.idumb`"):
        reports.write(".idumb/brain/state.json", "x")


@every("path", ["/etc/passwd", "../a", "a/../../b", "a//b", "./a", "", "a/", "a\0b"])
def test_a_path_outside_the_root_is_refused(reports: ProjectFiles, path: str) -> None:
    with pytest.raises(OSError, match="not a path in the repository"):
        reports.write(path, "x")


def test_a_pipe_in_place_of_a_report_does_not_block_a_reader(reports: ProjectFiles, root: Path) -> None:
    os.mkfifo(root / "a.md")
    assert not reports.exists("a.md")
    assert reports.read("a.md") == ""


def test_a_file_of_an_agent_host_that_cannot_be_read_is_not_taken_for_missing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would be replaced."""
    (root / "large").write_text("mine")
    monkeypatch.setattr(rooted_files, "_LARGEST", 3)
    assert [HostFiles(str(root)).read(path) for path in ("large", "gone")] == ["", None]


def test_no_file_descriptor_stays_open(reports: ProjectFiles, root: Path) -> None:
    open_before = set(os.listdir("/dev/fd"))
    (root / "link").symlink_to(root)
    for path in ("a/b/c.md", "link/a.md", "a/b"):
        with contextlib.suppress(OSError):
            reports.write(path, "x")
        with contextlib.suppress(OSError):
            reports.read(path)
    assert set(os.listdir("/dev/fd")) == open_before
