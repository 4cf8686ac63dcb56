"""Findings about the commands that prove tasks (R-LOCK-1, R-RUN-3)."""

from __future__ import annotations

from idumb.domain.plans.plan import Criterion, Invariant, Span
from tests.support.intake import findings_of, plan, task

CODE = "check.hidden-failure"


def proven_by(command: str) -> tuple[Criterion, ...]:
    return (Criterion("AC-1", "the tests pass", "check", command, span=Span(0, 1, 12)),)


def test_a_check_that_hides_a_failure_is_named_with_the_fix() -> None:
    (finding,) = findings_of(plan(task(acceptance=proven_by("pytest 2>&1 | tee log"))))
    assert (finding.code, finding.severity, finding.line, finding.field) == (CODE, "warning", 12, "acceptance")
    assert finding.message == (
        "T1-01: a check passes even if `pytest` fails: a pipe has the exit code of its last program (tee log)."
    )
    assert finding.mend.startswith("Omit `| tee log`")


def test_every_command_that_proves_something_is_read() -> None:
    hiding = "npm test || true"
    plans = (
        plan(task(acceptance=(), verify=(hiding,))),
        plan(invariants=(Invariant("INV-1", "it works", hiding),)),
        plan(success_criteria=proven_by(hiding)),
    )
    fields = {finding.field for one in plans for finding in findings_of(one, mode="strict") if finding.code == CODE}
    assert fields == {"verify", "invariants", "success_criteria"}


def test_pipefail_in_sh_is_explained() -> None:
    (finding,) = findings_of(plan(task(acceptance=proven_by("set -o pipefail; pytest | tee log"))))
    assert "dash stops there" in finding.message
    assert "bash -o pipefail -c" in finding.mend
