"""Proofs of a task: which checks must hold, what people must answer, and the verdict that follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from idumb.app.ports.checks import Checks
from idumb.app.ports.ownership import Interrupts
from idumb.app.worktree import exposed_secrets
from idumb.domain import agent, contract, listing, outcome
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.plans.plan import CHANGED, CHECK, HUMAN, OPINION, UNPROVEN, Criterion, Plan, Task
from idumb.domain.proof import evidence, ledger, levels
from idumb.domain.proof.evidence import Evidence
from idumb.domain.proof.validation import Shown
from idumb.domain.settings import Settings

YES = "yes"
NO = "no"
DONE = "done"
NOT_DONE = "not-done"
RETRY = "retry"
SKIP = "skip"
FAIL = "fail"
FAILURE = ".failure."
FAILURE_KIND = "failure"
BROKEN = frozenset({evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT})
_AGREES = frozenset({YES, DONE})
_REFUSES = frozenset({NO, NOT_DONE})


def before(checks: Checks, task: Task, settings: Settings, tree: str, *, first: bool) -> tuple[Evidence, ...]:
    """Preconditions; on the first attempt also tests that must fail, or pass, before the work."""
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
    """A test that is to fail has proven its point by failing; an error or a timeout proves nothing."""
    if wanted == "passes" or found.result not in (evidence.PASSED, evidence.FAILED):
        return found
    turned = evidence.FAILED if found.passed else evidence.PASSED
    return dataclasses.replace(found, result=turned, text=f"{found.text} (must fail before the work)")


def after(
    checks: Checks,
    task: Task,
    plan: Plan,
    settings: Settings,
    tree: str | None,
    interrupts: Interrupts,
) -> Iterator[Evidence]:
    """Criteria, Verify, tests, postconditions and invariants, each run once on the frozen candidate."""
    limit = float(settings.run.check_timeout)
    effective = contract.proofs(task)
    for criterion in task.acceptance:
        interrupts.check()
        with interrupts.armed():
            yield from _of_criterion(checks, criterion, effective[criterion.id], limit, tree)
    commands = [("verify", f"verify {i}", c, c) for i, c in enumerate(task.verify, 1)]
    commands += [("test", f"test {i} after", t.intent or t.command, t.command) for i, t in enumerate(task.tests, 1)]
    wanted = None if task.invariants is None else set(task.invariants)
    commands += [
        ("invariant", f"invariant {i.id}", i.text, i.check) for i in plan.invariants if wanted is None or i.id in wanted
    ]
    for _, subject, text, command in commands:
        interrupts.check()
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


def of_ledger(task: Task, found: ledger.Ledger, tree: str | None) -> tuple[Evidence, ...]:
    """Criteria that say no more than that the task did something: proven by any change that it declares."""
    made = [line.path for line in found.lines if line.actual is not None and line.status == ledger.DECLARED]
    result, words = (
        (evidence.PASSED, listing.listed(made, 20)) if made else (evidence.FAILED, "no declared file changed")
    )
    wanted = (c for c in task.acceptance if c.proof == CHANGED)
    return tuple(Evidence(c.id, c.text, result, output=words, tree=tree) for c in wanted)


def validator_subject(name: str) -> str:
    return f"validator {name}"


def of_validator(
    name: str,
    result: agent.AgentResult,
    tree: str | None,
    *,
    waits: bool,
    shown: tuple[Shown, ...] = (),
    malformed: str = "",
) -> Evidence:
    """A validator's verdict as evidence. Only a PASS that shows something proves anything; a bare one is an opinion.

    `waits` is whether the work stays there until the verdict comes; else it had to come in the time that there was.
    `malformed` says why the answer cannot be used.
    """
    words = {
        outcome.COMPLETED: evidence.PASSED if shown else evidence.OPINION,
        outcome.TIMED_OUT: evidence.TIMED_OUT,
        outcome.ERRORED: evidence.ERRORED,
        outcome.WAITING: evidence.WAITING if waits else evidence.TIMED_OUT,
    }.get(result.outcome, evidence.FAILED)
    said = listing.listed(one.words for one in shown) or ("PASS without evidence" if words == evidence.OPINION else "")
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


def questions(task: Task, attempt: int, changes: Sequence[ledger.Change]) -> tuple[Decision, ...]:
    """One question for each criterion that a person proves. Human kinds are one question as a whole."""
    if task.is_human:
        return ()
    shown = tuple(f"{c.kind} {c.path}" for c in changes[:20])
    return tuple(
        Decision(
            id=f"{task.id}.{criterion.id}.{attempt}",
            kind="criterion",
            task=task.id,
            what=f"{task.id} {criterion.id}: {criterion.text}",
            why="The plan says that a person judges this criterion.",
            evidence=(*criterion.instructions, *shown),
            choices=(
                Choice(YES, "it holds", "the criterion counts as proven by you"),
                Choice(NO, "it does not hold", "the attempt fails"),
            ),
        )
        for criterion in task.acceptance
        if criterion.proof == HUMAN
    )


def validator_question(
    task: Task,
    attempt: int,
    changes: Sequence[ledger.Change],
    why: str = "The plan says that a person validates this task.",
    said: str = "",
) -> Decision:
    """Asked where the validator is a person, or where one that is none proves nothing: `why`, and what it `said`."""
    told = (said,) if said else ()
    return Decision(
        id=f"{task.id}.validator.{attempt}",
        kind="criterion",
        task=task.id,
        what=f"{task.id}: {task.title}",
        why=why,
        evidence=(*told, *(c.text for c in task.acceptance), *(f"{c.kind} {c.path}" for c in changes[:20])),
        choices=(
            Choice(YES, "it is good", "the task counts as validated by you"),
            Choice(NO, "it is not", "the attempt fails"),
        ),
    )


def work_question(task: Task) -> Decision:
    """The question that a task for a person is."""
    if task.kind == "decision" and task.options:
        choices = tuple(Choice(o.id, o.text, f"the record says {o.id}") for o in task.options)
    elif task.kind == "human-verify":
        choices = (
            Choice(YES, "it is as it should be", "the task is complete"),
            Choice(NO, "it is not", "the task fails and what depends on it is blocked"),
        )
    else:
        choices = (
            Choice(DONE, "it is done", "idumb goes on to the task's checks"),
            Choice(NOT_DONE, "it cannot be done", "the task fails and what depends on it is blocked"),
        )
    steps = tuple(line for c in task.acceptance for line in (c.text, *c.instructions))
    return Decision(
        id=f"{task.id}.work",
        kind=task.kind if task.is_human else "human-action",
        task=task.id,
        what=f"{task.id}: {task.title}",
        why=task.description or "The plan leaves this task to a person.",
        evidence=steps,
        choices=choices,
    )


def failure_question(task: Task, attempt: int, reason: str) -> Decision:
    """Asked of tasks that say `On failure: ask`."""
    return Decision(
        id=f"{task.id}{FAILURE}{attempt}",
        kind=FAILURE_KIND,
        task=task.id,
        what=f"{task.id} {task.title} failed",
        why="The plan says that a person decides what happens then.",
        evidence=tuple(reason.splitlines()[:20]),
        choices=(
            Choice(RETRY, "try it again", "the next attempt starts with this one's feedback"),
            Choice(SKIP, "leave it out", "what depends on it stays blocked"),
            Choice(FAIL, "leave it failed", "what depends on it is blocked, independent tasks go on"),
        ),
    )


def deviation_question(task: Task, strays: Sequence[str]) -> Decision:
    return Decision(
        id=f"{task.id}.deviation",
        kind="deviation",
        task=task.id,
        what=f"{task.id} changed files it does not declare",
        why="They may be the builder's or your own; idumb cannot tell and reverts nothing.",
        evidence=tuple(strays),
        choices=(
            Choice("accept", "they belong to the task", "they are checked and committed with it"),
            Choice("halt", "stop here", "the run halts, everything is kept, and you look at them first"),
        ),
    )


def of_answers(asked: Iterable[Decision], answers: Iterable[Answer], tree: str | None) -> tuple[Evidence, ...]:
    """People's answers as evidence; a question without one waits."""
    given = {answer.decision: answer for answer in answers}
    return tuple(_of_answer(question, given.get(question.id), tree) for question in asked)


def _of_answer(question: Decision, answer: Answer | None, tree: str | None) -> Evidence:
    subject = question.id.split(".")[1] if "." in question.id else question.id
    if answer is None:
        return Evidence(subject, question.what, evidence.WAITING, tree=tree)
    result = evidence.FAILED if answer.choice in _REFUSES else evidence.PASSED
    said = f"{answer.by} answered {answer.choice}" + (f": {answer.guidance}" if answer.guidance else "")
    if question.kind == exposed_secrets.SECRET and result == evidence.FAILED:
        said = f"{said}; {exposed_secrets.WITHOUT_SECRET}"
    return Evidence(subject, question.what, result, output=said, tree=tree)


def verdict(found: ledger.Ledger, proofs: Sequence[Evidence]) -> tuple[str, str]:
    """(PASS, PARTIAL, FAIL or waiting, why). PASS needs a ledger that holds and at least one real proof.

    What is informational neither proves nor blocks.
    """
    wrong = [line for line in found.lines if line.status != ledger.DECLARED]
    words = [_ledger_words(line) for line in wrong] + [s.words for s in found.symbols if not s.holds]
    if words:
        return outcome.FAIL, listing.listed(words, between="; ")
    proofs = [e for e in proofs if e.level > levels.INFORMATIONAL]
    failed = [e for e in proofs if e.result in BROKEN]
    tolerated = [e for e in proofs if e.result == evidence.TOLERATED]
    passed = [e for e in proofs if e.passed and not _proves_nothing(e.subject)] + tolerated
    if failed:
        names = listing.listed(f"{e.subject} {e.result}" for e in failed)
        return (outcome.PARTIAL if passed else outcome.FAIL), names
    if any(e.result == evidence.WAITING for e in proofs):
        return evidence.WAITING, "waits for a person"
    if not passed:
        return outcome.FAIL, "nothing proves this task"
    return outcome.PASS, listing.listed((e.text for e in tolerated), between="; ")


def proves(found: Iterable[Evidence]) -> bool:
    """Whether something of this proves the work, however little."""
    real = (e for e in found if e.level > levels.INFORMATIONAL and not _proves_nothing(e.subject))
    return any(e.passed or e.result == evidence.TOLERATED for e in real)


def _proves_nothing(subject: str) -> bool:
    """Evidence made before the work, of how large it is, and of what may be committed, says nothing of the work."""
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
    """What the next attempt is told: the reason, the ledger's complaints, and the end of each failed check."""
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
