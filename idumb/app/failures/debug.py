"""Debug a task: collect attempts, changes and envelopes, list remedies, and ask the bound debugger."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
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
from idumb.domain.action import Action
from idumb.domain.consent import envelope as envelopes
from idumb.domain.contract import Contract
from idumb.domain.proof.evidence import ERRORED, FAILED, TIMED_OUT, UNPROVEN
from idumb.domain.runs.event import Event
from idumb.domain.runs.remedy import Failure, remedies
from idumb.domain.runs.run import RunState
from idumb.domain.runs.task_state import Checkpoint, TaskState

MOST_DIFF = 20_000
MOST_OUTPUT = 4_000
MOST_PATHS = 100
_BAD = frozenset({FAILED, ERRORED, TIMED_OUT, UNPROVEN})
_WITHOUT_MODEL = frozenset({agent.STEPS, agent.HUMAN})


def debug(services: Services, name: str, *, asks: bool, approve: Collection[str]) -> Result:
    """Return what is known of the failures of a task. Changes nothing; the debugger works in a copy.

    Without `asks`, no agent is called; `approve` is consent to the debugger.
    """
    phase, task = run_lookup.find_task(name)
    loaded = loading.load_phase(services, phase)
    state = run_lookup.named_run(services, loaded.contract.phase if loaded.contract else phase)
    run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.number} of phase {state.phase}")
    data: dict[str, Any] = {
        "phase": state.phase,
        "run": state.id,
        "state": state.state,
        "reason": state.reason,
        "since": _since(services, state, task),
        "task": _task(services, loaded.contract, state, task),
        "diagnosis": None,
        "amendment": None,
    }
    data["checklist"] = _checklist(data)
    data["next"] = _next(data)
    if asks and role_calls.binding_of(services, agent.DEBUGGER) is not None:
        role_consent.ensure(services, needs.of_roles(services, [agent.DEBUGGER]), approve=approve)
        data |= diagnosis.ask(services, state, loaded, data)
        data["next"] = [*(data["amendment"] or {}).get("next", ()), *data["next"]]
    return Result(data)


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
        "class": failures.class_of(failure.ended, failure.cause, failure.failure),
        "failure": failure.failure,
        "cause": failure.cause,
        "attempts": attempts,
        "changes": _changes(services, state, finished, task_state),
        "envelope": _envelope(started),
        "remedies": [{"text": remedy.text, "command": remedy.command} for remedy in remedies(failure)],
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


def _since(services: Services, state: RunState, but: str) -> dict[str, Any]:
    """Return the newest checkpoint of another completed task, or the base of the run, and how the files differ."""
    checkpoints = [
        (t.checkpoint, t.id)
        for t in state.tasks.values()
        if t.status in outcome.DONE and t.checkpoint is not None and t.id != but
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


def _checklist(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every remedy of the task, then general ones."""
    rows = [{"text": item["text"], "command": item["command"]} for item in data["task"]["remedies"]]
    since = data["since"]
    if since["files"] and since["head"] != since["commit"]:
        between = f"{since['commit']}.." if since["commit"] else ""
        words = "There are commits since the last good checkpoint. Check whether they belong to the work."
        rows.append({"text": words, "command": f"git log {between}HEAD"})
    back = Action.of("rollback", data["phase"], "--to", since["checkpoint"])
    return [*rows, {"text": "Roll back to the last good checkpoint.", "command": back}]


def _next(data: Mapping[str, Any]) -> list[Action]:
    phase, task = data["phase"], data["task"]
    if (kind := failures.kind(task["failure"])).stops:
        return [Action.of(kind.again, phase)]
    return [Action.of("dlq", "retry", task["id"]), Action.of("amend", phase, "--from-file")]
