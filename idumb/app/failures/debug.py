"""Debug failed tasks: collect attempts, changes and envelopes, list remedies, and ask the bound debugger."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from idumb.app.consent import needs
from idumb.app.contract import loading
from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.failures import diagnosis
from idumb.app.reading import show
from idumb.app.roles import role_calls, role_consent
from idumb.domain import agent, failures, outcome, paths, wording
from idumb.domain.consent import envelope as envelopes
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.proof.evidence import ERRORED, FAILED, TIMED_OUT, UNPROVEN
from idumb.domain.runs import dead_letter
from idumb.domain.runs.event import Event
from idumb.domain.runs.remedy import Failure, remedies
from idumb.domain.runs.run import COMPLETED, RunState
from idumb.domain.runs.task_state import Checkpoint, TaskState

MOST_DIFF = 20_000
MOST_OUTPUT = 4_000
MOST_PATHS = 100
_BAD = frozenset({FAILED, ERRORED, TIMED_OUT, UNPROVEN})
_INTERESTING = (outcome.FAILED, outcome.RUNNING, outcome.WAITING)
_WITHOUT_MODEL = frozenset({agent.STEPS, agent.HUMAN})


def debug(services: Services, phase: str, *, task: str | None, asks: bool, approve: Collection[str]) -> Result:
    """Return what is known of the failures of a phase. Changes nothing; the debugger works in a copy.

    Without `asks`, no agent is called; `approve` is consent to the debugger.
    """
    loaded = loading.load_phase(services, phase)
    state = run_lookup.named_run(services, loaded.contract.phase if loaded.contract else phase)
    chosen = _chosen(state, task)
    data: dict[str, Any] = {
        "phase": state.phase,
        "run": state.id,
        "state": state.state,
        "reason": state.reason,
        "since": _since(services, state, chosen),
        "tasks": [_task(services, loaded.contract, state, each) for each in chosen],
        "verification": _verification(state),
        "diagnosis": None,
        "amendment": None,
    }
    data["checklist"] = _checklist(data)
    data["next"] = _next(data)
    if asks and role_calls.binding_of(services, agent.DEBUGGER) is not None:
        command = f"idumb debug {state.phase}" + (f" --task {task}" if task else "")
        role_consent.ensure(services, needs.of_roles(services, [agent.DEBUGGER]), approve=approve, command=command)
        data |= diagnosis.ask(services, state, loaded, data)
        data["next"] = [*(data["amendment"] or {}).get("next", ()), *data["next"]]
    return Result(data)


def _chosen(state: RunState, task: str | None) -> tuple[str, ...]:
    """Return the named task, or all failed tasks, or those at which the run stopped."""
    if task is not None:
        task_id = run_lookup.find_task(task)[1]
        run_lookup.require_task(state.tasks, task_id, state.phase, f"Run {state.number} of phase {state.phase}")
        return (task_id,)
    chosen = _stopped(state) or next((f for f in (_with_status(state, s) for s in _INTERESTING) if f), ())
    if not chosen and state.state == COMPLETED and (state.verification is None or state.verified):
        raise Refusal(
            "debug.nothing",
            f"Nothing failed in run {state.number} of phase {state.phase}.",
            hint=f"idumb debug {state.phase} --task TASK shows any task; idumb status",
        )
    return chosen


def _stopped(state: RunState) -> tuple[str, ...]:
    """Return the tasks whose agent could not work, which stopped the run, and the failed tasks; else nothing."""
    unstarted = (*_with_status(state, outcome.PENDING), *_with_status(state, outcome.READY))
    unable = [t for t in unstarted if state.tasks[t].attempt.failure in failures.STOPPING]
    return tuple(t for t in state.tasks if t in unable or state.tasks[t].status == outcome.FAILED) if unable else ()


def _with_status(state: RunState, status: str) -> tuple[str, ...]:
    return tuple(task for task, task_state in state.tasks.items() if task_state.status == status)


def _task(services: Services, contract: Contract | None, state: RunState, task: str) -> dict[str, Any]:
    task_state = state.tasks[task]
    attempts = [
        _shortened(a) for a in show.attempts_of(services, run_lookup.attempting_run(services, state, task), task)
    ]
    started = list(services.log.events(run=state.id, task=task, kind="attempt.started"))
    events = services.log.events(run=state.id, task=task, kind="attempt.finished")
    finished = [*{event.attempt: event for event in events}.values()]  # one that waited ends twice
    failure = _failure(state, task_state, finished, started, attempts[-1]["evidence"] if attempts else ())
    failure = replace(failure, variables=contract.variables if contract is not None else {})
    declared = contract.tasks.get(task) if contract is not None else None
    return {
        "id": task,
        "title": declared.title if declared is not None else "",
        "status": task_state.status,
        "reason": task_state.reason or (str(finished[-1].payload["reason"]) if finished else ""),
        "class": dead_letter.failure_class(failure.ended, failure.cause, failure.failure),
        "failure": failure.failure,
        "cause": failure.cause,
        "attempts": attempts,
        "changes": _changes(services, state, finished, task_state),
        "envelope": _envelope(started),
        "remedies": [asdict(remedy) for remedy in remedies(failure)],
    }


def _failure(
    state: RunState,
    task_state: TaskState,
    finished: Sequence[Event],
    started: Sequence[Event],
    evidence: Sequence[Mapping[str, Any]],
) -> Failure:
    last: Mapping[str, Any] = finished[-1].payload if finished else {}
    builder: Mapping[str, Any] = last.get("builder") or {}
    feedback = [e.payload.get("feedback") for e in finished]
    parts = _envelope(started)
    return Failure(
        phase=state.phase,
        task=task_state.id,
        ended=last.get("outcome"),
        cause=last.get("cause"),
        failure=builder.get("failure"),
        checks=tuple((e["subject"], e.get("command")) for e in evidence if e["result"] in _BAD),
        deviations=tuple(last.get("deviations", ())),
        repeated=len(feedback) > 1 and feedback[-1] == feedback[-2],
        envelope=tuple(parts[-1]["parts"]) if parts else (),
    )


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    """Return an attempt with each output cut to its end, where most programs report errors."""
    shown = dict(row)
    shown["evidence"] = [{**e, "output": str(e.get("output") or "")[-MOST_OUTPUT:]} for e in row["evidence"]]
    result = row.get("result")
    if result is not None:
        shown["result"] = {**result, "output": str(result.get("output") or "")[-MOST_OUTPUT:]}
    return shown


def _changes(
    services: Services, state: RunState, finished: Sequence[Event], task_state: TaskState
) -> list[dict[str, Any]]:
    """Return the changes of each attempt since the previous one; those of the first since the task base.

    For an attempt in a clone only the checkpoint shows them, because failed work is not delivered.
    """
    kept = services.log.events(run=state.id, task=task_state.id, kind="checkpoint.recorded")
    checkpoint_trees = {event.attempt: event.payload["tree"] for event in kept}
    rows = []
    previous, since = task_state.work.base, "start"
    for event in finished:
        left_tree = checkpoint_trees.get(event.attempt) or event.payload.get("left")
        if previous is not None and left_tree is not None:
            rows.append({"attempt": event.attempt, "since": since, **_difference(services, previous, left_tree)})
            previous, since = left_tree, f"attempt {event.attempt}"
    return rows


def _difference(services: Services, old: str, new: str) -> dict[str, Any]:
    """Return the differences between two trees, cut to a limit, without idumb's own files and known secrets."""
    changed = [c.path for c in services.trees.changes(old, new) if not paths.matches_any(c.path, paths.OWN_FILES)]
    counts = services.trees.line_counts(old, new) if changed else {}
    text = services.trees.diff(old, new, changed[:MOST_PATHS]) if changed else ""
    files = [{"path": p, "added": counts.get(p, (0, 0))[0], "removed": counts.get(p, (0, 0))[1]} for p in changed]
    return {
        "files": files[:MOST_PATHS],
        "more": max(0, len(changed) - MOST_PATHS),
        "diff": wording.truncate(services.redaction.redact_output(text), MOST_DIFF),
    }


def _envelope(started: Sequence[Event]) -> list[dict[str, Any]]:
    """Return each pair of attempts with different envelopes, and the parts in which they differ."""
    rows = []
    for earlier, later in itertools.pairwise(started):
        pair = [event.payload.get("envelope", {}) for event in (earlier, later)]
        differ, unknown = envelopes.compare(*pair)
        if all(envelope.get("adapter") in _WITHOUT_MODEL for envelope in pair):
            unknown = tuple(part for part in unknown if part != "model")
        if differ or unknown:
            rows.append({"attempts": [earlier.attempt, later.attempt], "parts": list(differ), "unknown": list(unknown)})
    return rows


def _since(services: Services, state: RunState, chosen: Iterable[str]) -> dict[str, Any] | None:
    """Return the newest checkpoint of a completed task, or the base of the run, and how the files differ from it."""
    excluded = set(chosen)
    checkpoints = [
        (t.checkpoint, t.id)
        for t in state.tasks.values()
        if t.status in outcome.DONE and t.checkpoint is not None and t.id not in excluded
    ]
    base: tuple[str, str | None, str] = (state.base.tree, state.base.commit, "start")
    if checkpoints:
        newest: Checkpoint
        newest, task = max(checkpoints, key=lambda pair: pair[0].seq)
        base = (newest.tree, newest.git_hash, task)
    tree, commit, name = base
    present = services.trees.scan(path for t in state.tasks.values() for path in t.work.touched)
    head = services.history.head().commit
    return {"checkpoint": name, "commit": commit, "head": head, **_difference(services, tree, present)}


def _verification(state: RunState) -> dict[str, Any] | None:
    """Return the open points of the last verification; None without a verification or an open point."""
    verification = state.verification
    if verification is None or state.verified:
        return None
    bad = [e for e in verification["evidence"] if e["result"] in _BAD]
    return {
        "status": verification["status"],
        "reason": verification["reason"],
        "open": [
            {"subject": e["subject"], "text": e["text"], "result": e["result"], "output": e["output"][-MOST_OUTPUT:]}
            for e in bad
        ],
    }


def _checklist(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every remedy once, with its tasks, then general remedies."""
    tasks_by_remedy: dict[tuple[str, str | None], list[str]] = {}
    for task in data["tasks"]:
        for item in task["remedies"]:
            tasks_by_remedy.setdefault((item["text"], item["command"]), []).append(task["id"])
    rows = [{"text": text, "command": command, "tasks": tasks} for (text, command), tasks in tasks_by_remedy.items()]
    rows += [
        {"text": f"{item['subject']} is {item['result']}: {item['text']}", "command": None, "tasks": []}
        for item in (data["verification"] or {}).get("open", ())
    ]
    since = data["since"]
    if since is not None and since["files"] and since["head"] != since["commit"]:
        between = f"{since['commit']}.." if since["commit"] else ""
        words = "There are commits since the last good checkpoint. Check whether they belong to the work."
        rows.append({"text": words, "command": f"git log {between}HEAD", "tasks": []})
    back = f"idumb rollback {data['phase']} --to {since['checkpoint'] if since else 'start'}"
    return [*rows, {"text": "Roll back to the last good checkpoint.", "command": back, "tasks": []}]


def _next(data: Mapping[str, Any]) -> list[str]:
    phase, tasks = data["phase"], data["tasks"]
    if not tasks:
        return [f"idumb verify-work {phase} --gaps" if data["verification"] else f"idumb resume {phase}"]
    first = tasks[0]["id"]
    if tasks[0]["failure"] in failures.STOPPING:
        return [f"idumb show {first}", f"idumb {failures.command(tasks[0]['failure'])} {phase}"]
    return [f"idumb show {first}", f"idumb dlq retry {first}", f"idumb amend {phase} --from-file"]
