"""The checkpoint of a task as Markdown: fields in the front matter, proof in the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from idumb.domain import outcome
from idumb.domain.plans.plan import Task
from idumb.domain.proof import evidence as proof
from idumb.domain.proof import ledger as ledgers
from idumb.domain.proof import symbols
from idumb.domain.runs import spending
from idumb.domain.runs.run import INTERRUPTED, RunState
from idumb.domain.runs.task_state import Checkpoint, TaskState
from idumb.views import markup, quantities
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
    return rendering.render(
        "checkpoint.md",
        fields=_fields(task_state, kept, state.id, _verdict(task_state, kept, evidence, ledger or ())),
        task=task,
        kept=kept,
        carried_from=task_state.carried_from,
        evidence=evidence,
        ledger=ledger,
        recorded=symbols.RECORDED,
        work=task_state.work,
    )


def _fields(
    task_state: TaskState, kept: Checkpoint, run: str, verdict: str | None
) -> dict[str, markup.Scalar | Sequence[markup.Scalar]]:
    """Return iDumb's ten fields in its order, then idumb's."""
    return {
        "id": f"checkpoint-{task_state.id}",
        "timestamp": kept.at,
        "task_id": task_state.id,
        "status": _status(kept.status),
        "git_hash": kept.git_hash or "no-git",
        "files_modified": kept.files,
        "validation_result": {None: "skipped", outcome.PASS: "pass"}.get(verdict, "fail"),
        "retry_count": max(0, task_state.progress.attempts - 1),
        "error_message": kept.error,
        "duration_seconds": round(kept.seconds, 3),
        "run": run,
        "attempt": kept.attempt,
        "verdict": verdict,
        "snapshot": kept.snapshot,
        "tree": kept.tree,
        "commit": kept.commit,
        "accepted_paths": task_state.work.accepted_paths,
        "symbols": task_state.work.symbols,
        **_used(task_state),
    }


def _used(task_state: TaskState) -> dict[str, markup.Scalar]:
    """Return the usage of the task's agents; empty for builders without usage."""
    spent = task_state.progress.spent
    return {} if task_state.attempt.adapter in {"", *spending.FREE} else dict(quantities.spent(spent))


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
