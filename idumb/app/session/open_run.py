"""Opens the run context of a run: where its programs work, its agents and its checks."""

from __future__ import annotations

from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunContext
from idumb.app.core.services import Services
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.run import RunState


def run_context(
    services: Services,
    journal: Journal,
    contract: Contract,
    *,
    on_deviation: str | None = None,
    max_attempts: int | None = None,
    in_place: bool = False,
    deterministic: bool = False,
    sandboxed: bool = False,
    accepts_changes: bool = False,
) -> RunContext:
    """Open what a run works with. With `in_place`, only a person works, in the user's own tree.

    `accepts_changes`: the user accepts the present programs and settings of checks.
    """
    place = services.here if in_place else services.open_checkout()
    continued = _has_open_attempt(journal.state) and not accepts_changes
    checks = services.open_checks(place, journal.state.id, continued=continued)
    if contract.variables:
        checks = checks.given(contract.variables)
    return RunContext(
        services,
        journal,
        contract,
        place,
        services.open_agents(place, journal.state.id),
        checks,
        services.gates,
        journal.state.policy,
        on_deviation,
        max_attempts or services.settings.run.max_attempts,
        deterministic=deterministic,
        sandboxed=sandboxed,
    )


def _has_open_attempt(state: RunState) -> bool:
    return any(task_state.status == outcome.RUNNING for task_state in state.tasks.values())
