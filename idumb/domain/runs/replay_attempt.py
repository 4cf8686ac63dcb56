"""Replay of attempts: their start, steps, end and checkpoint, and what their agents and other roles used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from idumb.domain import agent, failures, outcome
from idumb.domain.runs import spending
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import INTERRUPTED, GuardedFiles, RunState
from idumb.domain.runs.spending import Spent
from idumb.domain.runs.task_state import AgentStatus, AttemptState, Checkpoint, TaskState


def _started(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
    envelope = p.get("envelope", {})
    state.guarded = GuardedFiles(p.get("guarded", state.guarded.digests), unchecked=True)
    state.attempted.setdefault(task.id, event.seq)
    folders = tuple(dict.fromkeys((*task.work.folders, *p.get("folders", ()))))
    state.update(
        task.id,
        status=outcome.RUNNING,
        reason="",
        intended=None,
        attempt=AttemptState(
            number=event.attempt or 1,
            running=True,
            adapter=envelope.get("adapter", ""),
            crashed=task.attempt.crashed,
            adopted=bool(p.get("adopted")),
            unjudged=task.attempt.unjudged,
        ),
        work=replace(task.work, base=p["base"], snapshot=p["snapshot"], folders=folders),
        context=replace(task.context, speaker=agent.speaker_digest(envelope)),
    )


def _opened(state: RunState, event: Event) -> None:
    task = state.task_of(event)
    state.update(task.id, attempt=replace(task.attempt, opened={**event.payload, "at": event.at}))


def _agent_status(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
    status = AgentStatus(p["role"], p["state"], p["message"], p["number"], event.at)
    state.update(task.id, attempt=replace(task.attempt, agent_status=status))


def _step_finished(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
    state.update(task.id, attempt=replace(task.attempt, failed_step=None if p["ok"] else p["index"]))


def _interrupted(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
    state.guarded = replace(state.guarded, unchecked=bool(p.get("guarded")))
    used = Spent()
    if not task.attempt.adopted:
        used = Spent(attempts=1) + spending.spent_by_call(None, reports=task.attempt.adapter not in spending.FREE)
        state.spend(agent.BUILDER, used)
    state.update(
        task.id,
        status=outcome.PENDING,
        reason=p.get("reason", ""),
        intended=None,
        effect=p.get("effect") or task.effect,
        attempt=replace(task.attempt, running=False, outcome=outcome.CANCELLED, opened=None, agent_status=None),
        work=replace(task.work, left=p.get("left"), touched=tuple(p.get("touched", ()))),
        progress=replace(task.progress, spent=task.progress.spent + used),
    )


def _finished(state: RunState, event: Event) -> None:
    p, task = event.payload, state.task_of(event)
    attempt, progress = task.attempt, task.progress
    waits = p["outcome"] == outcome.WAITING
    failure = (p.get("reason", ""), p["left"] or "")
    state.guarded = replace(state.guarded, unchecked=False)
    state.update(
        task.id,
        status=outcome.PENDING if p.get("failure") in failures.STOPPING else outcome.RUNNING,
        reason=p.get("reason", ""),
        effect=p.get("effect") or task.effect,
        attempt=replace(
            attempt,
            running=False,
            outcome=p["outcome"],
            failure=p.get("failure"),
            crashed=bool((p.get("builder") or {}).get("crashed")),
            unjudged=waits and (p.get("validator") or {}).get("outcome") == outcome.WAITING,
            opened=None,
            agent_status=None,
        ),
        work=replace(
            task.work,
            left=p["left"],
            touched=tuple(p["touched"]),
            deviations=tuple(p.get("deviations", ())),
            accepted_paths=tuple(p.get("accepted_paths", ())),
            symbols=tuple(p.get("symbols", ())),
        ),
        progress=replace(
            progress,
            attempts=progress.attempts + (counts(p) and not attempt.adopted),
            settled=progress.settled if waits else event.attempt or attempt.number,
            exhausted=progress.exhausted + (p.get("failure") == agent.CONTEXT_EXHAUSTED),
            failure=failure,
            repeated=progress.repeated + 1 if failure == progress.failure else 0,
            seconds=progress.seconds + p.get("seconds", 0.0),
            spent=progress.spent + _used(state, task, p),
        ),
        context=replace(
            task.context,
            # Waiting is no failure: the next attempt still needs to know what was wrong before.
            feedback=task.context.feedback if waits else p.get("feedback", ""),
            handover=p.get("handover", ""),
            conversation=agent.continue_conversation(
                task.context.conversation,
                p,
                attempt=attempt.number,
                speaker=task.context.speaker,
                contract=state.contract.hash,
            ),
        ),
    )


def counts(finished: Mapping[str, Any]) -> bool:
    """Whether an attempt with this `attempt.finished` payload counts against the task's limit."""
    return finished["outcome"] != outcome.WAITING and finished.get("failure") not in failures.UNCOUNTED


def _used(state: RunState, task: TaskState, p: Mapping[str, Any]) -> Spent:
    """Return what builder and validator of an attempt used, and add it to what the run used."""
    if task.attempt.adopted:
        return Spent()
    built, judged = p.get("builder"), p.get("validator")
    of_builder = Spent(attempts=int(p["outcome"] != outcome.WAITING), seconds=p.get("seconds", 0.0))
    if built is not None:
        of_builder += spending.spent_by_call(built["usage"], reports=task.attempt.adapter not in spending.FREE)
    state.spend(agent.BUILDER, of_builder)
    if judged is None:
        return of_builder
    of_validator = spending.spent_by_call(judged["usage"])
    state.spend(agent.VALIDATOR, of_validator + Spent(attempts=1, seconds=judged["seconds"]))
    return of_builder + of_validator


def _role_asked(state: RunState, event: Event) -> None:
    """Count a call of another role, such as the verifier: it uses the run's budget but is not an attempt."""
    p = event.payload
    used = spending.spent_by_call(p["usage"], reports=p["adapter"] not in spending.FREE)
    state.spend(p["role"], used + Spent(seconds=p["seconds"]))


def _checkpoint_intended(state: RunState, event: Event) -> None:
    state.update(event.task or "", intended=dict(event.payload))


def _checkpoint_recorded(state: RunState, event: Event) -> None:
    """Keep the new checkpoint; one of an interrupted attempt does not replace one of an attempt that ended."""
    p, task = event.payload, state.task_of(event)
    before = task.checkpoint
    if p["status"] == INTERRUPTED and before is not None and before.status != INTERRUPTED:
        return
    checkpoint = Checkpoint(
        status=p["status"],
        git_hash=p["git_hash"],
        snapshot=p["snapshot"],
        tree=p["tree"],
        files=tuple(p["files"]),
        attempt=event.attempt or 1,
        seconds=p["seconds"],
        at=event.at,
        seq=event.seq,
        error=p.get("error"),
        commit=p.get("commit"),
    )
    work = replace(task.work, left=p.get("left") or task.work.left)
    state.update(task.id, checkpoint=checkpoint, intended=None, work=work)


HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "attempt.started": _started,
    "attempt.opened": _opened,
    "attempt.told": _agent_status,
    "attempt.interrupted": _interrupted,
    "attempt.finished": _finished,
    "step.finished": _step_finished,
    "role.asked": _role_asked,
    "checkpoint.intended": _checkpoint_intended,
    "checkpoint.recorded": _checkpoint_recorded,
}
