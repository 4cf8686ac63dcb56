"""Render the checkpoint of a task as Markdown: fields in the frontmatter, proof in the body."""

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
from idumb.views.reports import evidence_table

STATUSES = ("completed", "failed", "partial", "skipped")


def render(
    state: RunState,
    task: Task,
    evidence: Sequence[evidence_table.Recorded] = (),
    ledger: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """Return the document of the task's newest checkpoint in `state`, which must exist.

    `evidence` are the payloads of that attempt's `evidence.recorded` events, `ledger` is `Ledger.as_list()`; None
    means that it is unknown.
    """
    task_state = state.tasks[task.id]
    kept = task_state.checkpoint
    if kept is None:
        raise ValueError(f"{task.id} has no checkpoint")
    judged = verdict_of(task_state, kept, evidence, ledger or ())
    body = [f"# Checkpoint {markup.prose(task.id)}: {markup.prose(task.title)}", "", *_sentence(task_state, kept), ""]
    body += ["## Evidence", "", *evidence_table.render(evidence), ""]
    body += ["## Ledger", "", *_ledger(ledger), ""]
    body += ["## Deviations", "", *_deviations(task_state)]
    return "\n".join([*markup.frontmatter(fields(task_state, kept, state.id, judged)), "", *body]) + "\n"


def fields(
    task_state: TaskState, kept: Checkpoint, run: str, verdict: str | None
) -> dict[str, markup.Scalar | Sequence[markup.Scalar]]:
    """Return iDumb's ten fields in its order, then idumb's."""
    return {
        "id": f"checkpoint-{task_state.id}",
        "timestamp": kept.at,
        "task_id": task_state.id,
        "status": status_of(kept.status),
        "git_hash": kept.git_hash or "no-git",
        "files_modified": kept.files,
        "validation_result": validation_result(verdict),
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
    if task_state.attempt.adapter in {"", *spending.FREE}:
        return {}
    return {
        "tokens": quantities.sum_of(
            task_state.progress.spent.tokens,
            task_state.progress.spent.unknown_tokens,
            str(task_state.progress.spent.tokens),
        ),
        "cost": quantities.sum_of(
            task_state.progress.spent.cost_usd,
            task_state.progress.spent.unknown_cost,
            quantities.money(task_state.progress.spent.cost_usd),
        ),
    }


def status_of(status: str) -> str:
    """Return one of iDumb's four statuses; everything not completed, skipped or undecided has failed."""
    if status in outcome.DONE:
        return "completed"
    if status in STATUSES:
        return status
    return "partial" if status in {outcome.WAITING, INTERRUPTED} else "failed"


def verdict_of(
    task_state: TaskState,
    kept: Checkpoint,
    evidence: Sequence[evidence_table.Recorded],
    ledger: Sequence[Mapping[str, Any]],
) -> str | None:
    """Return the verdict: PARTIAL if a failed attempt has some of its proof, None if nothing was judged."""
    if kept.status in outcome.DONE:
        return outcome.PASS
    if kept.status == outcome.SKIPPED or task_state.attempt.outcome not in {None, outcome.FAILED}:
        return None
    broken = any(line["status"] not in {ledgers.DECLARED, *symbols.HOLDING} for line in ledger)
    passed = any(recorded["result"] == proof.PASSED for recorded in evidence)
    return outcome.PARTIAL if passed and not broken else outcome.FAIL


def validation_result(verdict: str | None) -> str:
    if verdict is None:
        return "skipped"
    return "pass" if verdict == outcome.PASS else "fail"


def _sentence(task_state: TaskState, kept: Checkpoint) -> list[str]:
    commit = f"commit `{quantities.short(kept.commit)}`" if kept.commit else "no commit of its own"
    carried = (
        f" It was carried over from run {markup.code(task_state.carried_from)}." if task_state.carried_from else ""
    )
    lines = [
        (
            f"Attempt {kept.attempt}, {quantities.duration(kept.seconds)}, {commit}, snapshot "
            f"`{quantities.short(kept.snapshot)}`.{carried}"
        )
    ]
    if kept.error:
        lines += ["", f"Error: {markup.prose(kept.error)}"]
    return lines


def _ledger(ledger: Sequence[Mapping[str, Any]] | None) -> list[str]:
    if ledger is None:
        return ["The ledger is not available here; `idumb show` reads it from the event log."]
    if not ledger:
        return ["Nothing was declared and nothing changed."]
    rows = (
        (
            _subject(line),
            markup.prose(line.get("declared") or "nothing"),
            markup.prose(line.get("actual") or "nothing"),
            markup.prose(line["status"]),
        )
        for line in ledger
        if line["status"] != symbols.RECORDED
    )
    return markup.table(("Path", "Declared", "Actual", "Status"), rows)


def _subject(line: Mapping[str, Any]) -> str:
    """Return a file, or a symbol with its file."""
    if "symbol" not in line:
        return markup.code(line["path"])
    return f"symbol {markup.code(line['symbol'])}" + (f" in {markup.code(line['path'])}" if line["path"] else "")


def _deviations(task_state: TaskState) -> list[str]:
    lines = [f"- {markup.prose(text)}" for text in task_state.work.deviations]
    lines += [
        f"- {markup.code(path)} was added to the task's scope by a person" for path in task_state.work.accepted_paths
    ]
    return lines or ["None."]
