"""Maintain the event log: back it up, verify a backup, and move finished runs to archive files."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from idumb.app.core import kept_runs
from idumb.app.core.services import Result, Services
from idumb.app.session import operation
from idumb.domain.errors import EXIT_FAILED
from idumb.domain.runs.event import KEPT_OF_ARCHIVED, NewEvent


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


def archive(services: Services, *, keep_runs: int) -> Result:
    """Move every run to a file of its own that is not live and not among the newest `keep_runs`.

    A run is live if it is the newest of its phase in a working tree, or if such a run took over a task from it. The
    snapshots of archived runs are freed. A call that was killed is completed by the next one.
    """
    with operation.owned(services, "archive") as owned:
        archived = [record["run"] for record in services.log_files.archived()]
        services.log_files.remove([run for run in archived if _is_whole(services, run)])
        runs = _chosen(services, archived, keep_runs)
        records = [services.log_files.pack(run) for run in runs]
        freed = kept_runs.holding(services, {*archived, *runs})
        if records or freed:
            events = [NewEvent("operation.started", {"command": "archive"})]
            events += [NewEvent("log.archived", record, run=record["run"]) for record in records]
            events += [kept_runs.freed_event(freed)] if freed else []
            events.append(NewEvent("operation.finished", {"command": "archive", "error": None}))
            services.log.append(events, operation=owned.operation, fence=owned.fence)
            services.log_files.remove(runs)
            kept_runs.drop(services, freed)
    moved = sum(record["events"] for record in records)
    return Result({"moved": moved, "runs": records, "keep_runs": keep_runs, "freed": len(freed)})


def _is_whole(services: Services, run: str) -> bool:
    """Return whether a call was killed before it removed the events of an archived run."""
    return any(event.kind not in KEPT_OF_ARCHIVED for event in services.log.events(run=run))


def _chosen(services: Services, archived: Collection[str], keep_runs: int) -> list[str]:
    starts = [start for start in services.log_files.starts() if start[0] not in archived]
    live = kept_runs.live(starts, partial(kept_runs.carried_from, services))
    return [run for run, *_ in starts[:-keep_runs] if run not in live]
