"""Tasks with effects outside the files (a deployment, a message) are not tried once more without a person's word."""

from __future__ import annotations

import dataclasses

from idumb.app.core.run_context import Bench
from idumb.domain.decision import Choice, Decision
from idumb.domain.plans.plan import COMPENSATABLE, REVERSIBLE, Task
from idumb.domain.runs.run import EFFECT

AGAIN = "again"
SKIP = "skip"
MARK = ".again."


def of_attempt(task: Task) -> dict[str, str]:
    """What an event about a begun attempt says; empty for tasks that files alone take back."""
    return {} if task.rollback.kind == REVERSIBLE or task.is_human else {"effect": EFFECT}


def asked(bench: Bench, task: Task) -> str | None:
    """None where the task may start; `SKIP` when it was left out, the question's id while nobody answered.

    Asked once for each attempt that may have had the effect: nobody can see whether it did.
    """
    known, event = bench.journal.state.tasks[task.id], bench.journal.event
    if known.effect != EFFECT:
        return None
    question = _question(task, known.attempt, known.reason)
    answered = bench.journal.state.answers.get(question.id)
    if answered is not None:
        return None if answered["choice"] == AGAIN else SKIP
    events = [event("decision.asked", task.id, known.attempt, **dataclasses.asdict(question))]
    answer = bench.services.asker.ask(question)
    if answer is None:
        reason = "it may have had its effect already"
        events.append(event("task.waiting", task.id, known.attempt, decisions=[question.id], reason=reason))
    else:
        events.append(event("decision.answered", task.id, known.attempt, **dataclasses.asdict(answer)))
        if answer.choice == SKIP:
            events.append(event("task.skipped", task.id, known.attempt, reason="a person left it out"))
    bench.journal.write(*events)
    if answer is None:
        return question.id
    return None if answer.choice == AGAIN else SKIP


def _question(task: Task, attempt: int, reason: str) -> Decision:
    owed = task.rollback.kind == COMPENSATABLE
    how = "can be taken back only by its own commands" if owed else "cannot be taken back"
    lines = (
        reason,
        task.rollback.reason,
        *(f"taken back by: {command}" for command in task.rollback.commands),
        f"idumb accept {task.id} --why REASON takes it as done",
    )
    return Decision(
        id=f"{task.id}{MARK}{attempt}",
        kind="effect",
        task=task.id,
        what=f"{task.id} {task.title} may have had its effect already",
        why=f"An attempt was begun, and what it does {how}; idumb cannot see whether it happened.",
        evidence=tuple(line for line in lines if line),
        choices=(
            Choice(AGAIN, "do it again", "the task starts once more"),
            Choice(SKIP, "leave it out", "what depends on it stays blocked"),
        ),
    )
