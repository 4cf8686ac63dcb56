"""What a fresh agent is told where the context of the one before was exhausted."""

from __future__ import annotations

from collections.abc import Mapping

from idumb.app.core.run_context import Attempt, Bench
from idumb.domain import agent
from idumb.domain.agent import AgentResult
from idumb.domain.plans.plan import Task
from idumb.domain.proof.ledger import Change

Counts = Mapping[str, tuple[int | None, int | None]]

_WORDS = 2000
_FILES = 50


def handover(bench: Bench, attempt: Attempt) -> str:
    """The agent's own summary, or one that is made from what is there; "" where no context was exhausted."""
    result = attempt.result
    if result is None or result.failure != agent.CONTEXT_EXHAUSTED:
        return ""
    if result.handover.strip():
        return result.handover.strip()
    counts: Counts = bench.work.line_counts(attempt.base, attempt.candidate) if attempt.candidate else {}
    return made(attempt.task, attempt.changes, counts, result)


def made(
    task: Task,
    changes: tuple[Change, ...],
    counts: Counts,
    result: AgentResult,
) -> str:
    """A summary without any model: the task, what is in the files so far, and the last words of the agent."""
    lines = [f"{task.id}: {task.title}", "", "What is in the files so far:"]
    lines += [_line(change, counts) for change in changes[:_FILES]] or ["- nothing yet"]
    if len(changes) > _FILES:
        lines.append(f"- and {len(changes) - _FILES} files more")
    last = (result.reply or result.output).strip()[-_WORDS:]
    if last:
        lines += ["", "The last words of the agent before:", "", *(f"> {line}" for line in last.splitlines())]
    return "\n".join(lines)


def _line(change: Change, counts: Counts) -> str:
    added, removed = counts.get(change.path, (None, None))
    size = "" if added is None else f", {added} lines added, {removed} removed"
    return f"- {change.kind} `{change.path}`{size}"


def path(folder: str, task: str, attempt: int) -> str:
    """Where the summary of an attempt is kept for people."""
    return f"{folder}/context-{task}-{attempt}.md"


def document(task: Task, attempt: int, text: str) -> str:
    return f"# {task.id}, attempt {attempt}: what the next agent is told\n\n{text}\n"
