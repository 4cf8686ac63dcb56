"""Evidence of steps: their results, and the bytes that they left in the frozen tree."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.domain.agent import StepRecord
from idumb.domain.plans.plan import STEPS, Step
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence

_EXECUTABLE = 0o100755
_MOST_OUTPUT = 4000


def of_attempt(context: RunContext, attempt: Attempt) -> Iterator[Evidence]:
    """Return evidence for each criterion that the steps prove."""
    criteria = [c for c in attempt.task.acceptance if c.proof == STEPS]
    records = {record.index: record for record in (attempt.result.steps if attempt.result else ())}
    for criterion in criteria:
        for step in attempt.task.steps:
            record = records.get(step.index)
            result, words = _step_result(context, attempt, step, record)
            yield Evidence(
                criterion.id,
                f"{criterion.text}{': ' if words else ''}{words}",
                result,
                command=step.command if step.tool == "run" else None,
                output=record.response[:_MOST_OUTPUT] if record else "",
                tree=attempt.candidate,
                seconds=record.seconds if record else 0.0,
            )


def in_tree(context: RunContext, attempt: Attempt, tree: str) -> Iterator[Evidence]:
    """Return the evidence again, with the files of another tree, after something changed them."""
    if any(e.result == evidence.TOLERATED for e in attempt.evidence):
        return
    later = replace(attempt, candidate=tree)
    for criterion in (c for c in attempt.task.acceptance if c.proof == STEPS):
        for step in attempt.task.steps:
            wrong = _wrong_bytes(context, later, step)
            result, words = (evidence.FAILED, f": {wrong}") if wrong else (evidence.PASSED, "")
            yield Evidence(criterion.id, f"{criterion.text}{words}", result, tree=tree)


def _step_result(context: RunContext, attempt: Attempt, step: Step, record: StepRecord | None) -> tuple[str, str]:
    if record is None:
        return evidence.FAILED, "the step was not made"
    if not record.ok and step.continue_on_error:
        return evidence.TOLERATED, f"it failed ({record.words or record.response}), and the plan says to continue"
    if not record.ok:
        return evidence.FAILED, record.words or record.response
    wrong = _wrong_bytes(context, attempt, step)
    return (evidence.FAILED, wrong) if wrong else (evidence.PASSED, "")


def _wrong_bytes(context: RunContext, attempt: Attempt, step: Step) -> str:
    """Return which of the step's files differs from what it must leave; "" if none does."""
    from idumb.domain.plans import step_effects

    def before(path: str) -> bytes | None:
        entry = context.work.entry(context.workspace.raw(attempt.base, [path]), path)
        return None if entry is None else context.work.read(entry.oid)

    for path, expected in step_effects.expected(step, before).items():
        entry = context.work.entry(attempt.candidate, path)
        if (entry is None) != (expected.data is None):
            return f"{path} is {'missing' if entry is None else 'still there'}"
        if entry is None or expected.data is None:
            continue
        same = context.work.read(entry.oid) == expected.data
        if not same and entry.oid != context.workspace.cleaned(path, expected.data):
            return f"{path} does not have the bytes that the step must leave"
        if expected.executable is not None and (entry.mode == _EXECUTABLE) != expected.executable:
            return f"{path} does not have the mode that the step sets"
    return ""
