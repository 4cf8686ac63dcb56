"""Checks that each task leaves a result and that its criteria can be proven."""

from __future__ import annotations

import re
from collections.abc import Iterator

from idumb.domain import wording
from idumb.domain.contract import proofs, validator_of
from idumb.domain.finding import WARNING
from idumb.domain.intake.rule import Case, Hit, Hits, each_task, field_of
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
_FOREIGN = "Add <verify><automated>command</automated></verify>, or in a plan without tags **Verify:** `command`."
_WORD = re.compile(r"\w+")


def _unproven(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
    """Find tasks without any proof, or with an opinion at best, and single criteria that nothing proves."""
    if task.is_human or (all(c.proof == CHECK for c in task.acceptance) and task.acceptance):
        return
    proven, validator = proofs(task), validator_of(plan, task, case.settings)
    is_opinion = _opinion_at_best(proven) and not task.tests
    covered = _COVERED if task.verify else ""
    if is_opinion and validator is None:
        found = "opinions only" if OPINION in proven.values() else "no criterion with a proof"
        # The other tasks of a plan of another tool can run, and this one waits for a person.
        severity = WARNING if plan.is_foreign and not case.strict else ""
        yield Hit(found, code="task.no-proof", fix=_FOREIGN if plan.is_foreign else covered, severity=severity)
        return
    if is_opinion and written_claims(task.files or ()):
        yield Hit(f"validator {validator}", {"validator": validator}, "task.no-check")
    yield from (
        _of_criterion(c, "criterion.unproven", task, covered) for c in task.acceptance if proven[c.id] == UNPROVEN
    )


def unproven(case: Case) -> Hits:
    yield from each_task(_unproven)(case)
    for plan in case.contract.plans:
        for criterion in plan.success_criteria:
            if criterion.proof == UNPROVEN:
                yield plan, None, _of_criterion(criterion, "criterion.unproven", None)


def _of_criterion(criterion: Criterion, code: str, task: Task | None, fix: str = "") -> Hit:
    """Return the hit at the criterion itself; success criteria have no Verify."""
    words = {"id": f"{criterion.id} of {task.id if task else 'the plan'}"}
    accepted = "check, verify, human or opinion" if task else "check, human or opinion"
    accepted = accepted if code == "criterion.unproven" else ""
    return Hit(criterion.text, words, code, field_of(task), criterion.line, accepted, fix)


def _opinion_at_best(proven: dict[str, str]) -> bool:
    return all(proof in (UNPROVEN, OPINION) for proof in proven.values())


def history(_: Case, plan: Plan) -> Iterator[str]:
    """Name the tasks that the tool from which they were imported calls done."""
    if done := [task.id for task in plan.tasks if task.is_history]:
        yield wording.listed(done)


def empty_criteria(case: Case) -> Hits:
    """Find criteria for a person or a model that name no observable result."""
    for plan, task, criterion in case.criteria:
        if _is_empty(criterion):
            yield plan, task, _of_criterion(criterion, "criterion.empty", task)


def _is_empty(criterion: Criterion) -> bool:
    if len(criterion.text) > 40 or criterion.proof in (CHECK, VERIFY, STEPS) or criterion.instructions:
        return False
    return _SAYS_NOTHING.issuperset(_WORD.findall(criterion.text.casefold()))


def without_artifact(case: Case, plan: Plan, task: Task) -> Iterator[str]:
    """Find tasks that write no file and that neither a command nor a person checks."""
    if task.is_human or task.verify or task.tests or task.symbols or task.postconditions:
        return
    if any(c.proof not in (OPINION, UNPROVEN) for c in task.acceptance) or written_claims(task.files or ()):
        return
    if not _opinion_at_best(proofs(task)) or validator_of(plan, task, case.settings) is not None:  # else it is unproven
        yield "no written file, no command and no person to check it"
