"""Checks that every task has an agent to build it, one to judge it, and receivers for its handoffs."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.domain.agent import BUILT_IN
from idumb.domain.contract import builder_of, validator_of
from idumb.domain.finding import Finding, nearest
from idumb.domain.intake.rule import Case
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.runs import handoff


def builders(case: Case) -> Iterator[Finding]:
    """Find tasks with neither steps nor a builder, and undefined builders."""
    bindings = case.settings.bindings
    for plan, task in case.pairs:
        name = builder_of(plan, task, case.settings)
        if name is None or (name == "steps" and not task.steps and not _is_condition(task)):
            yield _no_builder(case, plan, task, name)
        elif name not in bindings and name not in BUILT_IN:
            near = nearest(name, [*bindings, *BUILT_IN])
            message = f"{task.id} names the builder {name}, which .idumb/config.yaml does not define."
            fix = f"Did you mean {near}?" if near else "Define it under `bindings`."
            yield case.at("task.unknown-builder", plan, task, name, message, fix, accepted=near or "")


def _is_condition(task: Task) -> bool:
    return task.flow is not None and task.flow.condition is not None


def _no_builder(case: Case, plan: Plan, task: Task, name: str | None) -> Finding:
    if name is None:
        found, accepted = "no steps and no builder", "steps, or a builder"
        why = f"Nothing can build {task.id}: it has no steps, and no task, plan or configuration names a builder."
        fix = "Add a `yaml steps` fence, or name a builder in the task or in .idumb/config.yaml."
        if task.flow is not None:
            fix = "Name a binding with `agent`, or set `builder` in .idumb/config.yaml."
    else:
        found, accepted = "builder steps without steps", "a `yaml steps` fence"
        why, fix = f"{task.id} has the builder `steps` but no steps.", "Add a `yaml steps` fence."
    return case.at("task.no-builder", plan, task, found, why, fix, accepted=accepted)


def validators(case: Case) -> Iterator[Finding]:
    names = {"human", *case.settings.bindings}
    for plan, task in case.pairs:
        name = validator_of(plan, task, case.settings)
        if name is None:
            continue
        if name not in names:
            near = nearest(name, names)
            message = f"{task.id} names the validator {name}, which .idumb/config.yaml does not define."
            fix = f"Did you mean {near}?" if near else "Define it under `bindings`."
            yield case.at("task.unknown-validator", plan, task, name, message, fix, accepted=near or "")


def receivers(case: Case) -> Iterator[Finding]:
    """Find undefined receivers. During a run it would be too late: no handoff could be made."""
    names = handoff.agents(case.settings)
    for plan, task in case.pairs:
        for receiver in task.handoff_to:
            if handoff.type_of(receiver.type) == handoff.NEVER or handoff.workflow_of(receiver.agent):
                continue
            if receiver.agent not in names:
                near = nearest(receiver.agent, names)
                message = f"{task.id} hands its work to {receiver.agent}, which is neither a binding nor a role."
                fix = f"Did you mean {near}?" if near else "Define it under `bindings`, or name a role or `human`."
                yield case.at("handoff.unknown-agent", plan, task, receiver.agent, message, fix, accepted=near or "")


def handoff_types(case: Case) -> Iterator[Finding]:
    accepted = (*handoff.TYPES, handoff.NEVER)
    for plan, task in case.pairs:
        for receiver in task.handoff_to:
            meant = handoff.type_of(receiver.type)
            if meant not in accepted:
                near = nearest(meant, accepted)
                yield case.at(
                    "handoff.unknown-type",
                    plan,
                    task,
                    receiver.type or "",
                    f"{task.id}: {receiver.type} is not a type of handoff.",
                    f"Did you mean {near}?" if near else f"Write one of {', '.join(accepted)}.",
                    accepted=near or ", ".join(accepted),
                )
