"""The event log: list its events, verify it, back it up, and move finished runs to archive files."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator
from functools import partial

from idumb.app.core import kept_runs, run_lookup
from idumb.app.core.services import Result, Services, fields
from idumb.app.session import operation
from idumb.domain.action import Action
from idumb.domain.errors import EXIT_FAILED, InputError, UsageError
from idumb.domain.finding import nearest
from idumb.domain.runs.event import ALIASES, KEPT_OF_ARCHIVED, KINDS, Event, NewEvent, Selection, selections


def list_events(
    services: Services,
    *,
    phase: str | None,
    run: str | None,
    task: str | None,
    kind: str | None,
    since: str | None,
    limit: int,
) -> Result:
    """Return the newest matching events, oldest first. InputError if the phase does not exist and never ran."""
    selections_ = selections_of(kind)
    if run is not None and not any(services.log.events(run=run, limit=1)):
        raise InputError("run.unknown", f"The event log has no run {run}.", hint=Action("log"))
    if run is None and phase is not None:
        recorded = run_lookup.recorded_phase(services, phase)
        if recorded is None:
            services.plans.phase_folder(phase)
            return Result({"events": [], "run": None})
        run = services.log.latest_run(recorded)

    def newest(selection: Selection | None) -> Iterator[Event]:
        """Yield matching events. Only a selection by payload may have to read more than `limit`."""
        kind_ = selection.kind if selection is not None else None
        least = limit if selection is None or not selection.name else None
        events = services.log.events(run=run, task=task, kind=kind_, since=since, limit=least, newest_first=True)
        return (event for event in events if selection is None or selection.fits(event.payload))

    merged = heapq.merge(*map(newest, selections_ or (None,)), key=lambda event: -event.seq)
    newest_events = list(itertools.islice(merged, limit))
    return Result({"run": run, "events": [event.as_dict() for event in reversed(newest_events)]})


def selections_of(kind: str | None) -> tuple[Selection, ...]:
    """Return the selections for a kind or alias; empty for every kind. UsageError if it is unknown."""
    matches = () if kind is None else selections(kind)
    if kind is not None and not matches:
        suggestion = nearest(kind, (*KINDS, *ALIASES))
        raise UsageError(
            "log.unknown-kind",
            f"Unknown event kind {kind!r}." + (f" Did you mean {suggestion}?" if suggestion else ""),
            hint=Action.of("help", "events"),
            details={"evidence": [f"names of other workflow engines: {', '.join(ALIASES)}"]},
        )
    return matches


def audit(services: Services) -> Result:
    """Verify every hash and the order of the whole log."""
    chain = services.log.verify()
    data = {"events": chain.count, **fields(chain, "head", "broken_at", "why", "witnessed")}
    if chain.broken_at is None:
        return Result(data)
    words = f"The event log was changed: event {chain.broken_at}: {chain.why}"
    return Result(data, EXIT_FAILED, (), ("audit.broken", words, "First make a copy of the git folder"))


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
        freed = kept_runs.with_snapshots(services, {*archived, *runs})
        if records or freed:
            events = [NewEvent("operation.started", {"command": "archive"})]
            events += [NewEvent("log.archived", record, run=record["run"]) for record in records]
            events += [kept_runs.freed_event(freed)] if freed else []
            events.append(NewEvent("operation.finished", {"command": "archive", "error": None}))
            services.log.append(events, operation=owned.operation, fence=owned.fence)
            services.log_files.remove(runs)
            kept_runs.free(services, freed)
    moved = sum(record["events"] for record in records)
    return Result({"moved": moved, "runs": records, "keep_runs": keep_runs, "freed": len(freed)})


def _is_whole(services: Services, run: str) -> bool:
    """Return whether a call was killed before it removed the events of an archived run."""
    return any(event.kind not in KEPT_OF_ARCHIVED for event in services.log.events(run=run))


def _chosen(services: Services, archived: Collection[str], keep_runs: int) -> list[str]:
    starts = [start for start in services.log_files.starts() if start.run not in archived]
    live = kept_runs.live_runs(starts, partial(kept_runs.carried_from, services))
    return [start.run for start in starts[:-keep_runs] if start.run not in live]
