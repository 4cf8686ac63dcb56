"""Checks that a plan is complete: requirements and tasks match, and limits are declared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb.domain.finding import Finding
from idumb.domain.intake.rule import Case, is_declaration
from idumb.domain.plans.plan import IRREVERSIBLE, Plan, Task
from idumb.domain.proof.ledger import written_claims

SPECIFIED = ("inputs", "outputs", "errors", "side effects")
"""What every public name must declare, as the plan format spells it."""
_NAMED = 20
_PROSE = (".md", ".rst", ".adoc", ".png", ".jpg", ".gif", ".svg")


def requirements(case: Case) -> Iterator[Finding]:
    """Find requirements that no task of the phase serves."""
    served = {id for _, task in case.pairs for id in task.requirements}
    for plan in case.contract.plans:
        for id, text in plan.requirements.items():
            if id not in served:
                message = f"No task serves the requirement {id}."
                fix = f"Add a task with `- **Requirements:** {id}`, or remove the requirement."
                yield case.at("requirement.no-task", plan, None, f"{id}: {text}" if text else id, message, fix)


def unlisted(case: Case) -> Iterator[tuple[Plan, str]]:
    """Yield the requirements that a plan lists by id alone and that REQUIREMENTS.md does not contain."""
    if case.present is None:
        return
    for plan in case.contract.plans:
        for id, text in plan.requirements.items():
            if not text and re.search(rf"(?<![\w-]){re.escape(id)}(?![\w-])", case.present.requirements) is None:
                yield plan, id


def unlisted_requirements(case: Case) -> Iterator[Finding]:
    for plan, id in unlisted(case):
        message = f"The plan lists {id} without a text, but .planning/REQUIREMENTS.md has no such id."
        fix = f"Write `{id}: text` under requirements, or add {id} to .planning/REQUIREMENTS.md."
        yield case.at("requirement.unlisted", plan, None, id, message, fix)


def unserving_tasks(case: Case) -> Iterator[Finding]:
    """Find tasks that serve no requirement of a plan that declares some."""
    for plan, task in case.pairs:
        if plan.requirements and not task.requirements:
            declared = ", ".join(list(plan.requirements)[:8])
            message = f"{task.id} serves no requirement of the plan."
            fix = f"Add `- **Requirements:**` with one of {declared}, or remove the task."
            yield case.at("task.no-requirement", plan, task, "no requirement", message, fix, accepted=declared)


def missing_declarations(case: Case) -> Iterator[Finding]:
    """Find what a plan lacks that strict mode requires: requirements and success criteria."""
    for plan in filter(is_declaration, case.contract.plans):
        if "requirements" not in plan.spans:
            message = "The plan does not say which requirements it serves."
            fix = "Add `requirements` to the frontmatter, and name them in the tasks that serve them."
            yield case.at("plan.no-requirements", plan, None, "no requirements", message, fix)
        if not plan.success_criteria:
            message = "The plan has no success criteria: it does not say what must hold when all tasks are done."
            fix = "Add a section ## Success criteria, each with a proof, or add `success_criteria` to the frontmatter."
            yield case.at("plan.no-success-criteria", plan, None, "no success criteria", message, fix)


def non_goals(case: Case) -> Iterator[Finding]:
    """Find plans without non-goals; an empty list is a declaration."""
    for plan in case.contract.plans:
        if is_declaration(plan) and "non_goals" not in plan.spans:
            message = "The plan does not declare its non-goals."
            fix = "Add `non_goals` to the frontmatter. If there are none, write `non_goals: []`."
            yield case.at("plan.no-non-goals", plan, None, "no non_goals", message, fix)


def invariants(case: Case) -> Iterator[Finding]:
    """Find plans that change public interfaces without declaring invariants."""
    for plan in case.contract.plans:
        task = next((task for task in plan.tasks if task.interfaces), None)
        if task is not None and "invariants" not in plan.spans:
            message = "The plan declares public interfaces but no invariants to protect them."
            fix = "Add `invariants` to the frontmatter, each with a command that checks it."
            yield case.at("plan.no-invariants", plan, task, f"interfaces in {task.id}, no invariants", message, fix)


def changes(case: Case) -> Iterator[Finding]:
    """Find tasks that write files without a change class."""
    for plan in filter(is_declaration, case.contract.plans):
        writing = [task for task in plan.tasks if not task.is_human and _may_change_behaviour(case, task)]
        silent = [task for task in writing if task.change is None]
        if len(silent) == len(writing) > 1:  # one finding for the whole plan
            names = f"{silent[0].id} and {len(silent) - 1} more do"
            yield _changes(case, plan, silent[0], names, ", ".join(task.id for task in silent[:_NAMED]))
        else:
            yield from (_changes(case, plan, task, f"{task.id} does", "no change class") for task in silent)


def _may_change_behaviour(case: Case, task: Task) -> bool:
    """Return whether a task writes files; strict mode also expects a class of documentation."""
    written = (claim.path for claim in written_claims(task.files or ()))
    return any(case.strict or not path.lower().endswith(_PROSE) for path in written)


def _changes(case: Case, plan: Plan, task: Task, subject: str, found: str) -> Finding:
    message = f"{subject} not say whether the change preserves, extends, modifies or breaks behaviour."
    fix = "Add `- **Change:** extending` (or preserving, modifying, breaking) to each task."
    return case.at("task.no-change-class", plan, task, found, message, fix)


def interfaces(case: Case) -> Iterator[Finding]:
    """Find public names that do not declare inputs, outputs, errors and side effects."""
    for plan, task in case.pairs:
        for interface in task.interfaces:
            missing = [name for name in SPECIFIED if name not in interface.properties]
            if missing:
                names = ", ".join(missing)
                message = f"{task.id}: {interface.name} does not declare its {names}."
                fix, accepted = "Add them below the name; `none` is allowed.", ", ".join(SPECIFIED)
                found = f"{interface.name} without {names}"
                yield case.at("interface.incomplete", plan, task, found, message, fix, accepted=accepted)


def irreversible(case: Case) -> Iterator[Finding]:
    """Find irreversible tasks, whatever is accepted later."""
    for plan, task in case.pairs:
        if task.rollback.kind == IRREVERSIBLE:
            message = f"{task.id} cannot be rolled back: {task.rollback.reason}"
            fix = "Make it compensatable with commands, or accept this task as irreversible when you approve."
            yield case.at("task.irreversible", plan, task, task.rollback.reason, message, fix)
