"""Checks that each task leaves a result and that its criteria can be proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from idumb import lazy_pattern
from idumb.domain.contract import proofs, validator_of
from idumb.domain.finding import WARNING, Finding
from idumb.domain.intake.rule import Case, field_of, short
from idumb.domain.plans.plan import CHECK, OPINION, STEPS, UNPROVEN, VERIFY, Criterion, Plan, Task
from idumb.domain.proof.ledger import written_claims

# fmt: off
_SAYS_NOTHING = frozenset({
    "above", "acceptance", "all", "as", "complete", "completed", "correctly", "criterion", "described", "description",
    "do", "done", "everything", "expected", "feature", "fine", "finished", "good", "is", "it", "n", "na", "none", "ok",
    "okay", "pass", "passed", "passes", "properly", "see", "success", "successful", "task", "the", "this", "to",
    "true", "works", "x", "yes",
})
# fmt: on
_COVERED = "Add — verify to the criterion. Verify covers unmarked criteria only if no criterion of the task is marked."
_CANNOT = "Nothing proves {}: it has no executable check, so it cannot complete by itself."
_FOREIGN = "Add <verify><automated>command</automated></verify>, or in a plan without tags **Verify:** `command`."
_WORD = lazy_pattern.compile(r"\w+")


def unproven_tasks(case: Case) -> Iterator[Finding]:
    """Find tasks without any proof, and single criteria that nothing proves."""
    for plan, task in case.pairs:
        if task.is_human or (all(c.proof == CHECK for c in task.acceptance) and task.acceptance):
            continue
        proven = proofs(task)
        validator = validator_of(plan, task, case.settings)
        if _opinion_at_best(proven) and not task.tests and validator is None:
            found = "opinions only" if OPINION in proven.values() else "no criterion with a proof"
            message = f"Nothing proves {task.id}: it has no check, no Verify command and no validator."
            fix = "Add — check: and a command in backticks to a criterion, or add a Verify field."
            if plan.is_foreign:
                yield _foreign(case.at("task.no-proof", plan, task, found, _CANNOT.format(task.id), _FOREIGN), case)
                continue
            yield case.at("task.no-proof", plan, task, found, message, _COVERED if task.verify else fix)
        else:
            if _opinion_at_best(proven) and not task.tests and written_claims(task.files or ()):
                message = f"No command and no person proves {task.id}, only the opinion of {validator}."
                fix = "Add — check: and a command in backticks to a criterion, or — human."
                yield case.at("task.no-check", plan, task, f"validator {validator}", message, fix)
            yield from (_unproven(case, plan, task, c) for c in task.acceptance if proven[c.id] == UNPROVEN)
    for plan in case.contract.plans:
        yield from (_unproven(case, plan, None, c) for c in plan.success_criteria if c.proof == UNPROVEN)


def _foreign(finding: Finding, case: Case) -> Finding:
    """Return the finding for a plan of another tool: the other tasks can run, and this one waits for a person."""
    return finding if case.strict else replace(finding, severity=WARNING)


def _unproven(case: Case, plan: Plan, task: Task | None, criterion: Criterion) -> Finding:
    """Return the finding at the criterion itself; success criteria have no Verify."""
    whose, text = task.id if task else "the plan", short(criterion.text)
    message = f"Nothing proves {criterion.id} of {whose}: {text}"
    fix = "Add — check: and a command in backticks to it, or add — human."
    fix = _COVERED if task and task.verify else fix
    field, line = field_of(task), criterion.span.line if criterion.span else 0
    accepted = "check, verify, human or opinion" if task else "check, human or opinion"
    return case.at("criterion.unproven", plan, task, text, message, fix, field=field, accepted=accepted, line=line)


def _opinion_at_best(proven: dict[str, str]) -> bool:
    return all(proof in (UNPROVEN, OPINION) for proof in proven.values())


def empty_criteria(case: Case) -> Iterator[Finding]:
    """Find criteria for a person or a model that name no observable result."""
    for plan, task, criterion in case.criteria:
        if _is_empty(criterion):
            message = f"{criterion.id} of {task.id if task else 'the plan'} does not name an observable result."
            fix = "Describe what one can see when it holds, or add a check."
            field, line = field_of(task), criterion.span.line if criterion.span else 0
            yield case.at("criterion.empty", plan, task, criterion.text, message, fix, field=field, line=line)


def _is_empty(criterion: Criterion) -> bool:
    if len(criterion.text) > 40 or criterion.proof in (CHECK, VERIFY, STEPS) or criterion.instructions:
        return False
    return _SAYS_NOTHING.issuperset(_WORD.findall(criterion.text.casefold()))


def without_artifact(case: Case) -> Iterator[Finding]:
    """Find tasks that write no file and that neither a command nor a person checks."""
    for plan, task in case.pairs:
        if task.is_human or task.verify or task.tests or task.symbols or task.postconditions:
            continue
        if any(c.proof not in (OPINION, UNPROVEN) for c in task.acceptance) or written_claims(task.files or ()):
            continue
        if _opinion_at_best(proofs(task)) and validator_of(plan, task, case.settings) is None:
            continue  # already reported as unproven
        message = f"{task.id} leaves no result that anyone could inspect."
        fix = "Declare the files that it writes, or add a command that checks its result."
        yield case.at(
            "task.no-artifact", plan, task, "no written file, no command and no person to check it", message, fix
        )
