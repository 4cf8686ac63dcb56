"""Render `{phase}-VERIFICATION.md`: what is proven by which evidence, and what is not.

Opinions and unproven criteria are shown as such and never count as proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from idumb import lazy_pattern
from idumb.domain import contract as contracts
from idumb.domain import wording
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import OPINION, UNPROVEN, Task
from idumb.domain.proof import evidence as proof
from idumb.domain.runs.run import RunState
from idumb.views import markup, quantities
from idumb.views.reports import evidence_table

Record = Mapping[str, Any]
"""The payload of `verification.recorded`: status, reason, tree, evidence, weaker, requirements, goals, mismatches,
unproven, opinions, skipped, accepted."""

UNVERIFIED = "unverified"
_INVARIANT = lazy_pattern.compile(r"(plan \S+ )?invariant ")
_TEST = lazy_pattern.compile(r"T\S+ test \d+")
_STANDING = {
    proof.PASSED: "proven",
    proof.WAITING: "waits for a person",
    proof.OPINION: "opinion only",
    proof.UNPROVEN: "unproven",
}


def render(contract: Contract, record: Record, *, now: str) -> str:
    """Return the document."""
    lines = [*markup.frontmatter(_frontmatter(contract, record, now)), ""]
    lines += [f"# Phase {markup.prose(contract.phase)} Verification", "", *_verdict(record)]
    for title, section in (
        ("Success criteria", _criteria(_of_phase(contract, record))),
        ("Requirements", _requirements(record)),
        ("Criteria of the tasks", _task_criteria(contract, record)),
        *((("Checks of the tasks, run again", _criteria(again)),) if (again := _run_again(contract, record)) else ()),
        ("Invariants", _criteria(_evidence_of(record, _INVARIANT))),
        ("Tests", _criteria(_evidence_of(record, _TEST))),
        ("Unproven and opinions", _weak(contract, record)),
        *((("Opinions of agents", _agents(record)),) if record.get("judged_by") else ()),
        ("Gaps", _gaps(contract, record)),
    ):
        lines += ["", f"## {title}", "", *section]
    return "\n".join(lines) + "\n"


def render_unverified(contract: Contract, state: RunState, *, now: str) -> str:
    """Return the document of a phase that is no longer verified; earlier results are in the file's history."""
    lines = [*markup.frontmatter(_frontmatter(contract, {"status": UNVERIFIED}, now)), ""]
    lines += [f"# Phase {markup.prose(contract.phase)} Verification", ""]
    lines += [
        f"- **Verdict:** {UNVERIFIED} ({markup.prose(state.reason or 'tasks were rolled back after the verification')})"
    ]
    return "\n".join(lines) + "\n"


def _frontmatter(contract: Contract, record: Record, now: str) -> dict[str, markup.Scalar | Sequence[markup.Scalar]]:
    results = [row["result"] for row in record.get("evidence", ())]
    return {
        "type": "verification",
        "phase": contract.phase,
        "status": record["status"],
        "created": now,
        "validator": "verify-work-workflow",
        "checks_total": len(results),
        "checks_passed": results.count(proof.PASSED),
        "tree": str(record.get("tree", "")),
        "contract_hash": contract.hash,
    }


def _verdict(record: Record) -> list[str]:
    goals = [f"- **Goal of {markup.code(p)}:** {markup.prose(goal)}" for p, goal in record.get("goals", {}).items()]
    return [
        *goals,
        f"- **Verdict:** {markup.prose(record['status'])} ({markup.prose(record.get('reason', ''))})",
        *([f"- **Open:** {markup.prose('; '.join(record['open']))}"] if record.get("open") else []),
        f"- **Evidence:** {evidence_table.summed(record.get('evidence', ()))}",
        *(
            f"- **Weaker:** {markup.prose(row['reason'])}: {markup.prose(wording.listed(row['subjects'], 10))}"
            for row in record.get("weaker", ())
        ),
        f"- **Judged on:** tree `{quantities.short(record.get('tree'))}`",
    ]


def _evidence_of(record: Record, kind: re.Pattern[str]) -> list[evidence_table.Recorded]:
    """Return the evidence of one kind, by its subject."""
    return [row for row in record.get("evidence", ()) if kind.match(row["subject"])]


def _of_phase(contract: Contract, record: Record) -> list[evidence_table.Recorded]:
    """Return the evidence of success criteria."""
    others = {row["subject"] for kind in (_INVARIANT, _TEST) for row in _evidence_of(record, kind)}
    others |= {row["subject"] for row in _run_again(contract, record)}
    return [row for row in record.get("evidence", ()) if row["subject"] not in others]


def _run_again(contract: Contract, record: Record) -> list[evidence_table.Recorded]:
    """Return the evidence of the completed tasks' own checks on the final tree."""
    evidence = record.get("evidence", ())
    named = [row for row in evidence if row["subject"].partition(" ")[0] in contract.tasks]
    return [row for row in named if not _TEST.match(row["subject"])]


def _criteria(evidence: Sequence[evidence_table.Recorded]) -> list[str]:
    if not evidence:
        return ["None declared."]
    return markup.table(
        ("What", "Standing", "Evidence"),
        (
            (f"{markup.prose(row['subject'])}: {markup.prose(row['text'])}", _standing(row), _shown(row))
            for row in evidence
        ),
    )


def _standing(row: evidence_table.Recorded) -> str:
    return _STANDING.get(row["result"], "disproven")


def _shown(row: evidence_table.Recorded) -> str:
    if not row.get("command") and not row.get("output"):
        return "none"
    if _says_its_result(row):
        return evidence_table.how(row)
    code = "" if row.get("exit_code") is None else f", exit {row['exit_code']}"
    return f"{evidence_table.how(row)} {evidence_table.result_words(row['result'])}{code}"


def _says_its_result(row: evidence_table.Recorded) -> bool:
    """Return whether the text is words instead of a command, such as `ann answered yes`; the standing repeats them."""
    words = not row.get("command") and row.get("exit_code") is None
    return words and row["result"] in (proof.PASSED, proof.FAILED)


def _requirements(record: Record) -> list[str]:
    """Return each requirement with the tasks that cover it, and how their criteria are proven."""
    if not record.get("requirements"):
        return ["None declared."]
    return markup.table(
        ("Requirement", "Met", "Tasks and their criteria"),
        (
            (
                markup.prose(f"{row['id']}: {row['text']}" if row["text"] else row["id"]),
                "yes" if row["met"] else "no",
                "<br>".join(_serving(task) for task in row["tasks"]) or "no task covers it",
            )
            for row in record["requirements"]
        ),
    )


def _serving(task: Mapping[str, Any]) -> str:
    criteria = ", ".join(f"{criterion} {proof_kind}" for criterion, proof_kind in task["proofs"].items())
    return f"{markup.prose(task['id'])} ({task['status']}): {markup.prose(criteria) or 'no criterion'}"


def _task_criteria(contract: Contract, record: Record) -> list[str]:
    rows = [row for task_id in contract.order for row in _rows_of(contract.tasks[task_id], record)]
    return markup.table(("Task", "Criterion", "Proof", "Task is"), rows) if rows else ["None declared."]


def _rows_of(task: Task, record: Record) -> list[tuple[str, ...]]:
    proofs = {f"{task.id}/{id}": proof for id, proof in contracts.proofs(task).items()}
    proofs |= {name: f"replaced by {by}" for name, by in record.get("replaced", {}).items()}
    id, status = markup.prose(task.id), _task_is(task, record)
    named = ((f"{markup.prose(c.id)}: {markup.prose(c.text)}", proofs[f"{task.id}/{c.id}"]) for c in task.acceptance)
    return [(id, criterion, proof, status) for criterion, proof in named]


def _task_is(task: Task, record: Record) -> str:
    """Return the status of a task: skipped, unfinished, accepted or completed."""
    if task.id in record.get("skipped", ()):
        return "skipped"
    if task.id in record.get("unfinished", {}):
        return str(record["unfinished"][task.id])
    why = record.get("accepted", {}).get(task.id)
    return "completed" if why is None else f"accepted by a person: {markup.prose(why)}"


def _weak(contract: Contract, record: Record) -> list[str]:
    lines = [f"- {markup.prose(text)}: unproven" for text in record.get("unproven", ())]
    lines += [f"- {markup.prose(text)}: opinion only" for text in record.get("opinions", ())]
    words = {UNPROVEN: "unproven", OPINION: "opinion only"}
    for task_id in contract.order:
        for criterion, kind in contracts.proofs(contract.tasks[task_id]).items():
            if kind in words:
                lines.append(f"- {markup.prose(task_id)} {markup.prose(criterion)}: {words[kind]}")
    lines += [
        f"- {markup.prose(task)}: accepted by a person: {markup.prose(why)}"
        for task, why in record.get("accepted", {}).items()
    ]
    return lines or ["None."]


def _agents(record: Record) -> list[str]:
    """Return the opinions of verifier and skeptic, with citations that do not exist marked."""
    lines = ["Opinions never make a check pass. A refutation counts if it cites a line that exists.", ""]
    for opinion in record["judged_by"]:
        who = f"{opinion['role']} ({markup.prose(opinion['binding'])})"
        if opinion["verdict"] is None:
            lines.append(f"- **{who}:** no opinion: {markup.prose(opinion['failure'])}")
            continue
        lines.append(f"- **{who}:** {opinion['verdict']}")
        lines += [f"  - {_judged(judgement)}" for judgement in opinion["judgements"]]
    return lines


def _refuted(record: Record) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for opinion in record.get("judged_by", ()):
        for judgement in opinion["judgements"]:
            if not judgement["holds"] and any(c["resolves"] for c in judgement["citations"]):
                yield opinion["role"], judgement


def _judged(row: Mapping[str, Any]) -> str:
    cited = ", ".join(
        markup.code(f"{c['file']}:{c['line']}") + ("" if c["resolves"] else " (does not exist)")
        for c in row["citations"]
    )
    word = "holds" if row["holds"] else "does not hold"
    return f"{markup.prose(row['criterion'])} {word}: {markup.prose(row['why'])} [{cited or 'nothing cited'}]"


def _speaks(record: Record) -> str:
    weak = record["status"] == "partial" and record.get("decision") is None
    return "nothing proves the work." if weak else "only the tasks' own checks prove the work."


def _gaps(contract: Contract, record: Record) -> list[str]:
    lines = [
        f"- {markup.prose(row['subject'])}: {_standing(row)}: {markup.prose(row['text'])}"
        for row in record.get("evidence", ())
        if row["result"] not in {proof.PASSED, proof.OPINION}
    ]
    lines += [f"- {markup.prose(text)}" for text in record.get("mismatches", ())]
    lines += [f"- Refuted by the {who}: {_judged(judgement)}" for who, judgement in _refuted(record)]
    lines += [f"- {markup.prose(t)} is not done: {s}" for t, s in record.get("unfinished", {}).items()]
    lines += [f"- {markup.prose(task)} was accepted by a person, not proven" for task in record.get("accepted", {})]
    lines += [f"- {markup.prose(task)} was skipped" for task in record.get("skipped", ())]
    lines += [f"- {markup.prose(r['id'])} is not met" for r in record.get("requirements", ()) if not r["met"]]
    if not record.get("evidence"):
        lines.append(f"- The plan declares no success criterion, invariant or test: {_speaks(record)}")
    if not lines:
        return ["None."]
    return [*lines, "", f"After you close them: `idumb verify-work {contract.phase}`"]
