"""Irreversible tasks, which run only after the user accepts each of them by name: no yes to a run covers them."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.app.consent import needs, phase_grants
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task

ACCEPT = "accept"


def require(services: Services, contract: Contract, *, strict: bool, asks: bool, only: str | None = None) -> None:
    """Require that the user accepted every irreversible task that may still run, or `only` one, by name.

    With `asks`, a user at the terminal is asked about each of them, and the answers are recorded. Refusal
    `irreversible.not-accepted`.
    """
    tasks = [task for task in needs.irreversible_tasks(contract) if only in (None, task.id)]
    accepted = PhaseGrants(services, contract).accepted(strict=strict) if tasks else frozenset()
    missing = [t for t in tasks if t.id not in accepted and not _is_finished(services, contract, t)]
    if missing and asks and services.asker.interactive:
        missing = [t for t in missing if not _accepted_at_terminal(services, contract, t)]
    if missing:
        raise _refusal(contract, missing, sorted(accepted))


def _is_finished(services: Services, contract: Contract, task: Task) -> bool:
    """Whether the newest run finished, skipped or omitted the task, and the task is unchanged."""
    state = run_lookup.latest_run(services, contract.phase)
    task_state = state.tasks.get(task.id) if state is not None else None
    if task_state is None or task_state.digest != contracts.task_digest(task):
        return False
    return task_state.status in outcome.ENDED


def _accepted_at_terminal(services: Services, contract: Contract, task: Task) -> bool:
    question = Decision.confirmation(
        f"{task.id}.irreversible",
        "irreversible",
        f"Run {task.id} {task.title}, which is irreversible",
        task.rollback.reason or "Its effects cannot be rolled back.",
        (f"runs {command}" for command in needs.task_commands(task)),
        Choice(ACCEPT, "accept this task", "it runs when its turn comes", _command(contract, [task.id])),
        "do not accept it",
        "the phase does not run",
        task=task.id,
    )
    part = needs.of_irreversible(contract, [task.id])
    agreed = question.agreed(services.asker.ask(question))
    if agreed:
        phase_grants.record(services, contract.phase, part, how="terminal")
    return agreed


def _command(contract: Contract, tasks: Iterable[str]) -> Action:
    options = [word for task in tasks for word in ("--accept-irreversible", task)]
    return Action.of("approve", contract.phase, "--hash", contract.hash, *options)


def _refusal(contract: Contract, tasks: list[Task], accepted: list[str]) -> Refusal:
    names = [t.id for t in tasks]
    commands = _command(contract, [*accepted, *names])
    return Refusal(
        "irreversible.not-accepted",
        f"Phase {contract.phase} has irreversible tasks that need your acceptance: {', '.join(names)}.",
        hint=commands,
        details=actions.offer(
            f"Run {', '.join(names)}",
            "The effects of these tasks cannot be rolled back.",
            [f"{t.id} {t.title}: {t.rollback.reason}" for t in tasks],
            [Choice(ACCEPT, "accept each of them by name", "they run when their turn comes", commands)],
            contract_hash=contract.hash,
            tasks=names,
        ),
    )
