"""All checks of plans.

To add one, write a function next to similar ones, a row here,
and its example in docs/check_examples.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from idumb.domain.contract import Contract
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake import agents, ambiguity, check_commands, contradictions, coverage, ground, proof, scope, steps
from idumb.domain.intake.rule import BY_FIELD, SILENT, Case, Check, Rule, StartState
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.proof import gate_table
from idumb.domain.proof.deadline import NEVER, Deadline, OutOfTimeError
from idumb.domain.settings import NO_POLICY, Policy, Settings

# docs/check_examples.py says what each code means and shows a plan that has it.
# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("task.no-builder", ERROR, ERROR, agents.builders, "builder"),
    Rule("task.unknown-builder", ERROR, ERROR, agents.builders, "builder", "a binding of .idumb/config.yaml"),
    Rule("task.unknown-validator", ERROR, ERROR, agents.validators, "validator", "a binding of .idumb/config.yaml"),
    Rule("handoff.unknown-agent", WARNING, ERROR, agents.receivers, "handoff_to",
         "a binding of .idumb/config.yaml, a role or human"),
    Rule("handoff.unknown-type", WARNING, ERROR, agents.handoff_types, "handoff_to"),
    Rule("task.no-proof", ERROR, ERROR, proof.unproven_tasks, "acceptance", "check, verify or human"),
    Rule("task.no-check", WARNING, WARNING, proof.unproven_tasks, "acceptance", "check, verify or human"),
    Rule("criterion.unproven", WARNING, ERROR, proof.unproven_tasks, gate=BY_FIELD),
    Rule("criterion.empty", WARNING, ERROR, proof.empty_criteria, accepted="an observable result"),
    Rule("task.no-artifact", WARNING, ERROR, proof.without_artifact, "files", "files, or a check"),
    Rule("path.outside-workspace", ERROR, ERROR, scope.written_paths, accepted="a path inside the workspace"),
    Rule("path.outside-scope", ERROR, ERROR, scope.written_paths),
    Rule("path.protected", ERROR, ERROR, scope.written_paths, accepted="a path that is not protected"),
    Rule("path.other-repository", ERROR, ERROR, scope.other_repositories),
    Rule("path.non-goal", WARNING, WARNING, scope.non_goals, "files", "a path that no non-goal excludes",
         gate=gate_table.NON_GOALS),
    Rule("limit.exceeded", WARNING, WARNING, contradictions.limits, "limits", "limits that the declared files keep",
         gate=gate_table.SIZE),
    Rule("change.contradiction", WARNING, WARNING, contradictions.change_classes, "change",
         "the class of what the task declares", gate=gate_table.CHANGE_CLASS),
    Rule("symbol.contradiction", WARNING, WARNING, contradictions.interfaces, "symbols",
         "an interface that the task does not remove", gate=gate_table.AGREEMENT),
    Rule("plan.bad-scope", ERROR, ERROR, scope.roots, "scope", "a folder of the repository, such as src"),
    Rule("step.undeclared-path", WARNING, ERROR, scope.undeclared, "steps", "a path under Files"),
    Rule("path.missing", WARNING, WARNING, ground.files, "files",
         "an existing file, or one that an earlier task creates", gate=gate_table.LEDGER),
    Rule("path.exists", WARNING, WARNING, ground.files, "files", "a free path, or `modify`", gate=gate_table.LEDGER),
    Rule("path.through-link", WARNING, WARNING, ground.links, accepted="a path that is not a link and not behind one"),
    Rule("path.leaves-workspace", WARNING, ERROR, steps.leaving, accepted="a path inside the workspace"),
    Rule("path.similar", WARNING, WARNING, ground.similar_names, "files", "a path that differs in more than case"),
    Rule("step.empty-folder", WARNING, WARNING, scope.empty_folders, "steps", "a folder with a file"),
    Rule("path.covers-protected", WARNING, WARNING, ground.protected, "files", "a glob without protected paths"),
    Rule("check.no-program", WARNING, WARNING, ground.commands,
         accepted="a program on PATH, or a file that exists or that a task creates", gate=BY_FIELD),
    Rule("check.unclosed", WARNING, ERROR, check_commands.unclosed, accepted="a command that the shell can read"),
    Rule("command.placeholder", ERROR, ERROR, check_commands.placeholders, accepted="a command"),
    Rule("check.hidden-failure", WARNING, WARNING, check_commands.hidden_failures,
         accepted="a command that fails if its program fails"),
    Rule("check.own-program", WARNING, WARNING, check_commands.own_checks,
         accepted="a check that runs nothing that the task writes"),
    Rule("check.own-tests", WARNING, WARNING, check_commands.own_checks,
         accepted="one proof that the task does not write"),
    Rule("text.unfilled", WARNING, WARNING, ground.unfilled, accepted="your own text"),
    Rule("step.tool-not-allowed", ERROR, ERROR, steps.not_allowed, "steps"),
    Rule("step.vague-intent", WARNING, ERROR, steps.vague_intents, "steps", "the purpose of the step"),
    Rule("step.not-deterministic", WARNING, ERROR, steps.chance, "steps", "a command with the same result every time"),
    Rule("step.branch", SILENT, ERROR, steps.branches, "steps", "a command without branches"),
    Rule("requirement.no-task", WARNING, ERROR, coverage.requirements, "requirements", "a task with this requirement"),
    Rule("requirement.unlisted", WARNING, WARNING, coverage.unlisted_requirements, "requirements",
         "an id of .planning/REQUIREMENTS.md, or an id with its text"),
    Rule("task.no-requirement", WARNING, ERROR, coverage.unserving_tasks, "requirements"),
    Rule("plan.no-requirements", SILENT, ERROR, coverage.missing_declarations, "requirements",
         "requirements: {REQ-1: text}"),
    Rule("plan.no-success-criteria", SILENT, ERROR, coverage.missing_declarations, "success_criteria",
         "a section ## Success criteria with checkboxes"),
    Rule("plan.no-non-goals", SILENT, ERROR, coverage.non_goals, "non_goals", "non_goals: [{id, text, paths}]"),
    Rule("plan.no-invariants", SILENT, ERROR, coverage.invariants, "interfaces", "invariants: [{id, text, check}]"),
    Rule("task.no-change-class", SILENT, ERROR, coverage.changes, "change",
         "preserving, extending, modifying, breaking", gate=gate_table.CHANGE_CLASS),
    Rule("interface.incomplete", SILENT, ERROR, coverage.interfaces, "interfaces", gate=gate_table.SPECIFICATION),
    Rule("task.irreversible", WARNING, WARNING, coverage.irreversible, "rollback",
         "reversible, or compensatable with commands"),
    Rule("text.placeholder", WARNING, ERROR, ambiguity.phrases, accepted="words with one meaning"),
    Rule("text.vague", WARNING, ERROR, ambiguity.phrases, accepted="words with one meaning"),
    Rule("text.conditional", WARNING, ERROR, ambiguity.phrases, accepted="words with one meaning"),
    Rule("text.quoted", SILENT, WARNING, ambiguity.quoted, accepted="the intended text"),
    Rule("task.large", WARNING, WARNING, contradictions.large, accepted="at most 2 hours, 8 files and 7 criteria"),
)
# fmt: on
_OF_DRAFTS: tuple[Check, ...] = (coverage.missing_declarations, coverage.non_goals, coverage.changes, ambiguity.phrases)
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
    rules = {rule.code: rule for rule in RULES}
    return Case(contract, settings, policy, rules, strict, links, repositories, present)


def findings(case: Case, deadline: Deadline = NEVER) -> tuple[Finding, ...]:
    """Return the errors and warnings of a valid plan. Checks that are silent in this mode do not run.

    OutOfTimeError if the deadline passes before all checks have run.
    """
    checks = dict.fromkeys(rule.check for rule in RULES if case.severity(rule) != SILENT)
    found: list[Finding] = []
    for check in checks:
        if deadline.passed:
            raise OutOfTimeError(f"not checked within {deadline.seconds:.0f}s")
        found += (finding for finding in check(case) if finding.severity != SILENT)
    return tuple(found)


def findings_of_drafts(
    plans: Sequence[Plan], settings: Settings, policy: Policy = NO_POLICY, mode: str | None = None
) -> tuple[Finding, ...]:
    """Return the findings that are already certain for plans that are not a contract yet, because of other errors."""
    drafts = case(Contract("", "", tuple(plans), {}, (), {}, ""), settings, policy, mode)
    return tuple(finding for check in _OF_DRAFTS for finding in check(drafts) if finding.severity != SILENT)
