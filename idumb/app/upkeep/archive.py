"""Moving older events to the archive: whatever a run that can still go on needs stays, and nothing is discarded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.session import operation
from idumb.domain.runs.event import NewEvent

Start = tuple[str, str, str, int]
"""(run, phase, work tree, first event)."""


def archive(services: Services, *, before: str | None, keep_runs: int) -> Result:
    """Move every event that is older than all live runs, than the newest `keep_runs` runs, and than `before`.

    A run is live while it is the newest of its phase in some work tree, or one of those carried a task from it.
    """
    with operation.owned(services, "archive") as owned:
        last = _last(services, before, keep_runs)
        made = services.log_files.archive(last)
        if made:
            events = [NewEvent("operation.started", {"command": "archive"})]
            events += [NewEvent("log.archived", dict(segment)) for segment in made]
            events.append(NewEvent("operation.finished", {"command": "archive", "error": None}))
            services.log.append(events, operation=owned.operation, fence=owned.fence)
    moved = sum(segment["last"] - segment["first"] + 1 for segment in made)
    listed = services.log_files.listed()
    archived = listed[-1]["last"] if listed else 0
    return Result({"moved": moved, "archived": archived, "segments": [dict(segment) for segment in listed]})


def _last(services: Services, before: str | None, keep_runs: int) -> int:
    """The newest event that may go."""
    starts = services.log_files.starts()
    kept = live(starts, lambda run: _carried_from(services, run)) | {run for run, *_ in starts[-keep_runs:]}
    if not starts or starts[0][0] in kept:
        return 0  # what is older than every run is not worth a file
    bounds = [first for run, _, _, first in starts if run in kept]
    if before is not None:
        bounds += [event.seq for event in services.log.events(since=before, limit=1)]
    # The newest event stays, so that whoever opens the log sees where it ends.
    return min([*bounds, services.log.head()[0]]) - 1


def live(starts: Iterable[Start], carried_from: Callable[[str], Iterable[str]]) -> set[str]:
    """The newest run of each phase in each work tree, and those that they carried tasks from."""
    newest = {(phase, worktree): run for run, phase, worktree, _ in starts}
    found: set[str] = set()
    rest = list(newest.values())
    while rest:
        run = rest.pop()
        if run not in found:
            found.add(run)
            rest += carried_from(run)
    return found


def _carried_from(services: Services, run: str) -> set[str]:
    return {str(event.payload["from_run"]) for event in services.log.events(run=run, kind="task.carried")}
