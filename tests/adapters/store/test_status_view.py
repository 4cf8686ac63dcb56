"""The status record is used only while all its inputs are unchanged (R-LOG-4)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.store import status_view
from tests.adapters.store.opened import OpenedLog, outside
from tests.support.cases import every

PLAN = ".planning/phases/1/01-01-PLAN.md"
INPUTS = (PLAN, ".planning/ROADMAP.md", ".planning/config.yaml", ".planning/phases", ".planning/phases/1")
VIEW = {"next": "T1-02", "tasks": {"completed": 1}}


class Place:
    """A working tree and its repository's common git directory, with two events in the log."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        (self.root / ".planning/phases/1").mkdir(parents=True)
        (self.root / PLAN).write_text("a plan")
        (self.root / ".planning/ROADMAP.md").write_text("a roadmap")
        self.opened = OpenedLog(folder / "common")
        self.fence = self.opened.fill(2)
        self.folder = folder / "common/idumb/worktrees/main"

    def write(self) -> None:
        status_view.write(str(self.folder), str(self.root), VIEW, INPUTS)

    def read(self) -> object:
        return status_view.read(str(self.folder), str(self.root))


@pytest.fixture(autouse=True)
def coarse_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a test are new, and their times fine."""
    monkeypatch.setattr(status_view, "_FINE", 0)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_no_record_with_a_flipped_byte_is_shown(place: Place) -> None:
    """F44."""
    place.write()
    record = place.folder / "status.json"
    whole = record.read_bytes()
    for at in range(len(whole)):
        for bit in (1, 64):
            record.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            assert place.read() in (None, VIEW), at


CHANGES: dict[str, Callable[[Place], object]] = {
    "an event more": lambda place: place.opened.append(place.fence),
    "an edited plan": lambda place: (place.root / PLAN).write_text("a longer plan"),
    "an edit that keeps size and time": lambda place: same_size_and_time(place.root / PLAN),
    "a plan replaced": lambda place: replaced(place.root / PLAN),
    "a plan removed": lambda place: (place.root / PLAN).unlink(),
    "a plan more": lambda place: (place.root / ".planning/phases/1/01-02-PLAN.md").touch(),
    "a phase more": lambda place: (place.root / ".planning/phases/2").mkdir(),
    "a roadmap gone": lambda place: (place.root / ".planning/ROADMAP.md").unlink(),
    "a configuration that was absent": lambda place: (place.root / ".planning/config.yaml").touch(),
    "the database gone": lambda place: place.opened.path.unlink(),
    "another database": lambda place: replaced(place.opened.path),
    "a journal with something in it": lambda place: Path(f"{place.opened.path}-journal").write_bytes(b"x"),
    "a cut record": lambda place: os.truncate(place.folder / "status.json", 40),
    "an empty record": lambda place: os.truncate(place.folder / "status.json", 0),
    "a record of another shape": lambda place: (place.folder / "status.json").write_text("[]"),
}


def same_size_and_time(place: Path) -> None:
    before = place.stat()
    place.write_text("b plan")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(place: Path) -> None:
    before = place.stat()
    copy = place.with_name("copy")
    copy.write_bytes(place.read_bytes())
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    copy.rename(place)


@every("change", CHANGES)
def test_the_record_is_stale_after(tmp_path: Path, change: str) -> None:
    place = Place(tmp_path)
    place.write()
    CHANGES[change](place)
    assert place.read() is None


def test_a_record_of_a_file_that_just_changed_is_never_current(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in the same tick of the file system's clock would not show."""
    monkeypatch.setattr(status_view, "_FINE", 10**18)
    place.write()
    assert place.read() is None


def test_events_and_edits_between_read_and_write_make_the_record_stale_at_once(place: Place) -> None:
    seen = status_view.observe(str(place.folder), str(place.root), INPUTS)
    place.opened.append(place.fence)
    status_view.write(str(place.folder), str(place.root), VIEW, INPUTS, seen=seen)
    assert place.read() is None


def test_a_record_made_during_a_write_is_never_current(place: Place) -> None:
    journal = Path(f"{place.opened.path}-journal")
    journal.write_bytes(b"x")
    place.write()
    assert place.read() is None
    journal.write_bytes(b"")
    assert place.read() is None


def test_a_written_record_is_read_back_in_its_working_tree_alone(place: Place, tmp_path: Path) -> None:
    assert place.read() is None
    status_view.write(str(place.folder), str(place.root), VIEW, [])
    assert place.read() == VIEW
    assert status_view.read(str(place.folder), str(tmp_path)) is None


def test_a_repository_without_a_log_can_have_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "common/idumb/worktrees/main"
    status_view.write(str(folder), str(tmp_path), VIEW, ["ROADMAP.md"])
    assert status_view.read(str(folder), str(tmp_path)) == VIEW
    OpenedLog(tmp_path / "common").fill(1)
    assert status_view.read(str(folder), str(tmp_path)) is None


def test_every_commit_by_another_program_changes_the_signature(place: Place) -> None:
    before = status_view.store_signature(str(place.opened.path))
    with outside(place.opened.path) as db:
        db.execute("UPDATE owners SET fence = fence + 1")
    assert status_view.store_signature(str(place.opened.path)) != before
