"""What a run is about to do: the checks of each task, and how long it takes as this repository has shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from idumb.app.contract import loading
from idumb.app.core import questions, run_lookup
from idumb.app.core.services import Services
from idumb.domain import outcome, rerun
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs import spending
from idumb.domain.runs.run import RunState
from idumb.domain.settings import Ceiling

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


def of_run(services: Services, run: str) -> dict[str, Expected]:
    """Return what is expected of each task of a run, by its plan; empty if that is not kept any more."""
    state = run_lookup.run_of(services, run)
    contract = _contract(services, state)
    if contract is None:
        return {}
    scale, rows = _scale(services, state, contract), {}
    of_project = [command for gate in services.settings.gates.values() for command in gate.run]
    of_project += services.settings.checkout.prepare
    for name, task in contract.tasks.items():
        checks = rerun.checks_of_task(task, contract.plan_of(name))
        is_known = not task.is_human and (scale is not None or task.estimate is not None)
        seconds = task.estimate_seconds * (1.0 if scale is None else scale) if is_known else None
        rows[name] = Expected((*(check.command for check in checks if check.command), *of_project), seconds)
    return rows


def most_dollars(services: Services, run: str) -> float | None:
    """Return what a run may cost, with what people added to its ceiling; None if there is none."""
    ceiling = services.settings.ceilings.get("run", Ceiling())
    if ceiling.cost_usd is None:
        return None
    raised = questions.raises(run_lookup.run_of(services, run), None, "run")
    return spending.raise_ceiling(ceiling, raised).cost_usd


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
        locked = contract if state.id == known.id else _contract(services, state)
        for name, task in state.tasks.items():
            if locked and task.status == outcome.COMPLETED and name in locked.tasks and task.progress.seconds:
                yield locked.tasks[name].estimate_seconds, task.progress.seconds


def _contract(services: Services, state: RunState) -> Contract | None:
    try:
        return loading.locked_contract(services, state)
    except (InputError, Refusal):
        return None
