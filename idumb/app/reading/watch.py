"""The events of a run as they come, also of one that another process works on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from idumb.app.contract import loading
from idumb.app.core import run_lookup, schedule
from idumb.app.core.services import Services
from idumb.domain.action import Action
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState

PAUSE = 0.25
"""Seconds between two looks into the log."""


def newest(services: Services, phase: str | None) -> RunState:
    """Return the newest run of a phase, or of all phases. Refusal `run.none` if there is none."""
    if phase is not None:
        return run_lookup.named_run(services, phase)
    found = max(run_lookup.latest_runs(services), key=lambda state: state.last_seq, default=None)
    if found is None:
        raise Refusal("run.none", "Nothing was run in this working tree yet.", hint=Action("next"))
    return found


def described(services: Services, state: RunState) -> tuple[dict[str, str], dict[str, str]]:
    """Return the titles and the statuses of the tasks of a run, in execution order."""
    try:
        contract = loading.locked_contract(services, state)
    except (InputError, Refusal):  # its plan is not kept any more
        return {}, {id: task.status for id, task in state.tasks.items()}
    titles = {id: contract.tasks[id].title for id in contract.order}
    return titles, schedule.statuses(contract, state)


def summary(services: Services, state: RunState) -> dict[str, Any]:
    """Return the run as `idumb watch --once --json` shows it."""
    titles, statuses = described(services, state)
    tasks = [{"id": id, "title": titles.get(id, ""), "status": status} for id, status in statuses.items()]
    return {"run": state.id, "phase": state.phase, "state": state.state, "reason": state.reason, "tasks": tasks}


def events(services: Services, run: str, *, after: int = 0) -> Iterator[Event]:
    """Yield the events of a run after this number, until it has ended or its process is gone."""
    last = after
    while True:
        is_owned = services.owner.holder() is not None
        for event in services.log.events(run=run, after=last):
            last = event.seq
            yield event
        if not is_owned:
            return
        services.clock.pause(PAUSE)
