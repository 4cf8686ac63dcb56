"""Tasks that an old iDumb calls done: judged once on the files as they are, or put to a person. Nothing is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from idumb.app.attempt import handoff_writer, proofs, questions
from idumb.app.contract import legacy_claims
from idumb.app.core.run_context import Attempt, Bench
from idumb.domain import contract as contracts
from idumb.domain import outcome, paths
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.plans.plan import HUMAN, FileClaim, Task
from idumb.domain.proof import ledger
from idumb.domain.runs import legacy
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import ANSWERED
from idumb.domain.runs.task_state import TaskState

MARK = ".taken-over."
ACCEPT = "accept"
_CLAIMS = "taken over"


def claimed(bench: Bench, task: Task) -> bool:
    """Whether a task is judged as it is before anybody builds it: never again once it was built or is to be."""
    told = bench.watched.get(_CLAIMS)
    if told is None:
        told = bench.watched[_CLAIMS] = legacy_claims.claims(bench.services, bench.contract, bench.journal.state)
    return task.id in told and not legacy.is_to_be_built(bench.journal.state, task.id) and _is_there(bench, task)


def _is_there(bench: Bench, task: Task) -> bool:
    """Whether the declared files are as the task would leave them; where one is not, there is something to build."""
    claims = _literal(task)
    present = bench.work.scan([claim.path for claim in claims])
    return all((bench.work.entry(present, c.path) is None) == (c.verb == "delete") for c in claims)


def _literal(task: Task) -> list[FileClaim]:
    wanted = ledger.written_claims(task.files or ())
    return [c for c in wanted if c.verb != "change" and not paths.has_wildcard(c.path)]


def begin(bench: Bench, task: Task) -> Attempt:
    number = bench.journal.state.tasks[task.id].attempt.number + 1
    started = bench.services.clock.monotonic()
    return Attempt(task, bench.plans[task.id], number, "", "", started, adopted=True)


def judge(bench: Bench, attempt: Attempt) -> Attempt:
    """The task's own checks on the present tree, and its declared files, which are there."""
    services, task = bench.services, attempt.task
    lines = tuple(ledger.Line(c.path, ledger.DECLARED, None, c.verb) for c in _literal(task))
    attempt = dataclasses.replace(attempt, ledger=ledger.Ledger(lines))
    ran = list(
        proofs.check_after(bench.checks, task, attempt.plan, services.settings, attempt.candidate, services.interrupts)
    )
    found = [
        *ran,
        *proofs.step_evidence(bench, attempt),
        *proofs.change_evidence(task, attempt.ledger, attempt.candidate),
    ]
    asked = list(questions.criterion_questions(task, attempt.number, ()))
    if contracts.validator_of(attempt.plan, task, services.settings) == HUMAN:
        asked.append(questions.validator_question(task, attempt.number, ()))
    found += questions.evidence_of_answers(asked, (), attempt.candidate)
    bench.checks.end_processes()
    return dataclasses.replace(attempt, evidence=tuple(found), commands_ran=bool(ran))


def reach_verdict(_: Bench, attempt: Attempt) -> Attempt:
    """Only the task's own checks prove it: invariants hold of every task, whether it was done or not."""
    verdict, why = proofs.verdict(attempt.ledger, attempt.evidence)
    own = [e for e in attempt.evidence if not e.subject.startswith("invariant ")]
    if verdict == outcome.PASS and proofs.proves(own):
        words = "an old iDumb says that it is done, and its checks hold"
        return dataclasses.replace(attempt, verdict=verdict).ended(outcome.COMPLETED, words)
    why = why if verdict != outcome.PASS else "no check of its own proves it"
    verdict = outcome.PARTIAL if proofs.proves(own) else outcome.FAIL
    words = f"an old iDumb says that it is done, which is not proven here: {why}"
    return dataclasses.replace(attempt, verdict=verdict).ended(outcome.FAILED, words)


def asked(bench: Bench, task: Task) -> tuple[NewEvent, ...]:
    """The events by which a task that is not proven waits for a person, or what a person at the terminal said to it."""
    known, event = bench.journal.state.tasks[task.id], bench.journal.event
    question = _question(task, known, _evidence(bench, known))
    put = bench.journal.asked(question, task.id, known.attempt.number)
    answer = bench.services.asker.ask(question)
    if answer is None:
        return (put, event("task.waiting", task.id, known.attempt.number, decisions=[question.id], reason=known.reason))
    answered = bench.journal.answered(answer, task.id, known.attempt.number)
    return (put, answered, *_events(bench, task, known, answer))


def resolve(bench: Bench, task: Task, known: TaskState) -> None:
    """What a person said to a task that waited."""
    given = bench.journal.state.answers[known.decisions[0]]
    answer = Answer(given["decision"], given["choice"], given["by"], given.get("guidance", ""))
    bench.journal.write(*_events(bench, task, known, answer))


def _events(bench: Bench, task: Task, known: TaskState, answer: Answer) -> Iterator[NewEvent]:
    if answer.choice == legacy.BUILD:
        yield bench.journal.event("task.reset", task.id, reason=ANSWERED)
        return
    why = answer.guidance or "an old iDumb says that it is done"
    yield bench.journal.event(
        "task.accepted", task.id, reason=why, by=answer.by, commit=None, touched=[], left=known.work.left
    )
    yield from handoff_writer.of_accepted(bench.services, bench.journal, bench.contract, task.id, why)


def _evidence(bench: Bench, known: TaskState) -> Iterator[str]:
    for event in bench.services.log.events(run=bench.run, task=known.id, kind="evidence.recorded"):
        if event.attempt == known.attempt.number:
            found = event.payload
            yield f"{found['subject']} {found['result']}: {found['command'] or found['text']}"


def _question(task: Task, known: TaskState, evidence: Iterator[str]) -> Decision:
    return Decision(
        id=f"{task.id}{MARK}{known.attempt.number}",
        kind=legacy.DONE,
        task=task.id,
        what=f"{task.id}: an old iDumb says that it is done; idumb cannot prove it",
        why="What is there may be the finished work, so nothing is built over it unless you say so.",
        evidence=(known.reason, *evidence),
        choices=(
            Choice(ACCEPT, "it is done", "it counts as accepted by you; nothing is changed or committed"),
            Choice(legacy.BUILD, "build it", "its builder works on what is there, as on any other task"),
        ),
    )
