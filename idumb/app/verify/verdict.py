"""The verdict on a phase: a status, the reason, and the causes that a person can override. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.app.attempt import proofs
from idumb.domain import contract as contracts
from idumb.domain import outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.proof import evidence, judgement
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.judgement import Judgement, Opinion

PARTIAL = "partial"


WEAK = frozenset({evidence.OPINION, evidence.UNPROVEN})


def decide(
    contract: Contract,
    found: list[Evidence],
    spoiled: list[str],
    mismatches: list[str],
    said: Sequence[Opinion],
    shown: Mapping[str, str],
    weak: Sequence[str],
) -> tuple[str, str, list[str]]:
    """Status, reason, and the causes for which only a person's yes is missing. `weak` is what fails nothing."""
    wrong = _wrong(found, spoiled, mismatches)
    if wrong:
        return "failed", wrong, []
    waiting = [e for e in found if e.result == evidence.WAITING]
    if waiting:
        words = f"{len(waiting)} {'criterion waits' if len(waiting) == 1 else 'criteria wait'} for a person"
        return "waiting", words, []
    refuted = judgement.refutations(said)
    on_a_word = _unproven_tasks(shown)
    if refuted:
        doubts = [wording.listed((_refuted(one) for one in refuted), 3, between="; "), *weak]
        return PARTIAL, "; ".join(doubts), []
    if not any(e.passed for e in found) and outcome.COMPLETED not in shown.values():
        unproven = ["no task is proven, and the phase itself declares no check", *weak, *on_a_word]
        return PARTIAL, "; ".join(unproven), []
    if weak:
        return PARTIAL, "; ".join([*weak, *on_a_word]), list(weak)
    if any(e.passed for e in found):
        return "passed", "; ".join(["every check passed", *on_a_word]), []
    return (
        "passed",
        "; ".join([f"only by {_proof_source(contract, shown)}; the phase itself declares none", *on_a_word]),
        [],
    )


def _proof_source(contract: Contract, shown: Mapping[str, str]) -> str:
    """What the tasks are proven by, where the phase itself declares no check."""
    done = (task for task, status in shown.items() if status == outcome.COMPLETED)
    if any(contracts.is_checked(contract.plan_of(task), contract.tasks[task]) for task in done):
        return "the tasks' own checks"
    return "what validators and people said of the tasks, which have no checks"


def _wrong(found: Sequence[Evidence], spoiled: Sequence[str], mismatches: Sequence[str]) -> str:
    """What fails the phase, "" where nothing does."""
    bad = [e for e in found if e.result in proofs.BROKEN]
    if bad:
        return wording.listed(f"{e.subject} {e.result}" for e in bad)
    return f"a check changed {wording.listed(spoiled)}" if spoiled else wording.listed(mismatches, between="; ")


def uncovered(found: Sequence[Evidence]) -> list[str]:
    """Success criteria of the plans that no proof covers."""
    words = {evidence.OPINION: "is covered by an opinion alone", evidence.UNPROVEN: "has no proof"}
    return [f"{e.subject} {words[e.result]}" for e in found if e.result in WEAK]


def roles_not_asked(left_out: Sequence[str]) -> list[str]:
    """Bound roles whose opinion the caller did not want."""
    words = f"the {' and the '.join(left_out)} {'was' if len(left_out) == 1 else 'were'} not asked"
    return [words] if left_out else []


def of_unfinished_run(status: str, reason: str, unfinished: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """The verdict on a run with tasks that are not done: nothing makes it pass, a person's word neither."""
    tasks = wording.listed(f"{task} ({standing})" for task, standing in unfinished.items())
    words = f"{len(unfinished)} {'task is' if len(unfinished) == 1 else 'tasks are'} not done: {tasks}"
    return ("failed" if status == "failed" else PARTIAL), f"{words}; {reason}", []


def _unproven_tasks(shown: Mapping[str, str]) -> list[str]:
    """Whom nothing proves: tasks that a person took as they were, or left out."""
    accepted = [t for t, s in shown.items() if s == outcome.ACCEPTED]
    skipped = [t for t, s in shown.items() if s == outcome.SKIPPED]
    words = [f"{_were(accepted)} accepted by a person, not proven"] if accepted else []
    return [*words, *([f"{_were(skipped)} skipped"] if skipped else [])]


def _were(tasks: Sequence[str]) -> str:
    return f"{wording.listed(tasks)} {'was' if len(tasks) == 1 else 'were'}"


def _refuted(one: Judgement) -> str:
    place = next(c for c in one.citations if c.resolves)
    return f"{one.criterion} is refuted at {place.file}:{place.line}"


def unmet_requirements(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A warning for each requirement that no done task serves, because its tasks were skipped or it has none."""
    rows = record["requirements"] if record is not None and record["status"] == "passed" else ()
    return tuple(
        f"{row['id']} is not met: "
        + (", ".join(f"{t['id']} is {t['status']}" for t in row["tasks"]) or "no task names it")
        for row in rows
        if not row["met"]
    )


def requirements(contract: Contract, shown: Mapping[str, str]) -> list[dict[str, Any]]:
    """Backward from each requirement: the tasks that serve it, their state, and how their criteria are proven."""
    rows = []
    for plan in contract.plans:
        for requirement, text in plan.requirements.items():
            tasks = [t for t in plan.tasks if requirement in t.requirements]
            rows.append(
                {
                    "id": requirement,
                    "text": text,
                    "tasks": [{"id": t.id, "status": shown[t.id], "proofs": contracts.proofs(t)} for t in tasks],
                    "met": bool(tasks) and all(shown[t.id] in outcome.DONE for t in tasks),
                }
            )
    return rows
