"""Replay of the events about a whole run: its life cycle, contract, envelopes and verification, rollback and undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from idumb.domain.runs.event import Event
from idumb.domain.runs.run import (
    ACTIVE,
    COMPLETED,
    DROPPED,
    EFFECT,
    FAILED,
    HALTED,
    INTERRUPTED,
    PAUSED,
    AttemptState,
    GuardedFiles,
    LockedContract,
    RunBase,
    RunState,
    TaskProgress,
    TaskState,
)


def _started(state: RunState, event: Event) -> None:
    p = event.payload
    state.id = event.run or ""
    state.phase = p["phase"]
    state.number = p["number"]
    state.contract = LockedContract(p["contract_hash"], _plans(p["plans"]), chain=p["contract_hash"])
    state.mode = p["mode"]
    state.policy = p["policy"]
    state.base = RunBase(p["base_commit"], p["base_tree"], p["base_snapshot"])
    state.branch = p["branch"]
    state.reports = p["reports"]
    state.guarded = GuardedFiles(p["guarded"])
    state.started_at = event.at
    state.tasks = {task_id: TaskState(task_id, digest) for task_id, digest in p["tasks"]}


def _plans(rows: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((path, sha256) for path, sha256 in rows)


def _locked(state: RunState, event: Event) -> None:
    p = event.payload
    lock_in = {name: p[name] for name in ("contract_hash", "checks", "levels", "confidence", "parts")}
    state.contract = replace(state.contract, lock_in=lock_in, envelopes=p["envelopes"])


def _envelope_changed(state: RunState, event: Event) -> None:
    envelopes = {**state.contract.envelopes, **event.payload["envelopes"]}
    state.contract = replace(state.contract, envelopes=envelopes)


def _guarded_accepted(state: RunState, event: Event) -> None:
    digests = event.payload["guarded"]
    accepted = {(name, digests[name]) for name in event.payload["paths"] if name in digests}
    state.guarded = GuardedFiles(digests, accepted=state.guarded.accepted | accepted)


def _amended(state: RunState, event: Event) -> None:
    """Continue under the next version. The payload has `tasks` only if a task changed; completed tasks stay so."""
    p, contract = event.payload, state.contract
    state.contract = replace(
        contract,
        hash=p["to"],
        plans=_plans(p["plans"]),
        version=p["version"],
        chain=p["chain"],
        amendments=(*contract.amendments, {**p, "seq": event.seq, "at": event.at}),
        appended=contract.appended | frozenset(p["answers"]),
    )
    if p["tasks"] is None:
        return
    before = state.tasks
    state.tasks = {
        task: replace(before[task], digest=digest) if task in before else TaskState(task, digest)
        for task, digest in p["tasks"]
    }
    state.attempted = {task: seq for task, seq in state.attempted.items() if task in state.tasks}
    state.uncommitted_by = {task: paths for task, paths in state.uncommitted_by.items() if task in state.tasks}
    state.verification = None
    state.forget_answers_about_phase()
    if state.state in (COMPLETED, FAILED):
        state.state, state.reason = HALTED, f"amended to version {state.contract.version}"


def _resumed(state: RunState, event: Event) -> None:
    """Resume after git's own files were compared; while an attempt is open in an editor, they can still change."""
    _becomes(ACTIVE)(state, event)
    state.branch = event.payload.get("branch", state.branch)
    state.guarded = replace(state.guarded, unchecked=state.opened is not None)
    if not state.verified:  # a verification that did not pass is repeated at the end
        state.verification = None


def _becomes(value: str) -> Callable[[RunState, Event], None]:
    def handler(state: RunState, event: Event) -> None:
        state.state = value
        state.reason = event.payload.get("reason", "")
        if value == ACTIVE:
            state.failures_in_a_row = 0

    return handler


def _verified(state: RunState, event: Event) -> None:
    """A failed verification voids the answers about the whole phase, because they are asked again after the fix."""
    state.verification = event.payload
    if event.payload["status"] == "failed":
        state.forget_answers_about_phase()


def _restoring(state: RunState, event: Event) -> None:
    state.restoring = event.payload


def _rolled_back(state: RunState, event: Event) -> None:
    """Reset the tasks after the checkpoint, and keep what they were for `undo`."""
    state.restoring = None
    tasks = [task for task in event.payload["tasks"] if task in state.tasks]
    tasks += [id for id, task in state.tasks.items() if task.omitted_by in tasks and id not in tasks]
    _keep(state, event, tasks)
    for id in tasks:
        task = state.tasks[id]
        number = task.attempt.number
        state.tasks[id] = TaskState(
            id,
            task.digest,
            effect=EFFECT if task.effect == EFFECT else "",
            attempt=AttemptState(number),
            progress=TaskProgress(settled=number),
        )
        state.note(state.tasks[id])
        state.attempted.pop(id, None)
    state.verification = None
    state.failures_in_a_row = 0
    state.state = HALTED
    state.reason = f"rolled back to {event.payload['to']}"


def _dropped(state: RunState, event: Event) -> None:
    """Keep for `undo` what the tasks were; each is skipped by an event of its own."""
    _keep(state, event, event.payload["tasks"])
    if event.payload["whole"]:
        state.state, state.reason = DROPPED, event.payload["reason"]


def _undone(state: RunState, event: Event) -> None:
    """Restore what the undone operation removed, and keep the present for an undo of this undo."""
    state.restoring = None
    kept = state.operations[event.payload["undone"]]
    _keep(state, event, kept["tasks"])
    state.answers.update(kept["answers"])
    state.tasks.update(kept["tasks"])
    state.note(*kept["tasks"].values())
    for task in kept["tasks"]:
        state.attempted.pop(task, None)
    state.attempted.update(kept["attempted"])
    state.attempted = dict(sorted(state.attempted.items(), key=lambda item: item[1]))
    state.verification = kept["verification"]
    state.state = kept["state"]
    state.reason = ""
    if not state.is_complete:
        state.forget_answers_about_phase()
        if state.state == COMPLETED:  # an amendment after the rollback added tasks
            state.state, state.verification = HALTED, None


def _keep(state: RunState, event: Event, tasks: Iterable[str]) -> None:
    """Keep these tasks and the answers about them under the operation that announced this, then drop the answers."""
    before = {task: state.tasks[task] for task in tasks}
    answers = state.answers_about(before)
    operation = str(event.payload.get("operation", event.operation))  # another operation may have finished it
    state.operations[operation] = {
        "tasks": before,
        "answers": answers,
        "verification": state.verification,
        "state": state.state,
        "attempted": {task: seq for task, seq in state.attempted.items() if task in before},
    }
    state.forget_answers(answers)


HANDLERS: Mapping[str, Callable[[RunState, Event], None]] = {
    "run.started": _started,
    "run.resumed": _resumed,
    "run.locked": _locked,
    "run.halted": _becomes(HALTED),
    "run.interrupted": _becomes(INTERRUPTED),
    "run.paused": _becomes(PAUSED),
    "run.completed": _becomes(COMPLETED),
    "run.failed": _becomes(FAILED),
    "envelope.changed": _envelope_changed,
    "guarded.accepted": _guarded_accepted,
    "contract.amended": _amended,
    "verification.recorded": _verified,
    "rollback.intended": _restoring,
    "rollback.completed": _rolled_back,
    "undo.completed": _undone,
    "work.dropped": _dropped,
}
