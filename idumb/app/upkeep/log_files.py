"""Maintain the event log: back it up, verify a backup, and move old events to archive files."""

from __future__ import annotations

from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.domain.errors import EXIT_FAILED
from idumb.domain.runs.event import NewEvent


def back_up(services: Services, path: str) -> Result:
    """Write a new file; an existing one is never replaced."""
    count, head = services.log_files.back_up(path)
    return Result({"path": path, "events": count, "head": head, "verified": True, "of_this_log": True})


def verify_backup(services: Services, path: str) -> Result:
    """Check every hash. `of_this_log` tells whether this repository's log starts with the same events."""
    chain, same_log = services.log_files.check_backup(path)
    whole = chain.broken_at is None
    data = {"path": path, "events": chain.count, "head": chain.head, "verified": whole, "of_this_log": same_log}
    if whole:
        return Result(data)
    words = f"The backup is damaged at event {chain.broken_at}: {chain.why}"
    return Result(data, EXIT_FAILED, (), ("backup.broken", words, "idumb backup FILE writes a new one"))


def archive(services: Services, *, before: str | None, keep_runs: int) -> Result:
    """Move the events that are older than `before`, than the newest `keep_runs` runs and than every live run.

    A run is live if it is the newest of its phase in a working tree, or if such a run took over a task from it. The
    snapshots of the runs all of whose events were moved are freed.
    """
    with operation.owned(services, "archive") as owned:
        last = _last(services, before, keep_runs)
        segments = services.log_files.archive(last)
        runs = kept_runs.archived(services)
        if segments or runs:
            events = [NewEvent("operation.started", {"command": "archive"})]
            events += [NewEvent("log.archived", dict(segment)) for segment in segments]
            events += [kept_runs.freed_event(runs)] if runs else []
            events.append(NewEvent("operation.finished", {"command": "archive", "error": None}))
            services.log.append(events, operation=owned.operation, fence=owned.fence)
            kept_runs.drop(services, runs)
    moved = sum(segment["last"] - segment["first"] + 1 for segment in segments)
    listed = services.log_files.listed()
    archived = listed[-1]["last"] if listed else 0
    data = {"moved": moved, "archived": archived, "segments": [dict(segment) for segment in listed]}
    why = None if moved else _kept_by(services, before, keep_runs)
    return Result({**data, "kept_by": why, "keep_runs": keep_runs, "freed": len(runs)})


def _last(services: Services, before: str | None, keep_runs: int) -> int:
    """Return the number of the newest event to move."""
    starts = services.log_files.starts()
    kept = kept_runs.kept_of_log(services, starts, keep_runs)
    if not starts or starts[0][0] in kept:
        return 0  # events before the first run are too few for a file
    bounds = [first for run, _, _, first in starts if run in kept]
    # The newest event stays, because the log must show where it ends.
    return min([*bounds, *_first_since(services, before), services.log.head()[0]]) - 1


def _first_since(services: Services, before: str | None) -> list[int]:
    return [] if before is None else [event.seq for event in services.log.events(since=before, limit=1)]


def _kept_by(services: Services, before: str | None, keep_runs: int) -> str:
    """Return what keeps the oldest events that are not archived; `nothing` before the first run."""
    starts = services.log_files.starts()
    kept = kept_runs.kept_of_log(services, starts, keep_runs)
    oldest = next(((run, first) for run, _, _, first in starts if run in kept), None)
    if oldest is None:
        return "nothing"
    run, first = oldest
    if any(seq < first for seq in _first_since(services, before)):
        return "before"
    if not kept_runs.is_finished(run_lookup.run_of(services, run)):
        return "unfinished"
    return "keep-runs" if run in {id for id, *_ in starts[-keep_runs:]} else "phase"
