"""Evidence of an attempt: its checks, steps and validator, the verdict that follows, and the feedback."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from idumb.app.core.run_context import Measured, RunContext
from idumb.app.ports.checks import Checks
from idumb.app.ports.ownership import Interrupts
from idumb.app.worktree import (
    exposed_secrets,
)
from idumb.domain import agent, contract, outcome, wording
from idumb.domain.agent import StepRecord
from idumb.domain.plans.plan import CHANGED, CHECK, OPINION, STEPS, UNPROVEN, Criterion, Plan, Step, Task
from idumb.domain.proof import evidence, ledger, levels
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.validation import ValidatorEvidence
from idumb.domain.settings import Settings

BROKEN = frozenset({evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT})


def check_before(checks: Checks, task: Task, settings: Settings, tree: str, *, first: bool) -> tuple[Evidence, ...]:
    """Check preconditions and, on the first attempt, tests that must fail or pass before the work."""
    limit = float(settings.run.check_timeout)
    found = [
        checks.condition(f"precondition {i}", condition, timeout=limit, tree=tree)
        for i, condition in enumerate(task.preconditions, 1)
    ]
    for i, test in enumerate(task.tests, 1):
        if first:
            made = checks.command(
                f"test {i} before", test.intent or test.command, test.command, timeout=limit, tree=tree
            )
            found.append(_expected(made, test.before))
    return tuple(found)


def _expected(found: Evidence, wanted: str) -> Evidence:
    """Return the evidence inverted if the test must fail. An error or a timeout proves nothing."""
    if wanted == "passes" or found.result not in (evidence.PASSED, evidence.FAILED):
        return found
    turned = evidence.FAILED if found.passed else evidence.PASSED
    return dataclasses.replace(found, result=turned, text=f"{found.text} (must fail before the work)")


def check_after(
    checks: Checks,
    task: Task,
    plan: Plan,
    settings: Settings,
    tree: str | None,
    interrupts: Interrupts,
) -> Iterator[Evidence]:
    """Run criteria, Verify, tests, postconditions and invariants, each once, on the frozen files."""
    limit = float(settings.run.check_timeout)
    effective = contract.proofs(task)
    for criterion in task.acceptance:
        with interrupts.armed():
            yield from _of_criterion(checks, criterion, effective[criterion.id], limit, tree)
    commands = [("verify", f"verify {i}", c, c) for i, c in enumerate(task.verify, 1)]
    commands += [("test", f"test {i} after", t.intent or t.command, t.command) for i, t in enumerate(task.tests, 1)]
    wanted = None if task.invariants is None else set(task.invariants)
    commands += [
        ("invariant", f"invariant {i.id}", i.text, i.check) for i in plan.invariants if wanted is None or i.id in wanted
    ]
    for _, subject, text, command in commands:
        with interrupts.armed():
            yield checks.command(subject, text, command, timeout=limit, tree=tree)
    for i, condition in enumerate(task.postconditions, 1):
        with interrupts.armed():
            yield checks.condition(f"postcondition {i}", condition, timeout=limit, tree=tree)


def _of_criterion(
    checks: Checks, criterion: Criterion, proof: str, limit: float, tree: str | None
) -> Iterator[Evidence]:
    if proof == CHECK and criterion.command:
        yield checks.command(criterion.id, criterion.text, criterion.command, timeout=limit, tree=tree)
    elif proof == OPINION:
        yield Evidence(criterion.id, criterion.text, evidence.OPINION, tree=tree)
    elif proof == UNPROVEN:
        yield Evidence(criterion.id, criterion.text, evidence.UNPROVEN, tree=tree)


def change_evidence(task: Task, found: ledger.Ledger, tree: str | None) -> tuple[Evidence, ...]:
    """Return evidence for criteria that ask only for some change: any declared change proves them."""
    criteria = [c for c in task.acceptance if c.proof == CHANGED]
    if not criteria:
        return ()
    made = [line.path for line in found.lines if line.actual is not None and line.status == ledger.DECLARED]
    result, words = (
        (evidence.PASSED, wording.listed(made, 20)) if made else (evidence.FAILED, "no declared file changed")
    )
    return tuple(Evidence(c.id, c.text, result, output=words, tree=tree) for c in criteria)


def validator_subject(name: str) -> str:
    return f"validator {name}"


def validator_evidence(
    name: str,
    result: agent.AgentResult,
    tree: str | None,
    *,
    waits: bool,
    shown: tuple[ValidatorEvidence, ...] = (),
    malformed: str = "",
) -> Evidence:
    """Return a validator's verdict as evidence. A PASS without evidence is only an opinion.

    `waits` is whether the work stays in place until the verdict comes. `malformed` says why the answer cannot be used.
    """
    words = {
        outcome.COMPLETED: evidence.PASSED if shown else evidence.OPINION,
        outcome.TIMED_OUT: evidence.TIMED_OUT,
        outcome.ERRORED: evidence.ERRORED,
        outcome.WAITING: evidence.WAITING if waits else evidence.TIMED_OUT,
    }.get(result.outcome, evidence.FAILED)
    said = wording.listed(one.words for one in shown) or ("PASS without evidence" if words == evidence.OPINION else "")
    text = f"its answer cannot be used: {malformed}" if malformed else "; ".join(filter(None, (said, result.message)))
    return Evidence(
        validator_subject(name),
        text or validator_subject(name),
        evidence.UNPROVEN if malformed else words,
        exit_code=result.exit_code,
        output=result.output,
        output_sha256=result.output_sha256,
        truncated=result.truncated,
        tree=tree,
        seconds=result.seconds,
        cause=result.cause,
        shown=shown,
    )


def verdict(found: ledger.Ledger, proofs: Sequence[Evidence]) -> tuple[str, str]:
    """Return PASS, PARTIAL, FAIL or waiting, and why. PASS needs a ledger that holds and one real proof."""
    wrong = [line for line in found.lines if line.status != ledger.DECLARED]
    words = [_ledger_words(line) for line in wrong] + [s.words for s in found.symbols if not s.holds]
    if words:
        return outcome.FAIL, wording.listed(words, between="; ")
    proofs = [e for e in proofs if e.level > levels.INFORMATIONAL]
    failed = [e for e in proofs if e.result in BROKEN]
    tolerated = [e for e in proofs if e.result == evidence.TOLERATED]
    passed = [e for e in proofs if e.passed and not _proves_nothing(e.subject)] + tolerated
    if failed:
        names = wording.listed(f"{e.subject} {e.result}" for e in failed)
        return (outcome.PARTIAL if passed else outcome.FAIL), names
    if any(e.result == evidence.WAITING for e in proofs):
        return evidence.WAITING, "waits for a person"
    if not passed:
        return outcome.FAIL, "nothing proves this task"
    return outcome.PASS, wording.listed((e.text for e in tolerated), between="; ") if tolerated else ""


def proves(found: Iterable[Evidence]) -> bool:
    """Return whether some of this evidence proves the work."""
    real = (e for e in found if e.level > levels.INFORMATIONAL and not _proves_nothing(e.subject))
    return any(e.passed or e.result == evidence.TOLERATED for e in real)


def _proves_nothing(subject: str) -> bool:
    """Return whether evidence is only about the work's size or secrets, or about the state before it."""
    return (
        subject.startswith(("precondition", "limit "))
        or subject.endswith(" before")
        or subject == exposed_secrets.SECRET
    )


def _ledger_words(line: ledger.Line) -> str:
    if line.status == ledger.MISSING:
        return f"{line.path} was declared ({line.declared}) and did not change"
    if line.status == ledger.MISMATCH:
        return f"{line.path} was {line.actual}, declared {line.declared}"
    if line.within is not None:
        return f"{line.path} is in another repository, {line.within}, and was {line.actual}"
    if line.status == ledger.PROTECTED:
        return f"{line.path} is protected by {line.rule} and was {line.actual}"
    return f"{line.path} was {line.actual} and is not declared"


def feedback(reason: str, found: ledger.Ledger, proofs: Sequence[Evidence]) -> str:
    """Return what the next attempt learns: the reason, the ledger's complaints, and the end of each failed check."""
    lines = [reason] if reason else []
    lines += [_ledger_words(line) for line in found.lines if line.status != ledger.DECLARED]
    lines += [line.words for line in found.symbols if not line.holds]
    for e in proofs:
        if e.result in BROKEN:
            exit_words = "" if e.exit_code is None else f", exit {e.exit_code}"
            lines.append(f"{e.subject} ({e.text}): {e.result}{exit_words}")
            if e.command:
                lines.append(f"$ {e.command}")
            if e.output:
                lines.append(e.output[-2000:].rstrip())
    return "\n".join(dict.fromkeys(lines))


_EXECUTABLE = 0o100755


_MOST_OUTPUT = 4000


def step_evidence(context: RunContext, attempt: Measured) -> Iterator[Evidence]:
    """Return evidence for each criterion that steps prove: their results, and the bytes that they left."""
    wanted = [c for c in attempt.task.acceptance if c.proof == STEPS]
    records = {record.index: record for record in (attempt.result.steps if attempt.result else ())}
    for criterion in wanted:
        for step in attempt.task.steps:
            yield _of_step(context, attempt, criterion, step, records.get(step.index))


def step_evidence_again(context: RunContext, attempt: Measured, tree: str) -> Iterator[Evidence]:
    """Compare the files of the steps again, in another tree, after something changed them."""
    if any(e.result == evidence.TOLERATED for e in attempt.evidence):
        return
    later = dataclasses.replace(attempt, candidate=tree)
    for criterion in (c for c in attempt.task.acceptance if c.proof == STEPS):
        for step in attempt.task.steps:
            wrong = _wrong_bytes(context, later, step)
            result, words = (evidence.FAILED, f": {wrong}") if wrong else (evidence.PASSED, "")
            yield Evidence(criterion.id, f"{criterion.text}{words}", result, tree=tree)


def _of_step(
    context: RunContext, attempt: Measured, criterion: Criterion, step: Step, record: StepRecord | None
) -> Evidence:
    result, words = _step_result(context, attempt, step, record)
    return Evidence(
        criterion.id,
        f"{criterion.text}{': ' if words else ''}{words}",
        result,
        command=_step_command(step),
        output=record.response[:_MOST_OUTPUT] if record else "",
        tree=attempt.candidate,
        seconds=record.seconds if record else 0.0,
    )


def _step_result(context: RunContext, attempt: Measured, step: Step, record: StepRecord | None) -> tuple[str, str]:
    if record is None:
        return evidence.FAILED, "the step was not made"
    if not record.ok and step.continue_on_error:
        return evidence.TOLERATED, f"it failed ({record.words or record.response}), and the plan says to go on"
    if not record.ok:
        return evidence.FAILED, record.words or record.response
    wrong = _wrong_bytes(context, attempt, step)
    return (evidence.FAILED, wrong) if wrong else (evidence.PASSED, "")


def _wrong_bytes(context: RunContext, attempt: Measured, step: Step) -> str:
    """Return which of the step's files differs from what it must leave; "" if none does."""
    from idumb.domain.proof import step_proof

    def before(path: str) -> bytes | None:
        entry = context.work.entry(attempt.base, path)
        return None if entry is None else context.work.read(entry.oid)

    for path, wanted in step_proof.expected(step, before).items():
        entry = context.work.entry(attempt.candidate, path)
        if (entry is None) != (wanted.data is None):
            return f"{path} is {'missing' if entry is None else 'still there'}"
        if entry is None or wanted.data is None:
            continue
        if context.work.read(entry.oid) != wanted.data:
            return f"{path} does not hold the bytes that the step was to leave"
        if wanted.executable is not None and (entry.mode == _EXECUTABLE) != wanted.executable:
            return f"{path} has another mode than the step gives"
    return ""


def _step_command(step: Step) -> str | None:
    if step.tool != "run":
        return None
    return str(step.arguments.get("command") or " ".join(map(str, step.arguments.get("argv", ()))))


def evidence_payload(found: Evidence) -> dict[str, Any]:
    """Return the fields of `evidence.recorded`."""
    payload = dataclasses.asdict(found)
    payload["argv"] = list(found.argv)
    payload["seconds"] = round(found.seconds, 3)
    del payload["shown"]
    if found.shown:
        payload["shown"] = [one.as_dict() for one in found.shown]
    if found.level == levels.ADVISORY:
        del payload["level"]
    return payload
