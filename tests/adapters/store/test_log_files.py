"""Backups and the archive: no event is lost or disappears for readers (R-LOG-8)."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from idumb.domain.errors import IdumbError, StoreError
from idumb.domain.runs.event import Event, NewEvent
from idumb.store import log_files, rebuild
from idumb.store.log_files import SqliteLogFiles
from idumb.store.witnesses import nothing_kept
from tests.adapters.store.opened import OpenedLog, outside, without_triggers
from tests.support.fixed_clock import FixedClock


@pytest.fixture
def opened(tmp_path: Path) -> OpenedLog:
    """Two runs of one phase: events 1 to 10 and 11 to 20."""
    log = OpenedLog(tmp_path)
    fence = log.owner.acquire("idumb test")
    for number, run in ((1, "r1"), (2, "r2")):
        events = [NewEvent("run.started", {"phase": "1", "number": number}, run=run)]
        events += [NewEvent("evidence.recorded", {"n": n}, run=run, task=f"T{n}") for n in range(9)]
        log.log.append(events, operation=f"o{number}", fence=fence)
    return log


@pytest.fixture
def files(opened: OpenedLog) -> SqliteLogFiles:
    return SqliteLogFiles(opened.log.database, FixedClock())


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "SIZE", 4)


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(IdumbError) as caught:
        action()
    return caught.value.code


READS: list[dict[str, object]] = [
    {},
    {"run": "r1"},
    {"run": "r2"},
    {"task": "T3"},
    {"kind": "run.started"},
    {"operation": "o1"},
    {"after": 3},
    {"after": 12},
    {"limit": 3},
    {"limit": 12},
    {"newest_first": True},
    {"newest_first": True, "limit": 13},
    {"run": "r1", "newest_first": True, "limit": 2},
    {"after": 2, "newest_first": True},
    {"since": "2026-01-02T03:04:06.000000Z"},
    {"until": "2026-01-02T03:04:06.000000Z"},
]


def reads(opened: OpenedLog) -> list[list[Event]]:
    return [list(opened.log.events(**read)) for read in READS]  # type: ignore[arg-type]


def rows(opened: OpenedLog) -> int:
    with outside(opened.path) as db:
        return int(db.execute("SELECT COUNT(*) FROM events").fetchone()[0])


def segment(opened: OpenedLog, number: int = 0) -> Path:
    return sorted((opened.folder / "idumb" / "archive").iterdir())[number]


def test_archived_events_are_read_as_if_they_were_in_the_log(opened: OpenedLog, files: SqliteLogFiles) -> None:
    before, check, head = reads(opened), opened.log.verify(), opened.log.head()
    archived = files.archive(10)
    assert [(one["first"], one["last"]) for one in archived] == [(1, 4), (5, 8), (9, 10)]
    assert rows(opened) == 10
    assert reads(opened) == before
    assert (opened.log.verify(), opened.log.head()) == (check, head)
    assert [one["number"] for one in files.listed()] == [1, 2, 3]


def test_the_log_continues_after_everything_was_archived(opened: OpenedLog, files: SqliteLogFiles) -> None:
    files.archive(20)
    assert rows(opened) == 0
    opened.append(1, 99)
    assert opened.log.verify().count == 21
    assert [event.seq for event in opened.log.events()] == list(range(1, 22))
    opened.close()
    assert opened.log.head()[0] == 21


def test_the_database_refuses_to_delete_events_that_are_in_no_segment(opened: OpenedLog, files: SqliteLogFiles) -> None:
    files.archive(10)
    for statement in (
        "DELETE FROM events WHERE seq = 11",
        "DELETE FROM segments",
        "UPDATE segments SET last_seq = 20",
        "INSERT INTO segments VALUES (9, 'x', 11, 20, 'p', 'h', 's', 'a', 'k')",
        "INSERT INTO segments VALUES (4, 'x', 11, 20, 'p', 'h', 's', 'a', 'k')",
    ):
        with outside(opened.path) as db, pytest.raises(Exception, match=r"segment|deleted"):
            db.execute(statement)
    assert opened.log.verify().count == 20


def test_a_segment_without_events_of_a_kind_is_not_opened_for_it(opened: OpenedLog, files: SqliteLogFiles) -> None:
    """`status` and `resume` ask for rare kinds, and a damaged archive must not stop them."""
    files.archive(10)
    for place in (opened.folder / "idumb" / "archive").iterdir():
        place.unlink()
    assert list(opened.log.events(kind="legacy.imported")) == []
    assert code_of(lambda: list(opened.log.events(kind="run.started"))) == "store.segment"


def test_archiving_again_moves_nothing(opened: OpenedLog, files: SqliteLogFiles) -> None:
    files.archive(10)
    assert files.archive(10) == []
    assert files.archive(0) == []


def test_an_archive_killed_before_it_deleted_rows_is_completed(
    opened: OpenedLog, files: SqliteLogFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = reads(opened)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log_files, "_drop", killed)
        with pytest.raises(KeyboardInterrupt):
            files.archive(10)
    assert (rows(opened), reads(opened)) == (20, before)
    files.archive(10)
    assert (rows(opened), reads(opened)) == (10, before)


def test_a_segment_that_the_disk_lost_deletes_no_event(
    opened: OpenedLog, files: SqliteLogFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "_packed", lambda events: gzip.compress(b"".join(b"{}\n" for _ in events)))
    assert code_of(lambda: files.archive(10)) == "store.corrupt"
    assert rows(opened) == 20


@pytest.mark.parametrize("damage", ["removed", "emptied", "cut", "flipped"])
def test_every_reader_reports_a_damaged_segment_and_it_is_rebuilt(
    opened: OpenedLog, files: SqliteLogFiles, damage: str
) -> None:
    events = list(opened.log.events())
    files.archive(10)
    place = segment(opened, 1)
    whole = bytearray(place.read_bytes())
    if damage == "removed":
        place.unlink()
    else:
        whole[len(whole) // 2] ^= 4
        place.write_bytes({"emptied": b"", "cut": bytes(whole[:40]), "flipped": bytes(whole)}[damage])
    assert code_of(lambda: list(opened.log.events())) == "store.segment"
    assert code_of(opened.log.verify) == "store.segment"
    assert len(list(opened.log.events(run="r2"))) == 10
    opened.owner.release()
    opened.close()
    rebuild.rebuild(str(opened.folder), nothing_kept)
    assert list(opened.log.events()) == events


def test_a_missing_database_is_rebuilt_from_segments(opened: OpenedLog, files: SqliteLogFiles) -> None:
    events = list(opened.log.events())
    files.archive(10)
    opened.owner.release()
    opened.close()
    opened.path.unlink()
    rebuild.rebuild(str(opened.folder), nothing_kept)
    assert list(opened.log.events()) == events
    assert rows(opened) == 10
    assert [one["last"] for one in files.listed()] == [4, 8, 10]


def test_a_moved_repository_copies_its_archived_events_too(opened: OpenedLog, files: SqliteLogFiles) -> None:
    events = list(opened.log.events())
    files.archive(10)
    opened.owner.release()
    opened.close()
    moved = opened.folder.with_name(f"{opened.folder.name}-moved")
    opened.folder.rename(moved)
    again = OpenedLog(moved)
    again.append(again.owner.acquire("idumb test"), 5)
    (moved / "idumb" / "store.db").unlink()
    again.close()
    rebuild.rebuild(str(moved), nothing_kept)
    assert list(OpenedLog(moved).log.events())[:20] == events


def test_events_archived_during_a_read_are_not_missed(
    opened: OpenedLog, files: SqliteLogFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idumb.store.event_log.PAGE", 5)
    newest, oldest = opened.log.events(newest_first=True), opened.log.events()
    first_five = [next(newest).seq for _ in range(5)]
    next(oldest)
    files.archive(12)
    assert first_five + [event.seq for event in newest] == list(range(20, 0, -1))
    assert code_of(lambda: list(oldest)) == "store.busy"


# Backups


def test_a_backup_has_every_event_and_can_replace_the_log(
    opened: OpenedLog, files: SqliteLogFiles, tmp_path: Path
) -> None:
    events = list(opened.log.events())
    files.archive(10)
    backup = tmp_path / "backup.db"
    assert files.back_up(str(backup)) == opened.log.head()
    assert backup.stat().st_mode & 0o777 == 0o600
    check, ours = files.check_backup(str(backup))
    assert (check.count, check.broken_at, ours) == (20, None, True)
    opened.owner.release()
    opened.close()
    backup.rename(opened.path)
    assert list(opened.log.events()) == events
    assert opened.owner.acquire("idumb test") > 1000


def test_a_backup_never_replaces_a_file(files: SqliteLogFiles, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    assert code_of(lambda: files.back_up(str(tmp_path / "mine"))) == "backup.exists"
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_a_backup_works_without_hard_links_and_replaces_nothing(
    files: SqliteLogFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    files.back_up(str(tmp_path / "b.db"))
    assert files.check_backup(str(tmp_path / "b.db"))[0].broken_at is None
    assert code_of(lambda: files.back_up(str(tmp_path / "b.db"))) == "backup.exists"
    assert sorted(path.name for path in tmp_path.iterdir() if "part" in path.name) == []


def test_a_backup_to_a_missing_folder_is_refused(files: SqliteLogFiles, tmp_path: Path) -> None:
    assert code_of(lambda: files.back_up(str(tmp_path / "none" / "b.db"))) == "backup.no-folder"


def test_a_damaged_backup_is_never_called_valid(opened: OpenedLog, files: SqliteLogFiles, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    files.back_up(str(backup))
    whole = backup.read_bytes()
    without_triggers(backup, "UPDATE events SET payload = '{}' WHERE seq = 7")
    check, ours = files.check_backup(str(backup))
    assert (check.count, check.broken_at, ours) == (6, 7, True)
    for damaged in (b"", b"text", whole[:5000], b"x" * len(whole)):
        backup.write_bytes(damaged)
        assert code_of(lambda: files.check_backup(str(backup))) == "store.corrupt"
    assert code_of(lambda: files.check_backup(str(tmp_path / "none"))) == "backup.missing"


def test_a_backup_of_another_log_is_recognized(files: SqliteLogFiles, tmp_path: Path) -> None:
    other = OpenedLog(tmp_path / "other")
    other.folder.mkdir()
    other.fill(3)
    backup = tmp_path / "backup.db"
    SqliteLogFiles(other.log.database, FixedClock()).back_up(str(backup))
    check, ours = files.check_backup(str(backup))
    assert (check.broken_at, ours) == (None, False)


def test_an_older_backup_in_place_of_the_log_is_detected_and_completed(
    opened: OpenedLog, files: SqliteLogFiles, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    files.back_up(str(backup))
    opened.append(1, 99)
    opened.owner.release()
    opened.close()
    os.replace(backup, opened.path)
    with pytest.raises(StoreError) as caught:
        opened.log.head()
    assert (caught.value.code, caught.value.hint) == ("store.older", "idumb doctor --fix")
    rebuild.rebuild(str(opened.folder), nothing_kept)
    assert opened.log.head()[0] == 21
