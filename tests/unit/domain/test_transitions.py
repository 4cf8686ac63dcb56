"""Which event may follow in which state of a run (R-OPS-1)."""

from __future__ import annotations

from typing import Any

from idumb.domain.runs import replay, run, transitions
from idumb.domain.runs.event import GENESIS, Event
from tests.support.run_events import CHECKPOINT, FINISHED, STARTED

HASH = "d" * 64
BEGUN: tuple[Any, ...] = ("run.started", {**STARTED, "tasks": [["T1-01", "x"]]})
ATTEMPT = ("attempt.started", {"base": "0" * 40, "snapshot": "5" * 40, "builder": "b"}, 1)
DONE = ("attempt.finished", {**FINISHED, "outcome": "completed"}, 1)
KEPT = ("checkpoint.recorded", CHECKPOINT, 1)
COMPLETED = ("task.completed", {"reason": ""}, 1)
AMENDED = {
    "version": 2, "from": STARTED["contract_hash"], "to": HASH, "plans": [], "answers": [], "tasks": None,
    "chain": run.chained(STARTED["contract_hash"], HASH),
}  # fmt: skip
ASKED = ("decision.asked", {"id": "q", "kind": "judge", "task": "T1-01", "choices": [{"id": "yes"}]})
ANSWER = {"decision": "q", "choice": "yes", "by": "me", "guidance": ""}
OTHER: tuple[Any, ...] = ("evidence.recorded", {}, 2)
NOT_DONE = "attempt 1 of T1-01 has no checkpoint of completed work"

CASES: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((ATTEMPT,), "the first event of the run is no run.started"),
    ((BEGUN, BEGUN), "the run had started before"),
    ((BEGUN, (*ATTEMPT[:2], 2)), "attempt 2 follows attempt 0"),
    ((BEGUN, ATTEMPT, (*ATTEMPT[:2], 2)), "T1-01 is running"),
    ((BEGUN, ("run.halted", {"reason": ""}), ATTEMPT), "the run is halted"),
    ((BEGUN, ATTEMPT, OTHER), "attempt 2 is not the last one of T1-01, 1"),
    ((BEGUN, ATTEMPT, ("evidence.recorded", {}, None)), ""),
    ((BEGUN, ATTEMPT, DONE, ("step.finished", {"ok": True, "index": 0}, 1)), "attempt 1 of T1-01 had ended"),
    ((BEGUN, ATTEMPT, DONE, DONE), "attempt 1 of T1-01 had ended"),
    ((BEGUN, ATTEMPT, ("attempt.finished", {**FINISHED, "outcome": "waiting"}, 1), DONE), ""),
    ((BEGUN, ATTEMPT, ("attempt.finished", {**FINISHED, "deviation": "b.txt"}, 1), DONE), ""),
    ((BEGUN, ATTEMPT, DONE, ("checkpoint.intended", CHECKPOINT, 1), DONE), ""),
    ((BEGUN, ATTEMPT, DONE, COMPLETED), NOT_DONE),
    ((BEGUN, ATTEMPT, ("attempt.finished", FINISHED, 1), KEPT, COMPLETED), NOT_DONE),
    ((BEGUN, ATTEMPT, DONE, KEPT, COMPLETED), ""),
    ((BEGUN, ATTEMPT, DONE, KEPT, COMPLETED, ("task.failed", {"reason": ""}, 1)), "T1-01 is completed"),
    ((BEGUN, ("contract.amended", AMENDED)), ""),
    ((BEGUN, ("contract.amended", {**AMENDED, "version": 3})), "version 3 follows version 1"),
    ((BEGUN, ("contract.amended", {**AMENDED, "chain": HASH})), "it does not follow the contract before it"),
    ((BEGUN, ("contract.amended", {**AMENDED, "from": HASH})), "it does not follow the contract before it"),
    ((BEGUN, ("decision.answered", ANSWER)), "q was never asked"),
    ((BEGUN, ASKED, ("decision.answered", ANSWER)), ""),
    ((BEGUN, ASKED, ("decision.answered", {**ANSWER, "choice": "no"})), "no is no choice of q"),
)


def event(seq: int, kind: str, payload: Any, attempt: int | None = None, *, version: int = 1) -> Event:
    at = f"2026-01-01T00:00:{seq:02}.000000Z"
    task = "T1-01" if kind.partition(".")[0] not in ("run", "contract") else None
    return Event(seq, "o", "r", task, attempt, kind, payload, version, 1, at, GENESIS, GENESIS)


def test_an_event_that_may_not_follow_is_named_with_the_reason() -> None:
    for given, words in CASES:
        *before, last = (event(seq, *one) for seq, one in enumerate(given, 1))
        state = run.RunState()
        for one in before:
            assert transitions.fault(state, one) == "", one.kind
            replay.apply(state, one)
        assert transitions.fault(state, last) == words


def test_an_unknown_task_and_a_later_form_of_payload_are_named() -> None:
    state = replay.replay([event(1, *BEGUN)])
    state.tasks.clear()
    assert transitions.fault(state, event(2, *ATTEMPT)) == "the contract has no task T1-01"
    assert transitions.fault(state, event(2, *ATTEMPT, version=2)).startswith("its payload has form 2")
