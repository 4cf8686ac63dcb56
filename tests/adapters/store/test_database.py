"""The database on disk: what it refuses, how it is protected, what happens when it is damaged (R-LOG-1, R-LOG-3)."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from idumb.domain import canonical_json
from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs.event import NewEvent
from idumb.store import connection, event_chain, log_errors, rebuild, schema
from idumb.store.event_chain import Row
from idumb.store.witnesses import nothing_kept
from tests.adapters.store.opened import OpenedLog, outside, without_triggers
from tests.meta import source

MIDDLE = "operation, run, task, attempt, kind, version, payload, fence, at"


@pytest.fixture
def opened(tmp_path: Path) -> OpenedLog:
    return OpenedLog(tmp_path)


def code_of(action: object, *arguments: object) -> str:
    with pytest.raises(StoreError) as caught:
        action(*arguments)  # type: ignore[operator]
    return caught.value.code


@pytest.mark.parametrize(("files", "code"), [(3, "store.full"), (100_000, "store.file")])
def test_a_log_that_lacks_file_descriptors_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, code: str
) -> None:
    """F34: SQLite says of both that it is unable to open the file."""
    answer = os.statvfs_result((4096, 4096, 9_000, 9_000, 9_000, files, files, files, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: answer)
    with pytest.raises(StoreError) as caught, log_errors.translated(str(tmp_path / "store.db")):
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


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 'run.failed' WHERE seq = 1",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 2",
        f"INSERT INTO events SELECT 9, {MIDDLE}, hash, 'x' FROM events WHERE seq = 2",
        f"INSERT INTO events SELECT 3, {MIDDLE}, 'x', 'y' FROM events WHERE seq = 2",
        "UPDATE owners SET fence = 0",
    ],
)
def test_the_database_itself_refuses_to_rewrite_history(opened: OpenedLog, statement: str) -> None:
    opened.fill(2)
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
    assert set(modes) >= {"store.db", "store.db-journal", "anchor.json", "owner.lock", "owner.json"}
    assert set(modes.values()) == {0o600}


def test_every_connection_is_durable(opened: OpenedLog) -> None:
    opened.fill(1)
    assert pragma(opened, "journal_mode") == "truncate"
    assert pragma(opened, "synchronous") == 2


def test_a_database_switched_to_write_ahead_mode_is_switched_back(opened: OpenedLog) -> None:
    fence = opened.fill(1)
    opened.close()
    with outside(opened.path) as db:
        assert db.execute("PRAGMA journal_mode = wal").fetchone() == ("wal",)
    opened.append(fence)
    with outside(opened.path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


@pytest.mark.parametrize(
    ("statement", "broken_at", "why"),
    [
        ("UPDATE events SET payload = '{\"n\":7}' WHERE seq = 3", 3, "was changed after"),
        ("UPDATE events SET payload = x'00' WHERE seq = 3", 3, "not readable"),
        ("UPDATE events SET at = '2020' WHERE seq = 5", 5, "was changed after"),
        ("UPDATE events SET task = 'T' WHERE seq = 1", 1, "was changed after"),
        ("DELETE FROM events WHERE seq = 2", 2, "missing"),
        ("UPDATE events SET previous = 'x' WHERE seq = 4", 4, "not chained"),
    ],
)
def test_verify_names_the_first_tampered_event(opened: OpenedLog, statement: str, broken_at: int, why: str) -> None:
    opened.fill(5)
    opened.close()
    without_triggers(opened.path, statement)
    check = opened.log.verify()
    assert (check.broken_at, check.count) == (broken_at, broken_at - 1)
    assert why in check.why


def test_a_payload_that_is_not_json_is_a_clear_error(opened: OpenedLog) -> None:
    opened.fill(2)
    opened.close()
    without_triggers(opened.path, "UPDATE events SET payload = '{' WHERE seq = 1")
    assert code_of(lambda: list(opened.log.events())) == "store.corrupt"


def test_a_newer_schema_is_refused_and_not_changed(opened: OpenedLog) -> None:
    fence = opened.fill(1)
    opened.close()
    with outside(opened.path) as db:
        db.execute(f"PRAGMA user_version = {schema.CURRENT + 1}")
    before = opened.path.read_bytes()
    assert code_of(opened.log.head) == "store.newer"
    assert code_of(opened.append, fence) == "store.newer"
    assert opened.path.read_bytes() == before


@pytest.mark.parametrize("bytes_kept", [1, 100, 4096, 20_000])
def test_a_truncated_database_is_never_accepted(opened: OpenedLog, bytes_kept: int) -> None:
    fence = opened.fill(30)
    opened.owner.release()
    opened.close()
    os.truncate(opened.path, bytes_kept)
    assert code_of(opened.append, fence).startswith("store.")


def test_garbage_in_place_of_the_database_is_a_clear_error(opened: OpenedLog) -> None:
    opened.fill(1)
    opened.close()
    opened.path.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match="not an SQLite database") as caught:
        opened.log.head()
    assert caught.value.code == "store.corrupt"
    assert caught.value.exit_code == 4
    assert caught.value.hint


def test_every_flipped_byte_is_detected(opened: OpenedLog) -> None:
    """R-LOG-2: After any flipped byte the events are unchanged or an error is reported, never a traceback."""
    opened.fill(12)
    opened.owner.release()
    opened.close()
    events = list(opened.log.events())
    opened.close()
    whole = opened.path.read_bytes()
    chosen = random.Random(20260102)
    noticed = 0
    for place in chosen.sample(range(len(whole)), 400):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chosen.randrange(8)
        opened.path.write_bytes(damaged)
        again = OpenedLog(opened.folder)
        try:
            if again.log.verify().broken_at is None:
                assert list(again.log.events()) == events, place
                assert list(again.log.events(run="r")) == events, place
            else:
                noticed += 1
        except StoreError:
            noticed += 1
        finally:
            again.close()
    assert noticed > 20


@pytest.mark.parametrize("missing", ["removed", "emptied"])
def test_a_missing_database_is_not_replaced_by_an_empty_one(opened: OpenedLog, missing: str) -> None:
    fence = opened.fill(2)
    opened.close()
    if missing == "removed":
        opened.path.unlink()
    else:
        opened.path.write_bytes(b"")
    assert code_of(opened.log.head) == "store.missing"
    assert code_of(opened.append, fence) == "store.missing"


def test_the_anchor_detects_an_older_copy(opened: OpenedLog) -> None:
    fence = opened.fill(2)
    older = opened.path.read_bytes()
    opened.append(fence)
    opened.owner.release()
    opened.close()
    opened.path.write_bytes(older)
    assert code_of(opened.log.head) == "store.older"


def test_the_anchor_detects_another_history_of_the_same_length(tmp_path: Path) -> None:
    first, second = OpenedLog(tmp_path / "a"), OpenedLog(tmp_path / "b")
    first.fill(2)
    fence = second.owner.acquire("other")
    second.log.append(
        [NewEvent("evidence.recorded", {"n": -1}), NewEvent("evidence.recorded")], operation="o", fence=fence
    )
    first.owner.release()
    first.close()
    first.path.write_bytes(second.path.read_bytes())
    assert code_of(first.log.head) == "store.diverged"


@pytest.mark.parametrize("text", ["{", "[" * 4000], ids=["cut", "deep"])
def test_a_damaged_anchor_is_not_an_obstacle(opened: OpenedLog, text: str) -> None:
    fence = opened.fill(1)
    opened.close()
    opened.anchor.write_text(text, encoding="utf-8")
    opened.append(fence)
    assert opened.log.head()[0] == 2


def _cut_short_by_a_kill(opened: OpenedLog) -> None:
    """Leave a journal that has to be played back: a transaction whose pages were written and never committed."""
    child = os.fork()
    if not child:
        try:
            db = sqlite3.connect(opened.path, isolation_level=None)
            for statement in ("PRAGMA cache_size = 1", "PRAGMA journal_mode = truncate", "BEGIN IMMEDIATE"):
                db.execute(statement)
            db.execute("CREATE TABLE big (x)")
            db.execute("INSERT INTO big SELECT hex(randomblob(4000)) FROM events a, events b, events c")
        finally:
            os._exit(9)
    os.waitpid(child, 0)
    assert opened.path.with_name("store.db-journal").stat().st_size > 0


def test_a_journal_left_by_a_crash_is_rolled_back(opened: OpenedLog) -> None:
    """R-LOG-6."""
    fence = opened.fill(8)
    opened.close()
    _cut_short_by_a_kill(opened)
    assert opened.log.verify().count == 8
    opened.append(fence)
    with outside(opened.path) as db:
        assert db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'big'").fetchone() == (0,)


def test_a_removed_journal_is_detected_or_harmless(opened: OpenedLog) -> None:
    """F43: the file contains pages of an unfinished transaction, and nothing can roll them back."""
    opened.fill(8)
    opened.owner.release()
    opened.close()
    events = list(opened.log.events())
    opened.close()
    _cut_short_by_a_kill(opened)
    opened.path.with_name("store.db-journal").unlink()
    try:
        assert list(opened.log.events()) == events
    except StoreError as problem:
        assert problem.code in {"store.corrupt", "store.failed"}  # noqa: PT017
    opened.close()
    rebuild.rebuild(str(opened.folder), nothing_kept)
    assert list(opened.log.events()) == events


def test_side_files_of_write_ahead_mode_lose_nothing(opened: OpenedLog) -> None:
    """Another program turned it on, wrote, and was killed before its log came back into the file."""
    fence = opened.fill(3)
    opened.close()
    child = os.fork()
    if not child:
        db = sqlite3.connect(opened.path, isolation_level=None)
        db.execute("PRAGMA journal_mode = wal")
        db.execute("CREATE TABLE foreign_to_us (x)")
        os._exit(9)
    os.waitpid(child, 0)
    assert opened.path.with_name("store.db-wal").exists()
    opened.append(fence)
    assert opened.log.verify().count == 4
    opened.close()
    assert not opened.path.with_name("store.db-wal").exists()


def test_a_folder_in_place_of_the_database_is_a_clear_error(opened: OpenedLog) -> None:
    fence = opened.fill(1)
    opened.close()
    opened.path.unlink()
    opened.path.mkdir()
    assert code_of(opened.log.head).startswith("store.")
    assert code_of(opened.append, fence).startswith("store.")


def test_a_link_in_place_of_the_database_is_not_followed(opened: OpenedLog, tmp_path: Path) -> None:
    (opened.folder / "idumb").mkdir(mode=0o700)
    opened.path.symlink_to(tmp_path / "elsewhere")
    assert code_of(opened.owner.acquire, "idumb test") == "store.file"
    assert not (tmp_path / "elsewhere").exists()


def test_no_flipped_byte_of_an_anchor_makes_a_valid_log_suspect(opened: OpenedLog) -> None:
    opened.fill(2)
    opened.owner.release()
    opened.close()
    whole = opened.anchor.read_bytes()
    for place in range(len(whole)):
        opened.anchor.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        assert opened.log.head()[0] == 2, place
        opened.close()


def test_an_anchor_of_the_first_version_still_counts(opened: OpenedLog) -> None:
    opened.fill(1)
    opened.close()
    opened.anchor.write_text(f'{{"hash": "{"a" * 64}", "seq": 1}}', encoding="utf-8")
    assert code_of(opened.log.head) == "store.diverged"


def test_a_failed_write_leaves_nothing_and_the_next_one_works(opened: OpenedLog) -> None:
    fence = opened.fill(1)
    start = NewEvent("run.started", {"phase": "1", "number": 1}, run="r")
    opened.log.append([start], operation="o", fence=fence)
    assert code_of(lambda: opened.log.append([NewEvent("run.resumed"), start], operation="o", fence=fence)) == (
        "store.refused"
    )
    assert opened.log.head()[0] == 2
    opened.append(fence)
    assert opened.log.verify().count == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_database_can_be_read(opened: OpenedLog) -> None:
    fence = opened.fill(1)
    opened.close()
    opened.path.chmod(0o400)
    assert opened.log.head()[0] == 1
    assert code_of(opened.append, fence) == "store.read-only"


def test_a_full_disk_is_reported_and_earlier_events_stay_readable(opened: OpenedLog) -> None:
    fence = opened.fill(3)
    pragma(opened, f"max_page_count = {pragma(opened, 'page_count')}")
    big = NewEvent("evidence.recorded", {"output": "x" * 100_000})
    assert code_of(lambda: opened.log.append([big], operation="o", fence=fence)) == "store.full"
    assert opened.log.verify().count == 3


def test_a_busy_database_is_retried_and_then_reported(opened: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    fence = opened.fill(1)
    opened.close()
    with outside(opened.path) as db:
        db.execute("BEGIN IMMEDIATE")
        assert code_of(opened.append, fence) == "store.busy"
    opened.append(fence)


def test_a_forked_child_opens_its_own_connection_and_owns_nothing(opened: OpenedLog) -> None:
    """F46."""
    fence = opened.fill(1)
    parents = opened.log.database._connection
    read, write = os.pipe()
    child = os.fork()
    if not child:
        answer = b"bad"
        try:
            answer = f"{opened.log.head()[0]} {opened.log.database._connection is parents} ".encode()
            opened.append(fence)
        except Refusal as problem:
            answer += problem.code.encode()
        finally:
            os.write(write, answer)
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 30) == b"1 False lock.lost"
    os.close(read)
    os.close(write)
    opened.append(fence)
    assert opened.log.verify().count == 2


WRITER = """
import sys
from idumb.domain.runs.event import NewEvent
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from idumb.system.clock import SystemClock
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = SqliteEventLog(folder, name, SystemClock())
fence = FileOwnership(log.database, name, SystemClock()).acquire("write")
for number in range(count):
    log.append([NewEvent("evidence.recorded", {"n": number}, run=name)], operation=name, fence=fence)
print("done")
"""


def test_many_processes_append_at_once_and_no_event_is_lost(opened: OpenedLog) -> None:
    """R-LOG-5: each process uses its own working tree, starting before a database exists."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(opened.folder), f"w{number}", "25"],
            env={**os.environ, "PYTHONPATH": str(source.ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(6)
    ]
    assert [writer.communicate()[0] for writer in writers] == ["done\n"] * 6
    assert opened.log.verify().count == 150
    for number in range(6):
        mine = [event.payload["n"] for event in opened.log.events(run=f"w{number}")]
        assert mine == list(range(25))


KILLED = WRITER.replace('print("done")', "").replace(
    "for number in range(count):", "import itertools\nfor number in itertools.count():\n    print(number, flush=True)"
)


def appended_until_killed(opened: OpenedLog, number: int) -> int:
    """Kill a writer while it is at event `number` of its own or later; how many events are known to be durable."""
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(opened.folder), "main", "0"],
        env={**os.environ, "PYTHONPATH": str(source.ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    # The number is printed before the append, so the one before it is durable.
    last = next(int(line) for line in writer.stdout if int(line) >= number)
    writer.kill()
    writer.communicate()
    return last


def test_events_appended_before_a_kill_survive_it(opened: OpenedLog) -> None:
    """R-LOG-6."""
    durable = appended_until_killed(opened, 40)
    verified = opened.log.verify()
    assert verified.broken_at is None
    assert verified.count >= durable
    fence = opened.owner.acquire("next")
    opened.append(fence)


@pytest.mark.torture
def test_a_hundred_kills_lose_no_event_and_break_no_chain(opened: OpenedLog) -> None:
    """R-LOG-6: each writer continues after the events of the previous one."""
    chosen = random.Random(20260102)
    count = 0
    for _ in range(100):
        count += appended_until_killed(opened, chosen.randrange(60))
        verified = opened.log.verify()
        assert verified.broken_at is None
        assert verified.count >= count
        count = verified.count
        opened.close()


def test_a_log_that_another_process_is_creating_is_not_called_missing(tmp_path: Path) -> None:
    """F10: eight working trees start at once; one of them sees no log, then another one's events in it."""
    other = OpenedLog(tmp_path, "other")

    def made_meanwhile() -> bool:
        if not other.path.exists():
            other.fill(1)
            other.close()
        return True

    opened = OpenedLog(tmp_path, kept_refs=made_meanwhile)
    opened.append(opened.owner.acquire("idumb test"))
    assert opened.log.head()[0] == 2


def test_a_line_and_a_hash_are_those_of_canonical_json() -> None:
    payload = {"b": ['",payload":', 1.5, None], "a": {"\ud800": "é\n"}}
    text = canonical_json.encode(payload).decode("ascii")
    event = NewEvent("step.finished", payload, run='r",', task="previous", attempt=2)
    (row,) = event_chain.chain([(event, text)], 6, "0" * 64, operation="o", fence=3, at="now")
    fields = dict(zip(event_chain.PLACE, row, strict=True))
    covered = [value for name, value in fields.items() if name not in {"payload", "hash"}]
    assert fields["hash"] == hashlib.sha256(canonical_json.encode(covered) + b"\n" + text.encode()).hexdigest()
    line = canonical_json.encode({**fields, "payload": payload, "worktree": "main"}) + b"\n"
    assert event_chain.line(row, "main") == line
    assert event_chain.row_of(line) == (row, "main")
