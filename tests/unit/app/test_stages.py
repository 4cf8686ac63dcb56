"""The stages of attempts, from events: what no run at the command line has at will (R-OPS-1)."""

from __future__ import annotations

from typing import Any

from idumb.app.reading import stages
from idumb.domain.runs.event import GENESIS, Event
from tests.support.run_events import CHECKPOINT, FINISHED

BUILDER = {"outcome": "completed", "seconds": 2.0, "usage": {"cost_usd": 0.5}}


def event(at: int, kind: str, task: str | None = "T1-01", **payload: Any) -> Event:
    moment = f"2026-01-01T00:00:{at:02}.000000Z"
    return Event(at, "o", "r", task, 1 if task else None, kind, payload, 1, 1, moment, GENESIS, GENESIS)


def shown(*events: Event) -> list[tuple[str, str, float]]:
    rows = stages.of_run(events)
    return [(row.name, row.start[17:19], stages.seconds(row.start, row.end) if row.end else -1) for row in rows]


START = event(10, "attempt.started", builder="coder", envelope={"adapter": "command"})


def test_an_attempt_that_ends_again_because_of_a_hook_is_judged_from_its_first_end() -> None:
    events = [
        event(1, "run.resumed", None, reason="resume"),
        START,
        event(15, "attempt.finished", **{**FINISHED, "outcome": "completed", "builder": BUILDER}),
        event(16, "checkpoint.intended"),
        event(20, "attempt.finished", **{**FINISHED, "builder": BUILDER}),
        event(20, "checkpoint.recorded", **CHECKPOINT),
    ]
    assert shown(*events) == [("built", "10", 2), ("judged", "12", 3), ("judged", "15", 5), ("delivered", "16", 4)]


def test_a_wait_ends_with_its_last_answer_and_what_is_open_has_no_end() -> None:
    waiting = event(20, "task.waiting", decisions=["a", "b"], reason="two questions")
    answers = [event(at, "decision.answered", decision=id, choice="yes", by="me") for at, id in ((25, "b"), (30, "a"))]
    assert shown(waiting, *answers) == [("waited", "20", 10)]
    assert shown(waiting, answers[0]) == [("waited", "20", -1)]
    assert shown(START) == [("built", "10", -1)]


def test_a_killed_attempt_is_a_call_that_was_interrupted() -> None:
    (stage,) = stages.of_run([START, event(14, "attempt.interrupted", reason="killed")])
    assert (stage.name, stage.facts["outcome"], stage.facts["binding"]) == ("built", "interrupted", "coder")
