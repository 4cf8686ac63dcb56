"""Files that a task changed without declaring them: whose they are is a question, and waits where nobody is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from idumb.app.core import next_actions
from idumb.app.core.run_context import Bench
from idumb.app.worktree import exposed_secrets
from idumb.domain import contract as contracts
from idumb.domain import listing
from idumb.domain.decision import Choice, Decision
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.proof import ledger
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState, TaskState

MARK = ".deviation."
KIND = "deviation"
ACCEPT, RETRY, HALT = "accept", "retry", "halt"


def asked(bench: Bench, task: Task, attempt: int, reason: str, found: Mapping[str, str]) -> tuple[NewEvent, ...]:
    """The events by which the task waits for an answer; none where the run halts. `found` is path to status.

    It halts in strict mode, where a flag says what happens, where somebody at the terminal was asked already, where
    the builder drives idumb itself and can undo it, and where something is among the files that no answer lets a task
    change: a protected path, or a name that holds a secret.
    """
    strays = [path for path, status in found.items() if status == ledger.UNDECLARED]
    plan, event = bench.plans[task.id], bench.journal.event
    told = bench.on_deviation is not None or bench.services.asker.interactive
    if STRICT in (plan.mode, bench.journal.state.mode) or told or not strays or ledger.PROTECTED in found.values():
        return ()
    if contracts.in_editor(plan, task, bench.services.settings) or exposed_secrets.any_in(bench.services, strays):
        return ()
    question = _question(task, attempt, strays)
    return (
        event("decision.asked", task.id, attempt, **dataclasses.asdict(question)),
        event("task.waiting", task.id, attempt, decisions=[question.id], reason=reason),
    )


def asked_of_recorded(bench: Bench, task: Task, known: TaskState) -> tuple[NewEvent, ...]:
    """The same of an attempt that was recorded before idumb was ended."""
    last = bench.services.log.events(run=bench.run, task=task.id, kind="attempt.finished", newest_first=True, limit=1)
    lines = next((event.payload["ledger"] for event in last), ())
    found = {line["path"]: line["status"] for line in lines if "path" in line}
    return asked(bench, task, known.attempt, known.reason, found)


def _question(task: Task, attempt: int, strays: Sequence[str]) -> Decision:
    return Decision(
        id=f"{task.id}{MARK}{attempt}",
        kind=KIND,
        task=task.id,
        what=f"{task.id} changed files it does not declare: {listing.listed(strays)}",
        why="They may be the builder's or your own; idumb cannot tell and reverts nothing.",
        evidence=tuple(strays),
        choices=(
            Choice(ACCEPT, "they belong to the task, this once", "it is tried again, and they are committed with it"),
            Choice(
                RETRY,
                "they are mine, or wrong",
                next_actions.settled(strays),
            ),
            Choice(HALT, "leave it failed", "everything is kept as it is, and what depends on the task is blocked"),
        ),
    )


def asks(known: TaskState) -> bool:
    """Whether a task waits for such an answer."""
    return any(MARK in decision for decision in known.decisions)


def accepted(state: RunState, task: str, strays: Sequence[str]) -> bool:
    """Whether a person said of each of these files that it belongs to the task."""
    said = [i for i, answer in state.answers.items() if MARK in i and answer["choice"] == ACCEPT]
    mine = [state.decisions[i] for i in said if state.decisions.get(i, {}).get("task") == task]
    return set(strays) <= {path for question in mine for path in question["evidence"]}
