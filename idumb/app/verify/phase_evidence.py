"""Gather what a phase is judged by: run its checks, ask its human criteria, list criteria that no plan covers.

Opinions of verifier and skeptic are shown beside the proofs, never counted as one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from idumb.app import role_calls
from idumb.app.attempt import task_checks, validator
from idumb.app.consent import needs
from idumb.app.contract import plan_checks
from idumb.app.core import questions, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.services import Checks, Services, report_path
from idumb.domain import contract as contracts
from idumb.domain import outcome, phase_documents, replies, rerun, wording
from idumb.domain.agent import AgentResult
from idumb.domain.contract import Contract
from idumb.domain.errors import IdumbError
from idumb.domain.plans.plan import HUMAN, OPINION, Criterion
from idumb.domain.proof import evidence, judgement
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion

ROADMAP = ".planning/ROADMAP.md"
_MOST_OUTPUT = 1500


class Phase(Struct, frozen=True):
    """A phase to verify, with what runs its checks. They run on the tree `judged`."""

    services: Services
    journal: Journal
    contract: Contract
    checks: Checks
    judged: str


def gather(phase: Phase) -> list[Evidence]:
    """Judge the success criteria and invariants of a phase."""
    services, contract, checks, tree = phase.services, phase.contract, phase.checks, phase.judged
    state = phase.journal.state
    checks.renew()  # nothing that the last task's checks left
    left = {check.subject: check for check in rerun.checks_of_phase(contract.plans)}
    gathered: list[Evidence] = []

    def run(subject: str) -> Evidence:
        services.interrupts.check()
        with services.interrupts.armed():
            return task_checks.run(checks, left.pop(subject), tree)

    for plan in contract.plans:
        prefix = f"plan {plan.plan} " if len(contract.plans) > 1 else ""
        for criterion in plan.success_criteria:
            subject = f"{prefix}{criterion.id}"
            if criterion.command:
                gathered.append(run(subject))
            elif criterion.proof == HUMAN and schedule.is_settled(schedule.statuses(contract, state)):
                gathered.append(_human_criterion(phase, criterion, subject))
            else:
                result = evidence.OPINION if criterion.proof == OPINION else evidence.UNPROVEN
                gathered.append(Evidence(subject, criterion.text, result, tree=tree))
    gathered += [run(subject) for subject in tuple(left)]  # the invariants
    if any(map(task_checks.is_broken, gathered)):
        gathered = task_checks.explain(services, checks, state, gathered)
        checks.renew()
    return gathered


def of_tasks(phase: Phase, gathered: Sequence[Evidence]) -> tuple[list[Evidence], list[Evidence]]:
    """Run the own checks of done tasks again, on the final tree: a later task may have broken them.

    Return the tests of tasks, and the other checks of completed tasks. Commands of `gathered` are not repeated, unless
    a later check of the task may use what they build.
    """
    services, contract, checks, state = phase.services, phase.contract, phase.checks, phase.journal.state
    tests, others, repeated = list[Evidence](), list[Evidence](), {e.command for e in gathered}
    done = [id for id, one in state.tasks.items() if one.status in outcome.DONE]
    for task in contracts.without_replaced(contract, contract.tasks, done):
        status = state.tasks[task.id].status
        own = [c for c in rerun.checks_of_task(task) if c.is_test or status == outcome.COMPLETED]
        if status not in outcome.DONE or all(c.condition is None and c.command in repeated for c in own):
            continue
        checks.renew()  # what the checks of another task left was not there when the task was done
        results = list[Evidence]()
        for check in own:
            services.interrupts.check()
            with services.interrupts.armed():
                named = replace(check, subject=f"{task.id} {check.subject.removesuffix(' after')}")
                results.append(task_checks.run(checks, named, phase.judged))
        if any(result.result in evidence.BROKEN for result in results):
            results = task_checks.explain_own(services, checks, state, task, own, results)
        for check, result in zip(own, results, strict=True):
            if check.condition is not None or check.command not in repeated:
                (tests if check.is_test else others).append(result)
                repeated.add(result.command)
    return tests, others


def _human_criterion(phase: Phase, criterion: Criterion, subject: str) -> Evidence:
    journal, name = phase.journal, phase.contract.phase
    question = questions.from_table(
        "success criterion",
        f"{name}.{subject.replace(' ', '.')}.{journal.state.number}",
        criterion.instructions,
        phase=name,
        criterion=criterion.id,
        text=criterion.text,
        subject=subject,
    )
    asked = journal.state.decisions.get(question.id)
    if asked is not None and (asked["what"], [*asked["evidence"]]) != (question.what, [*question.evidence]):
        journal.write(journal.question_event(question))  # an amendment changed the criterion: no answer is about it yet
    answer = journal.ask_once(phase.services.asker, question)
    answered = questions.evidence_of_answers([question], [] if answer is None else [answer], phase.judged)
    return replace(next(answered), text=criterion.text)


def uncovered_criteria(services: Services, contract: Contract, tree: str) -> list[Evidence]:
    """Return criteria in roadmap and context file that no plan covers. Consent does not cover these files."""
    covered = {_normalised(c.text) for p in contract.plans for c in p.success_criteria}
    covered |= {_normalised(c.text) for task in contract.tasks.values() for c in task.acceptance}
    uncovered = []
    for source, text in _sources(services, contract):
        for number, words in enumerate(phase_documents.success_criteria(text), 1):
            if _normalised(words) not in covered:
                covered.add(_normalised(words))
                uncovered.append(Evidence(f"{source} {number}", words, evidence.UNPROVEN, tree=tree))
    return uncovered


def _sources(services: Services, contract: Contract) -> list[tuple[str, str]]:
    """Return the roadmap section and the context file of the phase, if they state criteria."""
    texts = []
    for source, path in (("roadmap", ROADMAP), ("context", report_path(contract.folder, "CONTEXT"))):
        try:
            texts.append((source, services.files.read(path) or ""))
        except OSError as problem:
            services.reporter.note(f"{path} could not be read: {problem.strerror or problem}")
    stating = [(source, text) for source, text in texts if phase_documents.success_criteria(text)]
    section = services.plans.roadmap_section  # expensive, so only if there is a criterion
    return [(source, section(text, contract.phase) if source == "roadmap" else text) for source, text in stating]


def _normalised(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def ask_judges(phase: Phase, gathered: Sequence[Evidence], tree: str) -> tuple[Opinion, ...]:
    """Ask the verifier, then the skeptic, who also gets the verifier's answer. Failures become part of the opinion.

    `tree` has the files that they see.
    """
    opinions: list[Opinion] = []
    for role in needs.bound_judges(phase.services):
        values = {**_values_for_judges(phase, gathered), "said": _quotation(opinions)}
        request = role_calls.RoleRequest(role, f"phase-{phase.contract.phase}", values, judgement.SCHEMA)
        opinions.append(_opinion(phase.services, request, phase.journal, tree))
    return tuple(opinions)


def _opinion(services: Services, request: role_calls.RoleRequest, journal: Journal, tree: str) -> Opinion:
    empty = Opinion(request.role, role_calls.binding_of(services, request.role) or "")
    try:
        result = role_calls.ask(services, request, journal)
    except IdumbError as problem:
        if problem.code == "lock.lost":
            raise
        return replace(empty, failure=f"{problem.message} [{problem.code}]")
    return _read_opinion(services, empty, result, tree)


def _read_opinion(services: Services, empty: Opinion, result: AgentResult, tree: str) -> Opinion:
    answer = replies.answer(result.reply, "verdict")
    judged_answer = (
        judgement.read_opinion(answer) if result.outcome == outcome.COMPLETED and isinstance(answer, dict) else None
    )
    if judged_answer is None:
        why = answer if isinstance(answer, str) else "its answer does not have the requested form"
        return replace(empty, failure=result.message or result.failure or why)
    verdict, judged = judged_answer
    return replace(
        empty, verdict=verdict, judgements=tuple(_with_resolved_citations(services, j, tree) for j in judged)
    )


def _with_resolved_citations(services: Services, judged: Judgement, tree: str) -> Judgement:
    places = tuple(replace(c, resolves=validator.resolves(services.trees, c, tree)) for c in judged.citations)
    return replace(judged, citations=places)


def _values_for_judges(phase: Phase, gathered: Sequence[Evidence]) -> Mapping[str, str]:
    services, contract = phase.services, phase.contract
    several = len(contract.plans) > 1
    goals = "\n".join(f"- {f'plan {p.plan} ' * several}goal: {wording.one_line(p.goal)}" for p in contract.plans)
    served = [text for p in contract.plans for text in plan_checks.served(services, p, p.requirements)]
    criteria = [*(f"requirement {text}" for text in served), *(f"{e.subject}: {e.text}" for e in gathered)]
    listed = "\n".join(f"- {wording.one_line(text)}" for text in criteria)
    touched = sorted({path for task in phase.journal.state.tasks.values() for path in task.work.touched})
    evidence_lines = [services.redactor.redact_output(_line_of_evidence(e)) for e in gathered]
    return {
        "phase": contract.phase,
        "criteria": wording.fenced(f"{goals}\n{listed}", "text"),
        "evidence": wording.fenced(wording.truncate("\n".join(evidence_lines)), "text"),
        "files": wording.fenced(wording.truncate("\n".join(touched)), "text"),
    }


def _line_of_evidence(each: Evidence) -> str:
    how = f" by `{each.command}`" if each.command else ""
    end = f"\n{each.output[-_MOST_OUTPUT:].rstrip()}" if each.output and not each.passed else ""
    return f"{each.subject}: {each.result}{how}{end}"


def _quotation(opinions: Sequence[Opinion]) -> str:
    """Return the verifier's answer as a quotation, for the skeptic."""
    rows = [msgspec.to_builtins(opinion) for opinion in opinions if opinion.verdict is not None]
    return wording.fenced(wording.truncate(json.dumps(rows, indent=1)), "json") if rows else ""


def unanswered_roles(opinions: Sequence[Opinion]) -> tuple[str, ...]:
    """Return a reason for each role that gave no opinion."""
    return tuple(
        f"the {opinion.role} gave no opinion: {opinion.failure}" for opinion in opinions if opinion.verdict is None
    )


def missing_opinions(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return a warning for each role of a record that gave no opinion."""
    rows = record.get("judged_by", ()) if record is not None else ()
    return tuple(f"The {row['role']} gave no opinion: {row['failure']}" for row in rows if row["verdict"] is None)
