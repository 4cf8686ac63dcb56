"""Builds the state of a run from its events: those of tasks and attempts here, the others in `replay_run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from idumb.domain import agent, failures, outcome
from idumb.domain.action import EFFECT, LIMIT, STOPPED, UNDECLARED, Action
from idumb.domain.errors import StoreError
from idumb.domain.runs import replay_run, spending
from idumb.domain.runs.event import BESIDE, Event
from idumb.domain.runs.run import (
    ANSWERED,
    COMPENSATED,
    ELSEWHERE,
    INTERRUPTED,
    JUDGED,
    AgentStatus,
    AttemptState,
    Checkpoint,
    RunState,
    TaskState,
)
from idumb.domain.runs.spending import Spent

_STATUS_KINDS = (
    "run.",
    "task.",
    "attempt.",
    "contract.",
    "checkpoint.recorded",
    "rollback.completed",
    "undo.completed",
)

UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
"""How an event fails to apply: a value that its kind has is missing, or an event before it is."""


def replay(events: Iterable[Event]) -> RunState:
    """Return the state of one run from its events, in order of their sequence numbers.

    StoreError `store.corrupt` names the event that cannot be read.
    """
    state = RunState()
    for event in events:
        try:
            apply(state, event)
        except UNREADABLE as problem:
            raise unreadable(event, problem) from problem
    return state


def unreadable(event: Event, problem: Exception) -> StoreError:
    words = f"the event log is damaged: event {event.seq}, {event.kind}, cannot be read: {lacking(problem)}"
    return StoreError("store.corrupt", words, hint=Action.of("debug", "validate", event.run or ""))


def lacking(problem: Exception) -> str:
    return f"it lacks {problem}" if isinstance(problem, KeyError) else str(problem)


def apply(state: RunState, event: Event) -> None:
    """Update the state by one event. Kinds that do not concern a run only advance its sequence number."""
    if event.kind in _OF_TASKS:
        task = state.tasks[event.task or ""]
        state.tasks[task.id] = task = _OF_TASKS[event.kind](state, task, event)
        state.note(task)
    elif event.kind in _OF_RUNS:
        _OF_RUNS[event.kind](state, event)
    if event.kind.startswith(_STATUS_KINDS):
        state.moved_at = event.at
    state.last_seq = event.seq
    if event.kind not in BESIDE:
        state.changed_at = event.at


def _started(state: RunState, task: TaskState, event: Event) -> TaskState:
    p = event.payload
    envelope = p.get("envelope", {})
    state.guarded = replace(state.guarded, digests=p.get("guarded", state.guarded.digests), unchecked=True)
    if task.attempt.outcome == outcome.WAITING and not task.work.touched:  # it only asked: the work begins now
        state.attempted.pop(task.id, None)
    state.attempted.setdefault(task.id, event.seq)
    return replace(
        task,
        status=outcome.RUNNING,
        reason="",
        intended=False,
        attempt=AttemptState(
            number=event.attempt or 1,
            running=True,
            adapter=envelope.get("adapter", ""),
            crashed=task.attempt.crashed,
            unjudged=task.attempt.unjudged,
        ),
        work=replace(task.work, base=p["base"], snapshots=(p["snapshot"], *task.work.snapshots)),
    )


def _in_attempt(task: TaskState, **changed: Any) -> TaskState:
    return replace(task, attempt=replace(task.attempt, **changed))


def _agent_status(_: RunState, task: TaskState, event: Event) -> TaskState:
    return _in_attempt(task, agent_status=convert({**event.payload, "at": event.at}, AgentStatus))


def _interrupted(state: RunState, task: TaskState, event: Event) -> TaskState:
    p, progress = event.payload, task.progress
    ended = progress.settled == (event.attempt or task.attempt.number)  # and what it used is counted
    calls = spending.spent_by_call(None, reports=task.attempt.adapter not in spending.FREE)
    used = Spent() if ended else Spent(attempts=1) + calls
    spending.charge(state.spent, agent.BUILDER, used)
    base = task.work.base if task.attempt.opened is None else None  # a person gave it up: his tree has nothing of it
    return replace(
        task,
        status=outcome.PENDING,
        reason=p["reason"],
        intended=False,
        effect=p.get("effect", task.effect),
        attempt=replace(task.attempt, running=False, outcome=outcome.CANCELLED, opened=None, agent_status=None),
        work=replace(task.work, base=base, left_tree=p["left"], touched=tuple(p["touched"]), deviations=()),
        progress=replace(progress, attempts=max(progress.attempts - ended, 0), spent=progress.spent + used),
    )


def _moved_last(state: RunState, task: TaskState, event: Event) -> None:
    """A person's work was done after he was asked, perhaps after other tasks."""
    state.attempted[task.id] = event.seq
    state.attempted = dict(sorted(state.attempted.items(), key=lambda item: item[1]))


def _finished(state: RunState, task: TaskState, event: Event) -> TaskState:
    p = event.payload
    attempt, progress = task.attempt, task.progress
    waits = p["outcome"] == outcome.WAITING
    first = attempt.running  # later, it goes on: what it used is counted
    counted = progress.settled == (event.attempt or attempt.number)
    failure = (p["reason"].partition(failures.AND_SAID)[0], p["left"] or "")
    if not first and attempt.adapter == agent.HUMAN:  # it only asked: the work was done since
        _moved_last(state, task, event)
    state.guarded = replace(state.guarded, unchecked=False)
    return replace(
        task,
        status=outcome.PENDING if failures.kind(p.get("failure")).stops else outcome.RUNNING,
        reason=p["reason"],
        effect=p.get("effect", task.effect),
        outputs=p.get("outputs", {}),
        attempt=replace(
            attempt,
            running=False,
            outcome=p["outcome"],
            failure=p.get("failure"),
            crashed=bool((p["builder"] or {}).get("crashed")),
            deviates=bool(p.get("deviation")),
            next_step=p.get("fix", ""),
            unjudged=waits and (p.get("validator") or {}).get("outcome") == outcome.WAITING,
            opened=None,
            agent_status=None,
        ),
        work=replace(
            task.work,
            base=p.get("base", task.work.base),
            left_tree=p["left"],
            touched=tuple(p["touched"]),
            deviations=tuple(p["deviations"]),
            accepted_paths=tuple(p["accepted_paths"]),
            symbols=tuple(p["symbols"]),
        ),
        progress=replace(
            progress,
            attempts=progress.attempts + (counts(p) and not counted),
            settled=progress.settled if waits else event.attempt or attempt.number,
            exhausted=progress.exhausted + (first and p.get("failure") == agent.CONTEXT_EXHAUSTED),
            failure=failure,
            repeated=progress.repeated + (not counted) if failure == progress.failure else 0,
            seconds=progress.seconds + (p["seconds"] if first else 0.0),
            spent=progress.spent + _used(state, task, p, first=first, counted=counted),
        ),
        context=replace(
            task.context,
            # Waiting is no failure: the next attempt still needs to know what was wrong before.
            feedback=task.context.feedback if waits else p["feedback"],
            handover=p.get("handover", ""),
        ),
    )


def counts(finished: Mapping[str, Any]) -> bool:
    """Whether an attempt with this `attempt.finished` payload counts against the task's limit."""
    kind = failures.kind(finished.get("failure"))
    return finished["outcome"] != outcome.WAITING and kind.counts and not kind.stops


def _used(state: RunState, task: TaskState, p: Mapping[str, Any], *, first: bool, counted: bool) -> Spent:
    """Return what builder and validator of an attempt used and was not counted yet, and add it to the run's."""
    built, judged = p["builder"], p.get("validator")
    count = int(p["outcome"] != outcome.WAITING and not counted)
    of_builder = Spent(attempts=count, seconds=p["seconds"] if first else 0.0)
    if not first:
        built = None
    if not first and not task.attempt.deviates:  # a validator is asked once undeclared changes are accepted
        judged = None
    if built is not None:
        of_builder += spending.spent_by_call(built["usage"], reports=task.attempt.adapter not in spending.FREE)
    spending.charge(state.spent, agent.BUILDER, of_builder)
    if judged is None:
        return of_builder
    of_validator = spending.spent_by_call(judged["usage"])
    spending.charge(state.spent, agent.VALIDATOR, of_validator + Spent(attempts=1, seconds=judged["seconds"]))
    return of_builder + of_validator


def _checkpoint_recorded(_: RunState, task: TaskState, event: Event) -> TaskState:
    """Keep the new checkpoint; one of an interrupted attempt does not replace one of an attempt that ended."""
    p, before = event.payload, task.checkpoint
    if p["status"] == INTERRUPTED and before is not None and before.status != INTERRUPTED:
        return task
    checkpoint = convert({**p, "attempt": event.attempt or 1, "at": event.at, "seq": event.seq}, Checkpoint)
    unproven = p["status"] == "failed" and task.attempt.outcome == outcome.COMPLETED  # what a hook made of it
    attempt = replace(task.attempt, deviates=True) if unproven else task.attempt
    reason = p["error"] if unproven else task.reason
    return replace(task, checkpoint=checkpoint, intended=False, attempt=attempt, reason=reason)


def _carried(_: RunState, task: TaskState, event: Event) -> TaskState:
    p = event.payload
    checkpoint = convert(p["checkpoint"], Checkpoint)
    return replace(
        task,
        status=p["status"],
        checkpoint=checkpoint,
        carried_from=p["from_run"],
        reason=p["reason"],
        effect=p["effect"],
        outputs=p.get("outputs", {}),
        work=replace(task.work, left_tree=checkpoint.tree),
    )


def _becomes(status: str) -> Callable[[RunState, TaskState, Event], TaskState]:
    def handler(state: RunState, task: TaskState, event: Event) -> TaskState:
        attempt = replace(task.attempt, running=False, opened=None)
        if status in outcome.DONE:
            state.failures_in_a_row = 0
        elif status == outcome.FAILED:
            state.failures_in_a_row += 1
        return replace(task, status=status, reason=event.payload.get("reason", ""), attempt=attempt)

    return handler


def _omitted(state: RunState, task: TaskState, event: Event) -> TaskState:
    return replace(_becomes(outcome.OMITTED)(state, task, event), omitted_by=event.payload["by"])


def _accepted(state: RunState, task: TaskState, event: Event) -> TaskState:
    """Keep the accepted files as the task's work, also if a person changed them by hand. Nothing has verified them."""
    state.verification = None
    if task.attempt.adapter == agent.HUMAN:
        _moved_last(state, task, event)
    p, work = event.payload, task.work
    work = replace(work, left_tree=p.get("left", work.left_tree), touched=tuple(p.get("touched", work.touched)))
    return replace(_becomes(outcome.ACCEPTED)(state, task, event), accepted_commit=p["commit"], work=work)


def _waiting(_: RunState, task: TaskState, event: Event) -> TaskState:
    p = event.payload
    return replace(
        task,
        status=outcome.WAITING,
        reason=p["reason"],
        decisions=tuple(p["decisions"]),
        attempt=replace(task.attempt, running=False),
    )


def _reset(state: RunState, task: TaskState, event: Event) -> TaskState:
    """Make a task pending again, and forget the answers about it unless an answer caused the reset."""
    p = event.payload
    why = p.get("reason")
    attempts = p.get("attempts", task.progress.attempts if why == ELSEWHERE else 0)
    unjudged = why == JUDGED or (task.attempt.unjudged and why == ELSEWHERE)
    state.failures_in_a_row = 0
    if why not in {ANSWERED, ELSEWHERE}:
        about = [id for id, question in state.decisions.items() if question.get("task") == task.id]
        state.forget_answers(about)
    return replace(
        task,
        status=outcome.PENDING,
        reason="",
        decisions=(),
        once=bool(p.get("once")) or (task.once and why in {ANSWERED, ELSEWHERE}),
        attempt=replace(task.attempt, running=False, unjudged=unjudged),
        progress=replace(task.progress, attempts=attempts, exhausted=0, repeated=0, failure=("", "")),
    )


def _role_asked(state: RunState, event: Event) -> None:
    """Count a call of another role, such as the verifier: it uses the run's budget but is not an attempt."""
    p = event.payload
    used = spending.spent_by_call(p["usage"], reports=p["adapter"] not in spending.FREE)
    spending.charge(state.spent, p["role"], used + Spent(seconds=p["seconds"]))


_RETRIED = frozenset({STOPPED, UNDECLARED, EFFECT, LIMIT})
"""Kinds of questions after which the task can be retried; the guidance of their answers is for the next builder."""


def _question_asked(state: RunState, event: Event) -> None:
    """Record a question. One about the phase is asked again only with other words, so its answer no longer counts."""
    question = event.payload
    state.decisions[question["id"]] = question
    if question.get("task") is None:
        state.answers.pop(question["id"], None)


def _answered(state: RunState, event: Event) -> None:
    p = event.payload
    question = state.decisions.get(p["decision"], {})
    state.answers[p["decision"]] = p
    if question.get("kind") in _RETRIED and question.get("task") in state.tasks and p["guidance"]:
        state.tasks[question["task"]] = _guided(state, state.tasks[question["task"]], event)


def _guided(_: RunState, task: TaskState, event: Event) -> TaskState:
    guidance = f"{event.payload['by']} says: {event.payload['guidance']}"
    return replace(task, context=replace(task.context, guidance=guidance))


_OF_TASKS: Mapping[str, Callable[[RunState, TaskState, Event], TaskState]] = {
    "attempt.started": _started,
    "attempt.opened": lambda _, task, event: _in_attempt(task, opened={"by": event.payload["by"], "at": event.at}),
    "attempt.told": _agent_status,
    "attempt.interrupted": _interrupted,
    "attempt.finished": _finished,
    "step.finished": lambda _, task, e: _in_attempt(task, failed_step=None if e.payload["ok"] else e.payload["index"]),
    "nondeterminism.found": lambda _, task, event: _in_attempt(task, unlike=event.payload["refused"]),
    "rollback.compensated": lambda _, task, __: replace(task, effect=COMPENSATED),
    "checkpoint.intended": lambda _, task, __: replace(task, intended=True),
    "checkpoint.recorded": _checkpoint_recorded,
    "task.carried": _carried,
    "task.completed": _becomes(outcome.COMPLETED),
    "task.failed": _becomes(outcome.FAILED),
    "task.waiting": _waiting,
    "task.accepted": _accepted,
    "task.skipped": _becomes(outcome.SKIPPED),
    "task.omitted": _omitted,
    "task.reset": _reset,
    "task.guided": _guided,
}
"""What an event makes of its task. A handler may also change the run, but no other task."""

_OF_RUNS: Mapping[str, Callable[[RunState, Event], None]] = {
    **replay_run.HANDLERS,
    "role.asked": _role_asked,
    "decision.asked": _question_asked,
    "decision.answered": _answered,
}
