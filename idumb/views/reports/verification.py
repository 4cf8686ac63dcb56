"""`{phase}-VERIFICATION.md`: what is proven by which evidence, and what is not.

Opinions and unproven criteria are shown as such and never count as proof. The template has the words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.plans.plan import OPINION, UNPROVEN
from idumb.domain.proof import evidence as proof
from idumb.domain.runs.run import RunState
from idumb.views.reports import rendering

Record = Mapping[str, Any]
"""The payload of `verification.recorded`: status, reason, tree, evidence, weaker, requirements, goals, mismatches,
unproven, opinions, skipped, accepted."""

UNVERIFIED = "unverified"
_ABSENT: Record = {"reason": "", "tree": "", "evidence": (), "omitted": {}, "unfinished": {}, "accepted": {}}
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
        contract=contract,
        now=now,
        record={**_ABSENT, **record},
        passed=sum(row["result"] == proof.PASSED for row in evidence),
        of_phase=[row for row in evidence if row not in others],
        run_again=again,
        invariants=invariants,
        tests=tests,
        standing=_STANDING,
        weak=_WEAK,
        tasks=[(contract.tasks[id], contracts.proofs(contract.tasks[id])) for id in contract.order],
        refuted=[
            (opinion["role"], judgement)
            for opinion in record.get("judged_by", ())
            for judgement in opinion["judgements"]
            if not judgement["holds"] and any(c["resolves"] for c in judgement["citations"])
        ],
    )


def render_unverified(contract: Contract, state: RunState, *, now: str) -> str:
    """Return the document of a phase that is no longer verified; earlier results are in the file's history."""
    reason = state.reason or "tasks were rolled back after the verification"
    return render(contract, {"status": UNVERIFIED, "reason": reason}, now=now)
