"""`state.json` of this work tree, made from the log alone; what an older file holds beyond it is recorded first."""

from __future__ import annotations

from collections.abc import Iterator
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
    told += _older(services, told)
    return services.documents.state(told) if told else None


def record(services: Services, journal: Journal) -> None:
    """A line of the history for the run of a command that ends, where the run stands otherwise than the last one says.

    The file is made again with it.
    """
    state = journal.state
    if not state.id or state.state == ACTIVE:
        return
    said = _said(state)
    last = next(iter(services.log.events(run=state.id, kind=RECORDED, newest_first=True, limit=1)), None)
    new = last is None or dict(last.payload) != said
    if new:
        keep(services, journal)
        journal.write(journal.event(RECORDED, **said))
    if new or not services.reports.exists(publish.STATE_FILE):
        publish.write(services, publish.STATE_FILE, text(services) or "")


def keep(services: Services, journal: Journal) -> None:
    """Record what the present file holds beyond the log, and keep its bytes, before another takes its place."""
    found = takeover.of_path(services, publish.STATE_FILE)
    if found is not None:
        takeover.write(services, journal, (found,))


def beyond(services: Services, present: dict[str, Any]) -> Imported | None:
    return state_file.beyond(present, _told(services))


def _said(state: RunState) -> dict[str, str]:
    shown = {task: known.status for task, known in state.tasks.items()}
    return {"action": f"execute-phase:{state.phase}", "result": publish.result(shown), "phase": state.stage}


def _here(services: Services) -> list[str]:
    """Every run of this work tree, the oldest first."""
    return [run for run, _, worktree, _ in services.log_files.starts() if worktree == services.worktree]


def _told(services: Services) -> list[Entry | Imported]:
    """What was recorded for this file, in the order of the log."""
    here = frozenset(_here(services))
    lines: list[tuple[int, Entry | Imported]] = [
        (e.seq, _entry(e)) for e in services.log.events(kind=RECORDED) if e.run in here
    ]
    came: list[tuple[int, Entry | Imported]] = [
        (e.seq, one) for e in services.log.events(kind=takeover.EVENT) for one in _imported(services, e)
    ]
    return [one for _, one in sorted([*lines, *came], key=lambda pair: pair[0])]


def _entry(event: Event) -> Entry:
    return Entry(event.at, run=event.run or "", **event.payload)


def _imported(services: Services, event: Event) -> Iterator[Imported]:
    told = event.payload
    if told.get("worktree", services.worktree) == services.worktree and (
        told["state"] or told["anchors"] or told["history"]
    ):
        yield Imported(event.at, told["state"], told["anchors"], told["history"])


def _older(services: Services, told: list[Entry | Imported]) -> list[Entry | Imported]:
    """Lines of runs that ended before lines were recorded."""
    known = state_file.runs(told)
    states = [replay(services.log.events(run=run)) for run in _here(services) if run not in known]
    ended = sorted((s for s in states if s.state != ACTIVE), key=lambda state: state.last_seq)
    return [Entry(state.changed_at, run=state.id, **_said(state)) for state in ended]
