"""The summary with which the next attempt continues, if the context of this one's agent was exhausted."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.app.core.attempt import Attempt
from idumb.app.core.run_context import RunContext
from idumb.domain.agent import AgentResult
from idumb.domain.plans.plan import Task
from idumb.domain.proof.ledger import Change

Counts = Mapping[str, tuple[int | None, int | None]]
_LAST_WORDS = 2000
_MOST_FILES = 50


def summary(context: RunContext, attempt: Attempt, result: AgentResult) -> str:
    """Return the agent's own summary, or one that is made without a model."""
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
