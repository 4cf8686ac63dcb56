"""The gate `size`: a change stays within the limits of its task, or of its plan."""

from __future__ import annotations

from collections.abc import Sequence

from idumb.domain import paths, wording
from idumb.domain.plans.plan import Limits
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.gate import Inputs, Judged, LineCounts
from idumb.domain.proof.ledger import Change


def judge(inputs: Inputs) -> Judged | None:
    """Return one evidence per limit. Binary files count as files but not as lines."""
    limits = inputs.task.limits or inputs.plan.limits
    proofs = () if limits is None else check(limits, inputs.changes, inputs.line_counts())
    return Judged(proofs=proofs) if proofs else None


def check(limits: Limits, changes: Sequence[Change], line_counts: LineCounts) -> tuple[Evidence, ...]:
    """Return one evidence per declared limit."""
    proofs: list[Evidence] = []
    if limits.files is not None:
        proofs.append(_at_most("limit files", "files", len(changes), limits.files))
    if limits.lines is not None:
        proofs.append(_at_most("limit lines", "lines", changed_lines(changes, line_counts), limits.lines))
    if limits.paths:
        proofs.append(_inside(limits.paths, changes))
    return tuple(proofs)


def changed_lines(changes: Sequence[Change], line_counts: LineCounts) -> int:
    """Return the number of lines added and removed in the changed files."""
    counted = (line_counts.get(change.path, (None, None)) for change in changes)
    return sum((added or 0) + (removed or 0) for added, removed in counted)


def _at_most(subject: str, unit: str, count: int, allowed: int) -> Evidence:
    result = evidence.PASSED if count <= allowed else evidence.FAILED
    return Evidence(subject, f"at most {allowed} {unit} change", result, output=f"{count} {unit} changed")


def _inside(allowed: Sequence[str], changes: Sequence[Change]) -> Evidence:
    strays = [change.path for change in changes if not paths.matches_any(change.path, allowed)]
    return Evidence(
        "limit paths",
        f"only {', '.join(allowed)} may change",
        evidence.FAILED if strays else evidence.PASSED,
        output=f"outside: {wording.listed(strays)}" if strays else f"all {len(changes)} changed paths are allowed",
    )
