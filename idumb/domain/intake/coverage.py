"""Checks that a plan is complete: requirements and tasks match, and limits are declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from idumb.domain.intake.rule import Case, Hit, Hits, is_declaration, near
from idumb.domain.plans import graph
from idumb.domain.plans.plan import IRREVERSIBLE, Plan, Task
from idumb.domain.proof.ledger import written_claims

SPECIFIED = ("inputs", "outputs", "errors", "side effects")
"""What every public name must declare, as the plan format spells it."""
_NAMED = 20
_PROSE = (".md", ".rst", ".adoc", ".png", ".jpg", ".gif", ".svg")


def unserved(case: Case) -> Hits:
    """Find requirements that no task of the phase serves."""
    served = {id for _, task in case.pairs for id in task.requirements}
    for plan in case.contract.plans:
        for id, text in plan.requirements.items():
            if id not in served:
                yield plan, None, Hit(f"{id}: {text}" if text else id, {"id": id})


def unlisted(case: Case) -> Hits:
    """Find requirements that a plan lists by id alone and that REQUIREMENTS.md does not contain."""
    for plan in case.contract.plans if case.present is not None else ():
        for id, text in plan.requirements.items():
            known = case.present.requirements if case.present is not None else ""
            if not text and re.search(rf"(?<![\w-]){re.escape(id)}(?![\w-])", known) is None:
                yield plan, None, Hit(id)


def unserving(_: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks that serve no requirement of a plan that declares some."""
    if plan.requirements and not task.requirements:
        declared = ", ".join(list(plan.requirements)[:8])
        yield Hit("no requirement", {"declared": declared}, accepted=declared)


def unknown_replaced(case: Case, _: Plan, task: Task) -> Iterator[Hit]:
    """Find criteria to replace that are no checks of a task before this one."""
    if not task.replaces:
        return
    earlier = graph.needed_by(case.contract.dependencies, task.id)
    known = [f"{id}/{c.id}" for id in earlier for c in case.contract.tasks[id].acceptance if c.command]
    yield from (near(name, known) for name in task.replaces if name not in known)


def undeclared(field: str) -> Callable[[Case, Plan], Iterator[str]]:
    """Return the check for plans without a field; an empty list is a declaration."""

    def find(_: Case, plan: Plan) -> Iterator[str]:
        if is_declaration(plan) and field not in plan.spans:
            yield f"no {field}"

    return find


def no_success_criteria(_: Case, plan: Plan) -> Iterator[str]:
    if is_declaration(plan) and not plan.success_criteria:
        yield "no success criteria"


def no_invariants(case: Case) -> Hits:
    """Find plans that change public interfaces without declaring invariants."""
    for plan in case.contract.plans:
        task = next((task for task in plan.tasks if task.interfaces), None)
        if task is not None and "invariants" not in plan.spans:
            yield plan, task, Hit(f"interfaces in {task.id}, no invariants")


def no_change_class(case: Case) -> Hits:
    """Find tasks that write files without a change class."""
    for plan in filter(is_declaration, case.contract.plans):
        writing = [task for task in plan.tasks if not task.is_human and _may_change_behaviour(case, task)]
        silent = [task for task in writing if task.change is None]
        if len(silent) == len(writing) > 1:  # one finding for the whole plan
            names = ", ".join(task.id for task in silent[:_NAMED])
            yield plan, silent[0], Hit(names, {"who": f"{silent[0].id} and {len(silent) - 1} more do"})
        else:
            yield from ((plan, task, Hit("no change class", {"who": f"{task.id} does"})) for task in silent)


def _may_change_behaviour(case: Case, task: Task) -> bool:
    """Return whether a task writes files; strict mode also expects a class of documentation."""
    written = (claim.path for claim in written_claims(task.files or ()))
    return any(case.strict or not path.lower().endswith(_PROSE) for path in written)


def incomplete_interface(_: Case, __: Plan, task: Task) -> Iterator[Hit]:
    """Find public names that do not declare inputs, outputs, errors and side effects."""
    for interface in task.interfaces:
        missing = ", ".join(name for name in SPECIFIED if name not in interface.properties)
        if missing:
            yield Hit(f"{interface.name} without {missing}", {"name": interface.name, "missing": missing})


def irreversible(_: Case, __: Plan, task: Task) -> Iterator[str]:
    """Find irreversible tasks, whatever is accepted later."""
    if task.rollback.kind == IRREVERSIBLE:
        yield task.rollback.reason
