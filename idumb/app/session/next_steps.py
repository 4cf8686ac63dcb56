"""What a command reports after a run: the row of each task, open questions, the next commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.core import projection_paths, questions, schedule
from idumb.domain import failures, outcome, wording
from idumb.domain.contract import Contract
from idumb.domain.decision import CONFLICT, HISTORY, PHASE, SECRET, seconds_until
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import IRREVERSIBLE, STRICT
from idumb.domain.runs import gap
from idumb.domain.runs.run import RunState


def task_row(state: RunState, contract: Contract, task: str, shown: Mapping[str, str]) -> dict[str, Any]:
    task_state = state.tasks.get(task)
    row: dict[str, Any] = {"id": task, "title": contract.tasks[task].title, "status": shown[task]}
    if task_state is None:
        return row
    row |= {
        "attempts": task_state.progress.attempts,
        "attempt": task_state.attempt.number,
        "reason": task_state.reason,
        "seconds": round(task_state.progress.seconds, 3),
    }
    if task_state.checkpoint is not None:
        row |= {
            "commit": task_state.checkpoint.commit,
            "git_hash": task_state.checkpoint.git_hash,
            "snapshot": task_state.checkpoint.snapshot,
            "files": list(task_state.checkpoint.files),
            "checkpoint": projection_paths.checkpoint_path(state.phase, task),
        }
    if shown[task] == outcome.BLOCKED:
        row["blocked_by"] = list(schedule.blockers(contract, shown, task))
        row["reason"] = why_blocked(contract, state, shown, task)
        row["actions"] = unblocking(contract, state, shown, task)
    return row


def pending(state: RunState, now: str | None = None) -> list[dict[str, Any]]:
    """Return the open questions: of tasks that wait, failed for good or are to be accepted, and of the phase.

    With `now`, those are omitted whose time to answer is over: `resume` records that the answer is no.
    """
    waiting = {d for t in state.tasks.values() if t.status == outcome.WAITING for d in t.decisions}
    unanswered = {i: d for i, d in state.decisions.items() if i not in state.answers}
    rows = [dict(d) for i, d in unanswered.items() if i in waiting or _waits_by_itself(state, d)]
    return [row for row in rows if now is None or "until" not in row or seconds_until(row["until"], now)]


def _waits_by_itself(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether a question waits although no task does: about the phase, or about a task that failed for good."""
    if question["task"] is None:
        return state.is_complete and not _over(state, question)
    task = state.tasks.get(question["task"])
    if task is None:
        return False
    if question["kind"] == HISTORY:  # the run was halted by it
        return bool(state.reason == question["what"])
    if question["kind"] == SECRET:
        return question["subject"] == questions.TO_ACCEPT and task.status not in outcome.ENDED
    if question["kind"] == CONFLICT:
        before = task.status in schedule.RUNNABLE and not task.attempt.running
        return before if question["subject"] == questions.BASE else task.intended
    return questions.is_current(state, question)


def _over(state: RunState, question: Mapping[str, Any]) -> bool:
    """Return whether a later verification replaced the one that a question is about."""
    if question["kind"] != PHASE:
        return False
    return state.verification is None or state.verification.get("decision") != question["id"]


def _past_skipped(contract: Contract, state: RunState, shown: Mapping[str, str]) -> list[str]:
    """Return what to do about skipped tasks that others need; empty if something can still run."""
    if not is_stuck(shown):
        return []
    held = blocked_groups(contract, state, shown)
    return [*(way for group in held for way in group["actions"]), f"idumb skip {held[0]['tasks'][0]} --why REASON"]


def next_commands(
    contract: Contract,
    state: RunState,
    shown: Mapping[str, str],
    ending: str,
    verification: Mapping[str, Any] | None,
    *,
    has_question: bool = True,
    first: str | None = None,
) -> list[str]:
    """Return what a user can do now, the most likely first.

    `has_question` tells whether a question waits for a person; `first` is the task that ended the run.
    """
    phase = contract.phase
    if schedule.settled(shown):
        if verification is not None and verification["status"] == "waiting":
            return ["idumb decisions", f"idumb verify-work {phase}"]
        if verification and verification["status"] == "partial" and verification.get("decision") is not None:
            gaps = [f"idumb verify-work {phase} --gaps"] if gap.from_verification(verification) else []
            return ["idumb decisions", f"idumb verify-work {phase}", *gaps]
        if verification is not None and verification["status"] == "partial":
            return [f"idumb verify-work {phase} --gaps", f"idumb verify-work {phase}"]
        if verification is None or verification["status"] != "passed":
            return [f"idumb verify-work {phase}"]
        back = _ways_back(contract, shown)
        return ["idumb next", *back, *(["idumb undo"] if back else [])]
    if ending == "waiting":
        return [*(["idumb decisions"] if has_question else []), f"idumb resume {phase}", *_ways_back(contract, shown)]
    failed = sorted((t for t, s in shown.items() if s == outcome.FAILED), key=lambda t: t != first)
    judged = [f"idumb verify-work {phase}"] if any(s in outcome.DONE for s in shown.values()) else []
    if not failed:
        failure = state.tasks[first].attempt.failure if first in state.tasks else None
        go_on = f"idumb {failures.kind(failure).again} {phase}"
        return [*(_past_skipped(contract, state, shown) or [go_on]), *judged]
    return [
        f"idumb show {failed[0]} --debug",
        *(["idumb decisions"] if has_question else []),
        f"idumb show {failed[0]}",
        f"idumb resume {phase} --retry-failed",
        f"idumb accept {failed[0]} --why REASON",
        f"idumb skip {failed[0]} --why REASON",
        *judged,
        *_ways_back(contract, shown),
    ]


def _ways_back(contract: Contract, shown: Mapping[str, str]) -> list[str]:
    """Return the rollback of the whole phase; nothing if a completed task is irreversible, because it is refused."""
    done = (contract.tasks[task] for task, status in shown.items() if status in outcome.DONE)
    refused = any(task.rollback.kind == IRREVERSIBLE and not task.is_human for task in done)
    return [] if refused else [f"idumb rollback {contract.phase} --to start"]


REASON = "REASON"
_DONE_TO = {outcome.FAILED: "failed", outcome.SKIPPED: "was skipped"}


def why_blocked(contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str) -> str:
    """`waits for T1-01 (skipped: no time)`, with the tasks in between."""
    words = []
    for needed in schedule.blockers(contract, shown, task):
        task_state = state.tasks.get(needed) if state is not None else None
        reason = task_state.reason if task_state is not None and shown[needed] in _DONE_TO else ""
        words.append(f"{needed} ({shown[needed]}{f': {reason}' if reason else ''})")
    return f"waits for {wording.listed(words)}"


def unblocking(contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str) -> list[str]:
    """Commands that unblock a task and can succeed now; [] if the task is not blocked."""
    if shown[task] != outcome.BLOCKED:
        return []
    causes = schedule.roots(contract, shown, task)
    retries = any(shown[cause] == outcome.FAILED for cause in causes)
    retry = [f"idumb resume {contract.phase} --retry-failed"] if retries else []
    accept = [f"idumb accept {cause} --why {REASON}" for cause in causes]
    return [*retry, *accept, *_drop_dependency(contract, state, shown, task)]


def _drop_dependency(contract: Contract, state: RunState | None, shown: Mapping[str, str], task: str) -> list[str]:
    """The amendment that drops the dependency.

    A strict plan is approved as a whole, so only its author changes it. Plans of workflows are never amended.
    """
    plan = contract.plan_of(task)
    if state is None or STRICT in (state.mode, contract.mode) or plan.dialect == step_plan.DIALECT or plan.workflow:
        return []
    droppable = [d for d in schedule.blockers(contract, shown, task) if d in contract.tasks[task].depends_on]
    if not droppable:
        return []
    return [" ".join([f"idumb amend {contract.phase}", *(f"--drop-dependency {task} {d}" for d in droppable)])]


def blocked_groups(contract: Contract, state: RunState | None, shown: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each failed or skipped task that blocks others: `by`, `status`, `reason`, `tasks`, `actions`."""
    held: dict[str, list[str]] = {}
    for task in contract.order:
        if shown[task] == outcome.BLOCKED:
            for cause in schedule.roots(contract, shown, task):
                held.setdefault(cause, []).append(task)
    return [_group(contract, state, shown, cause, tasks) for cause, tasks in held.items()]


def _group(
    contract: Contract, state: RunState | None, shown: Mapping[str, str], cause: str, tasks: list[str]
) -> dict[str, Any]:
    task_state = state.tasks.get(cause) if state is not None else None
    ways = [way for task in tasks for way in unblocking(contract, state, shown, task) if _is_about(way, cause)]
    return {
        "by": cause,
        "status": shown[cause],
        "reason": task_state.reason if task_state is not None else "",
        "tasks": tasks,
        "actions": list(dict.fromkeys(ways)),
    }


def _is_about(action: str, cause: str) -> bool:
    return cause in action.split() or action.endswith("--retry-failed")


def blocked_summary(groups: list[dict[str, Any]]) -> str:
    """One line that says why nothing more can run."""
    return "; ".join(
        f"{wording.listed(group['tasks'])} {'stays' if len(group['tasks']) == 1 else 'stay'} blocked,"
        f" because {group['by']} {_DONE_TO[group['status']]}{f': {reason}' if (reason := group['reason']) else ''}"
        for group in groups
    )


def is_stuck(shown: Mapping[str, str]) -> bool:
    """Whether every unfinished task is blocked, so that nothing can run until the user decides about skipped tasks."""
    held = {outcome.BLOCKED, *outcome.ENDED}
    return outcome.BLOCKED in shown.values() and set(shown.values()) <= held
