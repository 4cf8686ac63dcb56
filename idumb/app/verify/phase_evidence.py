"""Gather the evidence for a phase: run its checks, ask its human criteria, and list criteria that no plan covers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from idumb.app.attempt import questions
from idumb.app.core import projection_paths, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.ports.checks import Checks
from idumb.domain import contract as contracts
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice, Decision
from idumb.domain.documents import stated_criteria
from idumb.domain.plans.plan import CHECK, HUMAN, OPINION, Criterion
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence

ROADMAP = ".planning/ROADMAP.md"


def gather(services: Services, checks: Checks, contract: Contract, tree: str, journal: Journal) -> list[Evidence]:
    limit = float(services.settings.run.check_timeout)
    checks.renew()  # nothing that the last task's checks left
    commands: dict[str, tuple[str, str]] = {}
    gathered: list[Evidence] = []
    for plan in contract.plans:
        prefix = f"plan {plan.plan} " if len(contract.plans) > 1 else ""
        gathered.extend(
            _criterion(services, checks, contract, criterion, prefix, tree, journal)
            for criterion in plan.success_criteria
        )
        for invariant in plan.invariants:
            commands.setdefault(invariant.check, (f"{prefix}invariant {invariant.id}", invariant.text))
        for task in plan.tasks:
            if journal.state.tasks[task.id].status not in outcome.DONE:
                continue
            for i, test in enumerate(task.tests, 1):
                commands.setdefault(test.command, (f"{task.id} test {i}", test.intent or test.command))
    for command, (subject, text) in commands.items():
        services.interrupts.check()
        with services.interrupts.armed():
            gathered.append(checks.command(subject, text, command, timeout=limit, tree=tree))
    return gathered


def regressions(
    services: Services, checks: Checks, contract: Contract, tree: str, journal: Journal, gathered: Sequence[Evidence]
) -> list[Evidence]:
    """Run the own checks of completed tasks again, on the final tree. Return all; those of `gathered` are not repeated.

    A later task may have broken what an earlier one was proven by.
    """
    limit = float(services.settings.run.check_timeout)
    done = [t for t in contract.tasks.values() if journal.state.tasks[t.id].status == outcome.COMPLETED]
    commands: dict[str, tuple[str, str]] = {}
    for task in done:
        for criterion in task.acceptance:
            if criterion.command and contracts.proofs(task)[criterion.id] == CHECK:
                commands.setdefault(criterion.command, (f"{task.id} {criterion.id}", criterion.text))
        for i, command in enumerate(task.verify, 1):
            commands.setdefault(command, (f"{task.id} verify {i}", command))
    repeated = {e.command for e in gathered}
    found: list[Evidence] = []
    owner = ""
    for command, (subject, text) in commands.items():
        if command not in repeated:
            if owner != (owner := subject.partition(" ")[0]):
                checks.renew()  # what the checks of another task left was not there when the task was done
            services.interrupts.check()
            with services.interrupts.armed():
                found.append(checks.command(subject, text, command, timeout=limit, tree=tree))
    for task in done:
        checks.renew()
        for i, condition in enumerate(task.postconditions, 1):
            with services.interrupts.armed():
                found.append(checks.condition(f"{task.id} postcondition {i}", condition, timeout=limit, tree=tree))
    return found


def _criterion(
    services: Services,
    checks: Checks,
    contract: Contract,
    criterion: Criterion,
    prefix: str,
    tree: str,
    journal: Journal,
) -> Evidence:
    subject = f"{prefix}{criterion.id}"
    if criterion.command:
        with services.interrupts.armed():
            limit = float(services.settings.run.check_timeout)
            return checks.command(subject, criterion.text, criterion.command, timeout=limit, tree=tree)
    if criterion.proof == HUMAN and schedule.settled(schedule.statuses(contract, journal.state)):
        return _human_criterion(services, contract, criterion, subject, tree, journal)
    result = evidence.OPINION if criterion.proof == OPINION else evidence.UNPROVEN
    return Evidence(subject, criterion.text, result, tree=tree)


def _human_criterion(
    services: Services, contract: Contract, criterion: Criterion, subject: str, tree: str, journal: Journal
) -> Evidence:
    question = Decision(
        id=f"{contract.phase}.{subject.replace(' ', '.')}.{journal.state.number}",
        kind="criterion",
        what=f"Phase {contract.phase}, {criterion.id}: {criterion.text}",
        why="The plan asks a person to judge this success criterion.",
        evidence=criterion.instructions,
        choices=(
            Choice(questions.YES, "it holds", "the criterion is proven by you"),
            Choice(questions.NO, "it does not hold", "the phase is not verified"),
        ),
    )
    answer = journal.ask_once(services.asker, question)
    if answer is None:
        return Evidence(subject, criterion.text, evidence.WAITING, tree=tree)
    return dataclasses.replace(
        questions.evidence_of_answers([question], [answer], tree)[0], subject=subject, text=criterion.text
    )


def uncovered_criteria(services: Services, contract: Contract, tree: str) -> list[Evidence]:
    """Return criteria in roadmap and context file that no plan covers. Consent does not cover these files."""
    covered = {_normalised(c.text) for p in contract.plans for c in p.success_criteria}
    covered |= {_normalised(c.text) for task in contract.tasks.values() for c in task.acceptance}
    uncovered = []
    for source, text in _sources(services, contract):
        for number, words in enumerate(stated_criteria.criteria(text), 1):
            if _normalised(words) not in covered:
                covered.add(_normalised(words))
                uncovered.append(Evidence(f"{source} {number}", words, evidence.UNPROVEN, tree=tree))
    return uncovered


def _sources(services: Services, contract: Contract) -> list[tuple[str, str]]:
    """Return the roadmap section and the context file of the phase, if they state criteria."""
    texts = []
    for source, path in (("roadmap", ROADMAP), ("context", projection_paths.report_path(contract.folder, "CONTEXT"))):
        try:
            texts.append((source, services.reports.read(path) or ""))
        except OSError as problem:
            services.reporter.note(f"{path} could not be read: {problem.strerror or problem}")
    stating = [(source, text) for source, text in texts if stated_criteria.criteria(text)]
    section = services.plans.roadmap_section  # expensive, so only if there is a criterion
    return [(source, section(text, contract.phase) if source == "roadmap" else text) for source, text in stating]


def _normalised(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()
