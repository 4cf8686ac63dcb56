"""All checks of plans, by the codes that they find.

To add one, write a function next to similar ones, a row here, its texts in `domain/check_rows.py`, and its example in
tests/docs/check_examples.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from idumb.domain.contract import Contract
from idumb.domain.finding import SILENT, Finding
from idumb.domain.intake import check_commands, declarations, proof, steps, texts, writes
from idumb.domain.intake.rule import Case, Check, each_plan, each_task
from idumb.domain.permissions import NO_POLICY, Policy
from idumb.domain.plans.plan import Plan
from idumb.domain.proof.gate import NEVER, Deadline, OutOfTimeError
from idumb.domain.settings import Settings

_TASK, _PLAN = each_task, each_plan
CHECKS: Mapping[str, Check] = {
    "task.no-builder": _TASK(proof.without_builder),
    "task.unknown-builder": _TASK(proof.unknown_builder),
    "task.unknown-validator": _TASK(proof.unknown_validator),
    "handoff.unknown-agent": _TASK(proof.unknown_receiver),
    "handoff.unknown-type": _TASK(proof.unknown_handoff_type),
    "task.unknown-replaced": _TASK(declarations.unknown_replaced),
    "task.no-proof task.no-check criterion.unproven": proof.unproven,
    "plan.history": _PLAN(proof.history),
    "criterion.empty": proof.empty_criteria,
    "task.no-artifact": _TASK(proof.without_artifact),
    "path.outside-workspace path.outside-scope path.protected": _TASK(writes.misplaced_paths),
    "path.other-repository": _TASK(writes.other_repositories),
    "path.non-goal": _TASK(writes.non_goals),
    "limit.exceeded": _TASK(declarations.exceeded_limit),
    "change.contradiction": _TASK(declarations.contradicted_class),
    "symbol.contradiction": _TASK(declarations.removed_interface),
    "plan.bad-scope": _PLAN(writes.bad_root),
    "step.undeclared-path": _TASK(writes.undeclared_paths),
    "path.missing path.exists": writes.unmet_files,
    "path.through-link": writes.written_links,
    "path.leaves-workspace": _TASK(steps.leaves_workspace),
    "check.no-program": check_commands.programs_of_checks,
    "command.placeholder": check_commands.placeholders,
    "check.hidden-failure check.cannot-fail": check_commands.passing_anyway,
    "check.of-other-task": check_commands.of_other_tasks,
    "check.own-files": check_commands.own_checks,
    "text.unfilled": texts.unfilled,
    "step.tool-not-allowed": _TASK(steps.not_allowed),
    "step.vague-intent": _TASK(steps.vague_intents),
    "step.not-deterministic": _TASK(steps.not_deterministic),
    "step.branch": _TASK(steps.branches),
    "requirement.no-task": declarations.unserved_requirements,
    "requirement.unlisted": declarations.unlisted_requirements,
    "task.no-requirement": _TASK(declarations.no_requirement),
    "plan.no-requirements": _PLAN(declarations.without_field("requirements")),
    "plan.no-success-criteria": _PLAN(declarations.no_success_criteria),
    "plan.no-non-goals": _PLAN(declarations.without_field("non_goals")),
    "plan.no-invariants": declarations.no_invariants,
    "task.no-change-class": declarations.no_change_class,
    "interface.incomplete": _TASK(declarations.incomplete_interface),
    "task.irreversible": _TASK(declarations.irreversible),
    "text.placeholder text.vague text.conditional": texts.phrases,
    "task.large": _TASK(declarations.large_tasks),
}
CODES = tuple(code for codes in CHECKS for code in codes.split())
_OF_DRAFTS = frozenset(
    {"plan.no-requirements", "plan.no-success-criteria", "plan.no-non-goals", "task.no-change-class"}
    | {"text.placeholder", "text.vague", "text.conditional"}
)
"""Codes whose result is correct even if other parts of the plan are invalid."""


def findings_of(case: Case, codes: str) -> Iterator[Finding]:
    """Yield what the check with these codes finds, in the words of the catalog."""
    own = codes.partition(" ")[0]
    return (case.finding(hit.code or own, plan, task, hit) for plan, task, hit in CHECKS[codes](case))


def findings(case: Case, deadline: Deadline = NEVER) -> tuple[Finding, ...]:
    """Return the errors and warnings of a valid plan. Checks that are silent in this mode do not run.

    OutOfTimeError if the deadline passes before all checks have run.
    """
    listed: list[Finding] = []
    for codes in CHECKS:
        if all(case.severity(code) == SILENT for code in codes.split()):
            continue
        if deadline.passed:
            raise OutOfTimeError(f"not checked within {deadline.seconds:.0f}s")
        listed += (finding for finding in findings_of(case, codes) if finding.severity != SILENT)
    return tuple(listed)


def findings_of_drafts(
    plans: Sequence[Plan], settings: Settings, policy: Policy = NO_POLICY, mode: str | None = None
) -> tuple[Finding, ...]:
    """Return the findings that are already certain for plans that are not a contract yet, because of other errors."""
    drafts = Case(Contract("", "", tuple(plans), {}, (), {}, ""), settings, policy, mode)
    certain = (codes for codes in CHECKS if not _OF_DRAFTS.isdisjoint(codes.split()))
    return tuple(one for codes in certain for one in findings_of(drafts, codes) if one.severity != SILENT)
