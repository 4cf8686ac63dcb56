"""Tasks that cannot be taken back run only where a person accepted that very task."""

from __future__ import annotations

from idumb.app.consent import approvals
from idumb.app.core import next_actions, run_lookup
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.consent.approval import Kept
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import IRREVERSIBLE, Task

ACCEPT = "accept"


def of(contract: Contract) -> tuple[Task, ...]:
    """The irreversible tasks that are not done by a person alone, in the order of execution."""
    return tuple(task for t in contract.order if _is(task := contract.tasks[t]))


def _is(task: Task) -> bool:
    return task.rollback.kind == IRREVERSIBLE and not task.is_human


def require_all(services: Services, contract: Contract, *, asks: bool) -> None:
    """Refusal `irreversible.not-accepted`, before anything is touched, where one that may still run is not accepted.

    `asks`: a person at the terminal is asked about each of them, and their word is kept.
    """
    tasks = of(contract)
    if not tasks:
        return
    accepted = approvals.accepted(services, contract)
    missing = [t for t in tasks if t.id not in accepted and not _is_settled(services, contract, t)]
    if missing and asks and services.asker.interactive:
        missing = [t for t in missing if not _asked(services, contract, t)]
    if missing:
        raise _refusal(contract, missing, sorted(accepted))


def require(services: Services, contract: Contract, task: Task) -> None:
    """The same for one task, right before it starts."""
    if _is(task):
        accepted = approvals.accepted(services, contract)
        if task.id not in accepted:
            raise _refusal(contract, [task], sorted(accepted))


def _is_settled(services: Services, contract: Contract, task: Task) -> bool:
    """Whether the newest run is through with it, as its text says now."""
    state = run_lookup.latest_run(services, contract.phase)
    known = state.tasks.get(task.id) if state is not None else None
    if known is None or known.digest != contracts.task_digest(task):
        return False
    return known.status in outcome.DONE or known.status == outcome.SKIPPED


def _asked(services: Services, contract: Contract, task: Task) -> bool:
    question = _question(contract, task)
    answer = services.asker.ask(question)
    if answer is None or answer.choice != ACCEPT:
        return False
    services.consent.approve(Kept(approvals.make(services, contract, by=answer.by, accepted=(task.id,))))
    return True


def _command(contract: Contract, tasks: list[str]) -> str:
    named = " ".join(f"--accept-irreversible {task}" for task in tasks)
    return f"idumb approve {contract.phase} --hash {contract.hash} {named}"


def _question(contract: Contract, task: Task) -> Decision:
    return Decision(
        id=f"{task.id}.irreversible",
        kind="irreversible",
        task=task.id,
        what=f"Run {task.id} {task.title}, which cannot be taken back",
        why=task.rollback.reason or "No rollback takes its effect back.",
        evidence=tuple(f"runs {command}" for command in approvals.commands(task)),
        choices=(
            Choice(ACCEPT, "accept this task", "it runs when its turn comes", _command(contract, [task.id])),
            Choice("no", "do not accept it", "nothing of the phase runs"),
        ),
    )


def _refusal(contract: Contract, tasks: list[Task], accepted: list[str]) -> Refusal:
    names = [t.id for t in tasks]
    commands = _command(contract, [*accepted, *names])
    choices = [
        Choice(ACCEPT, "accept each of them by name", "they run when their turn comes", commands),
        Choice("no", "leave it", "nothing runs"),
    ]
    return Refusal(
        "irreversible.not-accepted",
        f"{', '.join(names)} of phase {contract.phase} cannot be taken back, and nobody accepted"
        f" {'it' if len(names) == 1 else 'each of them'}.",
        hint=commands,
        details={
            "what": f"Run {', '.join(names)}",
            "why": "No rollback takes back what these tasks do.",
            "evidence": [f"{t.id} {t.title}: {t.rollback.reason}" for t in tasks],
            "choices": next_actions.rows(choices),
            "contract_hash": contract.hash,
            "tasks": names,
        },
    )
