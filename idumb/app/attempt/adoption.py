"""Judges tasks that an old iDumb recorded as done: once, on the files as they are. Nothing is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from idumb.app.attempt import budget, handoff_writer, judge, measure, missing_paths, questions, step_evidence
from idumb.app.contract import legacy_claims
from idumb.app.core.attempt import JUDGED, MEASURED, Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.worktree import task_base
from idumb.domain import contract, outcome, paths
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.plans.plan import HUMAN, FileClaim, Task
from idumb.domain.proof import evidence as proof
from idumb.domain.proof import ledger
from idumb.domain.runs import run
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import ANSWERED
from idumb.domain.runs.task_state import TaskState

MARK = ".taken-over."
ACCEPT = "accept"
_CLAIMS = "taken over"


def claimed(context: RunContext, task: Task) -> bool:
    """Return whether to judge the task before building it: an old iDumb recorded it as done, and its files exist."""
    claims = context.notes.get(_CLAIMS)
    if claims is None:
        claims = context.notes[_CLAIMS] = legacy_claims.claims(
            context.services, context.contract, context.journal.state
        )
    return task.id in claims and not context.journal.state.is_to_be_built(task.id) and _is_there(context, task)


def _is_there(context: RunContext, task: Task) -> bool:
    """Return whether the declared files are as the task would leave them; if not, there is something to build."""
    claims = _literal(task)
    present = context.work.scan([claim.path for claim in claims])
    return all((context.work.entry(present, c.path) is None) == (c.verb == "delete") for c in claims)


def _literal(task: Task) -> list[FileClaim]:
    """Return the claims to create, modify or delete one named file."""
    claims = ledger.written_claims(task.files or ())
    return [c for c in claims if c.verb != "change" and not paths.has_wildcard(c.path)]


def begin(context: RunContext, task: Task) -> Attempt:
    """Return the attempt that adopts a task."""
    number = context.journal.state.tasks[task.id].attempt.number + 1
    return context.attempt(task, number, base="", feedback="", adopted=True, **budget.of_attempt(context, task))


def run_checks(context: RunContext, attempt: Attempt) -> Attempt:
    """Freeze the files, and run the task's own checks on them. Its declared files are there already."""
    services, task = context.services, attempt.task
    built = attempt
    candidate, _, left_by_tools = measure.freeze(context, built)
    lines = tuple(ledger.Line(c.path, ledger.DECLARED, None, c.verb) for c in _literal(task))
    measured = built.at(
        MEASURED,
        candidate=candidate,
        changes=(),
        ledger=ledger.Ledger(lines),
        tool_files=left_by_tools,
    )
    if context.checks.apart and contract.is_checked(attempt.plan, task):
        tree = task_base.tree_between_attempts(services, context.journal.state, candidate)
        measured = dataclasses.replace(measured, proven=tree)
    judged_tree = measured.proven or candidate
    run = judge.check_after(context.checks, task, attempt.plan, services.settings, judged_tree, services.interrupts)
    missing, checked = missing_paths.explain(context, context.checks, measured, [*run])
    if missing is not None:
        words = f"{missing.message}. {missing.fix}"  # a person's answer continues
        measured = dataclasses.replace(measured, failure=missing).ended(outcome.FAILED, words)
    decisions = list(questions.criterion_questions(task, attempt.number, ()))
    if attempt.validator == HUMAN:
        decisions.append(questions.validator_question(task, attempt.number, ()))
    proofs = (
        *checked,
        *step_evidence.of_attempt(context, measured),
        *judge.change_evidence(task, measured.ledger, candidate),
        *questions.evidence_of_answers(decisions, (), candidate),
    )
    context.checks.end_processes()
    measured = dataclasses.replace(measured, evidence=proofs)
    return judge.scan_again(context, measured, "a check changed what it should judge") if checked else measured


def reach_verdict(_: RunContext, attempt: Attempt) -> Attempt:
    """Complete the task only if its own checks prove it; invariants hold whether or not it was done."""
    if attempt.outcome is not None:
        return attempt.at(JUDGED, outcome=attempt.outcome, verdict=None)
    verdict, why = proof.verdict(attempt.ledger, attempt.evidence)
    own = [e for e in attempt.evidence if not e.subject.startswith("invariant ")]
    if verdict == outcome.PASS and proof.proves(own):
        words = "an old iDumb says that it is done, and its checks hold"
        return attempt.at(JUDGED, verdict=verdict, outcome=outcome.COMPLETED, reason=words)
    why = why if verdict != outcome.PASS else "no check of its own proves it"
    verdict = outcome.PARTIAL if proof.proves(own) else outcome.FAIL
    words = f"an old iDumb says that it is done, which is not proven here: {why}"
    return attempt.at(JUDGED, verdict=verdict, outcome=outcome.FAILED, reason=words)


def question_events(context: RunContext, task: Task) -> tuple[NewEvent, ...]:
    """Return the events of an unproven task: it waits for a person, or a person at the terminal answered."""
    task_state, event = context.journal.state.tasks[task.id], context.journal.event
    question = _question(task, task_state, _evidence(context, task_state))
    put = context.journal.question_event(question, task.id, task_state.attempt.number)
    answer = context.services.asker.ask(question)
    if answer is None:
        return (
            put,
            event(
                "task.waiting", task.id, task_state.attempt.number, decisions=[question.id], reason=task_state.reason
            ),
        )
    answered = context.journal.answer_event(answer, task.id, task_state.attempt.number)
    return (put, answered, *_events(context, task, task_state, answer))


def resolve(context: RunContext, task: Task, task_state: TaskState) -> None:
    """Record what follows from a person's answer to a task that waited."""
    recorded = context.journal.state.answers[task_state.decisions[0]]
    answer = Answer(recorded["decision"], recorded["choice"], recorded["by"], recorded.get("guidance", ""))
    context.journal.write(*_events(context, task, task_state, answer))


def _events(context: RunContext, task: Task, task_state: TaskState, answer: Answer) -> Iterator[NewEvent]:
    if answer.choice == run.BUILD:
        yield context.journal.event("task.reset", task.id, reason=ANSWERED)
        return
    why = answer.guidance or "an old iDumb says that it is done"
    yield context.journal.event(
        "task.accepted", task.id, reason=why, by=answer.by, commit=None, touched=[], left=task_state.work.left_tree
    )
    yield from handoff_writer.of_accepted(context.services, context.journal, context.contract, task.id, why)


def _evidence(context: RunContext, task_state: TaskState) -> Iterator[str]:
    for event in context.services.log.events(run=context.run, task=task_state.id, kind="evidence.recorded"):
        if event.attempt == task_state.attempt.number:
            row = event.payload
            yield f"{row['subject']} {row['result']}: {row['command'] or row['text']}"


def _question(task: Task, task_state: TaskState, evidence: Iterator[str]) -> Decision:
    return Decision(
        id=f"{task.id}{MARK}{task_state.attempt.number}",
        kind=run.TAKEN_OVER,
        task=task.id,
        what=f"{task.id}: an old iDumb says that it is done; idumb cannot prove it",
        why="The present files may be the finished work, so idumb builds over them only if you say so.",
        evidence=(task_state.reason, *evidence),
        choices=(
            Choice(ACCEPT, "it is done", "it counts as accepted by you; nothing is changed or committed"),
            Choice(run.BUILD, "build it", "its builder starts from the present files, as for any other task"),
        ),
    )
