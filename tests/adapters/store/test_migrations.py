"""Databases of every released schema are opened, brought up to date, and replay to what they meant (R-LOG-2)."""

from __future__ import annotations

import functools
import os
import sqlite3
from pathlib import Path

import pytest

from idumb.domain import outcome
from idumb.domain.errors import StoreError
from idumb.domain.runs import replay, run
from idumb.domain.runs.event import NewEvent
from idumb.store import connection, event_chain, schema, segments
from tests.adapters.store import make_golden
from tests.adapters.store.opened import OpenedLog, outside

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


@pytest.fixture(params=sorted(schema.STEPS))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> OpenedLog:
    """A log whose database is the golden one of a version."""
    folder = tmp_path / "idumb"
    folder.mkdir()
    (folder / "store.db").write_bytes((GOLDEN / f"v{request.param}.db").read_bytes())
    return OpenedLog(tmp_path)


def test_every_version_from_the_first_on_has_a_migration() -> None:
    assert list(schema.STEPS) == list(range(1, schema.CURRENT + 1))


def test_an_old_log_keeps_every_event_and_its_chain(golden: OpenedLog) -> None:
    check = golden.log.verify()
    assert (check.count, check.broken_at) == (len(make_golden.story()), None)
    assert check.head == "11910ca10fa6699f846b0a524cb93c013c6d5f9127183a7fc42899561898e756"


def test_an_old_log_replays_to_the_same_state(golden: OpenedLog) -> None:
    state = replay.replay(golden.log.events(run=make_golden.RUN))
    first, second = state.tasks["T1-01"], state.tasks["T1-02"]
    assert (state.state, state.phase, state.number, state.branch) == (run.INTERRUPTED, "1", 1, "main")
    assert (first.status, first.progress.attempts, first.work.touched) == (outcome.COMPLETED, 1, ("a.txt",))
    assert first.checkpoint is not None
    assert (first.checkpoint.commit, first.checkpoint.seq) == ("9" * 40, 6)
    assert (second.status, second.progress.attempts, second.work.touched) == (outcome.PENDING, 0, ("b.txt",))
    assert golden.log.latest_run("1") == make_golden.RUN


def test_an_old_log_can_be_appended_to(golden: OpenedLog) -> None:
    fence = golden.owner.acquire("idumb resume 1")
    assert fence == 2
    golden.log.append([NewEvent("run.resumed", run=make_golden.RUN)], operation="op2", fence=fence)
    assert golden.log.verify().count == len(make_golden.story()) + 1


def test_an_old_log_is_read_unchanged_and_migrated_by_the_first_write(golden: OpenedLog) -> None:
    """A read-only command does not own the working tree, so it changes nothing there."""
    before = golden.path.read_bytes()
    assert golden.log.head()[0] == len(make_golden.story())
    assert golden.path.read_bytes() == before
    assert os.listdir(golden.path.parent) == ["store.db"]
    golden.append(golden.owner.acquire("idumb test"))
    assert golden.log.head()[0] == len(make_golden.story()) + 1
    with outside(golden.path) as db:
        assert schema.version(db) == schema.CURRENT


def test_an_old_log_can_be_read_on_read_only_storage(golden: OpenedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's immutable mode represents read-only media, which apply to root too."""
    read_only = functools.partial(sqlite3.connect, isolation_level=None, check_same_thread=False, uri=True)
    monkeypatch.setattr(connection, "_connect", lambda path: read_only(f"file:{path}?immutable=1"))
    assert golden.log.verify().count == len(make_golden.story())


def test_a_migrated_database_has_the_schema_of_a_new_one(golden: OpenedLog, tmp_path: Path) -> None:
    golden.owner.acquire("idumb test")
    golden.close()
    with outside(golden.path) as old, outside(make_golden.make(tmp_path / "new")) as new:
        assert old.execute(SCHEMA).fetchall() == new.execute(SCHEMA).fetchall()
        assert schema.version(old) == schema.version(new) == schema.CURRENT


def test_the_sample_database_of_the_first_version_has_that_version_s_schema(tmp_path: Path) -> None:
    """Editing VERSION_1 breaks the databases that users have."""
    with outside(tmp_path / "made.db") as database, outside(GOLDEN / "v1.db") as golden:
        for statement in schema.VERSION_1:
            database.execute(statement)
        assert database.execute(SCHEMA).fetchall() == golden.execute(SCHEMA).fetchall()
        for row in golden.execute(f"SELECT {event_chain.COLUMNS} FROM events ORDER BY seq"):
            assert event_chain.own_fault(row) is None
            database.execute(segments.INSERT_EVENT, row)


def _in_a_child(action: object) -> int:
    child = os.fork()
    if not child:
        try:
            action()  # type: ignore[operator]
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("at", range(len(schema.VERSION_2)))
def test_the_next_command_completes_a_killed_migration(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F45: after a kill at any statement, the old or the new schema exists, with every event."""
    folder = tmp_path / "idumb"
    folder.mkdir()
    (folder / "store.db").write_bytes((GOLDEN / "v1.db").read_bytes())
    opened = OpenedLog(tmp_path)

    def killed() -> None:
        statements = [*schema.VERSION_2[: at + 1], "SELECT die()"]
        monkeypatch.setitem(schema.STEPS, 2, statements)
        monkeypatch.setattr(schema, "version", _deadly)
        opened.owner.acquire("idumb test")

    assert _in_a_child(killed) == 9
    assert opened.log.verify().count == len(make_golden.story())
    opened.owner.acquire("idumb test")
    with outside(opened.path) as db:
        assert schema.version(db) == schema.CURRENT


def _deadly(connection: sqlite3.Connection) -> int:
    connection.create_function("die", 0, lambda: os._exit(9))
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_truncated_old_log_is_refused(golden: OpenedLog) -> None:
    """F43: an old copy is detected in an old schema too."""
    before = golden.path.read_bytes()
    golden.append(golden.owner.acquire("idumb test"))
    golden.owner.release()
    golden.close()
    golden.path.write_bytes(before)
    with pytest.raises(StoreError) as caught:
        golden.log.head()
    assert caught.value.code == "store.older"
