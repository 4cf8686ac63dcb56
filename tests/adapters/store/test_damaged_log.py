"""A damaged, replaced or truncated database is detected and never accepted (R-LOG-1, R-LOG-3)."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
from pathlib import Path

import pytest

from idumb.domain.errors import StoreError
from idumb.domain.runs.event import NewEvent
from tests.adapters.store.opened import OpenedLog, outside, without_triggers
from tests.support.cases import every
from tests.support.errors import code_of


@every(
    "statement, broken_at, why",
    [
        ("UPDATE events SET payload = '{\"n\":7}' WHERE seq = 3", 3, "was changed after"),
        ("UPDATE events SET payload = x'00' WHERE seq = 3", 3, "not readable"),
        ("UPDATE events SET at = '2020' WHERE seq = 5", 5, "was changed after"),
        ("UPDATE events SET task = 'T' WHERE seq = 1", 1, "was changed after"),
        ("DELETE FROM events WHERE seq = 2", 2, "missing"),
        ("UPDATE events SET previous = 'x' WHERE seq = 4", 4, "not chained"),
    ],
)
def test_verify_names_the_first_tampered_event(tmp_path: Path, statement: str, broken_at: int, why: str) -> None:
    opened = OpenedLog(tmp_path)
    opened.fill(5)
    opened.close()
    without_triggers(opened.path, statement)
    check = opened.log.verify()
    assert (check.broken_at, check.count) == (broken_at, broken_at - 1)
    assert why in check.why


def test_a_payload_that_is_not_json_is_a_clear_error(opened: OpenedLog) -> None:
    """And no event follows one that was changed."""
    fence = opened.fill(2)
    opened.close()
    without_triggers(opened.path, "UPDATE events SET payload = '{'")
    assert code_of(lambda: list(opened.log.events())) == "store.corrupt"
    assert code_of(lambda: opened.append(fence)) == "store.corrupt"


@every("bytes_kept", [1, 100, 4096, 20_000])
def test_a_truncated_database_is_never_accepted(tmp_path: Path, bytes_kept: int) -> None:
    opened = OpenedLog(tmp_path)
    fence = opened.fill(30)
    opened.owner.release()
    opened.close()
    os.truncate(opened.path, bytes_kept)
    assert code_of(opened.append, fence).startswith("store.")


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
    for place in chosen.sample(range(len(whole)), 130):
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
    assert noticed > 5


def test_another_log_of_the_same_length_is_refused(tmp_path: Path) -> None:
    first, second = OpenedLog(tmp_path / "a"), OpenedLog(tmp_path / "b")
    first.fill(2)
    fence = second.owner.acquire("other")
    second.log.append(
        [NewEvent("evidence.recorded", {"n": -1}), NewEvent("evidence.recorded")], operation="o", fence=fence
    )
    first.owner.release()
    first.close()
    first.path.write_bytes(second.path.read_bytes())
    with pytest.raises(StoreError) as refused:
        first.log.head()
    assert refused.value.code == "store.diverged"
    subprocess.run(str(refused.value.hint), shell=True, check=True)
    assert first.log.head()[0] == 2


def test_a_damaged_last_event_is_damage_and_not_another_log(opened: OpenedLog) -> None:
    opened.fill(2)
    opened.owner.release()
    last = list(opened.log.events())[-1]
    opened.close()
    whole = opened.path.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(last.hash.encode("ascii")) + 5] ^= 1
    opened.path.write_bytes(damaged)
    assert code_of(opened.log.head) == "store.corrupt"


@every("change", ["phase = '2'", "started_seq = 2", "worktree = 'other'"])
def test_a_changed_run_is_detected_when_the_log_is_opened(tmp_path: Path, change: str) -> None:
    opened = OpenedLog(tmp_path)
    fence = opened.owner.acquire("idumb test")
    opened.log.append([NewEvent("run.started", {"phase": "1", "number": 1}, run="r")], operation="o", fence=fence)
    opened.close()
    without_triggers(opened.path, f"UPDATE runs SET {change}")
    assert code_of(lambda: opened.log.latest_run("1")) == "store.corrupt"


@every(
    "statement",
    [
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events WHERE seq = 3",
        "DELETE FROM runs WHERE id = 'r2'",
        "UPDATE events SET run = 'r1' WHERE seq = 5",
    ],
)
def test_an_event_that_left_its_run_is_detected_when_the_log_is_opened(tmp_path: Path, statement: str) -> None:
    """Each event that is left is as it was written. Event 3 ends a run, so that no event of it follows."""
    opened = OpenedLog(tmp_path)
    fence = opened.owner.acquire("idumb test")
    started = {"phase": "1", "number": 1}
    for run in ("r1", "r2"):
        events = [("run.started", started), ("decision.asked", {}), ("run.halted", {})]
        opened.log.append([NewEvent(kind, facts, run=run) for kind, facts in events], operation="o", fence=fence)
    opened.close()
    assert len(list(opened.log.events())) == 6
    opened.close()
    without_triggers(opened.path, statement)
    assert code_of(lambda: list(opened.log.events(run="r1"))) == "store.corrupt"
    assert opened.log.verify().broken_at is not None


def test_no_damage_to_the_recorded_number_makes_a_valid_log_suspect(opened: OpenedLog) -> None:
    opened.fill(2)
    opened.owner.release()
    opened.close()
    whole = opened.newest.read_bytes()
    damages = [whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :] for place in range(0, len(whole), 7)]
    for damaged in (b"{", b"[" * 4000, *damages):
        opened.newest.write_bytes(damaged)
        assert opened.log.head()[0] == 2, damaged
        opened.close()


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
    with outside(opened.path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


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
