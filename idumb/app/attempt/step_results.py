"""Proof by steps: the bytes that a step was to leave, held against the frozen tree, and the step's own result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from idumb.app.core.run_context import Attempt, Bench
from idumb.domain.agent import StepRecord
from idumb.domain.plans.plan import STEPS, Criterion, Step
from idumb.domain.proof import evidence
from idumb.domain.proof.evidence import Evidence

_EXECUTABLE = 0o100755
_SHOWN = 4000


def judge(bench: Bench, attempt: Attempt) -> Iterator[Evidence]:
    """Evidence for each criterion that the task's steps prove, made from what the steps agent did in this attempt."""
    wanted = [c for c in attempt.task.acceptance if c.proof == STEPS]
    records = {record.index: record for record in (attempt.result.steps if attempt.result else ())}
    for criterion in wanted:
        for step in attempt.task.steps:
            yield _of_step(bench, attempt, criterion, step, records.get(step.index))


def bytes_again(bench: Bench, attempt: Attempt, tree: str) -> Iterator[Evidence]:
    """The files of the steps once more, on another tree, where something changed them after they were proven."""
    if any(e.result == evidence.TOLERATED for e in attempt.evidence):
        return
    later = dataclasses.replace(attempt, candidate=tree)
    for criterion in (c for c in attempt.task.acceptance if c.proof == STEPS):
        for step in attempt.task.steps:
            wrong = _wrong_bytes(bench, later, step)
            result, words = (evidence.FAILED, f": {wrong}") if wrong else (evidence.PASSED, "")
            yield Evidence(criterion.id, f"{criterion.text}{words}", result, tree=tree)


def _of_step(bench: Bench, attempt: Attempt, criterion: Criterion, step: Step, record: StepRecord | None) -> Evidence:
    result, words = _result(bench, attempt, step, record)
    return Evidence(
        criterion.id,
        f"{criterion.text}{': ' if words else ''}{words}",
        result,
        command=_command(step),
        output=record.response[:_SHOWN] if record else "",
        tree=attempt.candidate,
        seconds=record.seconds if record else 0.0,
    )


def _result(bench: Bench, attempt: Attempt, step: Step, record: StepRecord | None) -> tuple[str, str]:
    if record is None:
        return evidence.FAILED, "the step was not made"
    if not record.ok and step.continue_on_error:
        return evidence.TOLERATED, f"it failed ({record.words or record.response}), and the plan says to go on"
    if not record.ok:
        return evidence.FAILED, record.words or record.response
    wrong = _wrong_bytes(bench, attempt, step)
    return (evidence.FAILED, wrong) if wrong else (evidence.PASSED, "")


def _wrong_bytes(bench: Bench, attempt: Attempt, step: Step) -> str:
    """What of the step's files is not as it was to leave them; "" when all is."""
    from idumb.domain.proof import step_proof

    def before(path: str) -> bytes | None:
        entry = bench.work.entry(attempt.base, path)
        return None if entry is None else bench.work.read(entry.oid)

    for path, wanted in step_proof.expected(step, before).items():
        entry = bench.work.entry(attempt.candidate or attempt.base, path)
        if (entry is None) != (wanted.data is None):
            return f"{path} is {'missing' if entry is None else 'still there'}"
        if entry is None or wanted.data is None:
            continue
        if bench.work.read(entry.oid) != wanted.data:
            return f"{path} does not hold the bytes that the step was to leave"
        if wanted.executable is not None and (entry.mode == _EXECUTABLE) != wanted.executable:
            return f"{path} has another mode than the step gives"
    return ""


def _command(step: Step) -> str | None:
    if step.tool != "run":
        return None
    return str(step.arguments.get("command") or " ".join(map(str, step.arguments.get("argv", ()))))
