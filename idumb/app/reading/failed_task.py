"""What is known of the failures of a task: attempts, changes, envelopes, remedies, and what the bound debugger says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from idumb.app import role_calls
from idumb.app.consent import needs
from idumb.app.contract import loading
from idumb.app.contract.loading import Loaded
from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Result, Services, fields
from idumb.app.reading import show
from idumb.app.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.domain import agent, failures, outcome, paths, wording
from idumb.domain import envelope as envelopes
from idumb.domain.action import Action, plain
from idumb.domain.failures import Failure, remedies
from idumb.domain.proof.evidence import ERRORED, FAILED, TIMED_OUT, UNPROVEN
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState, TaskState

_MOST_DIFF = 20_000
_MOST_OUTPUT = 4_000
_MOST_PATHS = 100
_BAD = frozenset({FAILED, ERRORED, TIMED_OUT, UNPROVEN})
_WITHOUT_MODEL = frozenset({agent.STEPS, agent.HUMAN})


def debug(services: Services, name: str, *, asks: bool, approve: Collection[str]) -> Result:
    """Return what is known of the failures of a task. Changes nothing; the debugger works in a copy.

    Without `asks`, no agent is called; `approve` is consent to the debugger.
    """
    phase, task = run_lookup.find_task(name)
    loaded = loading.load_phase(services, phase, or_locked=True)
    state = run_lookup.named_run(services, loaded.contract.phase if loaded.contract else phase)
    run_lookup.require_task(state.tasks, task, state.phase, f"Run {state.number} of phase {state.phase}")
    attempted = run_lookup.attempting_run(services, state, task)
    attempts = [_shortened(attempt) for attempt in show.attempts_of(services, attempted, task)]
    started = list(services.log.events(run=attempted.id, task=task, kind="attempt.started"))
    events = services.log.events(run=attempted.id, task=task, kind="attempt.finished")
    finished = [*{event.attempt: event for event in events}.values()]  # one that waited ends twice
    last: Mapping[str, Any] = finished[-1].payload if finished else {}
    evidence = attempts[-1]["evidence"] if attempts else ()
    failure = Failure(
        phase=state.phase,
        task=task,
        ended=last.get("outcome"),
        cause=last.get("cause"),
        failure=(last.get("builder") or {}).get("failure"),
        checks=tuple((e["subject"], e.get("command")) for e in evidence if e["result"] in _BAD),
        deviations=tuple(last.get("deviations", ())),
        variables=loaded.contract.variables if loaded.contract is not None else {},
    )
    declared = loaded.contract.tasks.get(task) if loaded.contract is not None else None
    task_state = state.tasks[task]
    see = Action.of("show", task, "--diff")
    is_running = task_state.status == outcome.RUNNING
    # No command retries the others.
    is_retried = task_state.status == outcome.FAILED or failures.kind(failure.failure).stops
    ways = remedies(failure) if is_retried else (("See the changes of the task.", see),) * bool(attempts)
    goes_on = actions.continuing(state) if is_running else Action.of("next", state.phase)
    data: dict[str, Any] = {
        "run": state.id,
        **fields(state, "phase", "state", "reason"),
        "task": {
            "id": task,
            "title": declared.title if declared is not None else "",
            "status": task_state.status,
            "reason": task_state.reason or str(last.get("reason", "")),
            "class": failures.class_of(failure.ended, failure.cause, failure.failure),
            "failure": failure.failure,
            "cause": failure.cause,
            "attempts": attempts,
            "changes": _changes(services, attempted, finished, attempted.tasks[task]),
            "envelope": _envelope(started),
        },
        "checklist": [{"text": text, "command": command} for text, command in ways],
        "diagnosis": None,
        "next": _next(state.phase, failure) if is_retried else [see if task_state.status in outcome.DONE else goes_on],
    }
    if asks and role_calls.binding_of(services, agent.DEBUGGER) is not None:
        role_calls.ensure_consent(services, needs.of_roles(services, [agent.DEBUGGER]), approve=approve)
        data["diagnosis"] = _diagnosis(services, state, loaded, data)
    return Result(data)


def _next(phase: str, failure: Failure) -> list[Action]:
    if (kind := failures.kind(failure.failure)).stops:
        return [Action.of(kind.again, phase)]
    return [Action.of("dlq", "retry", failure.task), Action.of("amend", phase, "--from-file")]


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    """Return an attempt with each output cut to its end, where most programs report errors."""
    shown = dict(row)
    shown["evidence"] = [{**e, "output": str(e.get("output") or "")[-_MOST_OUTPUT:]} for e in row["evidence"]]
    result = row.get("result")
    if result is not None:
        shown["result"] = {**result, "output": str(result.get("output") or "")[-_MOST_OUTPUT:]}
    return shown


def _changes(
    services: Services, state: RunState, finished: Sequence[Event], task_state: TaskState
) -> list[dict[str, Any]]:
    """Return the changes of each attempt since the previous one; those of the first since the task base.

    For an attempt in a checkout only the checkpoint shows them, because failed work is not delivered.
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
    text = services.trees.diff(old, new, changed[:_MOST_PATHS]) if changed else ""
    return {
        "files": show.files_of(services, old, new, changed[:_MOST_PATHS]),
        "more": max(0, len(changed) - _MOST_PATHS),
        "diff": wording.truncate(services.redactor.redact_output(text), _MOST_DIFF),
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


def _diagnosis(services: Services, state: RunState, loaded: Loaded, bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the debugger, in a copy; its text is an opinion."""
    plans = [f"{path}:\n{wording.fenced(data.decode('utf-8', 'replace'), 'markdown')}" for path, data in loaded.sources]
    facts = {name: bundle[name] for name in ("state", "reason", "task", "checklist")}
    values = {
        "phase": state.phase,
        "tasks": str(bundle["task"]["id"]),
        "bundle": wording.fenced(wording.truncate(json.dumps(plain(facts), indent=1)), "json"),
        "plan": wording.truncate("\n\n".join(plans)),
    }
    request = RoleRequest(agent.DEBUGGER, f"phase-{state.phase}", values)
    with operation.owned(services, f"{request.role} {request.about}") as owned:
        result = role_calls.ask(services, request, owned.journal(run_lookup.run_of(services, state.id)))
    answered = result.outcome == outcome.COMPLETED and bool(result.reply.strip())
    return {
        "binding": role_calls.binding_of(services, agent.DEBUGGER),
        "text": wording.truncate(result.reply, _MOST_DIFF) if answered else "",
        "failure": "" if answered else result.message or result.failure or "its reply is empty",
    }
