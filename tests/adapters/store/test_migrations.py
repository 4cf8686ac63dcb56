"""Databases of every released schema are opened, brought up to date, and replay to what they meant (R-LOG-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from idumb.domain import outcome, run
from idumb.domain.event import NewEvent
from idumb.store import migrations
from idumb.store.run_index import SqliteRunIndex
from tests.adapters.store import make_golden
from tests.adapters.store.opened import OpenedLog, outside

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


@pytest.fixture(params=sorted(migrations.STEPS))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> OpenedLog:
    """A log whose database is the golden one of a version."""
    folder = tmp_path / "idumb"
    folder.mkdir()
    (folder / "store.db").write_bytes((GOLDEN / f"v{request.param}.db").read_bytes())
    return OpenedLog(tmp_path)


def test_there_is_a_step_to_every_version_from_the_first_on() -> None:
    assert list(migrations.STEPS) == list(range(1, migrations.CURRENT + 1))


def test_an_old_log_keeps_every_event_and_its_chain(golden: OpenedLog) -> None:
    check = golden.log.verify()
    assert (check.count, check.broken_at) == (len(make_golden.story()), None)
    assert check.head == "11910ca10fa6699f846b0a524cb93c013c6d5f9127183a7fc42899561898e756"


def test_an_old_log_replays_to_the_state_it_meant(golden: OpenedLog) -> None:
    state = run.replay(golden.log.events(run=make_golden.RUN))
    first, second = state.tasks["T1-01"], state.tasks["T1-02"]
    assert (state.state, state.phase, state.number, state.branch) == (run.INTERRUPTED, "1", 1, "main")
    assert (first.status, first.attempts, first.touched) == (outcome.COMPLETED, 1, ("a.txt",))
    assert first.checkpoint is not None
    assert (first.checkpoint.commit, first.checkpoint.seq) == ("9" * 40, 6)
    assert (second.status, second.attempts, second.touched) == (outcome.PENDING, 0, ("b.txt",))
    assert SqliteRunIndex(golden.log.database, "main").latest("1") == make_golden.RUN


def test_an_old_log_can_be_written_on(golden: OpenedLog) -> None:
    fence = golden.owner.acquire("idumb resume 1")
    assert fence == 2
    golden.log.append([NewEvent("run.resumed", run=make_golden.RUN)], operation="op2", fence=fence)
    assert golden.log.verify().count == len(make_golden.story()) + 1


def test_a_migrated_database_has_the_schema_of_a_new_one(golden: OpenedLog, tmp_path: Path) -> None:
    golden.log.head()
    golden.close()
    with outside(golden.path) as old, outside(make_golden.make(tmp_path / "new")) as new:
        assert old.execute(SCHEMA).fetchall() == new.execute(SCHEMA).fetchall()
        assert migrations.version(old) == migrations.version(new) == migrations.CURRENT
