"""The events that record an attempt: how it ended, what was asked, its checkpoint, and the intention to commit."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from idumb.app.attempt import handoff_writer, steps
from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports import Snapshot
from idumb.app.worktree import delivery
from idumb.domain import agent, canonical_json, outcome
from idumb.domain.agent import AgentResult
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence, ledger
from idumb.domain.proof.ledger import Change
from idumb.domain.runs.event import NewEvent

_LAST_WORDS = 2000
_MOST_FILES = 50


def of_intention(context: RunContext, attempt: Attempt) -> NewEvent:
    """Return the event that announces the delivery and, if the record has a message, the commit."""
    record = attempt.saved(context.services.clock.monotonic())
    return context.journal.event("checkpoint.intended", attempt.task.id, attempt.number, record=record)


def new_evidence(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    new = (e for e in attempt.evidence if e not in (attempt.logged or ()))
    event = context.journal.event
    return [event("evidence.recorded", attempt.task.id, attempt.number, **e.as_dict()) for e in new]


def of_end(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    """Return the events of an attempt that ended, or waits. Fields that are empty are omitted at the end."""
    task, result, verdict = attempt.task, attempt.result, attempt.verdict_of_validator
    here, now = attempt.in_place or attempt.outcome == outcome.COMPLETED, context.services.clock.monotonic()
    events = [
        context.journal.event(
            "step.finished",
            task.id,
            attempt.number,
            call=call_id(context.run, task.id, attempt.number, step.index),
            plan_hash=attempt.plan.sha256,
            **{**asdict(step), "seconds": round(step.seconds, 6)},
        )
        for step in (result.steps if result and attempt.logged is None else ())
    ]
    fields = {
        "outcome": attempt.outcome,
        "verdict": attempt.verdict,
        "reason": attempt.reason,
        "left": delivery.delivered(context, attempt) if here else attempt.candidate or attempt.snapshot.tree,
        "touched": [path for path in attempt.changed if path not in attempt.ledger.deviations] if here else [],
        "deviations": list(attempt.ledger.deviations),
        "accepted_paths": list(attempt.accepted_paths),
        "ledger": attempt.ledger.as_list(),
        "symbols": ledger.symbol_texts(attempt.ledger.symbols) if attempt.ledger.symbols else [],
        "feedback": evidence.feedback(attempt.reason, attempt.ledger, attempt.evidence),
        "seconds": round(now - attempt.started, 3),
        "cause": result.cause if result else None,
        "builder": None if result is None else _plain(result),
    }
    binding = context.services.settings.bindings.get(attempt.validator or "")
    judged_by = {"binding": attempt.validator, "adapter": attempt.validator if binding is None else binding.adapter}
    exhausted = result is not None and result.failure == agent.CONTEXT_EXHAUSTED
    optional = {
        "validator": None if verdict is None else _plain(verdict) | judged_by,
        "failure": attempt.failure and attempt.failure.kind,
        "fix": attempt.failure and attempt.failure.next_step,
        "deviation": attempt.deviates,
        "tool_files": list(attempt.tool_files),
        "messages": list(attempt.messages),
        "handover": _handover(attempt, result) if result is not None and exhausted else "",
        "base": attempt.base if attempt.logged is not None else "",
        "outputs": dict(attempt.outputs),
        "record": attempt.saved(now) if attempt.outcome == outcome.WAITING or attempt.deviates else None,
        **(questions.effect_payload(task) if result is not None else {}),
    }
    fields |= {name: value for name, value in optional.items() if value}
    finished = context.journal.event("attempt.finished", task.id, attempt.number, **fields)
    return [*events, *new_evidence(context, attempt), finished]


def call_id(run: str, task: str, attempt: int, index: int) -> str:
    """Return the id of the tool call of one step."""
    return canonical_json.digest([run, task, attempt, index])[:16]


def _handover(attempt: Attempt, result: AgentResult) -> str:
    """Return the summary for the next attempt: the agent's own, or one that is made without a model."""
    if result.handover.strip():
        return result.handover.strip()
    return _without_model(attempt.task, attempt.changes, result)


def _without_model(task: Task, changes: tuple[Change, ...], result: AgentResult) -> str:
    """Return the task, what is in the files so far, and the agent's last words."""
    lines = [f"{task.id}: {task.title}", "", "What is in the files so far:"]
    lines += [f"- {change.kind} `{change.path}`" for change in changes[:_MOST_FILES]] or ["- nothing yet"]
    if len(changes) > _MOST_FILES:
        lines.append(f"- and {len(changes) - _MOST_FILES} files more")
    last = (result.reply or result.output).strip()[-_LAST_WORDS:]
    if last:
        lines += ["", "The last words of the agent before:", "", *(f"> {line}" for line in last.splitlines())]
    return "\n".join(lines)


_ELSEWHERE = frozenset({"steps", "answer", "reply", "handover"})
"""The fields of a result that other events or the transcript have."""


def _plain(result: AgentResult) -> dict[str, Any]:
    fields = {**to_builtins(result), "seconds": round(result.seconds, 3)}
    empty = {name for name in ("crashed", "sandbox") if not fields[name]}
    return {name: value for name, value in fields.items() if name not in _ELSEWHERE | empty}


def of_questions(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    task, number, journal = attempt.task.id, attempt.number, context.journal
    new = (question for question in attempt.questions if question.id not in journal.state.decisions)
    events = [journal.question_event(question, task, number) for question in new]
    if attempt.outcome == outcome.WAITING:
        answered = {answer.decision for answer in attempt.answers}
        waiting = [q.id for q in attempt.questions if q.id not in answered]
        events.append(journal.event("task.waiting", task, number, decisions=waiting, reason=attempt.reason))
    return events


def of_checkpoint(context: RunContext, attempt: Attempt, kept: Snapshot, commit: str | None) -> list[NewEvent]:
    """Return the events of the checkpoint, and of the task if it is completed."""
    done = attempt.outcome == outcome.COMPLETED
    ended = {"status": "completed", "error": None} if done else {"status": "failed", "error": attempt.reason}
    seconds = round(context.services.clock.monotonic() - attempt.started, 3)
    found = {"verdict": attempt.verdict, "files": list(attempt.changed), "seconds": seconds}
    events = [checkpoint(context, attempt.task, attempt.number, kept, commit, **ended, **found)]
    if done:
        events.append(context.journal.event("task.completed", attempt.task.id, attempt.number, reason=attempt.reason))
        events += handoff_writer.events_of_attempt(context, attempt)
        events += steps.omissions(context, attempt)
    return events


def checkpoint(
    context: RunContext, task: Task, number: int, kept: Snapshot, commit: str | None, **ended: Any
) -> NewEvent:
    """Return the event of a checkpoint. `ended` are its status, error, verdict, files and seconds."""
    found = {"git_hash": commit or context.services.history.head().commit, "commit": commit}
    found |= {"snapshot": kept.commit, "ref": kept.ref, "tree": kept.tree}
    return context.journal.event("checkpoint.recorded", task.id, number, **ended, **found)
