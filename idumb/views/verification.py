"""`{phase}-VERIFICATION.md`: which evidence proves what, and what nothing proves.

An opinion is shown as an opinion, an unproven criterion as a gap; neither is ever counted as proof.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idumb.domain import contract as contracts
from idumb.domain import evidence as proof
from idumb.domain import outcome
from idumb.domain.contract import Contract
from idumb.domain.plan import OPINION, Criterion, Task
from idumb.views import advice, amount, evidence_table, markup

Record = Mapping[str, Any]
"""The payload of `verification.recorded`: `status` (passed, failed), `run`, `statuses` (task id to status),
`evidence` (task id to payloads of `evidence.recorded`; those of the phase under ""), `opinion` (a model's text)."""
PHASE = ""

PROVEN = "proven"
DISPROVEN = "disproven"
WAITING = "waits for a person"
OPINION_ONLY = "opinion only"
ACCEPTED = "accepted by a person"
MISSING = "no evidence"
_OF_RESULT = {
    proof.PASSED: PROVEN,
    proof.WAITING: WAITING,
    proof.OPINION: OPINION_ONLY,
    proof.UNPROVEN: "unproven",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to be proven. `owner` is a task id, or a plan's path for what belongs to the whole plan."""

    owner: str
    subject: str
    text: str
    standing: str
    events: tuple[evidence_table.Recorded, ...]


def rows(contract: Contract, record: Record) -> tuple[Row, ...]:
    """Every success criterion, invariant, acceptance criterion and declared test, each with its evidence."""
    found: list[Row] = []
    evidence: Mapping[str, Sequence[evidence_table.Recorded]] = record.get("evidence", {})
    phase = evidence.get(PHASE, ())
    for plan in contract.plans:
        found += [_row(plan.path, c.id, c.text, phase, c) for c in plan.success_criteria]
        found += [_row(plan.path, f"invariant {i.id}", i.text, phase) for i in plan.invariants]
    for task_id in contract.order:
        accepted = _statuses(record).get(task_id) == outcome.ACCEPTED
        of_task = _task_rows(contract.tasks[task_id], evidence.get(task_id, ()))
        found += [dataclasses.replace(row, standing=ACCEPTED) for row in of_task] if accepted else of_task
    return tuple(found)


def _statuses(record: Record) -> Mapping[str, str]:
    statuses: Mapping[str, str] = record.get("statuses", {})
    return statuses


def _task_rows(task: Task, recorded: Sequence[evidence_table.Recorded]) -> list[Row]:
    found = [_criterion_row(task, c, recorded) for c in task.acceptance]
    return found + [
        _row(task.id, f"test {n}", test.intent or test.command, recorded) for n, test in enumerate(task.tests, 1)
    ]


def _criterion_row(task: Task, criterion: Criterion, recorded: Sequence[evidence_table.Recorded]) -> Row:
    """A criterion marked `verify` is proven by the task's Verify commands."""
    row = _row(task.id, criterion.id, criterion.text, recorded, criterion)
    if row.events or contracts.proofs(task).get(criterion.id) != "verify":
        return row
    shared = tuple(e for e in recorded if _subject(e).startswith("verify"))
    return Row(task.id, criterion.id, criterion.text, _standing(shared, criterion), shared)


def _row(
    owner: str, subject: str, text: str, recorded: Sequence[evidence_table.Recorded], criterion: Criterion | None = None
) -> Row:
    events = tuple(e for e in recorded if _subject(e) == subject or _subject(e).startswith(f"{subject} "))
    return Row(owner, subject, text, _standing(events, criterion), events)


def _subject(event: evidence_table.Recorded) -> str:
    return str(event["subject"])


def _standing(events: Sequence[evidence_table.Recorded], criterion: Criterion | None) -> str:
    """The worst result decides; without any result the declared proof says what is missing."""
    results = [event["result"] for event in events]
    if not results:
        unproven = criterion is not None and criterion.proof == proof.UNPROVEN
        return "unproven" if unproven else OPINION_ONLY if criterion and criterion.proof == OPINION else MISSING
    for result in (proof.WAITING, proof.UNPROVEN, proof.OPINION):
        if result in results and not evidence_table.failures(events):
            return _OF_RESULT[result]
    return PROVEN if all(result == proof.PASSED for result in results) else DISPROVEN


def render(contract: Contract, record: Record, *, now: str) -> str:
    """The whole document."""
    found = rows(contract, record)
    opinion = str(record.get("opinion") or "")
    lines = [*markup.frontmatter(_frontmatter(contract, record, found, now)), ""]
    lines += [f"# Phase {markup.prose(contract.phase)} Verification", "", *_verdict(contract, record, found)]
    lines += ["", "## Criteria and evidence", "", *_criteria(contract, found)]
    lines += ["", "## Requirements", "", *_requirements(contract, record, found)]
    lines += ["", "## Invariants", "", *_some(found, "invariant ")]
    lines += ["", "## Tests", "", *_some(found, "test ")]
    lines += ["", "## Unproven and opinions", "", *_weak(found)]
    if opinion:
        lines += ["", "What a model said, which proves nothing:", "", *markup.block(opinion, "text")]
    return "\n".join([*lines, "", "## Gaps", "", *_gaps(contract, record, found)]) + "\n"


def _frontmatter(
    contract: Contract, record: Record, found: Sequence[Row], now: str
) -> dict[str, markup.Scalar | Sequence[markup.Scalar]]:
    return {
        "type": "verification",
        "phase": contract.phase,
        "status": _status(record),
        "created": now,
        "validator": "verify-work-workflow",
        "run": str(record.get("run", "")),
        "criteria_total": len(found),
        "criteria_proven": sum(1 for row in found if row.standing == PROVEN),
        "criteria_disproven": sum(1 for row in found if row.standing == DISPROVEN),
        "contract_hash": contract.hash,
    }


def _status(record: Record) -> str:
    return str(record.get("status", "not judged"))


def _verdict(contract: Contract, record: Record, found: Sequence[Row]) -> list[str]:
    goals = [f"- **Goal of {markup.code(plan.path)}:** {markup.prose(plan.goal)}" for plan in contract.plans]
    counts: dict[str, int] = {}
    for row in found:
        counts[row.standing] = counts.get(row.standing, 0) + 1
    summed = ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "nothing to prove"
    return [*goals, f"- **Verdict:** {markup.prose(_status(record))}", f"- **Criteria:** {summed}"]


def _criteria(contract: Contract, found: Sequence[Row]) -> list[str]:
    shown = [row for row in found if not row.subject.startswith(("invariant ", "test "))]
    if not shown:
        return ["No criterion is declared."]
    return markup.table(
        ("Of", "Criterion", "Standing", "Evidence"),
        (
            (_owner(contract, row), f"{markup.prose(row.subject)}: {markup.prose(row.text)}", row.standing, _shown(row))
            for row in shown
        ),
    )


def _owner(contract: Contract, row: Row) -> str:
    return markup.prose(row.owner) if row.owner in contract.tasks else markup.code(row.owner)


def _shown(row: Row) -> str:
    return "<br>".join(_one(event) for event in row.events) or "none"


def _one(p: evidence_table.Recorded) -> str:
    code = "" if p.get("exit_code") is None else f", exit {p['exit_code']}"
    tree = f", on tree `{amount.short(p['tree'])}`" if p.get("tree") else ""
    text = evidence_table.how(p) if p.get("command") else markup.prose(p.get("text") or "no command")
    return f"{text} {evidence_table.result_words(p['result'])}{code}{tree}"


def _requirements(contract: Contract, record: Record, found: Sequence[Row]) -> list[str]:
    where = _statuses(record)
    lines = []
    for plan in contract.plans:
        for requirement, text in plan.requirements.items():
            ids = [task.id for task in plan.tasks if requirement in task.requirements]
            criteria = [f"{r.owner} {r.subject} ({r.standing})" for r in found if r.owner in ids]
            lines.append(
                (
                    markup.prose(f"{requirement}: {text}" if text else requirement),
                    ", ".join(f"{markup.prose(i)} ({where.get(i, 'not known')})" for i in ids) or "no task",
                    markup.prose(", ".join(criteria)) or "none",
                )
            )
    return markup.table(("Requirement", "Tasks", "Criteria"), lines) if lines else ["No requirement is declared."]


def _some(found: Sequence[Row], prefix: str) -> list[str]:
    shown = [row for row in found if row.subject.startswith(prefix)]
    if not shown:
        return ["None declared."]
    return markup.table(
        ("What", "Standing", "Evidence"),
        (
            (markup.prose(f"{row.subject.removeprefix('invariant ')}: {row.text}"), row.standing, _shown(row))
            for row in shown
        ),
    )


def _weak(found: Sequence[Row]) -> list[str]:
    weak = [row for row in found if row.standing in {"unproven", OPINION_ONLY, ACCEPTED}]
    return [f"- {markup.prose(row.owner)} {markup.prose(row.subject)}: {row.standing}" for row in weak] or ["None."]


def _gaps(contract: Contract, record: Record, found: Sequence[Row]) -> list[str]:
    where = _statuses(record)
    lines = [f"- {markup.prose(i)} is {status}, not done." for i, status in where.items() if status not in outcome.DONE]
    bad = (DISPROVEN, MISSING, WAITING, "unproven")
    lines += [
        f"- {markup.prose(row.owner)} {markup.prose(row.subject)}: {row.standing}: {markup.prose(row.text)}"
        for row in found
        if row.standing in bad
    ]
    lines += [
        f"- Requirement {markup.prose(r)} has no task."
        for plan in contract.plans
        for r in plan.requirements
        if not any(r in task.requirements for task in plan.tasks)
    ]
    if not lines:
        return ["None."]
    return [*lines, "", f"When they are closed: `{advice.verify(contract.phase)}`"]
