"""Checks that each task has an agent to build it and one to judge it, leaves a result, and can be proven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from idumb.domain import wording
from idumb.domain.agent import BUILT_IN
from idumb.domain.contract import builder_of, proofs, validator_of
from idumb.domain.finding import WARNING
from idumb.domain.intake.rule import Case, Hit, Hits, TaskCheck, each_task, field_of, near, says_nothing
from idumb.domain.plans.plan import CHECK, HUMAN, OPINION, STEPS, UNPROVEN, VERIFY, Criterion, Plan, Task
from idumb.domain.proof.ledger import written_claims
from idumb.domain.runs import handoff
from idumb.domain.settings import Settings

_COVERED = "Add — verify to the criterion. Verify covers unmarked criteria only if no criterion of the task is marked."
_FOREIGN = "Add <verify><automated>command</automated></verify>, or in a plan without tags **Verify:** `command`."


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
    return Hit(criterion.text, words, code, field_of(task), criterion.span.line, accepted, fix)


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
    if criterion.proof in (CHECK, VERIFY, STEPS) or criterion.instructions:
        return False
    return says_nothing(criterion.text)


def without_artifact(case: Case, plan: Plan, task: Task) -> Iterator[str]:
    """Find tasks that write no file and that neither a command nor a person checks."""
    if task.is_human or task.verify or task.tests or task.symbols or task.postconditions:
        return
    if any(c.proof not in (OPINION, UNPROVEN) for c in task.acceptance) or written_claims(task.files or ()):
        return
    if not _opinion_at_best(proofs(task)) or validator_of(plan, task, case.settings) is not None:  # else it is unproven
        yield "no written file, no command and no person to check it"


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


def _unknown(of: Callable[[Plan, Task, Settings], str | None], built_in: Iterable[str]) -> TaskCheck:
    def find(case: Case, plan: Plan, task: Task) -> Iterator[Hit]:
        names, name = (*case.settings.bindings, *built_in), of(plan, task, case.settings)
        if name is not None and name not in names:
            yield near(name, names)

    return find


unknown_builder = _unknown(builder_of, BUILT_IN)
unknown_validator = _unknown(validator_of, (HUMAN,))


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
