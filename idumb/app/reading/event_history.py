"""The event log as `idumb log` and `idumb audit` read it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from idumb.app.core import run_lookup
from idumb.app.core.services import Result, Services
from idumb.domain.action import Action
from idumb.domain.errors import EXIT_FAILED, InputError, UsageError
from idumb.domain.finding import nearest
from idumb.domain.runs.event import ALIASES, KINDS, Event, Selection, selections


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
            hint=f"idumb help events lists the kinds; names of other workflow engines: {', '.join(ALIASES)}",
        )
    return matches


def audit(services: Services) -> Result:
    """Verify every hash and the order of the whole log."""
    chain = services.log.verify()
    data = {
        "events": chain.count,
        "head": chain.head,
        "broken_at": chain.broken_at,
        "why": chain.why,
        "witnessed": chain.witnessed,
    }
    if chain.broken_at is None:
        return Result(data)
    words = f"The event log was changed: event {chain.broken_at}: {chain.why}"
    return Result(data, EXIT_FAILED, (), ("audit.broken", words, "First make a copy of the git folder"))
