"""An attempt that is open in an editor, according to the events of its run."""

from __future__ import annotations

from typing import Any

from idumb.domain.runs.event import GENESIS, Event
from idumb.domain.runs.replay import replay
from idumb.domain.runs.run import RunState
from tests.support import run_events
from tests.support.cases import every

STARTED = {**run_events.STARTED, "tasks": [["T1-01", "d"], ["T1-02", "e"]]}
INTERRUPTED: dict[str, Any] = {"left": None, "touched": [], "reason": ""}


def state_after(*events: tuple[str, dict[str, Any]]) -> RunState:
    """The state after these events about attempt 1 of the first task, which was opened before."""
    begun: tuple[tuple[str, dict[str, Any]], ...] = (
        ("run.started", STARTED),
        ("attempt.started", {"base": "t", "snapshot": "s", "guarded": {"config": "1"}}),
        ("attempt.opened", {"by": "somebody", "base": "t"}),
    )
    return replay(
        Event(seq, "o", "r", None if kind[:4] == "run." else "T1-01", 1, kind, payload, 1, 1, "at", GENESIS, GENESIS)
        for seq, (kind, payload) in enumerate((*begun, *events), start=1)
    )


def test_an_attempt_is_open_from_its_event_on_for_its_owner() -> None:
    """R-ADAPT-7."""
    task = state_after().opened
    assert task is not None
    assert task.attempt.opened is not None
    assert task.attempt.running
    assert (task.id, task.status, task.attempt.opened["by"]) == ("T1-01", "running", "somebody")


@every(
    "kind, payload",
    [
        ("attempt.finished", dict(run_events.FINISHED)),
        ("attempt.interrupted", INTERRUPTED),
        ("attempt.started", {"base": "t", "snapshot": "s"}),
        ("task.skipped", {}),
        ("task.accepted", {"commit": None}),
    ],
)
def test_every_end_of_the_attempt_closes_it(kind: str, payload: dict[str, Any]) -> None:
    """R-ADAPT-7."""
    assert state_after((kind, payload)).opened is None


def test_the_editor_may_still_change_guarded_files_after_the_run_continued() -> None:
    """R-ADAPT-7: git's own files are compared with their record again, whatever commands ran in between."""
    assert state_after(("run.resumed", {})).guarded.unchecked
    assert not state_after(("attempt.finished", dict(run_events.FINISHED)), ("run.resumed", {})).guarded.unchecked
