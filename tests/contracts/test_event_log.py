"""The contract of every event log, tested with SQLite and in memory (R-LOG-1, R-LOG-3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from idumb.domain.runs.event import GENESIS, NewEvent
from idumb.store import event_log, ownership
from idumb.store.connection import Database
from tests.support.errors import refusing
from tests.support.fixed_clock import FixedClock
from tests.support.memory_event_log import MemoryEventLog
from tests.support.memory_ownership import MemoryOwnership, MemoryWorktree


class Store(Protocol):
    log: event_log.SqliteEventLog | MemoryEventLog
    owner: ownership.FileOwnership | MemoryOwnership
    clock: FixedClock


class MemoryStore:
    def __init__(self, _folder: Path) -> None:
        self.clock = FixedClock()
        worktree = MemoryWorktree()
        self.log = MemoryEventLog(self.clock, worktree)
        self.owner = MemoryOwnership(worktree)


class SqliteStore:
    def __init__(self, folder: Path) -> None:
        self.clock = FixedClock()
        self.log = event_log.SqliteEventLog(Database(str(folder)), "main", self.clock)
        self.owner = ownership.FileOwnership(self.log.database, "main", self.clock)


@pytest.fixture(params=[MemoryStore, SqliteStore], ids=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: Callable[[Path], Store] = request.param
    return make(tmp_path)


def started(run: str, phase: str = "1", number: int = 1) -> NewEvent:
    return NewEvent("run.started", {"phase": phase, "number": number}, run=run)


def note(run: str | None, task: str | None = None, *, kind: str = "evidence.recorded", text: str = "") -> NewEvent:
    return NewEvent(kind, {"text": text}, run=run, task=task)


def test_an_empty_log_has_the_genesis_head_and_appending_no_event_writes_nothing(store: Store) -> None:
    assert store.log.append([], operation="o", fence=store.owner.acquire("test")) == ()
    assert store.log.head() == (0, GENESIS)
    assert list(store.log.events()) == []
    assert store.log.verify().broken_at is None


def test_events_get_consecutive_numbers_and_each_is_chained_to_the_previous_one_of_its_run(store: Store) -> None:
    fence = store.owner.acquire("test")
    first = store.log.append([started("r1"), note("r1")], operation="op1", fence=fence)
    second = store.log.append([note(None), note("r1")], operation="op2", fence=fence)
    written = (*first, *second)
    assert [event.seq for event in written] == [1, 2, 3, 4]
    assert [event.previous for event in written[1:]] == [written[0].hash, GENESIS, written[1].hash]
    assert [event.operation for event in written] == ["op1", "op1", "op2", "op2"]
    assert store.log.head() == (4, written[3].hash)
    assert store.log.verify().count == 4


def test_append_returns_the_events_that_are_read_later(store: Store) -> None:
    """Otherwise a live run and its replay could differ: a tuple is stored and read back as a list, both times."""
    fence = store.owner.acquire("test")
    payload = {"paths": ("a", "ü", "bad\udcff"), "none": None, "nested": {"number": 1.5}}
    written = store.log.append([NewEvent("step.finished", payload, run="r", attempt=2)], operation="o", fence=fence)
    assert tuple(store.log.events()) == written
    assert written[0].payload["paths"] == ["a", "ü", "bad\udcff"]


def test_events_of_one_append_share_a_time_and_later_ones_have_another(store: Store) -> None:
    fence = store.owner.acquire("test")
    store.clock.seconds = 100
    store.log.append([note("r"), note("r")], operation="o", fence=fence)
    store.log.append([note("r")], operation="o", fence=fence)
    times = [event.at for event in store.log.events()]
    assert times == ["2026-01-02T03:05:45.000000Z", "2026-01-02T03:05:45.000000Z", "2026-01-02T03:05:46.000000Z"]


def test_only_the_token_of_the_present_owner_appends(store: Store) -> None:
    """R-LOG-5."""
    old = store.owner.acquire("first")
    store.owner.release()
    new = store.owner.acquire("second")
    for wrong in (-1, 0, old, new + 1):
        with refusing("store.fence"):
            store.log.append([note("r")], operation="o", fence=wrong)
    assert store.log.head() == (0, GENESIS)
    store.log.append([note("r")], operation="o", fence=new)


def test_an_append_after_an_outdated_event_of_its_run_is_refused(store: Store) -> None:
    """R-LOG-2: optimistic, for two processes may hold the same token after a fault."""
    fence = store.owner.acquire("test")
    first = store.log.append([started("r1"), note("r1")], operation="o", fence=fence)
    other = store.log.append([note("r2")], operation="o", fence=fence)
    with refusing("run.moved-on"):
        store.log.append([note("r1")], operation="o", fence=fence, expected=first[0].seq)
    assert store.log.head()[0] == 3
    store.log.append([note("r1")], operation="o", fence=fence, expected=first[1].seq)
    store.log.append([note("r2")], operation="o", fence=fence, expected=other[0].seq)
    store.log.append([started("r3", "2")], operation="o", fence=fence, expected=0)


@pytest.mark.parametrize("kind", ["handoff.updated", "handoff.completed"])
def test_events_of_a_handoff_name_its_run_and_do_not_advance_it(store: Store, kind: str) -> None:
    """R-LOG-1, R-HAND-1: another working tree may record the event while the run is active."""
    fence = store.owner.acquire("test")
    first = store.log.append([started("r1"), note("r1")], operation="o", fence=fence)
    store.log.append([NewEvent(kind, {"handoff_id": "h"}, run="r1", task="T1-01")], operation="p", fence=fence)
    store.log.append([note("r1")], operation="o", fence=fence, expected=first[1].seq)
    assert [event.kind for event in store.log.events(run="r1", task="T1-01")] == [kind]


def test_an_unknown_kind_is_a_programming_error_and_writes_nothing(store: Store) -> None:
    fence = store.owner.acquire("test")
    with pytest.raises(ValueError, match="task\\.finished"):
        store.log.append([note("r"), note("r", kind="task.finished")], operation="o", fence=fence)
    assert store.log.head() == (0, GENESIS)


@pytest.fixture
def filled(store: Store) -> Store:
    fence = store.owner.acquire("test")
    store.log.append([started("r1"), note("r1", "T1"), note("r1", "T2")], operation="o1", fence=fence)
    store.log.append([started("r2", "2"), note("r2", "T1")], operation="o2", fence=fence)
    store.log.append([note(None, kind="operation.finished"), note("r1", "T1", kind="task.completed")],
                     operation="o3", fence=fence)  # fmt: skip
    return store


def seqs(store: Store, **filters: object) -> list[int]:
    return [event.seq for event in store.log.events(**filters)]  # type: ignore[arg-type]


def test_events_are_filtered_by_run_task_kind_and_operation_in_any_combination(filled: Store) -> None:
    assert seqs(filled) == [1, 2, 3, 4, 5, 6, 7]
    assert seqs(filled, run="r1") == [1, 2, 3, 7]
    assert seqs(filled, task="T1") == [2, 5, 7]
    assert seqs(filled, run="r1", task="T1") == [2, 7]
    assert seqs(filled, kind="run.started") == [1, 4]
    assert seqs(filled, operation="o3") == [6, 7]
    assert seqs(filled, run="r1", kind="evidence.recorded", operation="o1", task="T2") == [3]
    assert seqs(filled, run="none") == []


def test_after_limit_and_newest_first_select_from_the_same_sequence(filled: Store) -> None:
    assert seqs(filled, after=5) == [6, 7]
    assert seqs(filled, limit=2) == [1, 2]
    assert seqs(filled, limit=0) == []
    assert seqs(filled, newest_first=True, limit=3) == [7, 6, 5]
    assert seqs(filled, newest_first=True, after=5) == [7, 6]
    assert seqs(filled, run="r1", newest_first=True, limit=1) == [7]


def test_times_are_inclusive_bounds(filled: Store) -> None:
    times = [event.at for event in filled.log.events()]
    assert seqs(filled, since=times[3]) == [4, 5, 6, 7]
    assert seqs(filled, since="2027") == []


def test_a_clock_set_back_hides_no_event(store: Store) -> None:
    fence = store.owner.acquire("test")
    store.clock.seconds = 1000
    store.log.append([note("r")], operation="o", fence=fence)
    store.clock.seconds = 10
    store.log.append([note("r")], operation="o", fence=fence)
    store.clock.seconds = 2000
    store.log.append([note("r")], operation="o", fence=fence)
    late = "2026-01-02T03:20:00.000000Z"
    assert seqs(store, since=late) == [1, 3]


def test_a_long_log_is_read_whole_in_both_directions(store: Store) -> None:
    """More than one page."""
    fence = store.owner.acquire("test")
    store.log.append([note(f"r{number % 2}") for number in range(1201)], operation="o", fence=fence)
    assert seqs(store) == list(range(1, 1202))
    assert seqs(store, newest_first=True) == list(range(1201, 0, -1))
    assert seqs(store, run="r1") == list(range(2, 1202, 2))
    assert seqs(store, limit=501) == list(range(1, 502))


def test_an_active_reader_does_not_block_a_writer(store: Store) -> None:
    fence = store.owner.acquire("test")
    store.log.append([note("r") for _ in range(600)], operation="o", fence=fence)
    reader = store.log.events()
    next(reader)
    store.log.append([note("r")], operation="o", fence=fence)
    assert store.log.head()[0] == 601
