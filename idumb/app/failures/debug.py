"""Gathers what is known of failed tasks, says what can be done, and asks the debugger where somebody is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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
from idumb.domain.errors import InputError, Refusal
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


@dataclass(frozen=True, slots=True)
class Request:
    """Flags of `debug`. `asks` false leaves the debugger alone; `approve` consents to asking it."""

    phase: str
    task: str | None = None
    asks: bool = True
    approve: tuple[str, ...] = ()


def debug(services: Services, request: Request) -> Result:
    """`idumb debug N`: nothing is run and nothing of the run changes; the debugger is asked in a copy."""
    loaded = loading.of(services, request.phase)
    state = run_lookup.require_run(services, loaded.contract.phase if loaded.contract else request.phase)
    chosen = _chosen(state, request.task)
    data: dict[str, Any] = {
        "phase": state.phase,
        "run": state.id,
        "state": state.state,
        "reason": state.reason,
        "since": _since(services, state, chosen),
        "tasks": [_task(services, loaded.contract, state, task) for task in chosen],
        "verification": _verification(state),
        "diagnosis": None,
        "amendment": None,
    }
    data["checklist"] = _checklist(data)
    data["next"] = _next(data)
    if request.asks and role_calls.binding_of(services, agent.DEBUGGER) is not None:
        command = f"idumb debug {state.phase}" + (f" --task {request.task}" if request.task else "")
        role_consent.ensure(services, [agent.DEBUGGER], approve=request.approve, command=command)
        data |= diagnosis.ask(services, state, loaded, data)
        data["next"] = [*(data["amendment"] or {}).get("next", ()), *data["next"]]
    return Result(data)


def _chosen(state: RunState, task: str | None) -> tuple[str, ...]:
    """The task that was named, or all that failed, or what the run stands at."""
    if task is not None:
        named = run_lookup.find_task(task)[1]
        if named not in state.tasks:
            words = f"Run {state.number} of phase {state.phase} has no task {named}."
            raise InputError("task.unknown", words, hint=f"idumb graph {state.phase}", details={"phase": state.phase})
        return (named,)
    found = _stopped(state) or next((f for f in (_of(state, s) for s in _INTERESTING) if f), ())
    if not found and state.state == COMPLETED and (state.verification is None or state.verified):
        raise Refusal(
            "debug.nothing",
            f"Nothing failed in run {state.number} of phase {state.phase}.",
            hint=f"idumb debug {state.phase} --task TASK tells of any task; idumb status",
        )
    return found


def _stopped(state: RunState) -> tuple[str, ...]:
    """Where the run stopped because an agent could not work: those tasks, which have not failed, and what did fail."""
    wanted = (*_of(state, outcome.PENDING), *_of(state, outcome.READY))
    unable = [t for t in wanted if state.tasks[t].attempt.failure in failures.STOPPING]
    return tuple(t for t in state.tasks if t in unable or state.tasks[t].status == outcome.FAILED) if unable else ()


def _of(state: RunState, status: str) -> tuple[str, ...]:
    return tuple(task for task, known in state.tasks.items() if known.status == status)


def _task(services: Services, contract: Contract | None, state: RunState, task: str) -> dict[str, Any]:
    known = state.tasks[task]
    attempts = [_short(a) for a in show.attempts_of(services, show.attempting_run(services, state, task), task)]
    begun = list(services.log.events(run=state.id, task=task, kind="attempt.started"))
    ended = list(services.log.events(run=state.id, task=task, kind="attempt.finished"))
    found = _failure(state, known, ended, begun, attempts[-1]["evidence"] if attempts else ())
    declared = contract.tasks.get(task) if contract is not None else None
    return {
        "id": task,
        "title": declared.title if declared is not None else "",
        "status": known.status,
        "reason": known.reason or (str(ended[-1].payload["reason"]) if ended else ""),
        "class": dead_letter.failure_class(found.ended, found.cause, found.failure),
        "failure": found.failure,
        "cause": found.cause,
        "attempts": attempts,
        "changes": _changes(services, state, ended, known),
        "envelope": _envelope(begun),
        "remedies": [asdict(one) for one in remedies(found)],
    }


def _failure(
    state: RunState,
    known: TaskState,
    ended: Sequence[Event],
    begun: Sequence[Event],
    evidence: Sequence[Mapping[str, Any]],
) -> Failure:
    last: Mapping[str, Any] = ended[-1].payload if ended else {}
    builder: Mapping[str, Any] = last.get("builder") or {}
    feedback = [e.payload.get("feedback") for e in ended]
    parts = _envelope(begun)
    return Failure(
        phase=state.phase,
        task=known.id,
        ended=last.get("outcome"),
        cause=last.get("cause"),
        failure=builder.get("failure"),
        checks=tuple((e["subject"], e.get("command")) for e in evidence if e["result"] in _BAD),
        deviations=tuple(last.get("deviations", ())),
        repeated=len(feedback) > 1 and feedback[-1] == feedback[-2],
        envelope=tuple(parts[-1]["parts"]) if parts else (),
    )


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """An attempt with every output bounded to its end, where most programs say what was wrong."""
    shown = dict(row)
    shown["evidence"] = [{**e, "output": str(e.get("output") or "")[-MOST_OUTPUT:]} for e in row["evidence"]]
    result = row.get("result")
    if result is not None:
        shown["result"] = {**result, "output": str(result.get("output") or "")[-MOST_OUTPUT:]}
    return shown


def _changes(services: Services, state: RunState, ended: Sequence[Event], known: TaskState) -> list[dict[str, Any]]:
    """What each attempt made, against the one before, and the first one against the task base.

    Of an attempt in a clone only its checkpoint tells, for what fails is not delivered.
    """
    kept = services.log.events(run=state.id, task=known.id, kind="checkpoint.recorded")
    made = {event.attempt: event.payload["tree"] for event in kept}
    rows = []
    before, named = known.work.base, "start"
    for event in ended:
        left = made.get(event.attempt) or event.payload.get("left")
        if before is not None and left is not None:
            rows.append({"attempt": event.attempt, "since": named, **_difference(services, before, left)})
            before, named = left, f"attempt {event.attempt}"
    return rows


def _difference(services: Services, old: str, new: str) -> dict[str, Any]:
    """Files and a diff between two trees, without idumb's own; bounded, and without known secrets."""
    found = [c.path for c in services.trees.changes(old, new) if not paths.matches_any(c.path, paths.OWN_FILES)]
    counts = services.trees.line_counts(old, new) if found else {}
    text = services.trees.diff(old, new, found[:MOST_PATHS]) if found else ""
    files = [{"path": p, "added": counts.get(p, (0, 0))[0], "removed": counts.get(p, (0, 0))[1]} for p in found]
    return {
        "files": files[:MOST_PATHS],
        "more": max(0, len(found) - MOST_PATHS),
        "diff": wording.truncate(services.redaction.redact_output(text), MOST_DIFF),
    }


def _envelope(begun: Sequence[Event]) -> list[dict[str, Any]]:
    """Each pair of attempts that ran under different things, with the parts in which they differ."""
    rows = []
    for one, other in itertools.pairwise(begun):
        differ, unknown = envelopes.compare(one.payload.get("envelope", {}), other.payload.get("envelope", {}))
        if differ or unknown:
            rows.append({"attempts": [one.attempt, other.attempt], "parts": list(differ), "unknown": list(unknown)})
    return rows


def _since(services: Services, state: RunState, chosen: Iterable[str]) -> dict[str, Any] | None:
    """The newest checkpoint of a task that is done, and how the files differ from it now; None where there is none."""
    wanted = set(chosen)
    done = [
        (t.checkpoint, t.id)
        for t in state.tasks.values()
        if t.status in outcome.DONE and t.checkpoint is not None and t.id not in wanted
    ]
    base: tuple[str, str | None, str] = (state.base.tree, state.base.commit, "start")
    if done:
        kept: Checkpoint
        kept, task = max(done, key=lambda pair: pair[0].seq)
        base = (kept.tree, kept.git_hash, task)
    tree, commit, name = base
    present = services.trees.scan(path for t in state.tasks.values() for path in t.work.touched)
    head = services.history.head().commit
    return {"checkpoint": name, "commit": commit, "head": head, **_difference(services, tree, present)}


def _verification(state: RunState) -> dict[str, Any] | None:
    """What the last verification found open; None where there was none, or nothing is open."""
    found = state.verification
    if found is None or state.verified:
        return None
    bad = [e for e in found["evidence"] if e["result"] in _BAD]
    return {
        "status": found["status"],
        "reason": found["reason"],
        "open": [
            {"subject": e["subject"], "text": e["text"], "result": e["result"], "output": e["output"][-MOST_OUTPUT:]}
            for e in bad
        ],
    }


def _checklist(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every remedy once, with the tasks that it is for; then what helps whatever failed."""
    found: dict[tuple[str, str | None], list[str]] = {}
    for task in data["tasks"]:
        for one in task["remedies"]:
            found.setdefault((one["text"], one["command"]), []).append(task["id"])
    rows = [{"text": text, "command": command, "tasks": tasks} for (text, command), tasks in found.items()]
    rows += [
        {"text": f"{one['subject']} is {one['result']}: {one['text']}", "command": None, "tasks": []}
        for one in (data["verification"] or {}).get("open", ())
    ]
    since = data["since"]
    if since is not None and since["files"] and since["head"] != since["commit"]:
        between = f"{since['commit']}.." if since["commit"] else ""
        words = "There are commits since the last good checkpoint: see whether they belong to the work."
        rows.append({"text": words, "command": f"git log {between}HEAD", "tasks": []})
    back = f"idumb rollback {data['phase']} --to {since['checkpoint'] if since else 'start'}"
    return [*rows, {"text": "Go back to the last good checkpoint.", "command": back, "tasks": []}]


def _next(data: Mapping[str, Any]) -> list[str]:
    phase, tasks = data["phase"], data["tasks"]
    if not tasks:
        return [f"idumb verify-work {phase} --gaps" if data["verification"] else f"idumb resume {phase}"]
    first = tasks[0]["id"]
    if tasks[0]["failure"] in failures.STOPPING:
        return [f"idumb show {first}", f"idumb {failures.command(tasks[0]['failure'])} {phase}"]
    return [f"idumb show {first}", f"idumb dlq retry {first}", f"idumb amend {phase} --from-file"]
