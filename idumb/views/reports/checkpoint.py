"""The checkpoint of a task as Markdown: fields in the front matter, iDumb's ten first; proof in the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import outcome
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence as proof
from idumb.domain.proof import ledger as ledgers
from idumb.domain.proof import symbols
from idumb.domain.runs import spending
from idumb.domain.runs.run import INTERRUPTED, Checkpoint, RunState, TaskState
from idumb.views import quantities
from idumb.views.reports import rendering
from idumb.views.reports.rendering import Recorded

_STATUSES = ("failed", "partial", "skipped")


def render(
    state: RunState, task: Task, evidence: Sequence[Recorded] = (), ledger: Sequence[Mapping[str, Any]] | None = None
) -> str:
    """Return the document of the task's newest checkpoint in `state`, which must exist.

    `evidence` are the payloads of that attempt's `evidence.recorded` events, `ledger` is `Ledger.as_list()`; None
    means that it is unknown.
    """
    task_state = state.tasks[task.id]
    kept = task_state.checkpoint
    if kept is None:
        raise ValueError(f"{task.id} has no checkpoint")
    verdict = _verdict(task_state, kept, evidence, ledger or ())
    of_agents = task_state.attempt.adapter not in {"", *spending.FREE}
    return rendering.render(
        "checkpoint.md",
        run=state.id,
        task=task,
        state=task_state,
        kept=kept,
        status=_status(kept.status),
        verdict=verdict,
        validation={None: "skipped", outcome.PASS: "pass"}.get(verdict, "fail"),
        used=quantities.spent(task_state.progress.spent) if of_agents else {},
        evidence=evidence,
        ledger=ledger,
        recorded=symbols.RECORDED,
    )


def _status(status: str) -> str:
    """Return one of iDumb's four statuses; everything not completed, skipped or undecided has failed."""
    if status in outcome.DONE:
        return "completed"
    if status in _STATUSES:
        return status
    return "partial" if status in {outcome.WAITING, INTERRUPTED} else "failed"


def _verdict(
    task_state: TaskState, kept: Checkpoint, evidence: Sequence[Recorded], ledger: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the verdict: PARTIAL if a failed attempt has some of its proof, None if nothing was judged."""
    if kept.status in outcome.DONE:
        return outcome.PASS
    if kept.status == outcome.SKIPPED or task_state.attempt.outcome not in {None, outcome.FAILED}:
        return None
    broken = any(line["status"] not in {ledgers.DECLARED, *symbols.HOLDING} for line in ledger)
    passed = any(recorded["result"] == proof.PASSED for recorded in evidence)
    return outcome.PARTIAL if passed and not broken else outcome.FAIL
