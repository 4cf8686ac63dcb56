"""`state.json` of this work tree, made from the log alone; what an older file holds beyond it is recorded first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb.app import publish, takeover
from idumb.app.journal import Journal
from idumb.app.services import Services
from idumb.domain import state_file
from idumb.domain.event import Event
from idumb.domain.run import ACTIVE, RunState, replay
from idumb.domain.state_file import Entry, Imported

RECORDED = "history.recorded"


def text(services: Services) -> str | None:
    """The whole file; None where the log has nothing to say in it."""
    told = _told(services)
    told += _unrecorded(services, told)
    return services.documents.state([one for _, one in sorted(told, key=_place)]) if told else None


def record(services: Services, journal: Journal) -> None:
    """A line of the history for the run of a command that ends, where the run stands otherwise than the last one says.

    The file is rebuilt with it. What prevents that is told and stops nothing, because the log has all of it.
    """
    state = journal.state
    if not state.id or state.state == ACTIVE:
        return
    said = _said(state)
    last = next(iter(services.log.events(run=state.id, kind=RECORDED, newest_first=True, limit=1)), None)
    new = last is None or {name: last.payload.get(name) for name in said} != said
    if not new and services.reports.exists(publish.STATE_FILE):
        return
    kept = _is_kept(services, journal)
    if new:
        journal.write(journal.event(RECORDED, **said, **_earlier(services, state.id)))
    if kept:
        publish.write(services, publish.STATE_FILE, text(services) or "")


def _is_kept(services: Services, journal: Journal) -> bool:
    """False where the present file cannot be read or kept, and so must not be replaced."""
    try:
        keep(services, journal)
    except OSError as problem:
        services.reporter.note(f"{publish.STATE_FILE} is left as it is: {problem.strerror or problem}")
        return False
    return True


def keep(services: Services, journal: Journal) -> None:
    """Record what the present file holds beyond the log, and keep its bytes, before another takes its place."""
    found = takeover.of_path(services, publish.STATE_FILE)
    if found is not None:
        takeover.write(services, journal, (found,))


def beyond(services: Services, present: dict[str, Any]) -> Imported | None:
    return state_file.beyond(present, [one for _, one in _told(services)])


def runs_here(services: Services) -> list[str]:
    """Every run of this work tree, the oldest first."""
    return [run for run, _, worktree, _ in services.log_files.starts() if worktree == services.worktree]


def _said(state: RunState) -> dict[str, str]:
    shown = {task: known.status for task, known in state.tasks.items()}
    return {"action": f"execute-phase:{state.phase}", "result": publish.result(shown), "phase": state.stage}


def _place(told: tuple[int, Entry | Imported]) -> int:
    return told[0]


def _told(services: Services) -> list[tuple[int, Entry | Imported]]:
    """What was recorded for this file, each with its place in the log."""
    here = frozenset(runs_here(services))
    recorded = [e for e in services.log.events(kind=RECORDED) if e.run in here]
    came = [(e.seq, one) for e in services.log.events(kind=takeover.EVENT) for one in _imported(services, e)]
    return sorted([*came, *(one for event in recorded for one in _entries(event))], key=_place)


def _entries(event: Event) -> Iterator[tuple[int, Entry]]:
    """The line of an event, and those of runs that ended before lines were recorded."""
    for line in event.payload.get("earlier", ()):
        yield line["seq"], _entry(line["timestamp"], line["run"], line)
    yield event.seq, _entry(event.at, event.run or "", event.payload)


def _entry(timestamp: str, run: str, said: Mapping[str, Any]) -> Entry:
    return Entry(timestamp, said["action"], said["result"], run, said["phase"])


def _imported(services: Services, event: Event) -> Iterator[Imported]:
    told = event.payload
    if told.get("worktree", services.worktree) == services.worktree and (
        told["state"] or told["anchors"] or told["history"]
    ):
        yield Imported(event.at, told["state"], told["anchors"], told["history"])


def _earlier(services: Services, run: str) -> dict[str, Any]:
    """Recorded once, so that no later command has to replay those runs."""
    lines = [(seq, one) for seq, one in _unrecorded(services, _told(services)) if one.run != run]
    said = [{"seq": seq, "phase": one.phase, **one.as_dict()} for seq, one in lines]
    return {"earlier": said} if said else {}


def _unrecorded(services: Services, told: Sequence[tuple[int, Entry | Imported]]) -> list[tuple[int, Entry]]:
    """Lines of runs that ended and have none, each in the place of the run's end."""
    known = state_file.runs([one for _, one in told])
    states = [replay(services.log.events(run=run)) for run in runs_here(services) if run not in known]
    return [(s.last_seq, _entry(s.moved_at, s.id, _said(s))) for s in states if s.state != ACTIVE]
