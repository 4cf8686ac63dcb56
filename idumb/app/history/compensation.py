"""Effects outside the files: taken back by the task's own commands, or a reason to refuse a rollback.

The commands run before any file is put back, for they may need what the task made. They must bear being run twice:
where the executor ends between a command and its record, the next rollback runs it again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from idumb.app.attempt.proofs import evidence_payload
from idumb.app.consent import approvals
from idumb.app.contract import loading
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, plans_ref, run_ref
from idumb.app.history.restoring import Target
from idumb.app.ports.checks import Checks
from idumb.app.ports.repository import Snapshot
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal, WorkFailed
from idumb.domain.plans.plan import COMPENSATABLE, IRREVERSIBLE, STRICT, Task
from idumb.domain.proof.evidence import Evidence
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import EFFECT, TaskState


@dataclass(frozen=True, slots=True)
class Effects:
    """What a rollback meets besides files. `commands` are (task, its commands), in the order in which they run."""

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
    """Refusal where an irreversible task is not named in `past`, or commands would run without consent."""
    made = [known.id for known in undone if state.tasks[known.id].effect == EFFECT]
    if not made and not past:
        return Effects()
    agreed = agreed_tasks(services, state, contract)
    known = [agreed[task] for task in made if task in agreed]
    irreversible = {task.id: task.rollback.reason for task in known if task.rollback.kind == IRREVERSIBLE}
    named = _named(state, past)
    _refuse(state, {task: why for task, why in irreversible.items() if task not in named})
    owed = [t for t in reversed(known) if t.rollback.kind == COMPENSATABLE]
    commands = [(t.id, t.rollback.commands) for t in owed if t.id not in named]
    remaining = {**irreversible, **{t.id: "its commands were not to be run" for t in owed if t.id in named}}
    if commands:
        _require_word(services, state, contract, commands[0][0])
    return Effects(
        tuple(remaining),
        tuple(commands),
        (
            *(f"{task} is not taken back outside the files: {why}" for task, why in remaining.items()),
            *(f"{task} runs {command}" for task, lines in commands for command in lines),
        ),
        tuple(f"What {task} did outside the files remains: {why}" for task, why in remaining.items()),
    )


def _require_word(services: Services, state: RunState, contract: Contract, first: str) -> None:
    """Refusal where what the run locked, held against everything else as it is now, has no person's word."""
    same = contract.hash == state.contract.hash
    locked = contract if same else loading.locked(services, state, contract.folder).contract
    if locked is not None and locked.hash == state.contract.hash:
        approvals.require_for(services, locked, state)
    elif STRICT in (contract.mode, state.mode) or not services.consent.given(state.contract.hash):
        raise Refusal(
            "consent.missing",
            f"{first} is taken back by commands, and nobody consented to contract {state.contract.hash[:16]}"
            " under the configuration and the policy of now.",
            hint=f"Put them back, or add --past {first} to leave its effect",
            details={"phase": state.phase, "contract_hash": state.contract.hash},
        )


def _named(state: RunState, past: Sequence[str]) -> frozenset[str]:
    known = {task.casefold(): task for task in state.tasks}
    unknown = [task for task in past if task.casefold() not in known]
    if unknown:
        raise InputError(
            "task.unknown",
            f"Phase {state.phase} has no task {unknown[0]}.",
            hint=f"idumb graph {state.phase}",
            details={"phase": state.phase},
        )
    return frozenset(known[task.casefold()] for task in past)


def _refuse(state: RunState, unnamed: Mapping[str, str]) -> None:
    if not unnamed:
        return
    task, why = next(iter(unnamed.items()))
    more = f" ({len(unnamed) - 1} more)" if len(unnamed) > 1 else ""
    flags = " ".join(f"--past {task}" for task in unnamed)
    raise Refusal(
        "rollback.irreversible",
        f"{task} cannot be taken back: {why}{more}",
        hint=f"idumb rollback {state.phase} --to {task} stops before it; {flags} puts only its files back",
        details={
            "phase": state.phase,
            "task": task,
            "past": f"idumb rollback {state.phase} --to start {flags}",
            "tasks": dict(unnamed),
        },
    )


def agreed_tasks(services: Services, state: RunState, contract: Contract) -> Mapping[str, Task]:
    """The tasks as the run locked its plans last, whatever the files say now."""
    if contract.hash == state.contract.hash:
        return contract.tasks
    found: dict[str, Task] = {}
    for name, blob in services.trees.kept_blobs(plans_ref(services, state.id, state.contract.version)).items():
        parsed = services.plans.parse(services.trees.read(blob), name).as_agreed.plan
        found.update({task.id: task for task in (parsed.tasks if parsed else ())})
    return found


def run(services: Services, journal: Journal, found: Effects, target: Target, before: Snapshot) -> Target:
    """Run the commands, newest task first; what they change in files counts as left by the tasks."""
    if not found.commands:
        return target
    checks = services.open_checks(services.open_workspace("here", journal.state.id), journal.state.id)
    present = before.tree
    for task, commands in found.commands:
        done = [_command(services, journal, checks, task, command) for command in commands]
        checks.end_processes()
        failed = next((e for e in done if not e.passed), None)
        present, target = _take_in(services, journal, target, task, present, record=failed is None)
        if failed is not None:
            raise _failure(journal.state.phase, found, task, failed)
    return target


def _command(services: Services, journal: Journal, checks: Checks, task: str, command: str) -> Evidence:
    services.interrupts.check()
    limit = float(services.settings.run.check_timeout)
    with services.interrupts.armed():
        made = checks.command(f"rollback of {task}", f"take back {task}", command, timeout=limit, tree=None)
    journal.write(journal.event("evidence.recorded", task, **evidence_payload(made)))
    return made


def _take_in(
    services: Services, journal: Journal, target: Target, task: str, before: str, *, record: bool
) -> tuple[str, Target]:
    """(the present tree, the target with what the commands changed as expected), recorded."""
    trees, state = services.trees, journal.state
    present = trees.scan(target.paths)
    changed = [p for p in target.paths if trees.entry(before, p) != trees.entry(present, p)]
    left: dict[str, str] = {}
    if changed:
        ref = run_ref(services, state.id, f"operations/{journal.operation}/compensated-{task}")
        trees.keep(ref, present, f"after the commands of {task}")
        target = dataclasses.replace(target, expected=trees.overlay(target.expected, present, changed))
        left = {
            known.id: trees.overlay(known.work.left, present, [p for p in changed if p in set(known.work.touched)])
            for known in state.tasks.values()
            if known.work.left is not None and not set(changed).isdisjoint(known.work.touched)
        }
    if record:
        journal.write(journal.event("rollback.compensated", task, paths=changed, left=left, tree=present))
    return present, target


def _failure(phase: str, found: Effects, task: str, failed: Evidence) -> WorkFailed:
    order = found.compensated
    done = order[: order.index(task)]
    said = f"; taken back before it: {', '.join(done)}" if done else ""
    return WorkFailed(
        "rollback.command-failed",
        f"No file was put back, because a command that takes {task} back {failed.result}: {failed.command}{said}",
        hint=f"Mend what it says and roll back again, or add --past {task} to leave its effect",
        details={
            "past": f"idumb rollback {phase} --to start --past {task}",
            "task": task,
            "done": list(done),
            "evidence": evidence_payload(failed),
        },
    )
