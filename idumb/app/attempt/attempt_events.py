"""The events that record an attempt: how it ended, what was asked, its checkpoint, and the intention to commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from idumb.app.attempt import handoff_writer, steps
from idumb.app.core import questions
from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.app.ports import Snapshot
from idumb.app.worktree import delivery
from idumb.domain import agent, canonical_json, outcome
from idumb.domain.agent import AgentResult
from idumb.domain.plans.plan import REVERSIBLE, Task
from idumb.domain.proof import evidence, ledger
from idumb.domain.proof.ledger import Change
from idumb.domain.runs.event import NewEvent

Counts = Mapping[str, tuple[int | None, int | None]]
_LAST_WORDS = 2000
_MOST_FILES = 50


def event(context: RunContext, attempt: Attempt, kind: str, **payload: Any) -> NewEvent:
    return NewEvent(kind, payload, run=context.run, task=attempt.task.id, attempt=attempt.number)


def intention(context: RunContext, attempt: Attempt) -> NewEvent:
    """Return the event that announces the delivery and, if the record has a message, the commit."""
    return event(context, attempt, "checkpoint.intended", record=attempt.saved(context.services.clock.monotonic()))


def finished(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    task, number, result = attempt.task.id, attempt.number, attempt.result
    waits = attempt.outcome == outcome.WAITING
    here = attempt.in_place or attempt.outcome == outcome.COMPLETED
    events = [
        event(
            context,
            attempt,
            "step.finished",
            call=call_id(context.run, task, number, step.index),
            plan_hash=attempt.plan.sha256,
            **{**asdict(step), "seconds": round(step.seconds, 6)},
        )
        for step in (result.steps if result and attempt.told is None else ())
    ]
    new = (e for e in attempt.evidence if e not in (attempt.told or ()))
    events += [event(context, attempt, "evidence.recorded", **e.as_dict()) for e in new]
    events.append(
        event(
            context,
            attempt,
            "attempt.finished",
            outcome=attempt.outcome,
            verdict=attempt.verdict,
            reason=attempt.reason,
            left=delivery.delivered(context, attempt) if here else attempt.candidate or attempt.snapshot.tree,
            touched=[path for path in attempt.changed if path not in attempt.ledger.strays] if here else [],
            deviations=list(attempt.ledger.strays),
            accepted_paths=list(attempt.accepted_paths),
            ledger=attempt.ledger.as_list(),
            symbols=ledger.symbol_texts(attempt.ledger.symbols) if attempt.ledger.symbols else [],
            feedback=evidence.feedback(attempt.reason, attempt.ledger, attempt.evidence),
            seconds=round(context.services.clock.monotonic() - attempt.started, 3),
            cause=result.cause if result else None,
            builder=_result_payload(result),
            **_optional_fields(context, attempt),
            **({"base": attempt.base} if attempt.told is not None else {}),
            **({"outputs": dict(attempt.outputs)} if attempt.outputs else {}),
            **({"record": attempt.saved(context.services.clock.monotonic())} if waits or attempt.deviation else {}),
        )
    )
    return events


def call_id(run: str, task: str, attempt: int, index: int) -> str:
    """Return the id of the tool call of one step."""
    return canonical_json.digest([run, task, attempt, index])[:16]


def _optional_fields(context: RunContext, attempt: Attempt) -> dict[str, Any]:
    """Return the fields of `attempt.finished` that are recorded only if they are not empty."""
    fields: dict[str, Any] = {}
    result, verdict = attempt.result, attempt.verdict_of_validator
    if verdict is not None:
        binding = context.services.settings.bindings.get(attempt.validator or "")
        adapter = attempt.validator if binding is None else binding.adapter
        fields["validator"] = {**(_result_payload(verdict) or {}), "binding": attempt.validator, "adapter": adapter}
    if attempt.failure is not None:
        fields |= {"failure": attempt.failure.kind, "fix": attempt.failure.next_step}
    if attempt.deviation:
        fields["deviation"] = True
    fields |= {n: list(found) for n in ("tool_files", "messages") if (found := getattr(attempt, n))}
    if result is not None and result.failure == agent.CONTEXT_EXHAUSTED:
        fields["handover"] = _handover(context, attempt, result)
    if result is not None and attempt.task.rollback.kind != REVERSIBLE:
        fields |= questions.effect_payload(attempt.task)
    return fields


def _handover(context: RunContext, attempt: Attempt, result: AgentResult) -> str:
    """Return the summary for the next attempt: the agent's own, or one that is made without a model."""
    if result.handover.strip():
        return result.handover.strip()
    counts: Counts = context.work.line_counts(attempt.base, attempt.candidate)
    return _without_model(attempt.task, attempt.changes, counts, result)


def _without_model(task: Task, changes: tuple[Change, ...], counts: Counts, result: AgentResult) -> str:
    """Return the task, what is in the files so far, and the agent's last words."""
    lines = [f"{task.id}: {task.title}", "", "What is in the files so far:"]
    lines += [_change_line(change, counts) for change in changes[:_MOST_FILES]] or ["- nothing yet"]
    if len(changes) > _MOST_FILES:
        lines.append(f"- and {len(changes) - _MOST_FILES} files more")
    last = (result.reply or result.output).strip()[-_LAST_WORDS:]
    if last:
        lines += ["", "The last words of the agent before:", "", *(f"> {line}" for line in last.splitlines())]
    return "\n".join(lines)


def _change_line(change: Change, counts: Counts) -> str:
    added, removed = counts.get(change.path, (None, None))
    size = "" if added is None else f", {added} lines added, {removed} removed"
    return f"- {change.kind} `{change.path}`{size}"


_ELSEWHERE = frozenset({"steps", "answer", "reply", "handover"})
"""The fields of a result that other events or the transcript have."""


def _result_payload(result: agent.AgentResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    fields = asdict(result)
    fields |= {"claimed_files": list(result.claimed_files), "usage": asdict(result.usage)}
    fields |= {"seconds": round(result.seconds, 3)}
    empty = {name for name in ("crashed", "sandbox") if not fields[name]}
    return {name: value for name, value in fields.items() if name not in _ELSEWHERE | empty}


def asked(context: RunContext, attempt: Attempt) -> list[NewEvent]:
    task, number, journal = attempt.task.id, attempt.number, context.journal
    new = (question for question in attempt.questions if question.id not in journal.state.decisions)
    events = [journal.question_event(question, task, number) for question in new]
    if attempt.outcome == outcome.WAITING:
        answered = {answer.decision for answer in attempt.answers}
        waiting = [q.id for q in attempt.questions if q.id not in answered]
        events.append(event(context, attempt, "task.waiting", decisions=waiting, reason=attempt.reason))
    return events


def completed(context: RunContext, attempt: Attempt, kept: Snapshot, commit: str | None) -> list[NewEvent]:
    done = attempt.outcome == outcome.COMPLETED
    ended = {"status": "completed", "error": None} if done else {"status": "failed", "error": attempt.reason}
    head = commit or context.services.history.head().commit
    found = {"git_hash": head, "commit": commit, "verdict": attempt.verdict, "files": list(attempt.changed)}
    seconds = round(context.services.clock.monotonic() - attempt.started, 3)
    events = [event(context, attempt, "checkpoint.recorded", **ended, **found, **of_kept(kept), seconds=seconds)]
    if done:
        events += [event(context, attempt, "task.completed", reason=attempt.reason)]
        events += handoff_writer.of_attempt(context, attempt)
    if done and attempt.task.flow is not None:
        events += steps.omissions(context, attempt, attempt.task)
    return events


def of_kept(kept: Snapshot) -> dict[str, Any]:
    """Return the fields of `checkpoint.recorded` that say what is kept."""
    return {"snapshot": kept.commit, "ref": kept.ref, "tree": kept.tree}
