"""Replay of the events about a whole run: its life cycle, its contract, its envelopes and its verification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from idumb.domain.runs import replay_task
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import (
    ACTIVE,
    COMPLETED,
    FAILED,
    HALTED,
    INTERRUPTED,
    PAUSED,
    GuardedFiles,
    LockedContract,
    RunBase,
    RunState,
)
from idumb.domain.runs.task_state import TaskState


def _started(state: RunState, event: Event) -> None:
    p = event.payload
    state.id = event.run or ""
    state.phase = p["phase"]
    state.number = p["number"]
    state.contract = LockedContract(p["contract_hash"], _plans(p["plans"]), chain=p["contract_hash"])
    state.mode = p["mode"]
    state.policy = p["policy"]
    state.base = RunBase(p["base_commit"], p["base_tree"], p.get("base_snapshot"))
    state.branch = p.get("branch")
    state.workspace = p.get("workspace", "here")
    state.guarded = GuardedFiles(p.get("guarded"))
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
    state.guarded = GuardedFiles(event.payload["guarded"])


def _amendment_intended(state: RunState, event: Event) -> None:
    state.contract = replace(state.contract, amending=event.payload)


def _amendment_abandoned(state: RunState, _: Event) -> None:
    state.contract = replace(state.contract, amending=None)


def _amended(state: RunState, event: Event) -> None:
    """Continue under the next version. The payload has `tasks` only if a task changed; completed tasks stay so."""
    p, contract = event.payload, state.contract
    state.contract = replace(
        contract,
        hash=p["to"],
        plans=_plans(p["plans"]),
        version=p["version"],
        chain=p["chain"],
        amending=None,
        amendments=(*contract.amendments, {**p, "seq": event.seq, "at": event.at}),
        appended=contract.appended | frozenset(p.get("answers", ())),
    )
    if p.get("tasks") is None:
        return
    before = state.tasks
    state.tasks = {
        task: replace(before[task], digest=digest) if task in before else TaskState(task, digest)
        for task, digest in p["tasks"]
    }
    state.attempted = {task: seq for task, seq in state.attempted.items() if task in state.tasks}
    state.verification = None
    if state.state in (COMPLETED, FAILED):
        state.state, state.reason = HALTED, f"amended to version {state.contract.version}"


def _resumed(state: RunState, event: Event) -> None:
    """Resume after git's own files were compared; while an attempt is open in an editor, they can still change."""
    _becomes(ACTIVE)(state, event)
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
    if event.payload.get("status") == "failed":
        replay_task.forget(state, replay_task.answers_about(state, ()))


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
    "amendment.intended": _amendment_intended,
    "amendment.abandoned": _amendment_abandoned,
    "contract.amended": _amended,
    "verification.recorded": _verified,
}
