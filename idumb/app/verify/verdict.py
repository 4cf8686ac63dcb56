"""The verdict on a phase: a status, the reason, and the causes that a person can override. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from idumb.domain import contract as contracts
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.proof import evidence, judgement, verification
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion

PARTIAL = "partial"


class Verdict(NamedTuple):
    """`status` is passed, failed, waiting or partial. A person can override the `causes` with a yes."""

    status: str
    reason: str
    causes: Sequence[str] = ()


def decide(
    contract: Contract,
    gathered: Sequence[Evidence],
    mismatches: Sequence[str],
    opinions: Sequence[Opinion],
    statuses: Mapping[str, str],
    weak: Sequence[str],
) -> Verdict:
    """Return the verdict. The `weak` causes make it partial, not failed."""
    wrong = _failure_reason(gathered, mismatches)
    if wrong:
        return Verdict("failed", wrong)
    waiting = [e for e in gathered if e.result == evidence.WAITING]
    if waiting:
        words = f"{len(waiting)} {'criterion waits' if len(waiting) == 1 else 'criteria wait'} for your answer"
        return Verdict("waiting", words)
    refuted = judgement.refutations(opinions)
    unproven_tasks = _unproven_tasks(statuses)
    if refuted:
        reasons = [wording.listed((_refutation(proof) for proof in refuted), 3, between="; "), *weak]
        return Verdict(PARTIAL, "; ".join(reasons))
    if not any(e.passed for e in gathered) and outcome.COMPLETED not in statuses.values():
        nothing = ["no task is proven, and the phase itself declares no check", *weak, *unproven_tasks]
        return Verdict(PARTIAL, "; ".join(nothing), nothing)
    if weak:
        return Verdict(PARTIAL, "; ".join([*weak, *unproven_tasks]), weak)
    if any(e.passed for e in gathered):
        return Verdict("passed", "; ".join(["every check passed", *unproven_tasks]))
    proven_by = f"only by {_proof_source(contract, statuses)}; the phase itself declares no check"
    return Verdict("passed", "; ".join([proven_by, *unproven_tasks]))


def _proof_source(contract: Contract, statuses: Mapping[str, str]) -> str:
    """Return what proves the tasks of a phase that declares no check itself."""
    done = (task for task, status in statuses.items() if status == outcome.COMPLETED)
    if any(contracts.is_checked(contract.plan_of[task], contract.tasks[task]) for task in done):
        return "the tasks' own checks"
    return "what validators and people said; the tasks have no checks"


def _failure_reason(gathered: Sequence[Evidence], mismatches: Sequence[str]) -> str:
    """Return what fails the phase, or ""."""
    bad = [e for e in gathered if e.result in evidence.BROKEN]
    if bad:
        return wording.listed(e.words for e in bad)
    return wording.listed(mismatches, between="; ")


def uncovered(gathered: Iterable[Evidence]) -> list[str]:
    """Return the success criteria that no proof covers."""
    return [f"{e.subject} {verification.WEAK[e.result]}" for e in gathered if e.result in verification.WEAK]


def regressed(regressions: Sequence[Evidence]) -> list[str]:
    """Return the own checks of completed tasks that no longer pass: a later task, or you, changed what they judge."""
    words = {evidence.TIMED_OUT: "timed out", evidence.ERRORED: "cannot run"}
    return [
        f"{e.subject} passed when its task was done and {words.get(e.result, 'fails')} on the final tree: {e.violation}"
        for e in regressions
        if e.result in evidence.BROKEN
    ]


def strict_causes(checked: Sequence[Evidence]) -> list[str]:
    """Return why evidence of a strict phase proves too little: what changed during the run, or what a check changed."""
    paths = dict.fromkeys(path for e in checked for path in e.changed_programs)
    causes = [f"{path} changed during the run, so the checks after the change prove less" for path in paths]
    return causes + [
        f"{e.subject} changed {wording.listed(e.changed)}, which the commit holds"
        for e in checked
        if e.passed and e.changed
    ]


def weaker(
    checked: Sequence[Mapping[str, Any]], of_tasks: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """Return each reason why evidence of the phase and of its tasks proves less, with the subjects of that evidence."""
    subjects: dict[str, dict[str, None]] = {}
    named = [(row["subject"], row) for row in checked]
    named += [(f"{task} {row['subject']}", row) for task, rows in of_tasks.items() for row in rows]
    for subject, row in named:
        for reason in row.get("weaker", ()):
            subjects.setdefault(reason, {})[subject] = None
    return [{"reason": reason, "subjects": list(found)} for reason, found in subjects.items()]


def roles_not_asked(roles: Sequence[str]) -> list[str]:
    """Return a reason that names bound roles which the caller did not want to ask."""
    words = f"the {' and the '.join(roles)} {'was' if len(roles) == 1 else 'were'} not asked"
    return [words] if roles else []


def of_unfinished_run(judged: Verdict, unfinished: Mapping[str, str]) -> Verdict:
    """Return the verdict on a run with unfinished tasks, which nothing can make pass, not even an answer."""
    tasks = wording.listed(f"{task} ({status_of_task})" for task, status_of_task in unfinished.items())
    words = f"{len(unfinished)} {'task is' if len(unfinished) == 1 else 'tasks are'} not done: {tasks}"
    return Verdict("failed" if judged.status == "failed" else PARTIAL, f"{words}; {judged.reason}")


def _unproven_tasks(statuses: Mapping[str, str]) -> list[str]:
    """Return reasons that name tasks without proof: those that a person accepted or skipped."""
    accepted = [t for t, s in statuses.items() if s == outcome.ACCEPTED]
    skipped = [t for t, s in statuses.items() if s == outcome.SKIPPED]
    words = [f"{_tasks_were(accepted)} accepted by a person, not proven"] if accepted else []
    return [*words, *([f"{_tasks_were(skipped)} skipped"] if skipped else [])]


def _tasks_were(tasks: Sequence[str]) -> str:
    return f"{wording.listed(tasks)} {'was' if len(tasks) == 1 else 'were'}"


def _refutation(judgement: Judgement) -> str:
    place = next(c for c in judgement.citations if c.resolves)
    return f"{judgement.criterion} is refuted at {place.file}:{place.line}"


def unmet(requirements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the requirements that no finished task serves."""
    return [
        f"{row['id']} is not met: "
        + (", ".join(f"{t['id']} is {t['status']}" for t in row["tasks"]) or "no task names it")
        for row in requirements
        if not row["met"]
    ]


def requirements(contract: Contract, statuses: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return each requirement with the tasks that serve it, their status, and how their criteria are proven."""
    rows = []
    for plan in contract.plans:
        for requirement, text in plan.requirements.items():
            tasks = [t for t in plan.tasks if requirement in t.requirements]
            served = [
                {"id": t.id, "status": contracts.standing(t, statuses[t.id]), "proofs": contracts.proofs(t)}
                for t in tasks
            ]
            met = bool(tasks) and all(t.is_history or statuses[t.id] in outcome.DONE for t in tasks)
            rows.append({"id": requirement, "text": text, "tasks": served, "met": met})
    return rows
