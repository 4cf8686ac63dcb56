"""State is a pure replay of events (R-LOG-1, R-RUN-2)."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from idumb.app.attempt import attempt_events
from idumb.domain import outcome
from idumb.domain.runs import replay, run
from idumb.domain.runs.event import Event
from tests.support import run_events

BASE = "b" * 40


class Tape:
    """Events of one run, numbered as they come."""

    def __init__(self, *tasks: str) -> None:
        self.events: list[Event] = []
        begun = {"plans": [["p", "h"]], "base_tree": BASE, "tasks": [[t, t] for t in tasks]}
        self.add("run.started", **{**run_events.STARTED, **begun})

    def add(
        self, kind: str, about: str | None = None, attempt: int | None = None, /, operation: str = "op", **payload: Any
    ) -> Tape:
        seq = len(self.events) + 1
        self.events.append(Event(seq, operation, "R", about, attempt, kind, payload, 1, 1, f"t{seq}", "", ""))
        return self

    def attempt(self, task: str, number: int, result: str, touched: tuple[str, ...] = ()) -> Tape:
        self.add("attempt.started", task, number, base=BASE, snapshot=f"s{number}")
        said = {"outcome": result, "left": f"left-{task}-{number}", "touched": list(touched), "feedback": "why"}
        return self.add("attempt.finished", task, number, **{**run_events.FINISHED, **said, "reason": "because"})

    def complete(self, task: str, number: int = 1, touched: tuple[str, ...] = ("f",)) -> Tape:
        self.attempt(task, number, outcome.COMPLETED, touched)
        made = {**run_events.CHECKPOINT, "git_hash": "g", "files": list(touched)}
        self.add("checkpoint.recorded", task, number, **made)
        return self.add("task.completed", task, number)

    def state(self) -> run.RunState:
        return replay.replay(self.events)


def test_replaying_a_prefix_and_then_the_rest_equals_replaying_the_whole() -> None:
    tape = Tape("A", "B").complete("A").attempt("B", 1, outcome.FAILED).attempt("B", 2, outcome.FAILED)
    for cut in range(len(tape.events)):
        state = replay.replay(tape.events[:cut])
        for event in tape.events[cut:]:
            replay.apply(state, event)
        assert state == tape.state()


def test_an_interrupted_attempt_does_not_count() -> None:
    """An attempt interrupted by the executor's end is not a failure."""
    tape = Tape("A").add("attempt.started", "A", 1, base=BASE, snapshot="s")
    task = tape.add("attempt.interrupted", "A", 1, left="x", touched=["f"], reason="").state().tasks["A"]
    assert (task.progress.attempts, task.attempt.number, task.status) == (0, 1, outcome.PENDING)
    assert task.attempt.outcome == outcome.CANCELLED


def test_an_attempt_that_ended_and_is_not_delivered_does_not_count_and_is_charged_once() -> None:
    """The user committed other bytes meanwhile, so that it is built again."""
    tape = Tape("A").attempt("A", 1, outcome.COMPLETED)
    tape.add("attempt.interrupted", "A", 1, left="x", touched=[], reason="")
    progress = tape.state().tasks["A"].progress
    assert (progress.attempts, progress.spent.attempts, tape.state().spent["builder"].attempts) == (0, 1, 1)


def test_an_attempt_that_is_judged_again_with_the_same_result_does_not_repeat_itself() -> None:
    tape = Tape("A").attempt("A", 1, outcome.FAILED)
    again = {**run_events.FINISHED, "reason": "because", "left": "left-A-1"}
    assert tape.add("attempt.finished", "A", 1, **again).state().tasks["A"].progress.repeated == 0
    tape.add("attempt.started", "A", 2, base=BASE, snapshot="s")
    assert tape.add("attempt.finished", "A", 2, **again).state().tasks["A"].progress.repeated == 1


def test_consecutive_failures_are_counted_until_a_success() -> None:
    tape = Tape("A", "B", "C").add("task.failed", "A").add("task.failed", "B")
    assert tape.state().failures_in_a_row == 2
    assert tape.add("task.completed", "C").state().failures_in_a_row == 0


def test_rollback_resets_tasks_and_undo_and_its_undo_restore_the_exact_state() -> None:
    """R-GIT-3."""
    tape = Tape("A", "B").complete("A").complete("B").add("verification.recorded", status="passed").add("run.completed")
    before = copy.deepcopy(tape.state())
    tape.add("rollback.completed", operation="op2", to="A", tasks=["B"], paths=["f"])
    rolled = copy.deepcopy(tape.state())
    assert rolled.tasks["A"].status == outcome.COMPLETED
    assert rolled.tasks["B"].status == outcome.PENDING
    assert not rolled.verified
    tape.add("undo.completed", operation="op3", undone="op2", tasks=["B"], paths=["f"])
    undone = copy.deepcopy(tape.state())
    assert undone.tasks == before.tasks
    assert undone.attempted == before.attempted
    assert (undone.verified, undone.state) == (True, before.state)
    tape.add("undo.completed", operation="op4", undone="op3", tasks=["B"], paths=["f"])
    assert tape.state().tasks == rolled.tasks
    assert tape.state().attempted == rolled.attempted


def test_an_undo_after_an_amendment_leaves_the_run_open_for_its_new_task() -> None:
    tape = Tape("A").complete("A").add("verification.recorded", status="passed").add("run.completed")
    tape.add("rollback.completed", operation="op2", to="start", tasks=["A"], paths=["f"])
    amended: dict[str, Any] = {"version": 2, "from": "c", "to": "d", "chain": "e", "plans": [], "answers": []}
    tape.add("contract.amended", **amended, tasks=[["A", "A"], ["B", "B"]])
    state = tape.add("undo.completed", operation="op3", undone="op2", tasks=["A"], paths=["f"]).state()
    assert (state.tasks["A"].status, state.tasks["B"].status) == (outcome.COMPLETED, outcome.PENDING)
    assert (state.state, state.verified) == (run.HALTED, False)


def test_work_of_a_person_that_is_accepted_is_the_last_that_was_done() -> None:
    tape = Tape("A", "B").add("attempt.started", "A", 1, base=BASE, snapshot="s", envelope={"adapter": "human"})
    tape.complete("B").add("task.accepted", "A", 1, commit=None)
    assert list(tape.state().attempted) == ["B", "A"]


def test_the_last_completed_attempt_is_known_through_waiting_retries_and_rollback() -> None:
    """R-ADAPT-2: an answer to an attempt that ended is no answer to the next."""
    tape = Tape("A", "B").attempt("A", 1, outcome.WAITING)
    waiting = tape.state().tasks["A"].progress
    assert (waiting.settled, waiting.attempts, waiting.spent.attempts) == (0, 0, 0)
    tape.attempt("A", 2, outcome.FAILED)
    assert tape.state().tasks["A"].progress.settled == 2
    tape.add("task.failed", "A", 2).add("task.reset", "A", reason="retry").attempt("A", 3, outcome.WAITING)
    assert tape.state().tasks["A"].progress.settled == 2
    tape.complete("B").add("rollback.completed", operation="op2", to="start", tasks=["A", "B"], paths=["f"])
    assert (tape.state().tasks["A"].progress.settled, tape.state().tasks["B"].progress.settled) == (3, 1)


def test_a_retried_task_drops_answers_about_the_failed_attempt() -> None:
    tape = Tape("A").add("decision.asked", "A", 1, id="A.work", task="A", choices=[])
    tape.add("decision.answered", "A", 1, decision="A.work", choice="no", by="x").add("task.failed", "A", 1)
    assert tape.add("task.reset", "A", reason="retry").state().answers == {}


def test_an_answer_survives_the_reset_that_uses_it() -> None:
    tape = Tape("A").add("decision.asked", "A", 1, id="A.work", task="A", choices=[])
    tape.add("decision.answered", "A", 1, decision="A.work", choice="yes", by="x")
    assert "A.work" in tape.add("task.reset", "A", reason=run.ANSWERED).state().answers


def test_run_and_call_ids_depend_on_exactly_what_they_name() -> None:
    """R-RUN-2: ids derive from contract hash, base commit and number; call ids from run and step index."""
    assert run.run_id("c", "b", 1) == run.run_id("c", "b", 1)
    assert (
        len({run.run_id("c", "b", 1), run.run_id("d", "b", 1), run.run_id("c", None, 1), run.run_id("c", "b", 2)}) == 4
    )
    assert attempt_events.call_id("r", "T1-01", 1, 0) != attempt_events.call_id("r", "T1-01", 1, 1)


def test_events_of_a_handoff_do_not_change_the_date_of_reports() -> None:
    """R-LOG-1, R-LOG-4: the event names the run, and the run is as it was."""
    tape = Tape("A").complete("A")
    before = replay.replay(tape.events)
    after = replay.replay(tape.add("handoff.completed", "A", 1, handoff_id="h", status="complete").events)
    assert after.last_seq == before.last_seq + 1
    after.last_seq = before.last_seq
    assert after == before


def test_what_nobody_committed_is_known_after_every_event() -> None:
    tape = Tape("A", "B", "C").complete("A", touched=("a", "both"))
    tape.attempt("B", 1, outcome.COMPLETED, ("b", "both")).add("task.accepted", "B", reason="fine", by="x", commit=None)
    tape.attempt("C", 1, outcome.COMPLETED, ("c",)).add("task.accepted", "C", reason="fine", by="x", commit=None)
    tape.add("rollback.completed", operation="op2", to="B", tasks=["C"], paths=["c"])
    tape.add("undo.completed", operation="op3", undone="op2", paths=["c"])
    tape.add("task.reset", "C", reason="again")
    state, seen = run.RunState(), list[tuple[str, ...]]()
    for number, event in enumerate(tape.events, 1):
        replay.apply(state, event)
        seen.append(state.uncommitted())
        assert set(seen[-1]) == set(replay.replay(tape.events[:number]).uncommitted()), event
    assert [paths for before, paths in itertools.pairwise(seen) if before != paths] == [
        ("b", "both"),
        ("b", "both", "c"),
        ("b", "both"),
        ("b", "both", "c"),
        ("b", "both"),
    ]
