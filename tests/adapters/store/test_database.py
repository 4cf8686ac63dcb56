"""The database: what it refuses, where it may be, how it is protected and redacted, what errors say. R-LOG-1, 3."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from idumb.domain import canonical_json
from idumb.domain.errors import StoreError
from idumb.domain.runs.event import NewEvent
from idumb.store import connection, event_chain
from idumb.store.connection import Database
from idumb.store.event_chain import Row
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from idumb.system import machine
from idumb.system.redaction import Redactor
from tests.adapters.store.opened import OpenedLog, outside
from tests.support import permissions
from tests.support.cases import every
from tests.support.errors import code_of, refusing
from tests.support.fixed_clock import FixedClock

MIDDLE = "operation, run, task, attempt, kind, version, payload, fence, at"


@pytest.mark.parametrize(("files", "code"), [(3, "store.full"), (100_000, "store.file")])
def test_a_log_that_lacks_file_descriptors_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, code: str
) -> None:
    """F34: SQLite says of both that it is unable to open the file."""
    answer = os.statvfs_result((4096, 4096, 9_000, 9_000, 9_000, files, files, files, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: answer)
    with pytest.raises(StoreError) as caught, connection.translated(str(tmp_path / "store.db")):
        sqlite3.connect(tmp_path / "absent" / "store.db")
    assert caught.value.code == code
    assert ("and 3 files free)" in caught.value.message) == (files == 3)


def pragma(opened: OpenedLog, text: str) -> object:
    nothing: object = None
    return opened.log.database.read(lambda db: db.execute(f"PRAGMA {text}").fetchone()[0], nothing)


def test_reading_creates_nothing(opened: OpenedLog) -> None:
    opened.log.head()
    list(opened.log.events(run="r"))
    opened.log.verify()
    assert list(opened.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({"run": "r"}, "events_by_run"),
        ({"task": "T1-01"}, "events_by_task"),
        ({"kind": "evidence.recorded"}, "events_by_kind"),
        ({"operation": "o"}, "events_by_operation"),
        ({"since": "2026-01-01T00:00:00Z"}, "events_by_time"),
    ],
)
def test_every_query_of_the_log_uses_an_index(
    opened: OpenedLog, monkeypatch: pytest.MonkeyPatch, filters: dict[str, str], index: str
) -> None:
    opened.fill(3)
    plans: list[str] = []
    unplanned = connection.Database.rows

    def planned(database: connection.Database, query: str, arguments: Sequence[Any]) -> list[Row]:
        plans.extend(str(row[3]) for row in unplanned(database, f"EXPLAIN QUERY PLAN {query}", arguments))
        return unplanned(database, query, arguments)

    monkeypatch.setattr(connection.Database, "rows", planned)
    list(opened.log.events(**filters))  # type: ignore[arg-type]
    assert any(index in plan for plan in plans), plans
    assert not [plan for plan in plans if plan.startswith("SCAN")]


@every(
    "statement",
    [
        "UPDATE events SET kind = 'run.failed' WHERE seq = 1",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 2",
        f"INSERT INTO events SELECT 9, {MIDDLE}, hash, 'x' FROM events WHERE seq = 2",
        f"INSERT INTO events SELECT 3, {MIDDLE}, 'x', 'y' FROM events WHERE seq = 2",
        "UPDATE runs SET phase = '2'",
        "DELETE FROM runs",
        "INSERT INTO runs SELECT 2, 'r2', phase, worktree, 1, 3, 'x', 'y' FROM runs",
        "UPDATE owners SET fence = 0",
    ],
)
def test_the_database_itself_refuses_to_rewrite_history(tmp_path: Path, statement: str) -> None:
    opened = OpenedLog(tmp_path)
    fence = opened.owner.acquire("idumb test")
    opened.log.append([NewEvent("run.started", {"phase": "1", "number": 1}, run="r")], operation="o", fence=fence)
    opened.append(fence)
    with outside(opened.path) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)
    assert opened.log.verify().count == 2


def test_folder_and_files_belong_to_the_user_alone(opened: OpenedLog) -> None:
    before = os.umask(0)
    try:
        opened.fill(1)
    finally:
        os.umask(before)
    folder = opened.folder / "idumb"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {place.name: stat.S_IMODE(place.stat().st_mode) for place in folder.rglob("*") if place.is_file()}
    assert set(modes) >= {"store.db", "store.db-journal", "owner.lock", "owner.json"}
    assert set(modes.values()) == {0o600}


def test_every_connection_is_durable(opened: OpenedLog) -> None:
    opened.fill(1)
    assert pragma(opened, "journal_mode") == "truncate"
    assert pragma(opened, "synchronous") == 2


@pytest.mark.parametrize("version", [event_chain.CURRENT - 1, event_chain.CURRENT + 1])
def test_an_unknown_schema_is_refused_and_not_changed(opened: OpenedLog, version: int) -> None:
    """R-LOG-2."""
    fence = opened.fill(1)
    opened.close()
    with outside(opened.path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = opened.path.read_bytes()
    assert code_of(opened.log.head) == "store.schema"
    assert code_of(opened.append, fence) == "store.schema"
    assert opened.path.read_bytes() == before


def test_a_failed_write_leaves_nothing_and_the_next_one_works(opened: OpenedLog) -> None:
    fence = opened.owner.acquire("idumb test")
    start = NewEvent("run.started", {"phase": "1", "number": 1}, run="r")
    opened.log.append([start], operation="o", fence=fence)
    assert code_of(lambda: opened.log.append([NewEvent("run.resumed"), start], operation="o", fence=fence)) == (
        "store.refused"
    )
    assert opened.log.head()[0] == 1
    opened.append(fence)
    assert opened.log.verify().count == 2


def test_a_read_only_database_can_be_read(opened: OpenedLog) -> None:
    fence = opened.fill(1)
    opened.close()
    opened.path.chmod(0o400)

    def use() -> None:
        assert opened.log.head()[0] == 1
        assert code_of(opened.append, fence) == "store.read-only"

    permissions.call_obeying(use)


def test_a_full_disk_is_reported_and_earlier_events_stay_readable(opened: OpenedLog) -> None:
    fence = opened.fill(3)
    pragma(opened, f"max_page_count = {pragma(opened, 'page_count')}")
    big = NewEvent("evidence.recorded", {"output": "x" * 100_000})
    assert code_of(lambda: opened.log.append([big], operation="o", fence=fence)) == "store.full"
    assert opened.log.verify().count == 3


def test_a_busy_database_is_waited_for_and_then_reported(opened: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    fence = opened.fill(1)
    opened.close()
    with outside(opened.path) as db:
        db.execute("BEGIN IMMEDIATE")
        assert code_of(opened.append, fence) == "store.busy"
    opened.append(fence)


def test_a_hash_is_that_of_canonical_json() -> None:
    payload = {"b": ['",payload":', 1.5, None], "a": {"\ud800": "é\n"}}
    text = canonical_json.encode(payload).decode("ascii")
    event = NewEvent("step.finished", payload, run='r",', task="previous", attempt=2)
    (row,) = event_chain.chain([(event, text)], 6, {}, operation="o", fence=3, at="now")
    fields = dict(zip(event_chain.COLUMNS.split(", "), row, strict=True))
    covered = [value for name, value in fields.items() if name not in {"payload", "hash"}]
    assert fields["hash"] == hashlib.sha256(canonical_json.encode(covered) + b"\n" + text.encode()).hexdigest()


def test_runs_are_found_by_phase(opened: OpenedLog) -> None:
    assert (opened.log.latest_run("1"), opened.log.last_number("1"), opened.log.phases()) == (None, 0, ())
    runs = [("a", "2", 1), ("b", "1", 1), ("c", "2", 2)]
    events = [NewEvent("run.started", {"phase": phase, "number": number}, run=run) for run, phase, number in runs]
    opened.log.append(events, operation="o", fence=opened.owner.acquire("test"))
    assert [opened.log.latest_run(phase) for phase in ("2", "1", "3")] == ["c", "b", None]
    assert (opened.log.last_number("2"), opened.log.last_number("3")) == (2, 0)
    assert opened.log.phases() == ("2", "1")


def log_on(folder: Path, *, allowed: bool = False) -> FileOwnership:
    may_create = partial(connection.refuse_network, allowed=lambda: allowed)
    log = SqliteEventLog(Database(str(folder), may_create=may_create), "main", FixedClock())
    return FileOwnership(log.database, "main", FixedClock())


def test_a_log_is_created_on_a_network_file_system_only_if_the_user_allows_it_and_an_existing_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("cifs", "9p", "fuse.sshfs", "nfs4"):
        monkeypatch.setattr(machine, "kind_of", lambda _, kind=kind: kind)
        with refusing("store.network") as caught:
            log_on(tmp_path).acquire("idumb test")
        assert "git.network" in (caught.value.hint or "")
    assert not (tmp_path / "idumb" / "store.db").exists()
    allowed = log_on(tmp_path, allowed=True)
    assert allowed.acquire("idumb test") == 1
    allowed.release()
    assert log_on(tmp_path).acquire("idumb test") == 2


@every("value", ["secret", "T1-01.secret.1", "evidence", "failed-x9", "model-x9"])
def test_identifiers_stay_and_free_text_is_redacted(tmp_path: Path, value: str) -> None:
    """R-LOG-3: at every depth; names of fields and of tasks stay too."""
    log = SqliteEventLog(Database(str(tmp_path)), "main", FixedClock(), redactor=lambda: Redactor({"API_KEY": value}))
    owner = FileOwnership(log.database, "main", FixedClock())
    exact: dict[str, Any] = {
        "id": f"T1-01.{value}.1",
        "decisions": [f"T1-01.{value}.1"],
        "choices": [{"id": value}],
        "evidence": {"T1-01": {"result": value}},
        "key": f"command {value} none",
    }
    fence = owner.acquire("idumb test")
    free = {"what": f"it says {value}", "left": {f"out/{value}.txt": "x"}, "argv": [value]}
    log.append([NewEvent("decision.asked", {**exact, **free}, run="r")], operation="o", fence=fence)
    (event,) = log.events()
    assert {name: event.payload[name] for name in exact} == exact
    assert value not in str([event.payload[name] for name in free])
