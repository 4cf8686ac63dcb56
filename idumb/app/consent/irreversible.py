"""Irreversible tasks, which run only after the user accepts each of them by name."""

from __future__ import annotations

from idumb.app.consent import approval_parts, approvals
from idumb.app.core import next_actions, run_lookup
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.consent.approval import StoredApproval
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import IRREVERSIBLE, Task

ACCEPT = "accept"


def irreversible_tasks(contract: Contract) -> tuple[Task, ...]:
    """The irreversible tasks in execution order, except those that a person does."""
    return tuple(task for t in contract.order if _is_irreversible(task := contract.tasks[t]))


def _is_irreversible(task: Task) -> bool:
    return task.rollback.kind == IRREVERSIBLE and not task.is_human


def require_all(services: Services, contract: Contract, *, asks: bool) -> None:
    """Require that the user accepted every irreversible task that may still run. Refusal `irreversible.not-accepted`.

    With `asks`, a user at the terminal is asked about each of them, and the answers are recorded.
    """
    tasks = irreversible_tasks(contract)
    if not tasks:
        return
    accepted = approvals.accepted_tasks(services, contract)
    missing = [t for t in tasks if t.id not in accepted and not _is_finished(services, contract, t)]
    if missing and asks and services.asker.interactive:
        missing = [t for t in missing if not _accepted_at_terminal(services, contract, t)]
    if missing:
        raise _refusal(contract, missing, sorted(accepted))


def require(services: Services, contract: Contract, task: Task) -> None:
    """Require the same for one task, before it starts."""
    if _is_irreversible(task):
        accepted = approvals.accepted_tasks(services, contract)
        if task.id not in accepted:
            raise _refusal(contract, [task], sorted(accepted))


def _is_finished(services: Services, contract: Contract, task: Task) -> bool:
    """Whether the newest run finished, skipped or omitted the task, and the task is unchanged."""
    state = run_lookup.latest_run(services, contract.phase)
    task_state = state.tasks.get(task.id) if state is not None else None
    if task_state is None or task_state.digest != contracts.task_digest(task):
        return False
    return task_state.status in outcome.ENDED


def _accepted_at_terminal(services: Services, contract: Contract, task: Task) -> bool:
    question = _question(contract, task)
    answer = services.asker.ask(question)
    if answer is None or answer.choice != ACCEPT:
        return False
    services.consent.approve(StoredApproval(approvals.create(services, contract, by=answer.by, accepted=(task.id,))))
    return True


def _command(contract: Contract, tasks: list[str]) -> str:
    options = " ".join(f"--accept-irreversible {task}" for task in tasks)
    return f"idumb approve {contract.phase} --hash {contract.hash} {options}"


def _question(contract: Contract, task: Task) -> Decision:
    return Decision.confirmation(
        f"{task.id}.irreversible",
        "irreversible",
        f"Run {task.id} {task.title}, which is irreversible",
        task.rollback.reason or "Its effects cannot be rolled back.",
        (f"runs {command}" for command in approval_parts.task_commands(task)),
        Choice(ACCEPT, "accept this task", "it runs when its turn comes", _command(contract, [task.id])),
        "do not accept it",
        "the phase does not run",
        task=task.id,
    )


def _refusal(contract: Contract, tasks: list[Task], accepted: list[str]) -> Refusal:
    names = [t.id for t in tasks]
    commands = _command(contract, [*accepted, *names])
    choices = [
        Choice(ACCEPT, "accept each of them by name", "they run when their turn comes", commands),
        Choice("no", "do not accept them", "nothing runs"),
    ]
    return Refusal(
        "irreversible.not-accepted",
        f"Phase {contract.phase} has irreversible tasks that need your acceptance: {', '.join(names)}.",
        hint=commands,
        details=next_actions.offer(
            f"Run {', '.join(names)}",
            "The effects of these tasks cannot be rolled back.",
            [f"{t.id} {t.title}: {t.rollback.reason}" for t in tasks],
            choices,
            contract_hash=contract.hash,
            tasks=names,
        ),
    )
