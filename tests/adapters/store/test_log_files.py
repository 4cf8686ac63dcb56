"""Backups and the archive: no event is lost or disappears for readers (R-LOG-8)."""

from __future__ import annotations

import gzip
import resource
import sqlite3
from pathlib import Path

import pytest

from idumb.domain.errors import Refusal
from idumb.domain.runs.event import NewEvent
from idumb.store import backups, doctor_checks
from idumb.store.event_log import SqliteLogFiles
from idumb.system import atomic_write
from tests.adapters.store.opened import OpenedLog, outside, without_triggers
from tests.support.cases import every
from tests.support.errors import code_of
from tests.support.fixed_clock import FixedClock


def two_runs(folder: Path) -> OpenedLog:
    """Two runs of one phase: events 1 to 10 and 11 to 20."""
    log = OpenedLog(folder)
    fence = log.owner.acquire("idumb test")
    for number, run in ((1, "r1"), (2, "r2")):
        events = [NewEvent("run.started", {"phase": "1", "number": number}, run=run)]
        events += [NewEvent("evidence.recorded", {"n": n}, run=run, task=f"T{n}") for n in range(9)]
        log.log.append(events, operation=f"o{number}", fence=fence)
    return log


@pytest.fixture
def opened(tmp_path: Path) -> OpenedLog:
    return two_runs(tmp_path)


@pytest.fixture
def files(opened: OpenedLog) -> SqliteLogFiles:
    return SqliteLogFiles(opened.log.database)


def rows(opened: OpenedLog) -> int:
    with outside(opened.path) as db:
        return int(db.execute("SELECT COUNT(*) FROM events").fetchone()[0])


def archive(opened: OpenedLog, files: SqliteLogFiles, run: str = "r1") -> Path:
    record = files.pack(run)
    opened.log.append([NewEvent("log.archived", record, run=run)], operation="o", fence=1)
    files.remove([run])
    return opened.folder / "idumb" / "archive" / str(record["file"])


def test_an_archived_run_leaves_the_database_and_every_hash_is_still_checked(
    opened: OpenedLog, files: SqliteLogFiles
) -> None:
    kept = list(opened.log.events(run="r2"))
    archive(opened, files)
    assert (rows(opened), opened.log.verify().count) == (12, 21)
    assert [event.kind for event in opened.log.events(run="r1")] == ["run.started", "log.archived"]
    assert list(opened.log.events(run="r2")) == kept
    assert [(one["run"], one["events"], one["last"]) for one in files.archived()] == [("r1", 10, 10)]
    opened.close()
    opened.append(1, 99)
    assert opened.log.verify().count == 22


@every(
    "statement",
    ["DELETE FROM events WHERE run = 'r1'", "DELETE FROM events WHERE run = 'r2'", "UPDATE events SET run = 'r2'"],
)
def test_the_database_refuses_to_delete_events_of_a_run_that_is_not_archived(tmp_path: Path, statement: str) -> None:
    opened = two_runs(tmp_path)
    archive(opened, SqliteLogFiles(opened.log.database), "r2")
    with outside(opened.path) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)


def test_an_archived_run_takes_no_more_events(opened: OpenedLog, files: SqliteLogFiles) -> None:
    archive(opened, files)
    late = NewEvent("evidence.recorded", run="r1")
    assert code_of(lambda: opened.log.append([late], operation="o", fence=1)) == "store.refused"


def test_a_run_is_not_archived_if_the_disk_has_another_file(
    opened: OpenedLog, files: SqliteLogFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_write, "write", lambda path, data, **_: Path(path).write_bytes(data[:-40]))
    assert code_of(lambda: files.pack("r1")) == "store.corrupt"


@every("text", [b"", b"damaged", gzip.compress(b"{}\n")])
def test_a_damaged_archive_is_detected(tmp_path: Path, text: bytes) -> None:
    log = two_runs(tmp_path)
    archive(log, SqliteLogFiles(log.log.database)).write_bytes(text)
    assert log.log.verify().broken_at == 2


def test_a_changed_record_of_an_archived_run_is_detected(opened: OpenedLog, files: SqliteLogFiles) -> None:
    archive(opened, files)
    opened.close()
    assert opened.log.head()[0] == 21
    opened.close()
    without_triggers(opened.path, "UPDATE events SET payload = '{}' WHERE kind = 'log.archived'")
    assert code_of(opened.log.head) == "store.corrupt"
    assert opened.log.verify().broken_at == 2


def test_a_lost_archive_is_named_and_no_older_log_takes_the_place_of_this_one(
    opened: OpenedLog, files: SqliteLogFiles
) -> None:
    archive(opened, files).unlink()
    opened.log.database.record_newest(back_up=True)
    opened.close()
    checks = doctor_checks.checks(opened.log, "main", FixedClock(), accept_loss=True)
    (found,) = next(check for check in checks if check.code == "store.chain").look()
    assert (found.state, found.fixes, found.found) == ("problem", False, "r1.jsonl.gz is missing or damaged")
    assert doctor_checks.plan(opened.log.database).events == 21


def test_a_log_whose_newest_recorded_event_was_archived_is_the_newest(opened: OpenedLog, files: SqliteLogFiles) -> None:
    """The command was killed before it recorded how far the log had come."""
    opened.owner.release()
    fence = opened.owner.acquire("idumb test")
    opened.log.append([NewEvent("log.archived", files.pack("r2"), run="r2")], operation="o", fence=fence)
    files.remove(["r2"])
    opened.close()
    assert opened.log.head()[0] == 21


def test_a_run_that_is_archived_while_the_chain_is_followed_breaks_nothing(
    opened: OpenedLog, files: SqliteLogFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader had asked for the archived runs before."""
    records, asked = backups.archived_runs, list[int]()

    def then_archived(connection: sqlite3.Connection) -> list[dict[str, object]]:
        known = records(connection)
        asked.append(len(known))
        if len(asked) == 1:
            archive(OpenedLog(opened.folder), files)
        return known

    monkeypatch.setattr(backups, "archived_runs", then_archived)
    assert opened.log.verify().count == 21


# Backups


def test_a_backup_has_every_event_and_can_replace_the_log(
    opened: OpenedLog, files: SqliteLogFiles, tmp_path: Path
) -> None:
    events = list(opened.log.events())
    backup = tmp_path / "backup.db"
    assert files.back_up(str(backup)) == opened.log.head()
    assert backup.stat().st_mode & 0o777 == 0o600
    check, ours = files.check_backup(str(backup))
    assert (check.count, check.broken_at, ours) == (20, None, True)
    opened.owner.release()
    opened.close()
    backup.rename(opened.path)
    assert list(opened.log.events()) == events
    assert opened.log.verify().broken_at is None


def test_a_backup_that_does_not_fit_is_refused_under_its_own_name(files: SqliteLogFiles, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(Refusal, match=f"{tmp_path}/b.db cannot be written"):
            files.back_up(f"{tmp_path}/b.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("b.db*"))


def test_what_a_killed_backup_left_goes_with_the_next_one(opened: OpenedLog) -> None:
    opened.owner.release()
    left = Path(opened.backups.folder) / "000000000007.db.part"
    left.write_bytes(b"half of it")
    opened.log.database.read(lambda db: opened.backups.back_up(db, 21), None)
    assert not left.exists()


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
    assert code_of(files.check_backup, str(tmp_path / "none")) == "backup.missing"
    assert code_of(files.back_up, str(tmp_path / "none" / "b.db")) == "backup.no-folder"
    assert code_of(files.back_up, "/proc/b.db") == "backup.not-written"


def test_a_backup_of_another_log_is_recognized(files: SqliteLogFiles, tmp_path: Path) -> None:
    other = OpenedLog(tmp_path / "other")
    other.folder.mkdir()
    other.fill(3)
    backup = tmp_path / "backup.db"
    SqliteLogFiles(other.log.database).back_up(str(backup))
    check, ours = files.check_backup(str(backup))
    assert (check.broken_at, ours) == (None, False)
