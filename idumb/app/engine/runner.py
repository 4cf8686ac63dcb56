"""Runs the tasks of one run in order until none is left, a person is needed, or the policy says stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeVar

from idumb.app.attempt import (
    budget,
    builder_commits,
    entry,
    handoff_writer,
    interruption,
    pipeline,
    projections,
    questions,
)
from idumb.app.consent import agent_programs, approval_parts
from idumb.app.contract import plan_answers
from idumb.app.core import next_actions, run_lookup, schedule
from idumb.app.core.run_context import Attempt, Recorded, RunContext
from idumb.app.engine import task_failure
from idumb.app.worktree import drift, task_base
from idumb.domain import agent, failures, outcome, wording
from idumb.domain import contract as contracts
from idumb.domain.decision import Decision
from idumb.domain.errors import AdapterError, Interrupted, Refusal
from idumb.domain.failures import FailureMessage
from idumb.domain.plans.plan import STRICT, Condition, Setup, Task
from idumb.lazy_dataclass import dataclass

EDITOR = agent.EDITOR


@dataclass(frozen=True, slots=True)
class Ending:
    """How the loop ended: `kind` is done, halted, paused, waiting, editor or commit-refused; `words` say why.

    `editor`: the task's builder drives idumb itself, and it is its turn. `fields` are added to the event: `by`
    and `why` of a pause, `task` and `failure` of an agent that could not work.
    """

    kind: str
    words: str = ""
    task: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


AGAIN = Ending("again")
LEFT_OUT = Ending("left-out")

_From = TypeVar("_From", bound=Attempt)
_To = TypeVar("_To", bound=Attempt)


def run_tasks(context: RunContext) -> Ending:
    """Work through the schedule."""
    tasks = schedule.Schedule(context.contract, context.journal.state)
    waiting: Ending | None = None
    held: Ending | None = None
    while (task_id := tasks.next()) is not None:
        stopped = _paused(context) or broken_before(context)
        if stopped is not None:
            return stopped
        try:
            ending = _run_task(context, context.contract.tasks[task_id])
        except Refusal as refusal:
            if refusal.code != task_base.UNFINISHED:
                raise
            held = held or Ending("halted", f"{refusal.message} {refusal.hint}", task_id)
            continue  # other tasks need not wait for what a person must decide about this one's files
        projections.progress(context)
        if ending is not None and ending.kind != "waiting":
            return ending
        if ending is not None:
            waiting = ending
            if not _left_nothing(context, task_id):
                return ending  # its unfinished work is in the tree; nothing may build on top of it
            continue
        if context.journal.state.tasks[task_id].status in outcome.UNBLOCKING:
            tasks.completed(task_id)
    if waiting is None and any(t.status == outcome.WAITING for t in context.journal.state.tasks.values()):
        return Ending("waiting", "waits for a person")
    return waiting or held or Ending("done")


def _left_nothing(context: RunContext, task_id: str) -> bool:
    """Return whether other tasks can run while this one waits: no builder began it."""
    attempt = context.journal.state.tasks[task_id].attempt
    not_started = attempt.outcome == outcome.REFUSED and not context.strict
    return context.contract.tasks[task_id].is_human or not_started


def broken_before(context: RunContext) -> Ending | None:
    """Return how the run ends if a check of a completed task fails now, so that nothing may be built on it."""
    if all(task.status != outcome.COMPLETED for task in context.journal.state.tasks.values()):
        return None
    from idumb.app.engine import regressions  # a run of one task never needs it

    why = regressions.find(context)
    return None if why is None else Ending("waiting", why)


def _paused(context: RunContext) -> Ending | None:
    """Return a requested pause. Between two tasks everything is saved."""
    request = context.services.owner.pause_asked()
    if request is None:
        return None
    by, why = request
    return Ending("paused", next_actions.said_by(by, why), fields={"by": by, "why": why})


def _run_task(context: RunContext, task: Task) -> Ending | None:
    """Make all attempts at one task; None if the run continues, however the task ended."""
    if contracts.in_editor(context.plans[task.id], task, context.services.settings):
        return Ending(agent.EDITOR, f"{task.id} waits for your editor; to begin, run `idumb start {task.id}`", task.id)
    context = builder_commits.task_context(context, task)
    while True:
        refused = admit(context, task)
        if refused is not None:
            return None if refused is LEFT_OUT else refused
        ending = settle(context, run_stages(context, entry.begin(context, task), pipeline.make))
        if ending is not AGAIN:
            return ending


def admit(context: RunContext, task: Task) -> Ending | None:
    """Return None if an attempt may begin, LEFT_OUT if a person skipped the task, else what the run does instead.

    Refusal if the task's files have uncommitted changes that it must not build on.
    """
    task_base.refuse_foreign_changes(context, task)
    task_state = context.journal.state.tasks[task.id]
    if task_state.work.deviations and task_state.attempt.outcome == outcome.CANCELLED:
        undecided = _undecided(context, task)
        if undecided is not None:
            return undecided
    question = None if entry.waits_for_verdict(context, task) else questions.ask_about_effect(context, task)
    if question is not None:
        words = f"{task.id} may already have had its effect, and waits for your answer before it is retried"
        return LEFT_OUT if question == questions.SKIP else Ending("waiting", words, task.id)
    ceiling = budget.ask_about_ceiling(context, task)
    if ceiling is None:
        return None
    decision, words = ceiling
    if decision != budget.STOP:
        return Ending("waiting", f"{task.id}: {words}", task.id)
    task_state = context.journal.state.tasks[task.id]
    context.journal.write(task_failure.failed(context, task, task_state.attempt.number, words))
    return Ending("halted", f"{task.id}: {words}", task.id)


def _undecided(context: RunContext, task: Task) -> Ending | None:
    """Return how the run ends, because nobody decided yet about undeclared changes of an interrupted attempt.

    None if there are none, or if they were accepted or are yours.
    """
    strays = task_base.left_by_interruption(context, task)
    if not strays or questions.accepts_interrupted(context, task, strays):
        return None
    reason = f"was interrupted; since it began, files changed that it does not declare: {wording.listed(strays)}"
    events, answer = questions.ask_about_interrupted(context, task, strays, reason)
    if answer == questions.HALT:
        number = context.journal.state.tasks[task.id].attempt.number
        events = (task_failure.failed(context, task, number, reason),)
    context.journal.write(*events)
    ends = {questions.WAITS: "waiting", questions.HALT: "halted"}
    return Ending(ends[answer], f"{task.id} {reason}", task.id) if answer in ends else None


def run_stages(context: RunContext, attempt: _From, lead: Callable[[RunContext, _From], _To]) -> _To:
    """Lead an attempt through stages of the pipeline. If an interruption ends it, record that and raise again."""
    task = attempt.task
    try:
        return lead(context, attempt)
    except Interrupted as interrupted:
        context.services.owner.guard()
        task_state = context.journal.state.tasks[task.id]
        # If git was about to commit, only the branch shows whether it did, so `resume` checks it. Work begun in the
        # editor is unchanged, and is submitted again.
        if task_state.intended is None and task_state.attempt.opened is None:
            if task_state.attempt.running and context.workspace.kind == "here":
                drift.report_after_crash(context, task, task_state)
            took = context.services.clock.monotonic() - attempt.started
            interruption.record_interruption(context, task, run_lookup.why_stopped(context.services, interrupted), took)
        raise


def settle(context: RunContext, attempt: Recorded) -> Ending | None:
    """Return `AGAIN` if another attempt follows, None if the run continues, else how it ends."""
    task = attempt.task
    projections.checkpoint(context, attempt)
    handoff_writer.after(context, task)
    if attempt.commit_refused is not None:
        return Ending("commit-refused", attempt.commit_refused, task.id)
    if attempt.outcome == outcome.WAITING:
        return Ending("waiting", attempt.reason, task.id)
    if attempt.outcome == outcome.COMPLETED:
        return None
    if attempt.failure is not None and not attempt.deviation:
        ending = _could_not_work(context, attempt, attempt.failure)
        if ending is not None:
            return ending
    return AGAIN if not attempt.unlike and task_failure.tries_again(context, task) else _failed(context, attempt)


def _could_not_work(context: RunContext, attempt: Recorded, why: FailureMessage) -> Ending | None:
    """Return what follows if an agent could not work; None if it counts as any failed attempt.

    A fresh agent continues after an exhausted context. A failure that the next attempt would meet again stops the run.
    """
    task, state = attempt.task, context.journal.state
    if why.kind == agent.CONTEXT_EXHAUSTED:
        return AGAIN if state.tasks[task.id].progress.exhausted <= schedule.MOST_CONTEXTS else None
    if why.kind == agent.OVER_BUDGET and budget.reached(context.services.settings, state, task.id) is not None:
        return AGAIN  # which asks a person first
    if why.kind in failures.STOPPING:
        details = {"task": task.id, "failure": why.kind}
        return Ending("halted", f"{task.id}: {why.message}. {why.next_step}", task.id, details)
    return None


def _failed(context: RunContext, attempt: Recorded) -> Ending | None:
    task = attempt.task
    if task_failure.is_left_out(task, attempt.outcome):
        context.journal.write(*task_failure.left_out(context, task, attempt.number))
        return None
    question = task_failure.question(task, attempt.number, attempt.outcome, attempt.reason, deviated=attempt.deviation)
    if question is not None:
        ending = _ask_about_failure(context, attempt, question)
        if ending is not None or context.journal.state.tasks[task.id].status != outcome.RUNNING:
            return ending
    if attempt.deviation:
        statuses = {line.path: line.status for line in attempt.ledger.lines}
        waits = questions.ask_about_strays(context, task, attempt.number, attempt.reason, statuses)
        if waits:
            context.journal.write(*waits)
            return Ending("waiting", f"{task.id} {attempt.reason}", task.id)
    context.journal.write(*task_failure.for_good(context, task, attempt.number, attempt.reason))
    if attempt.deviation:
        return Ending("halted", f"{task.id} {attempt.reason}", task.id)
    if attempt.plan.mode == STRICT:
        return Ending("halted", f"{task.id} failed: {attempt.reason}", task.id)
    if context.journal.state.failures_in_a_row >= context.services.settings.run.halt_after:
        count = context.journal.state.failures_in_a_row
        return Ending("halted", f"{count} tasks failed in a row; the last was {task.id}: {attempt.reason}", task.id)
    return None


def _ask_about_failure(context: RunContext, attempt: Recorded, question: Decision) -> Ending | None:
    """Ask a person what to do about a failed task, now or later; None if the run continues."""
    task, event = attempt.task, context.journal.event
    question_event = context.journal.question_event(question, task.id, attempt.number)
    again = attempt.number < context.max_attempts  # a remembered `retry` does not try for ever
    remembered = plan_answers.remembered_answer(context.services, question, task) if again else None
    answer = remembered or context.services.asker.ask(question)
    if answer is None:
        context.journal.write(
            question_event, task_failure.waiting(context, task, attempt.number, question, attempt.reason)
        )
        words = "cannot start" if question.kind == questions.PRECONDITION else "failed"
        return Ending("waiting", f"{task.id} {words} and waits for your decision", task.id)
    answered = context.journal.answer_event(answer, task.id, attempt.number)
    if answer.choice == questions.RETRY:
        context.journal.write(question_event, answered, event("task.reset", task.id, reason="retry"))
        return _run_task(context, task)
    context.journal.write(question_event, answered)
    if answer.choice == questions.SKIP:
        context.journal.write(event("task.skipped", task.id, attempt.number, reason="skipped by a person"))
    return None


def require_agents(context: RunContext) -> None:
    """Refuse if a program that builds or validates cannot be started, or nobody agreed to it."""
    for name in approval_parts.agents(context.services.settings, context.contract):
        try:
            context.agents.get(name).describe()
        except AdapterError as problem:
            raise approval_parts.cannot_start(name, problem) from problem
    agent_programs.require(
        context.services, context.contract, context.agents, next_actions.command(context.journal.state)
    )


def require_setup(context: RunContext) -> None:
    """Refuse if something is missing that a person must provide: a variable, or a check that passes."""
    for plan in context.contract.plans:
        for needed in plan.setup:
            missing = _missing(context, needed)
            if missing:
                raise Refusal(
                    "setup.missing",
                    f"{needed.service} is not set up ({missing}). It is needed because: {needed.why}",
                    hint=needed.where or f"Provide it, then idumb execute-phase {context.contract.phase}",
                )


def _missing(context: RunContext, needed: Setup) -> str:
    """Return the first thing that is missing; "" if nothing is."""
    limit = float(context.services.settings.run.check_timeout)
    for name in needed.env:
        result = context.checks.condition("setup", Condition("env", name), timeout=limit, tree=None)
        if not result.passed:
            return f"{name} is not set"
    if needed.check is None:
        return ""
    result = context.checks.command("setup", needed.service, needed.check, timeout=limit, tree=None)
    return "" if result.passed else f"`{needed.check}` {result.result}"
