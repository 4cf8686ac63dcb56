"""The event log as `idumb log` and `idumb audit` read it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain.errors import EXIT_FAILED, UsageError
from idumb.domain.finding import nearest
from idumb.domain.plans import step_plan
from idumb.domain.runs.event import ALIASES, KINDS, Event, Selection, selections


def list_events(
    services: Services,
    *,
    phase: str | None,
    run: str | None,
    task: str | None,
    kind: str | None,
    since: str | None,
    until: str | None,
    limit: int,
) -> Result:
    """The newest events that fit, oldest first; InputError where the phase is none and never was."""
    chosen = _selections(kind)
    if run is None and phase is not None:
        run = services.runs.latest(step_plan.phase_of(phase) or phase)
        if run is None:
            services.plans.phase_folder(phase)
            return Result({"events": [], "run": None})

    def newest(one: Selection | None) -> Iterator[Event]:
        """Read no further than asked; a selection by payload may have to pass over some."""
        kind_ = one.kind if one is not None else None
        least = limit if one is None or not one.name else None
        known = services.log.events(
            run=run, task=task, kind=kind_, since=since, until=until, limit=least, newest_first=True
        )
        return (event for event in known if one is None or one.fits(event.payload))

    merged = heapq.merge(*map(newest, chosen or (None,)), key=lambda event: -event.seq)
    found = list(itertools.islice(merged, limit))
    return Result({"run": run, "events": [event.as_dict() for event in reversed(found)]})


def _selections(kind: str | None) -> tuple[Selection, ...]:
    """What to select; empty where every kind is meant. UsageError where there is no such kind and no such alias."""
    found = () if kind is None else selections(kind)
    if kind is not None and not found:
        near = nearest(kind, (*KINDS, *ALIASES))
        raise UsageError(
            "log.unknown-kind",
            f"There is no kind of event {kind!r}." + (f" Did you mean {near}?" if near else ""),
            hint=f"idumb help events lists the kinds; names of other workflow engines: {', '.join(ALIASES)}",
        )
    return found


def audit(services: Services) -> Result:
    """Walk the whole log: every hash computed again, every event in its place."""
    found = services.log.verify()
    data = {
        "events": found.count,
        "head": found.head,
        "broken_at": found.broken_at,
        "why": found.why,
        "witnessed": found.witnessed,
    }
    if found.broken_at is None:
        return Result(data)
    words = f"The event log is not as it was written: event {found.broken_at}: {found.why}"
    return Result(data, EXIT_FAILED, (), ("audit.broken", words, "Keep a copy of the git folder before anything else"))
