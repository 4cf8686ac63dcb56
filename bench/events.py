"""How fast `idumb log` finds the newest events of one run in a log with many."""

from __future__ import annotations

from collections.abc import Iterator

from bench import material, measure
from bench.measure import Effort, Figure
from bench.starting import CLICK, idumb

_RUN_EVENTS = 1000
_WANTED = 100


def newest(effort: Effort) -> Iterator[Figure]:
    """The log reads the last hundred events of the first run, below which all others lie; then the whole command."""
    from idumb.domain.runs.event import NewEvent
    from idumb.store.connection import Database
    from idumb.store.event_log import SqliteEventLog
    from idumb.store.ownership import FileOwnership
    from idumb.system.clock import SystemClock

    count = 10_000 if effort.quick else 1_000_000
    place = material.project(f"{effort.folder}/events", 20, 1, material.editing, "task")
    log = SqliteEventLog(Database(f"{place.root}/.git"), place.root, SystemClock())
    fence = FileOwnership(log.database, place.root, SystemClock()).acquire("bench")
    for number in range(count // _RUN_EVENTS):
        begun = NewEvent("run.started", {"phase": f"{number}", "number": 1}, run=f"run-{number}")
        rows = [NewEvent("evidence.recorded", {"n": n}, run=begun.run, task="T1-01") for n in range(1, _RUN_EVENTS)]
        log.append([begun, *rows], operation="bench", fence=fence)

    def read() -> None:
        found = [*log.events(run="run-0", limit=_WANTED, newest_first=True)]
        if len(found) != _WANTED:
            raise RuntimeError(f"{len(found)} events")

    command = (*idumb(), "log", "--run", "run-0", "--limit", str(_WANTED), "--json")
    whole = measure.program(command, place.root, place.env)
    cases = {"read": read, "whole": whole, "click": measure.program(CLICK, place.root, place.env)}
    times = measure.turns(cases, effort.rounds)
    label = f"the last {_WANTED} events of a run among {count:,}"
    yield Figure(41, f"{label}: read", "", measure.median(times, "read") * 1000, 50, effort.rounds, "ms")
    yield Figure(41, f"{label}: idumb log", "click hello", measure.ratio(times, "whole", "click"), None, effort.rounds)
