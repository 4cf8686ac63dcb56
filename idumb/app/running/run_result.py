"""The result of a command that ran tasks: outcome, counts, failure, exit code and next commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app.contract import run_lock
from idumb.app.core import actions, projection_paths, schedule
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.engine import moves
from idumb.app.session import failure_report, next_steps
from idumb.domain import agent, errors, outcome
from idumb.domain.contract import Contract
from idumb.domain.runs.run import RunState

_OUTCOMES = {"waiting": "waiting", "paused": "paused", agent.EDITOR: "waiting"}


def build(
    services: Services,
    state: RunState,
    contract: Contract,
    ending: moves.Ending,
    statuses: Mapping[str, str],
    verification: Mapping[str, Any] | None,
    warnings: tuple[str, ...],
) -> Result:
    counts = {s: sum(1 for v in statuses.values() if v == s) for s in dict.fromkeys(statuses.values())}
    done = schedule.settled(statuses)
    word = "complete" if done else _OUTCOMES.get(ending.kind, "partial")
    if not done and not any(s in outcome.DONE for s in statuses.values()) and word == "partial":
        word = "failed"
    questions = next_steps.pending(state)
    following = next_steps.available(services, contract, state, statuses, ending.task)
    data: dict[str, Any] = {
        "run": state.id,
        "phase": state.phase,
        "session": state.session,
        "outcome": word,
        "reason": ending.words,
        "counts": counts,
        "total": len(statuses),
        "contract_hash": contract.hash,
        "tasks": [next_steps.task_row(state, contract, t, statuses) for t in contract.order],
        "summary": projection_paths.report_path(contract.folder, "SUMMARY"),
        "reports": state.reports,
        "files_modified": len({p for t in state.attempted for p in state.tasks[t].work.touched}),
        "lock_in": None if state.contract.lock_in is None else dict(state.contract.lock_in),
        "verification": verification,
        "untracked": run_lock.uncommitted_inputs(
            services, (p.path for p in contract.plans), reports=state.commits_reports
        ),
        "decisions": questions,
        "blocked": actions.blocked_groups(contract, state, statuses),
        "next": sorted(following, key=lambda action: action.verb != "show"),
    }
    if word == "complete":
        if verification is None or verification["status"] == "passed":
            return Result(data, errors.EXIT_DONE, warnings)
        status = verification["status"]
        words = f"verify-work says {status}: {verification['reason']}"
        return Result(
            data,
            errors.EXIT_WAITING if status == "waiting" else errors.EXIT_FAILED,
            warnings,
            (f"verification.{status}", f"All tasks of phase {contract.phase} are done, but {words}", data["next"][0]),
            failure_report.of_verification(services, state, contract, verification),
        )
    failed = next((t for t, s in statuses.items() if s in (outcome.FAILED, outcome.RUNNING)), ending.task)
    if ending.task is not None and statuses.get(ending.task) == outcome.FAILED:
        failed = ending.task  # the task that ended the run may not be the first that failed
    if ending.kind == agent.EDITOR:
        failed = None
    failure = failure_report.structured(services, state, contract, failed)
    if failure is not None:  # a task whose commit git refused has no reason, and one that waits to be delivered runs
        waits = word == "waiting" and statuses.get(failed or "") != outcome.FAILED
        failure |= {"error": failure["error"] or ending.words, **({"status": outcome.WAITING} if waits else {})}
    data["failure"] = failure
    code = errors.EXIT_WAITING if word in {"waiting", "paused"} else errors.EXIT_FAILED
    if word == "paused":
        data["choices"] = actions.rows(actions.for_paused(state))
    words = ending.words or f"{counts.get(outcome.FAILED, 0)} failed, {counts.get(outcome.BLOCKED, 0)} blocked"
    slug = {"waiting": "run.waiting", "commit-refused": "git.commit-refused", "halted": "run.halted"}
    slug |= {"paused": "run.paused", agent.EDITOR: "run.in-editor"}
    hint = data["next"][0]
    if ending.kind == "waiting" and not questions:
        task = state.tasks.get(ending.task or "")
        before = "Write the answer" if task is None or task.status == outcome.WAITING else "Commit them"
        hint = f"{'Go back' if task is not None and task.intended else before}, then {hint}"
    return Result(
        data,
        code,
        warnings,
        (slug.get(ending.kind, "run.failed"), f"Phase {contract.phase} is not complete: {words}", hint),
        {
            **(
                data["failure"]
                or failure_report.of_run(services, state, contract, words, waits=code == errors.EXIT_WAITING)
            ),
            **({"choices": data["choices"]} if "choices" in data else {}),
            **({"decisions": [d["id"] for d in questions]} if questions else {}),
        },
    )
