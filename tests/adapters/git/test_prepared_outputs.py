"""What `checks.prepare` made is kept until it changes or belongs to another tree; see idumb/git/prepared_outputs.py."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from pathlib import Path

import pytest

from idumb.domain import lock_files
from idumb.git import prepared_outputs
from idumb.git.prepared_outputs import PreparedOutputs, key


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def _outputs(root: Path) -> PreparedOutputs:
    """As a command has it that begins now."""
    return PreparedOutputs(str(root.parent / "prepared-1"), str(root), prepared_outputs.records(str(root.parent)))


def _install(root: Path, source: object) -> None:
    info = root / ".venv/lib/python3.11/site-packages/own-1.dist-info"
    info.mkdir(parents=True)
    (info / "direct_url.json").write_text(json.dumps(source))


def test_outputs_are_moved_out_of_the_tree_and_found_again(root: Path) -> None:
    (root / "vendor/lib").mkdir(parents=True)
    (root / "vendor/lib/x").write_text("x\n")
    (root / "vendor/kept").write_text("committed\n")
    assert _outputs(root).find("k", "t1") is None
    kept = _outputs(root).keep("k", "t1", ["vendor/lib"])
    assert not (root / "vendor/lib").exists()
    assert _outputs(root).find("k", "t2") == kept
    assert (Path(kept.folder) / "vendor/lib/x").read_text() == "x\n"
    record = Path(kept.folder).parent / "record.json"
    record.write_text("{}")
    assert _outputs(root).find("k", "t1") is None


@pytest.mark.parametrize(
    ("source", "other"),
    [
        ({"url": "file://{root}", "dir_info": {}}, "made again"),
        ({"url": "file://{root}/packages/own", "dir_info": {}}, "made again"),
        ({"url": "file://{root}", "dir_info": {"editable": True}}, "kept"),
        ({"url": "file:///elsewhere", "dir_info": {}}, "kept"),
        ({"url": "https://host/own.whl", "archive_info": {}}, "kept"),
        ([], "kept"),
    ],
)
def test_an_installed_copy_of_the_project_belongs_to_its_tree(root: Path, source: object, other: str) -> None:
    """A check would judge the sources of an earlier tree."""
    _install(root, json.loads(json.dumps(source).replace("{root}", str(root))))
    _outputs(root).keep("k", "t1", [".venv"])
    assert _outputs(root).find("k", "t1") is not None
    assert (_outputs(root).find("k", "t2") is None) == (other == "made again")


def test_three_installations_stay(root: Path) -> None:
    for number in range(4):
        (root / "deps").mkdir()
        kept = _outputs(root).keep(f"k{number}", "t", ["deps"])
        os.utime(Path(kept.folder).parent / "record.json", (number, number))
    assert sorted(path.name for path in (root.parent / "prepared-1").iterdir()) == ["k1", "k2", "k3"]


def test_lock_files_of_every_folder_count() -> None:
    paths = ["a.txt", "web/package-lock.json", "requirements-dev.txt", "uv.lock", "my-uv.lock", "go.sum", "x/pom.xml"]
    assert lock_files.among(paths) == [
        "go.sum",
        "requirements-dev.txt",
        "uv.lock",
        "web/package-lock.json",
        "x/pom.xml",
    ]


def test_each_word_makes_another_key() -> None:
    assert key("a", "b") != key("ab")
    assert key("a", "b") == key("a", "b")


def _forge(entry: Path) -> None:
    """Change an installation as a builder could that knows how idumb records it."""
    (entry / "files/vendor/x").write_text("bad\n")
    path = entry / "record.json"
    stamps = prepared_outputs._digest(str(entry / "files"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "stamps": stamps}))


def _keep(outputs: PreparedOutputs, root: Path) -> Path:
    (root / "vendor").mkdir()
    (root / "vendor/x").write_text("good\n")
    return Path(outputs.keep("k", "t1", ["vendor"]).folder).parent


def test_an_entry_that_a_builder_made_anew_is_not_believed(root: Path) -> None:
    outputs = _outputs(root)
    entry = _keep(outputs, root)
    assert outputs.find("k", "t1") is not None
    _forge(entry)
    assert outputs.find("k", "t1") is None


def test_an_entry_that_changed_since_the_command_began_is_not_believed(root: Path) -> None:
    """A builder may forge one before the first check."""
    entry = _keep(_outputs(root), root)
    outputs = _outputs(root)
    assert outputs.find("k", "t1") is not None
    _forge(entry)
    assert outputs.find("k", "t1") is None


def test_a_write_through_memory_makes_an_entry_unbelievable() -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="idumb-test-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        (work / "tool").write_text("honest")
        outputs = _outputs(work)
        kept = Path(outputs.keep("k", "t", ["tool"]).folder)
        assert outputs.find("k", "t") is not None
        assert _outputs(work).find("k", "t") is not None
        before = (kept / "tool").stat()
        with (kept / "tool").open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
            assert mapped[0] == ord("h")  # pages that were read are written without a stamp
            mapped[:] = b"forged"
        assert (kept / "tool").stat().st_ctime_ns == before.st_ctime_ns
        assert outputs.find("k", "t") is None
