"""A run that works, perhaps in another process: its events as they come, and what it is expected to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from idumb.app.contract import loading
from idumb.app.core import questions, run_lookup, schedule
from idumb.app.core.services import Services
from idumb.domain import outcome, rerun
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.runs import spending
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.domain.settings import Ceiling

PAUSE = 0.25
"""Seconds between two looks into the log."""
_PHASES = 5
"""The newest phases whose times are used."""


class Expected(NamedTuple):
    """`commands` are those of its checks and of the project. `seconds` is None if no time is known."""

    commands: tuple[str, ...] = ()
    seconds: float | None = None


class Now(NamedTuple):
    """What works on a task: words such as "check `pytest -q`", the last line of its agent, and its tokens so far."""

    words: str = ""
    line: str = ""
    tokens: int | None = None


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
    contract = loading.find_locked_contract(services, state)
    if contract is None:
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


def expected_of(services: Services, state: RunState) -> dict[str, Expected]:
    """Return what is expected of each task of a run, by its plan; empty if that is not kept any more."""
    contract = loading.find_locked_contract(services, state)
    if contract is None:
        return {}
    scale, rows = _scale(services, state, contract), {}
    of_project = [command for gate in services.settings.gates.values() for command in gate.run]
    of_project += services.settings.checkout.prepare
    for name, task in contract.tasks.items():
        checks = rerun.checks_of_task(task, contract.plan_of[name])
        is_known = not task.is_human and (scale is not None or task.estimate is not None)
        seconds = task.estimate_seconds * (1.0 if scale is None else scale) if is_known else None
        rows[name] = Expected((*(check.command for check in checks if check.command), *of_project), seconds)
    return rows


def most_dollars(services: Services, state: RunState) -> float | None:
    """Return what a run may cost, with what people added to its ceiling; None if there is none."""
    ceiling = services.settings.ceilings.get("run", Ceiling())
    if ceiling.cost_usd is None:
        return None
    return spending.raise_ceiling(ceiling, questions.times_raised(state, None, "run")).cost_usd


def _scale(services: Services, known: RunState, contract: Contract) -> float | None:
    """Return the time that completed tasks took, as a share of what their plans estimate; None without any.

    `contract` is that of the run `known`.
    """
    times = list(_times(services, known, contract))
    planned = sum(estimate for estimate, _ in times)
    return sum(took for _, took in times) / planned if planned else None


def _times(services: Services, known: RunState, contract: Contract) -> Iterator[tuple[float, float]]:
    for phase in services.log.phases()[-_PHASES:]:
        state = run_lookup.latest_run(services, phase)
        if state is None:
            continue
        locked = contract if state.id == known.id else loading.find_locked_contract(services, state)
        for name, task in state.tasks.items():
            if locked and task.status == outcome.COMPLETED and name in locked.tasks and task.progress.seconds:
                yield locked.tasks[name].estimate_seconds, task.progress.seconds
