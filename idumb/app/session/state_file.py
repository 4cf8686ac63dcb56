"""`state.json` of this working tree, rebuilt from the log. What somebody else wrote there is kept first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from idumb.app.attempt import projections
from idumb.app.core import run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import STATE_FILE, Services
from idumb.domain.runs import state_file
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import ACTIVE, RunState
from idumb.domain.runs.state_file import HistoryEntry, ImportedState, OldFile

RECORDED = "history.recorded"
FOLDER = ".idumb"
ATTIC = "legacy"


def text(services: Services) -> str | None:
    """Return the whole file; None if the log has nothing to put in it."""
    lines = _lines(services)
    return services.documents.state(lines) if lines else None


def record(services: Services, journal: Journal) -> None:
    """Record a line of history for the run of a command that ends, if the run's state changed, and rebuild the file.

    A failure is reported and stops nothing: the log has all of it.
    """
    state = journal.state
    if not state.id or state.state == ACTIVE:
        return
    summary = _entry_fields(state)
    last = run_lookup.last_event(services, RECORDED, state.id)
    new = last is None or {name: last.payload.get(name) for name in summary} != summary
    if not new and services.files.exists(STATE_FILE):
        return
    replaced = _is_replaced(services)
    if new:
        journal.append(RECORDED, **summary)
    if replaced:
        projections.write(services, STATE_FILE, text(services) or "")


def _is_replaced(services: Services) -> bool:
    """Keep the present file if it is not as idumb wrote it; return False if it cannot be read or kept."""
    path = STATE_FILE
    try:
        present = services.files.read(path)
        if present and present != text(services):
            projections.set_aside(services, path, present)
    except OSError as problem:
        services.reporter.note(f"{path} is left as it is: {problem.strerror or problem}")
        return False
    return True


def runs_here(services: Services) -> list[str]:
    """Return every run of this working tree, the oldest first."""
    return [start.run for start in services.log_files.starts() if start.worktree == services.worktree]


def _entry_fields(state: RunState) -> dict[str, str]:
    statuses = {task: task_state.status for task, task_state in state.tasks.items()}
    return {"action": f"execute-phase:{state.phase}", "result": projections.result(statuses), "phase": state.stage}


def _lines(services: Services) -> list[HistoryEntry | ImportedState]:
    """Return what was recorded for this file, in the order of the log."""
    here = frozenset(runs_here(services))
    lines: list[tuple[int, HistoryEntry | ImportedState]] = [
        (e.seq, HistoryEntry(e.at, e.payload["action"], e.payload["result"], e.run or "", e.payload["phase"]))
        for e in services.log.events(kind=RECORDED)
        if e.run in here
    ]
    lines += [(e.seq, line) for e in services.log.events(kind=state_file.IMPORTED) for line in _imported(services, e)]
    return [line for _, line in sorted(lines, key=lambda row: row[0])]


def _imported(services: Services, event: Event) -> Iterator[ImportedState]:
    payload = event.payload
    if payload["worktree"] == services.worktree and (payload["state"] or payload["anchors"] or payload["history"]):
        yield ImportedState(event.at, payload["state"], payload["anchors"], payload["history"])


def of_path(services: Services, path: str) -> tuple[OldFile, bytes] | None:
    """Return what an old file contains, with its bytes; None if it is none, or is as idumb writes it."""
    present = services.files.read(path)
    if present is None or (path == STATE_FILE and present == text(services)):
        return None
    data = present.encode("utf-8", "surrogateescape")
    old = services.plans.old_state(path, data)
    return None if old is None else (old, data)


def write(services: Services, journal: Journal, old_files: Sequence[tuple[OldFile, bytes]]) -> dict[str, Any]:
    files = [_kept(services, old, data) for old, data in old_files]
    report = {
        **state_file.import_payload(tuple(old for old, _ in old_files)),
        "files": files,
        "worktree": services.worktree,
    }
    journal.write(replace(journal.event(state_file.IMPORTED, **report), run=None))
    return report


def _kept(services: Services, old: OldFile, data: bytes) -> dict[str, Any]:
    kept = services.backups.keep(ATTIC, old.path.removeprefix(f"{FOLDER}/"), data)
    return {"path": old.path, "what": old.kind, "digest": old.digest, "size": len(data), "kept": kept}
