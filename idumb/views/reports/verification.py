"""`{phase}-VERIFICATION.md`: what is proven by which evidence, and what is not.

Opinions and unproven criteria are shown as such and never count as proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import OPINION, UNPROVEN
from idumb.domain.proof import evidence as proof
from idumb.domain.runs.run import RunState
from idumb.views import markup
from idumb.views.reports import evidence_table, rendering
from idumb.views.reports.evidence_table import Recorded

Record = Mapping[str, Any]
"""The payload of `verification.recorded`: status, reason, tree, evidence, weaker, requirements, goals, mismatches,
unproven, opinions, skipped, accepted."""

UNVERIFIED = "unverified"
_INVARIANT = re.compile(r"(plan \S+ )?invariant ")
_TEST = re.compile(r"T\S+ test \d+")
_STANDING = {
    proof.PASSED: "proven",
    proof.WAITING: "waits for a person",
    proof.OPINION: "opinion only",
    proof.UNPROVEN: "unproven",
}
_WEAK = {UNPROVEN: "unproven", OPINION: "opinion only"}


def render(contract: Contract, record: Record, *, now: str) -> str:
    """Return the document."""
    evidence = record.get("evidence", ())
    tests = [row for row in evidence if _TEST.match(row["subject"])]
    invariants = [row for row in evidence if _INVARIANT.match(row["subject"])]
    again = [row for row in evidence if row["subject"].partition(" ")[0] in contract.tasks and row not in tests]
    others = [*tests, *invariants, *again]
    return rendering.render(
        "verification.md",
        fields=_front_matter(contract, record, now),
        phase=contract.phase,
        record={"goals": {}, "reason": "", "tree": None, **record},
        of_phase=[row for row in evidence if row not in others],
        run_again=again,
        invariants=invariants,
        tests=tests,
        standing=_standing,
        shown=_shown,
        serving=_serving,
        task_criteria=list(_task_criteria(contract, record)),
        weak=list(_weak(contract, record)),
        gaps=list(_gaps(record)),
        refuted=list(_refuted(record)),
    )


def render_unverified(contract: Contract, state: RunState, *, now: str) -> str:
    """Return the document of a phase that is no longer verified; earlier results are in the file's history."""
    reason = state.reason or "tasks were rolled back after the verification"
    lines = [*markup.frontmatter(_front_matter(contract, {"status": UNVERIFIED}, now)), ""]
    lines += [f"# Phase {markup.prose(contract.phase)} Verification", ""]
    return "\n".join([*lines, f"- **Verdict:** {UNVERIFIED} ({markup.prose(reason)})", ""])


def _front_matter(contract: Contract, record: Record, now: str) -> dict[str, markup.Scalar]:
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


def _standing(row: Recorded) -> str:
    return _STANDING.get(row["result"], "disproven")


def _shown(row: Recorded) -> rendering.Markdown:
    """Return how a criterion was judged, and the result unless the words say it, such as `ann answered yes`."""
    if not row.get("command") and not row.get("output"):
        return rendering.Markdown("none")
    how = evidence_table.how(row)
    code = row.get("exit_code")
    if not row.get("command") and code is None and row["result"] in (proof.PASSED, proof.FAILED):
        return rendering.Markdown(how)
    exit_code = "" if code is None else f", exit {code}"
    return rendering.Markdown(f"{how} {evidence_table.result_words(row['result'])}{exit_code}")


def _serving(requirement: Record) -> rendering.Markdown:
    """Return the tasks that cover a requirement, and how their criteria are proven."""
    tasks = (
        f"{markup.prose(task['id'])} ({task['status']}): "
        + (markup.prose(", ".join(f"{name} {kind}" for name, kind in task["proofs"].items())) or "no criterion")
        for task in requirement["tasks"]
    )
    return rendering.Markdown("<br>".join(tasks) or "no task covers it")


def _task_criteria(contract: Contract, record: Record) -> Iterator[tuple[str, ...]]:
    replaced = record.get("replaced", {})
    for task in (contract.tasks[id] for id in contract.order):
        proofs = contracts.proofs(task)
        for criterion in task.acceptance:
            by = replaced.get(f"{task.id}/{criterion.id}")
            kind = proofs[criterion.id] if by is None else f"replaced by {by}"
            yield task.id, f"{criterion.id}: {criterion.text}", kind, _task_is(task.id, record)


def _task_is(task: str, record: Record) -> str:
    """Return the status of a task: omitted, skipped, unfinished, accepted or completed."""
    if task in record.get("omitted", {}):
        return str(record["omitted"][task])
    if task in record.get("skipped", ()):
        return "skipped"
    if task in record.get("unfinished", {}):
        return str(record["unfinished"][task])
    why = record.get("accepted", {}).get(task)
    return "completed" if why is None else f"accepted by a person: {why}"


def _weak(contract: Contract, record: Record) -> Iterator[str]:
    yield from (f"{text}: unproven" for text in record.get("unproven", ()))
    yield from (f"{text}: opinion only" for text in record.get("opinions", ()))
    for task in (id for id in contract.order if id not in record.get("omitted", {})):
        proofs = contracts.proofs(contract.tasks[task]).items()
        yield from (f"{task} {criterion}: {_WEAK[kind]}" for criterion, kind in proofs if kind in _WEAK)
    yield from (f"{task}: accepted by a person: {why}" for task, why in record.get("accepted", {}).items())


def _refuted(record: Record) -> Iterator[tuple[str, Record]]:
    for opinion in record.get("judged_by", ()):
        for judgement in opinion["judgements"]:
            if not judgement["holds"] and any(c["resolves"] for c in judgement["citations"]):
                yield opinion["role"], judgement


def _gaps(record: Record) -> Iterator[str]:
    for row in record.get("evidence", ()):
        if row["result"] not in {proof.PASSED, proof.OPINION}:
            yield f"{row['subject']}: {_standing(row)}: {row['text']}"
    yield from record.get("mismatches", ())
    yield from (f"{task} is not done: {status}" for task, status in record.get("unfinished", {}).items())
    yield from (f"{task} was accepted by a person, not proven" for task in record.get("accepted", {}))
    yield from (f"{task} was skipped" for task in record.get("skipped", ()))
    yield from (f"{row['id']} is not met" for row in record.get("requirements", ()) if not row["met"])
    if not record.get("evidence"):
        weak = record["status"] == "partial" and record.get("decision") is None
        alone = "nothing proves the work." if weak else "only the tasks' own checks prove the work."
        yield f"The plan declares no success criterion, invariant or test: {alone}"
