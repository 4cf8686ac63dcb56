"""Checks that every task has an agent to build it, one to judge it, and receivers for its handoffs."""

from __future__ import annotations

from collections.abc import Iterator

from idumb.domain.agent import BUILT_IN
from idumb.domain.contract import builder_of, validator_of
from idumb.domain.intake.rule import Case, Hit, near
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.runs import handoff


def without_builder(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks with neither steps nor a builder."""
    name = builder_of(plan, task, case.settings)
    if name is None:
        fix = "Add a `yaml steps` fence, or name a builder in the task or in .idumb/config.yaml."
        if task.flow is not None:
            fix = "Name a binding with `agent`, or set `builder` in .idumb/config.yaml."
        why = "it has no steps, and no task, plan or configuration names a builder"
        yield Hit("no steps and no builder", {"why": why}, accepted="steps, or a builder", fix=fix)
    elif name == "steps" and not task.steps and (task.flow is None or task.flow.condition is None):
        why = "its builder is `steps`, but it has no steps"
        yield Hit("builder steps without steps", {"why": why}, accepted="a `yaml steps` fence")


def unknown_builder(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    names = [*case.settings.bindings, *BUILT_IN]
    name = builder_of(plan, task, case.settings)
    if name is not None and name not in names:
        yield near(name, names)


def unknown_validator(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    names = {"human", *case.settings.bindings}
    name = validator_of(plan, task, case.settings)
    if name is not None and name not in names:
        yield near(name, names)


def unknown_receiver(case: Case, _: Plan, task: Task) -> Iterator[Hit]:
    """Find undefined receivers. During a run it would be too late: no handoff could be made."""
    names = handoff.agents(case.settings) if task.handoff_to else ()
    for receiver in task.handoff_to:
        is_agent = handoff.type_of(receiver.type) != handoff.NEVER and not handoff.workflow_of(receiver.agent)
        if is_agent and receiver.agent not in names:
            yield near(receiver.agent, names)


def unknown_handoff_type(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    types = (*handoff.TYPES, handoff.NEVER)
    for receiver in task.handoff_to:
        meant = handoff.type_of(receiver.type)
        if meant not in types:
            yield near(meant, types, ", ".join(types))._replace(found=receiver.type or "")
