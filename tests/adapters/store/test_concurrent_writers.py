"""Processes that write to one log at once, and writers that are killed (R-LOG-5, R-LOG-6)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.adapters.store.opened import OpenedLog
from tests.support import python

WRITER = """
import sys
from idumb.domain.runs.event import NewEvent
from idumb.store.connection import Database
from idumb.store.event_log import SqliteEventLog
from idumb.store.ownership import FileOwnership
from idumb.system.clock import SystemClock
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = SqliteEventLog(Database(folder), name, SystemClock())
fence = FileOwnership(log.database, name, SystemClock()).acquire("write")
for number in range(count):
    log.append([NewEvent("evidence.recorded", {"n": number}, run=name)], operation=name, fence=fence)
print("done")
"""


def test_many_processes_append_at_once_and_no_event_is_lost(opened: OpenedLog) -> None:
    """R-LOG-5: each process uses its own working tree, starting before a database exists."""
    writers = [python.start(WRITER, opened.folder, f"w{number}", "15") for number in range(3)]
    assert [writer.communicate()[0] for writer in writers] == ["done\n"] * 3
    assert opened.log.verify().count == 45
    for number in range(3):
        mine = [event.payload["n"] for event in opened.log.events(run=f"w{number}")]
        assert mine == list(range(15))


KILLED = WRITER.replace('print("done")', "").replace(
    "for number in range(count):", "import itertools\nfor number in itertools.count():\n    print(number, flush=True)"
)


def appended_until_killed(opened: OpenedLog, number: int) -> int:
    """Kill a writer while it is at event `number` of its own or later; how many events are known to be durable."""
    writer = python.start(KILLED, opened.folder, "main", "0")
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
