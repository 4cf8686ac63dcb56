"""All checks of plans. To add one, write a function next to similar ones and a row in that file's `RULES`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from idumb.domain.contract import Contract
from idumb.domain.finding import Finding
from idumb.domain.intake import agents, ambiguity, coverage, ground, proof, receivers, scope, steps
from idumb.domain.intake.rule import SILENT, Case, Check, Rule, StartState
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.settings import NO_POLICY, Policy, Settings

RULES: tuple[Rule, ...] = (
    *agents.RULES,
    *receivers.RULES,
    *proof.RULES,
    *scope.RULES,
    *ground.RULES,
    *steps.RULES,
    *coverage.RULES,
    *ambiguity.RULES,
)
OF_WORDS = frozenset(
    {rule.code for rule in ambiguity.RULES if rule.code.startswith("text.")} | {"step.not-deterministic", "step.branch"}
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
    judged = STRICT if STRICT in (contract.mode, mode) else contract.mode
    return Case(
        contract, settings, policy, {rule.code: rule.severity(judged) for rule in RULES}, links, repositories, present
    )


def findings(
    contract: Contract,
    settings: Settings,
    policy: Policy = NO_POLICY,
    mode: str | None = None,
    links: Mapping[str, str] = _NO_LINKS,
    repositories: tuple[str, ...] = (),
    present: StartState | None = None,
) -> tuple[Finding, ...]:
    """Return the errors and warnings of a valid plan."""
    return findings_of(case(contract, settings, policy, mode, links, repositories, present))


def findings_of_drafts(
    plans: Sequence[Plan], settings: Settings, policy: Policy = NO_POLICY, mode: str | None = None
) -> tuple[Finding, ...]:
    """Return the findings that are already certain for plans that are not a contract yet, because of other errors."""
    looked = case(Contract("", "", tuple(plans), {}, (), {}, ""), settings, policy, mode)
    return tuple(finding for check in _OF_DRAFTS for finding in check(looked) if finding.severity != SILENT)


def findings_of(looked: Case) -> tuple[Finding, ...]:
    return tuple(finding for check in _loud(looked) for finding in check(looked) if finding.severity != SILENT)


def _loud(looked: Case) -> Iterator[Check]:
    """Return the checks that can report something in this mode, each once."""
    severities = looked.severities or {}
    return iter(dict.fromkeys(rule.check for rule in RULES if severities[rule.code] != SILENT))
