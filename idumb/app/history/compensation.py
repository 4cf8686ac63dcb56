"""Effects outside the files: a task's rollback commands undo them, or the rollback is refused.

The commands run before any file is restored, because they may need the task's files. They must be safe to run twice: if
the process ends between a command and its record, the next rollback runs the command again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from idumb.app.consent import phase_grants
from idumb.app.consent.phase_grants import PhaseGrants
from idumb.app.core import run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.domain.action import Action
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal, WorkFailed
from idumb.domain.plans.plan import COMPENSATABLE, IRREVERSIBLE, STRICT
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import EFFECT, RunState, TaskState


class Effects(Struct, frozen=True):
    """What a rollback does about effects outside the files. `commands` are (task, its commands), in order."""

    past: tuple[str, ...] = ()
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def compensated(self) -> tuple[str, ...]:
        return tuple(task for task, _ in self.commands)


def effects(
    services: Services, state: RunState, contract: Contract, undone: Sequence[TaskState], past: Sequence[str]
) -> Effects:
    """Return the effects. Refuses if an irreversible task is not in `past` or commands have no consent."""
    effective = [task.id for task in undone if state.tasks[task.id].effect == EFFECT]
    if not effective and not past:
        return Effects()
    declared = [contract.tasks[task] for task in effective if task in contract.tasks]
    irreversible = {task.id: task.rollback.reason for task in declared if task.rollback.kind == IRREVERSIBLE}
    by_id = {task.casefold(): task for task in state.tasks}
    past_tasks = [by_id.get(task.casefold(), task) for task in past]
    for task in past_tasks:
        run_lookup.require_task(state.tasks, task, state.phase)
    _refuse_irreversible(state, {task: why for task, why in irreversible.items() if task not in past_tasks})
    compensatable = [t for t in reversed(declared) if t.rollback.kind == COMPENSATABLE]
    commands = [(t.id, t.rollback.commands) for t in compensatable if t.id not in past_tasks]
    remaining = {**irreversible, **{t.id: "its commands did not run" for t in compensatable if t.id in past_tasks}}
    if commands:
        _require_consent(services, state, contract, commands[0][0])
    return Effects(
        tuple(remaining),
        tuple(commands),
        (
            *(f"{task} keeps its effects outside the files: {why}" for task, why in remaining.items()),
            *(f"{task} runs {command}" for task, lines in commands for command in lines),
        ),
        tuple(f"The effects of {task} outside the files remain: {why}" for task, why in remaining.items()),
    )


def _require_consent(services: Services, state: RunState, contract: Contract, first: str) -> None:
    """Require consent to the contract that the run locked, under the present configuration and policy."""
    if contract.hash == state.contract.hash:
        phase_grants.require_for(services, contract, state)
    elif STRICT in (contract.mode, state.mode) or not PhaseGrants(services, contract).covers(state.contract.hash):
        raise Refusal(
            "consent.missing",
            f"The rollback of {first} runs commands, and contract {state.contract.hash[:16]} is not approved"
            " under the present configuration and policy.",
            hint=f"Restore configuration and policy, or add --past {first} to keep the effect",
            details={"phase": state.phase, "contract_hash": state.contract.hash},
        )


def _refuse_irreversible(state: RunState, unnamed: Mapping[str, str]) -> None:
    if not unnamed:
        return
    task, why = next(iter(unnamed.items()))
    flags = " ".join(f"--past {task}" for task in unnamed)
    raise Refusal(
        "rollback.irreversible",
        f"{task} is irreversible: {why}",
        hint=f"idumb rollback {state.phase} --to {task} stops before it; {flags} restores only its files",
        details={
            "phase": state.phase,
            "task": task,
            "past": f"idumb rollback {state.phase} --to start {flags}",
            "tasks": dict(unnamed),
        },
    )


def run(services: Services, journal: Journal, contract: Contract, effects: Effects) -> None:
    """Run the commands, newest task first, each where its task was built, with the files that the task left."""
    if not effects.commands:
        return
    place, state = services.open_checkout(), journal.state
    checks = services.open_checks(place, state.id).given(contract.variables)
    for task, commands in effects.commands:
        place.show(_tree_of(services, state.tasks[task]), services.history.head().commit)
        done: list[Evidence] = []
        for command in commands:
            services.interrupts.check()
            with services.interrupts.armed():
                done.append(checks.command(f"rollback of {task}", f"take back {task}", command, tree=None))
            journal.append("evidence.recorded", task, **done[-1].as_dict())
        checks.end_processes()
        if failed := next((e for e in done if not e.passed), None):
            before = effects.compensated[: effects.compensated.index(task)]
            earlier = f"; rolled back before it: {', '.join(before)}" if before else ""
            raise WorkFailed(
                "rollback.command-failed",
                f"No file was restored, because a rollback command of {task} {failed.result}:"
                f" {failed.command}{earlier}",
                hint=f"Fix the cause and roll back again, or add --past {task} to keep its effect",
                details={
                    "past": Action.of("rollback", state.phase, "--to", "start", "--past", task),
                    "task": task,
                    "done": list(before),
                    "evidence": failed.as_dict(),
                },
            )
        journal.append("rollback.compensated", task)


def _tree_of(services: Services, task: TaskState) -> str:
    """Return the tree that a task left: that of its commit, or HEAD with its files if it has none or git removed it."""
    if (commit := run_lookup.commit_of(task)) is not None:
        with suppress(KeyError):
            return services.history.tree_of(commit)
    head, left = services.history.head().commit, task.work.left_tree
    return services.history.tree_of(head) if left is None else services.trees.committed(head, left, task.work.touched)
