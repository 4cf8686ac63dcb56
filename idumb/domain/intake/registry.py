"""All checks of plans.

To add one, write a function next to similar ones, a row here with its texts, and its example in
docs/check_examples.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from idumb.domain.contract import Contract
from idumb.domain.finding import ERROR, WARNING, Finding
from idumb.domain.intake import agents, ambiguity, check_commands, contradictions, coverage, ground, proof, scope, steps
from idumb.domain.intake.rule import BY_FIELD, SILENT, Case, Check, Rule, StartState, each_plan, each_task
from idumb.domain.plans.plan import STRICT, Plan
from idumb.domain.proof import gate_table
from idumb.domain.proof.deadline import NEVER, Deadline, OutOfTimeError
from idumb.domain.settings import NO_POLICY, Policy, Settings

# docs/check_examples.py says what each code means and shows a plan that has it.
# fmt: off
_TASK, _PLAN = each_task, each_plan
_WRITTEN = each_task(scope.written_paths)
_EXECUTABLE, _SCOPE, _COVERED = "executable", "scope", "requirements"
RULES: tuple[Rule, ...] = (
    Rule("task.no-builder", ERROR, ERROR, _TASK(agents.without_builder),
         "Nothing can build {task}: {why}.", "Add a `yaml steps` fence.", "builder", question=_EXECUTABLE),
    Rule("task.unknown-builder", ERROR, ERROR, _TASK(agents.unknown_builder),
         "{task} names the builder {found}, which .idumb/config.yaml does not define.", "Define it under `bindings`.",
         "builder", "a binding of .idumb/config.yaml", question="agents"),
    Rule("task.unknown-validator", ERROR, ERROR, _TASK(agents.unknown_validator),
         "{task} names the validator {found}, which .idumb/config.yaml does not define.", "Define it under `bindings`.",
         "validator", "a binding of .idumb/config.yaml", question="agents"),
    Rule("handoff.unknown-agent", WARNING, ERROR, _TASK(agents.unknown_receiver),
         "{task} hands its work to {found}, which is neither a binding nor a role.",
         "Define it under `bindings`, or name a role or `human`.",
         "handoff_to", "a binding of .idumb/config.yaml, a role or human"),
    Rule("handoff.unknown-type", WARNING, ERROR, _TASK(agents.unknown_handoff_type),
         "{task}: {found} is not a type of handoff.", "Write one of the types.", "handoff_to"),
    Rule("task.unknown-replaced", ERROR, ERROR, _TASK(coverage.unknown_replaced),
         "{task} replaces {found}, which is no check of a task that it depends on.", "Name one of those.",
         "replaces", "T1-01/AC-1"),
    Rule("task.no-proof", ERROR, ERROR, proof.unproven,
         "Nothing proves {task}: it has no check, no Verify command and no validator, so it cannot complete by itself.",
         "Add — check: and a command in backticks to a criterion, or add a Verify field.",
         "acceptance", "check, verify or human", question=_EXECUTABLE),
    Rule("task.no-check", WARNING, WARNING, proof.unproven,
         "No command and no person proves {task}, only the opinion of {validator}.",
         "Add — check: and a command in backticks to a criterion, or — human.", "acceptance", "check, verify or human"),
    Rule("plan.history", WARNING, ERROR, _PLAN(proof.history),
         "Another tool calls this done, so it is neither run nor proven here, but omitted: {found}.",
         "Remove x-source-done from each task that is to run here.", "x-source"),
    Rule("criterion.unproven", WARNING, ERROR, proof.unproven,
         "Nothing proves {id} of {whose}: {found}",
         "Add — check: and a command in backticks to it, or add — human.", gate=BY_FIELD, question=_EXECUTABLE),
    Rule("criterion.empty", WARNING, ERROR, proof.empty_criteria,
         "{id} of {whose} does not name an observable result.",
         "Describe what one can see when it holds, or add a check.", "", "an observable result", question=_EXECUTABLE),
    Rule("task.no-artifact", WARNING, ERROR, _TASK(proof.without_artifact),
         "{task} leaves no result that anyone could inspect.",
         "Declare the files that it writes, or add a command that checks its result.",
         "files", "files, or a check", question=_COVERED),
    Rule("path.outside-workspace", ERROR, ERROR, _WRITTEN,
         "{task}: {why}.", "Write it relative to the workspace root.", "", "a path inside the workspace",
         question=_SCOPE),
    Rule("path.outside-scope", ERROR, ERROR, _WRITTEN,
         "{task} would write {found}, which is outside the plan's scope ({root}).",
         "Remove the path from the task, or widen `scope.root`.", question=_SCOPE),
    Rule("path.protected", ERROR, ERROR, _WRITTEN,
         "{task} would write {found}, which is protected by {rule}.",
         "Remove the path from the task. idumb never writes it.", "", "a path that is not protected", question=_SCOPE),
    Rule("path.other-repository", ERROR, ERROR, _TASK(scope.other_repositories),
         "{task} would write {found}, but {inner} is a submodule or a nested repository.",
         "Remove the path from the task. To change it, use a plan inside {inner}."),
    Rule("path.non-goal", WARNING, WARNING, _TASK(scope.non_goals),
         "{task} declares {found}, which the non-goal {goal} excludes: {text}",
         "Remove {found} from Files, or from `paths` of {goal}.",
         "files", "a path that no non-goal excludes", gate_table.NON_GOALS),
    Rule("limit.exceeded", WARNING, WARNING, _TASK(contradictions.exceeded_limit),
         "{task} declares {what}.", "Split the task, correct Files, or widen the limits.",
         "limits", "limits that the declared files keep", gate_table.SIZE),
    Rule("change.contradiction", WARNING, WARNING, _TASK(contradictions.contradicted_class),
         "{task} declares {found}, and its Symbols {does}: {least}.",
         "Declare `- **Change:** {least}`, or correct Symbols.",
         "change", "the class of what the task declares", gate_table.CHANGE_CLASS),
    Rule("symbol.contradiction", WARNING, WARNING, _TASK(contradictions.removed_interface),
         "{task} declares the interface {found}, and its Symbols remove it.",
         "Remove the name from Symbols or from Interfaces.",
         "symbols", "an interface that the task does not remove", gate_table.AGREEMENT),
    Rule("plan.bad-scope", ERROR, ERROR, _PLAN(scope.bad_root),
         "scope.root {why}, so it cannot be a folder of this repository.",
         "Write the folder relative to the root of the repository, or omit `root`.",
         "scope", "a folder of the repository, such as src", question=_SCOPE),
    Rule("step.undeclared-path", WARNING, ERROR, _TASK(scope.undeclared),
         "{task}: a step writes {found}, which the task does not declare.",
         "Add {found} to Files, with create, modify, delete or move.", "steps", "a path under Files", question=_SCOPE),
    Rule("path.missing", WARNING, WARNING, ground.files,
         "{task} would {would}, but the file does not exist and no earlier task creates it.",
         "Correct the path, write `create`, or have an earlier task create it.",
         "files", "an existing file, or one that an earlier task creates", gate_table.LEDGER),
    Rule("path.exists", WARNING, WARNING, ground.files,
         "{task} would {would}, which already exists.", "Write `modify`, or choose another path.",
         "files", "a free path, or `modify`", gate_table.LEDGER),
    Rule("path.through-link", WARNING, WARNING, ground.links,
         "{task} {what}.", "Use its target itself.", "", "a path that is not a link and not behind one"),
    Rule("path.leaves-workspace", WARNING, ERROR, _TASK(steps.leaving),
         "{task} {what}.", "Use a path inside the workspace.", "", "a path inside the workspace", question=_SCOPE),
    Rule("path.similar", WARNING, WARNING, ground.similar_names,
         "{task} would create {found}, which differs only in case from {other}.",
         "Use one spelling: on macOS and Windows, a clone has only one of the two.",
         "files", "a path that differs in more than case"),
    Rule("step.empty-folder", WARNING, WARNING, scope.empty_folders,
         "{task}: a step makes {found}, in which no task creates a file, so no commit has it.",
         "Write a file in it, for example {found}.gitkeep, or make it when the program starts.",
         "steps", "a folder with a file"),
    Rule("path.covers-protected", WARNING, WARNING, _TASK(ground.protected),
         "{task} declares {found}, which covers {path}; that path is protected by {rule}.",
         "Narrow the glob. A change to a protected path stops the run.", "files", "a glob without protected paths"),
    Rule("check.no-program", WARNING, WARNING, ground.programs_of_checks,
         "{task}: a check starts {program}, which {problem}, and no task creates it.",
         "Correct the name, install it, or declare the file under Files.",
         "", "a program on PATH, or a file that exists or that a task creates", BY_FIELD),
    Rule("check.unclosed", WARNING, ERROR, check_commands.unclosed,
         "{task}: a check can never pass: the shell finds no end of `{mark}`.", "Close the `{mark}`, or omit it.",
         "", "a command that the shell can read"),
    Rule("command.placeholder", ERROR, ERROR, check_commands.placeholders,
         "{task}: `{found}` is a placeholder, not a command.", "Write the command.", "", "a command",
         question=_EXECUTABLE),
    Rule("check.hidden-failure", WARNING, WARNING, check_commands.hidden_failures,
         "{task}: a check passes even if `{program}` fails: {why}.", "Make it a check of its own.",
         "", "a command that fails if its program fails"),
    Rule("check.own-program", WARNING, WARNING, check_commands.own_checks,
         "{task} may write {path}, which its own check runs, so the builder can make the check pass without doing the"
         " work.", "Let an earlier task write the file, or add a check that does not depend on this task's files.",
         "", "a check that runs nothing that the task writes"),
    Rule("check.own-tests", WARNING, WARNING, check_commands.own_checks,
         "{who}, so the builder can weaken them.",
         "If that is too weak, let an earlier task write the tests, add a check of your own, or a validator.",
         "", "one proof that the task does not write"),
    Rule("text.unfilled", WARNING, WARNING, ground.unfilled,
         "{task} still contains template text: {found}", "Replace it with the text of this plan.", "", "your own text"),
    Rule("step.tool-not-allowed", ERROR, ERROR, _TASK(steps.not_allowed),
         "{task}: the tool {found} is not allowed by {where}.",
         "Use an allowed tool, or ask the owner of the policy to allow it.", "steps", question=_EXECUTABLE),
    Rule("step.vague-intent", WARNING, ERROR, _TASK(steps.vague_intents),
         "{task}: the intent {found!r} does not state the purpose of the step.",
         "Say in a few words what this step achieves.", "steps", "the purpose of the step", question=_EXECUTABLE),
    Rule("step.not-deterministic", WARNING, ERROR, _TASK(steps.chance),
         "{task}: a step runs {found}, which {why}.",
         "Write the value into the plan, or add an assumption that names both: `{task} uses {found}: …`.",
         "steps", "a command with the same result every time", question=_EXECUTABLE),
    Rule("step.branch", SILENT, ERROR, _TASK(steps.branches),
         "{task}: a step branches at run time (`{word}`).",
         "Decide in the plan, or move the branch into a script file in the repository, which the approval covers.",
         "steps", "a command without branches", question=_EXECUTABLE),
    Rule("requirement.no-task", WARNING, ERROR, coverage.unserved,
         "No task serves the requirement {id}.",
         "Add a task with `- **Requirements:** {id}`, or remove the requirement.",
         "requirements", "a task with this requirement", question=_COVERED),
    Rule("requirement.unlisted", WARNING, WARNING, coverage.unlisted,
         "The plan lists {found} without a text, but .planning/REQUIREMENTS.md has no such id.",
         "Write `{found}: text` under requirements, or add {found} to .planning/REQUIREMENTS.md.",
         "requirements", "an id of .planning/REQUIREMENTS.md, or an id with its text"),
    Rule("task.no-requirement", WARNING, ERROR, _TASK(coverage.unserving),
         "{task} serves no requirement of the plan.",
         "Add `- **Requirements:**` with one of {declared}, or remove the task.", "requirements", question=_COVERED),
    Rule("plan.no-requirements", SILENT, ERROR, _PLAN(coverage.no_requirements),
         "The plan does not say which requirements it serves.",
         "Add `requirements` to the frontmatter, and name them in the tasks that serve them.",
         "requirements", "requirements: {REQ-1: text}"),
    Rule("plan.no-success-criteria", SILENT, ERROR, _PLAN(coverage.no_success_criteria),
         "The plan has no success criteria: it does not say what must hold when all tasks are done.",
         "Add a section ## Success criteria, each with a proof, or add `success_criteria` to the frontmatter.",
         "success_criteria", "a section ## Success criteria with checkboxes"),
    Rule("plan.no-non-goals", SILENT, ERROR, _PLAN(coverage.no_non_goals),
         "The plan does not declare its non-goals.",
         "Add `non_goals` to the frontmatter. If there are none, write `non_goals: []`.",
         "non_goals", "non_goals: [{id, text, paths}]", question="non-goals"),
    Rule("plan.no-invariants", SILENT, ERROR, coverage.no_invariants,
         "The plan declares public interfaces but no invariants to protect them.",
         "Add `invariants` to the frontmatter, each with a command that checks it.",
         "interfaces", "invariants: [{id, text, check}]", question="invariants"),
    Rule("task.no-change-class", SILENT, ERROR, coverage.no_change_class,
         "{who} not say whether the change preserves, extends, modifies or breaks behaviour.",
         "Add `- **Change:** extending` (or preserving, modifying, breaking) to each task.",
         "change", "preserving, extending, modifying, breaking", gate_table.CHANGE_CLASS, "change-classes"),
    Rule("interface.incomplete", SILENT, ERROR, _TASK(coverage.incomplete_interface),
         "{task}: {name} does not declare its {missing}.", "Add them below the name; `none` is allowed.",
         "interfaces", ", ".join(coverage.SPECIFIED), gate_table.SPECIFICATION, "interfaces"),
    Rule("task.irreversible", WARNING, WARNING, _TASK(coverage.irreversible),
         "{task} cannot be rolled back: {found}",
         "Make it compensatable with commands, or accept this task as irreversible when you approve.",
         "rollback", "reversible, or compensatable with commands"),
    Rule("text.placeholder", WARNING, ERROR, ambiguity.phrases,
         "{whose}: `{word}` in {place} is a placeholder.", "Decide, and write down the decision.",
         "", "words with one meaning", question=_EXECUTABLE),
    Rule("text.vague", WARNING, ERROR, ambiguity.phrases,
         "{whose}: `{word}` in {place} is vague.", "Name exactly what you mean.", "", "words with one meaning",
         question=_EXECUTABLE),
    Rule("text.conditional", WARNING, ERROR, ambiguity.phrases,
         "{whose}: `{word}` in {place} is a condition that no one can check.",
         "Decide in the plan: require it or remove it.", "", "words with one meaning", question=_EXECUTABLE),
    Rule("text.quoted", SILENT, WARNING, ambiguity.quoted,
         "{task}: `{word}` appears {place}.",
         "If you mean this text literally, leave it. Otherwise decide, and write down the decision.",
         "", "the intended text"),
    Rule("task.large", WARNING, WARNING, _TASK(contradictions.large),
         "{task} is large: {why}.", "Split it into tasks that can be proven separately.",
         "", "at most 2 hours, 8 files and 7 criteria"),
)
# fmt: on
_BY_CODE: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in RULES})
_OF_DRAFTS = frozenset(
    {"plan.no-requirements", "plan.no-success-criteria", "plan.no-non-goals", "task.no-change-class"}
    | {"text.placeholder", "text.vague", "text.conditional"}
)
"""Rules whose result is correct even if other parts of the plan are invalid."""
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
    return Case(contract, settings, policy, STRICT in (contract.mode, mode), links, repositories, present)


def found(case: Case, check: Check) -> Iterator[Finding]:
    """Yield what a check finds, in the words of its rule."""
    own = _RULE_OF[check]
    return (case.finding(_BY_CODE.get(hit.code, own), plan, task, hit) for plan, task, hit in check(case))


_RULE_OF: Mapping[Check, Rule] = MappingProxyType({rule.check: rule for rule in reversed(RULES)})
"""The rule of each check; what a check of several rules finds names its code."""


def findings(case: Case, deadline: Deadline = NEVER) -> tuple[Finding, ...]:
    """Return the errors and warnings of a valid plan. Checks that are silent in this mode do not run.

    OutOfTimeError if the deadline passes before all checks have run.
    """
    checks = dict.fromkeys(rule.check for rule in RULES if case.severity(rule) != SILENT)
    listed: list[Finding] = []
    for check in checks:
        if deadline.passed:
            raise OutOfTimeError(f"not checked within {deadline.seconds:.0f}s")
        listed += (finding for finding in found(case, check) if finding.severity != SILENT)
    return tuple(listed)


def findings_of_drafts(
    plans: Sequence[Plan], settings: Settings, policy: Policy = NO_POLICY, mode: str | None = None
) -> tuple[Finding, ...]:
    """Return the findings that are already certain for plans that are not a contract yet, because of other errors."""
    drafts = case(Contract("", "", tuple(plans), {}, (), {}, ""), settings, policy, mode)
    checks = dict.fromkeys(rule.check for rule in RULES if rule.code in _OF_DRAFTS)
    return tuple(one for check in checks for one in found(drafts, check) if one.severity != SILENT)
