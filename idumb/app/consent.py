"""Consent: nothing of a plan runs before a person agreed to exactly this contract and configuration."""

from __future__ import annotations

from collections.abc import Iterable

from idumb.app.services import Services
from idumb.domain import contract as contracts
from idumb.domain import ledger
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.plan import BUILD, IRREVERSIBLE, STRICT, Task
from idumb.domain.settings import Settings

SHOWN_PATHS = 8


def ensure(services: Services, contract: Contract, *, approve: str | None, mode: str | None) -> None:
    """Consent that was given before, by `--approve`, or at the terminal now; Refusal otherwise."""
    if STRICT in (contract.mode, mode):
        raise Refusal(
            "consent.strict",
            "A strict plan runs only when approved by `idumb approve`, which this version does not have yet.",
            hint="Set `mode: guided` in the plan to run it with consent at the terminal or --approve",
        )
    if approve is not None and approve != contract.hash:
        raise Refusal(
            "consent.other-contract",
            f"--approve names {approve[:16]}, but phase {contract.phase} is {contract.hash[:16]} now:"
            " its plan or the configuration changed.",
            hint=f"idumb check-plan {contract.phase} --json shows the present data.contract_hash",
            details={"expected": contract.hash},
        )
    if services.consent.given(contract.hash):
        return
    if approve is not None:
        services.consent.record(contract.hash, phase=contract.phase, how="--approve", at=services.clock.now())
        return
    question = decision(services, contract)
    answer = services.asker.ask(question)
    if answer is None or answer.choice != "run":
        raise Refusal(
            "consent.missing",
            f"Nobody consented to contract {contract.hash[:16]} of phase {contract.phase}.",
            hint=f"idumb execute-phase {contract.phase} --approve {contract.hash}",
            details={"contract_hash": contract.hash, "decision": question.id, "evidence": list(question.evidence)},
        )
    services.consent.record(contract.hash, phase=contract.phase, how="terminal", at=services.clock.now())


def decision(services: Services, contract: Contract) -> Decision:
    return Decision(
        id=f"consent.{contract.hash[:12]}",
        kind="consent",
        what=f"Run phase {contract.phase}: {len(contract.tasks)} tasks of {', '.join(p.path for p in contract.plans)}",
        why="A plan can run commands on this machine. It runs only when you agree to exactly this contract and"
        " configuration.",
        evidence=tuple(lines(services, contract)),
        choices=(
            Choice(
                "run",
                "run it",
                f"consent is recorded for contract {contract.hash[:16]}",
                f"idumb execute-phase {contract.phase} --approve {contract.hash}",
            ),
            Choice("no", "do not run it", "nothing happens"),
        ),
    )


def lines(services: Services, contract: Contract) -> Iterable[str]:
    """What will run and what will be written, one line each."""
    for plan in contract.plans:
        for task in plan.tasks:
            yield from _task_lines(task)
    for plan in contract.plans:
        yield from (f"after each task: {invariant.check}" for invariant in plan.invariants)
        yield from (f"at the end: {c.command}" for c in plan.success_criteria if c.command)
    for name in agents(services.settings, contract):
        yield f"agent {name}: {' '.join(services.settings.bindings[name].argv)}"
    for path in contracts.consent_paths(contract):
        yield f"writes {path}, which is protected unless declared"


def _task_lines(task: Task) -> Iterable[str]:
    yield f"{task.id} {task.title}"
    written = ledger.written_paths(task.files)
    if written:
        more = f" and {len(written) - SHOWN_PATHS} more" if len(written) > SHOWN_PATHS else ""
        yield f"  writes {', '.join(written[:SHOWN_PATHS])}{more}"
    for command in commands(task):
        yield f"  runs   {command}"
    for command in task.rollback.commands:
        yield f"  runs   {command}, when it is rolled back"
    if task.rollback.kind == IRREVERSIBLE:
        yield f"  cannot be taken back: {task.rollback.reason}"
    if task.kind != BUILD:
        yield f"  asks   a person ({task.kind})"


def agents(settings: Settings, contract: Contract) -> tuple[str, ...]:
    """The bindings that build or validate, in the order of their first use."""
    used = (
        name
        for plan in contract.plans
        for task in plan.tasks
        for name in (
            contracts.builder_of(plan, task, settings),
            contracts.validator_of(plan, task, settings),
        )
        if name is not None and name in settings.bindings
    )
    return tuple(dict.fromkeys(used))


def commands(task: Task) -> tuple[str, ...]:
    """Every command string of a task, in the order in which it may run."""
    of_steps = [
        str(s.arguments.get("command") or " ".join(map(str, s.arguments.get("argv", ()))))
        for s in task.steps
        if s.tool == "run"
    ]
    conditions = [c.subject for c in (*task.preconditions, *task.postconditions) if c.kind == "command"]
    criteria = [c.command for c in task.acceptance if c.command]
    return tuple(dict.fromkeys([*conditions, *of_steps, *criteria, *task.verify, *(t.command for t in task.tests)]))
