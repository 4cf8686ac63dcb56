"""All checks of plans. To add one, write a function next to similar ones, a row here, and its example in docs/."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from idumb.domain.contract import Contract
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake import agents, ambiguity, coverage, ground, proof, scope, steps
from idumb.domain.intake.rule import SILENT, Case, StartState
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.settings import NO_POLICY, Policy, Settings

Check = Callable[[Case], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One code: its severity in guided and in strict mode (error, warning or none), and its check."""

    code: str
    guided: str
    strict: str
    check: Check


# docs/check_examples.py says what each code means and shows a plan that has it.
RULES: tuple[Rule, ...] = (
    Rule("task.no-builder", ERROR, ERROR, agents.builders),
    Rule("task.unknown-builder", ERROR, ERROR, agents.builders),
    Rule("task.unknown-validator", ERROR, ERROR, agents.validators),
    Rule("task.validator-elsewhere", ERROR, ERROR, agents.validators),
    Rule("task.builder-cannot-commit", ERROR, ERROR, agents.committing),
    Rule("handoff.unknown-agent", WARNING, ERROR, agents.receivers),
    Rule("handoff.unknown-type", WARNING, ERROR, agents.types),
    Rule("task.no-proof", ERROR, ERROR, proof.unproven_tasks),
    Rule("criterion.unproven", WARNING, ERROR, proof.unproven_tasks),
    Rule("criterion.empty", WARNING, ERROR, proof.empty_criteria),
    Rule("task.no-artifact", WARNING, ERROR, proof.without_artifact),
    Rule("path.outside-workspace", ERROR, ERROR, scope.written_paths),
    Rule("path.outside-scope", ERROR, ERROR, scope.written_paths),
    Rule("path.protected", ERROR, ERROR, scope.written_paths),
    Rule("path.other-repository", ERROR, ERROR, scope.other_repositories),
    Rule("plan.bad-scope", ERROR, ERROR, scope.roots),
    Rule("step.undeclared-path", WARNING, ERROR, scope.undeclared),
    Rule("path.missing", WARNING, WARNING, ground.files),
    Rule("path.exists", WARNING, WARNING, ground.files),
    Rule("path.through-link", WARNING, WARNING, ground.links),
    Rule("path.covers-protected", WARNING, WARNING, ground.protected),
    Rule("check.no-program", WARNING, WARNING, ground.commands),
    Rule("text.unfilled", WARNING, WARNING, ground.unfilled),
    Rule("step.tool-not-allowed", ERROR, ERROR, steps.not_allowed),
    Rule("step.vague-intent", WARNING, ERROR, steps.vague_intents),
    Rule("step.not-deterministic", WARNING, ERROR, steps.chance),
    Rule("step.branch", SILENT, ERROR, steps.branches),
    Rule("requirement.no-task", WARNING, ERROR, coverage.requirements),
    Rule("requirement.unlisted", WARNING, WARNING, coverage.listed),
    Rule("task.no-requirement", WARNING, ERROR, coverage.reasons),
    Rule("plan.no-requirements", SILENT, ERROR, coverage.required),
    Rule("plan.no-success-criteria", SILENT, ERROR, coverage.required),
    Rule("plan.no-non-goals", SILENT, ERROR, coverage.non_goals),
    Rule("plan.no-invariants", SILENT, ERROR, coverage.invariants),
    Rule("task.no-change-class", SILENT, ERROR, coverage.changes),
    Rule("interface.incomplete", SILENT, ERROR, coverage.interfaces),
    Rule("task.irreversible", WARNING, WARNING, coverage.irreversible),
    Rule("text.placeholder", WARNING, ERROR, ambiguity.phrases),
    Rule("text.vague", WARNING, ERROR, ambiguity.phrases),
    Rule("text.conditional", WARNING, ERROR, ambiguity.phrases),
    Rule("text.quoted", SILENT, WARNING, ambiguity.quoted),
    Rule("task.long-estimate", WARNING, WARNING, ambiguity.estimates),
)
OF_WORDS = frozenset(
    {"text.placeholder", "text.vague", "text.conditional", "text.quoted", "step.not-deterministic", "step.branch"}
)
"""Codes that depend only on the text of a plan."""
_OF_DRAFTS: tuple[Check, ...] = (coverage.required, coverage.non_goals, coverage.changes, ambiguity.phrases)
"""Checks whose result is correct even if other parts of the plan are invalid."""
_NO_LINKS: Mapping[str, str] = MappingProxyType({})


def case(
    contract: Contract,
    settings: Settings,
    policy: Policy = NO_POLICY,
    mode: str | None = None,
    links: Mapping[str, str] = _NO_LINKS,
    repositories: tuple[str, ...] = (),
    present: StartState | None = None,
) -> Case:
    """Return the input of the checks; `mode` strict judges a guided contract as if it were strict."""
    strict = STRICT in (contract.mode, mode)
    severities = {rule.code: rule.strict if strict else rule.guided for rule in RULES}
    return Case(contract, settings, policy, severities, links, repositories, present)


def findings(case: Case) -> tuple[Finding, ...]:
    """Return the errors and warnings of a valid plan. Checks that are silent in this mode do not run."""
    severities = case.severities or {}
    checks = dict.fromkeys(rule.check for rule in RULES if severities[rule.code] != SILENT)
    return tuple(finding for check in checks for finding in check(case) if finding.severity != SILENT)


def findings_of_drafts(
    plans: Sequence[Plan], settings: Settings, policy: Policy = NO_POLICY, mode: str | None = None
) -> tuple[Finding, ...]:
    """Return the findings that are already certain for plans that are not a contract yet, because of other errors."""
    drafts = case(Contract("", "", tuple(plans), {}, (), {}, ""), settings, policy, mode)
    return tuple(finding for check in _OF_DRAFTS for finding in check(drafts) if finding.severity != SILENT)
