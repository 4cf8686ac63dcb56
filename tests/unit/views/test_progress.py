"""Progress: one plain line for each event that matters, or a table that redraws itself."""

from __future__ import annotations

import io
import itertools
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from idumb.app.reading.watch import Expected, Now
from idumb.cli import opened_services
from idumb.domain.runs.event import GENESIS, Event
from idumb.domain.runs.run import RunState, TaskState
from idumb.views.terminal import ask, plain_progress
from idumb.views.terminal.board import Board
from idumb.views.terminal.live_progress import LiveProgress
from tests.support import run_events
from tests.unit.views import examples

if TYPE_CHECKING:
    import pytest


def _lines(log: examples.Log) -> list[str]:
    stream = io.StringIO()
    reporter = plain_progress.PlainProgress(stream)
    reporter.begin({i: log.contract.tasks[i].title for i in log.contract.order}, {})
    for event in log.events:
        reporter.event(event)
    return stream.getvalue().splitlines()


def test_plain_progress_reads_like_a_log() -> None:
    assert _lines(examples.partial_run())[:8] == [
        "Phase 1: run 0123456789abcdef started",
        "    passed AC-1: pytest -q",
        "[1/5] T1-01 Slug function … attempt 1",
        "    completed in 1m15s, commit 1a2b3c4",
        "[2/5] T1-02 Unique slugs … attempt 1",
        "    attempt 1 failed: AC-1 failed",
        "    failed AC-1: pytest -q (exit 1)",
        "      | old output",
    ]


def test_foreign_text_in_progress_is_escaped() -> None:
    log = examples.Log(examples.slugs(title=examples.NASTY))
    log.fail("T1-02", examples.NASTY)
    assert not any("\x1b" in line or "\u202e" in line for line in _lines(log))


def test_a_malformed_event_does_not_stop_a_run() -> None:
    odd = Event(1, "op", None, None, None, "evidence.recorded", {}, 1, 1, "", GENESIS, GENESIS)
    line = plain_progress.render(odd, plain_progress.LineContext())
    assert (line or "").startswith("evidence.recorded (not shown")


class _Broken(io.StringIO):
    tries = 0

    def write(self, text: str) -> int:
        self.tries += 1
        raise BrokenPipeError


def test_a_failing_stream_does_not_stop_a_run() -> None:
    broken = _Broken()
    reporter = plain_progress.PlainProgress(broken)
    reporter.note("one")
    reporter.note("two")
    assert broken.tries == 1
    closed = io.StringIO()
    closed.close()
    plain_progress.PlainProgress(closed).note("three")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _live(log: examples.Log, monkeypatch: pytest.MonkeyPatch) -> tuple[LiveProgress, _Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    ticks = itertools.count()
    stream = _Terminal()
    live = LiveProgress(stream, clock=lambda: float(next(ticks)))
    live.begin({i: log.contract.tasks[i].title for i in log.contract.order}, log.statuses)
    return live, stream


def _failing(log: examples.Log, output: str, used: Mapping[str, Any] | None = None) -> None:
    log.add("attempt.started", "T1-02", 1, base="", snapshot="5" * 40, builder="coder")
    check = {"subject": "AC-1", "text": "", "command": "pytest -q", "result": "failed", "exit_code": 1}
    log.add("evidence.recorded", "T1-02", 1, **check, output=output)
    log.add("attempt.finished", "T1-02", 1, **{**run_events.FINISHED, "reason": "AC-1 failed", "builder": used})


FAILED_CHECK = [
    "    failed AC-1: pytest -q (exit 1)",
    "      | assert 1 == 2",
    "      |   where 1 = one()",
    "      | three",
    "      | four",
    "      | five",
    "      | … and 2 more lines",
    "    attempt 1 failed: AC-1 failed",
]
OUTPUT = "assert 1 == 2\n  where 1 = one()\n\nthree\nfour\nfive\nsix\nseven\n"


def test_the_live_table_keeps_failures_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-5: the first lines of a check's output, as without a terminal, under the task and the attempt."""
    log = examples.Log(examples.slugs())
    live, stream = _live(log, monkeypatch)
    _failing(log, OUTPUT)
    assert _lines(log)[-8:] == FAILED_CHECK
    other = examples.Log(examples.slugs())
    _failing(other, "FATAL: expired at 2026-01-02T03:04:05Z\n")  # a text as long as a time is none
    assert "      | FATAL: expired at 2026-01-02T03:04:05Z" in _lines(other)
    log.add("attempt.started", "T1-02", 2, base="", snapshot="")
    for event in log.events:
        live.event(event)
    live.stop()
    kept = stream.getvalue()
    at = [kept.index(line) for line in ("[2/5] T1-02 Unique slugs … attempt 1", *FAILED_CHECK)]
    assert at == sorted(at)
    assert kept.count("assert 1 == 2") == 1


def test_the_live_table_pauses_for_a_question_and_disappears_when_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    log = examples.Log(examples.slugs())
    live, stream = _live(log, monkeypatch)
    live.event(log.add("attempt.started", "T1-01", 1, base="", snapshot=""))
    with ask.displays_paused():
        still = stream.getvalue()
        assert still.rstrip().endswith("\x1b[1A\x1b[2K")  # no frame is left
        live.note("nothing is drawn now")
        assert stream.getvalue() == still
    assert "nothing is drawn now" in stream.getvalue()
    live.stop()
    assert not ask.displays


def test_what_is_expected_of_a_run_is_read_once_and_again_after_an_answer() -> None:
    """It is read from all events of the run; an answer may raise what the run may cost."""
    asked: list[str] = []

    def known(run: str) -> tuple[RunState, dict[str, Expected], float]:
        asked.append(run)
        return RunState(), {}, 5.0 * len(asked)

    sight = Namespace(known=known, look=lambda *_: Now())
    reporter = LiveProgress(io.StringIO(), str, lambda: 0.0, sight)
    log = examples.partial_run()
    starts = [event for event in log.events if event.kind == "attempt.started"]
    for event in (log.events[0], starts[0], starts[0]):
        reporter.event(event)
    assert (len(asked), reporter.board.limit) == (1, 5.0)
    assert reporter.board.state.tasks["T1-01"].attempt.running, "another log does not have the run"
    answer = {"decision": "T1-01.limit.1", "choice": "raise", "by": "me", "guidance": ""}
    reporter.event(replace(starts[0], kind="decision.answered", payload=answer))
    reporter.event(starts[0])
    reporter.stop()
    assert (len(asked), reporter.board.limit) == (2, 10.0)


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    log, stream = examples.partial_run(), _Terminal()
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", stream)
    reporter = opened_services.for_people(Namespace())  # type: ignore[arg-type]
    reporter.begin({i: log.contract.tasks[i].title for i in log.contract.order}, log.statuses)
    for event in log.events:
        reporter.event(event)
    assert "[1/5] T1-01 Slug function … attempt 1\n" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_the_board_shows_what_works_on_a_task_and_fits_into_eighty_columns() -> None:
    """R-OPS-1: finished tasks have one line; of a failed check the first lines stay."""
    log = examples.Log(examples.slugs(title="A title that is far too long for a terminal of eighty columns " * 2))
    board = Board(plain_progress.LineContext(), look=lambda *_: Now("agent", "edits slug.py " * 9, 200))
    board.begin({i: log.contract.tasks[i].title for i in log.contract.order}, log.statuses)
    board.expected = {"T1-02": Expected(("pytest -q",), 60.0)}
    log.complete("T1-01", "a.py")
    _failing(log, OUTPUT, {"usage": {"tokens_in": 1000, "tokens_out": 34, "cost_usd": 0.5}})
    log.add("attempt.started", "T1-02", 2, base="", snapshot="5" * 40, builder="coder")
    for event in log.events:
        board.take(event)
    now = datetime.fromisoformat(log.events[-1].at).timestamp() + 5
    lines = [text for text, _ in board.lines(now, 79, 12, failures=True)]
    assert max(map(len, lines)) <= 79
    assert [line.split()[0] for line in lines[:1]] == ["T1-01"]
    assert lines[1].endswith("running    6.0s of ~1m00s attempt 2")
    assert lines[2].startswith("    agent coder: edits slug.py")
    assert lines[3] == "    1234 tokens, $0.50 so far"
    assert "failed AC-1" in lines[4]
    assert "assert 1 == 2" in lines[5]


def test_a_table_of_many_tasks_is_a_window_around_the_running_one() -> None:
    titles = {f"T1-{n:03d}": "x" for n in range(500)}
    board = Board(plain_progress.LineContext())
    board.begin(titles, dict.fromkeys(titles, "pending"))
    done = {f"T1-{n:03d}": "completed" for n in range(250)} | {"T1-250": "running"}
    board.state.tasks = {name: TaskState(name, "", status) for name, status in done.items()}
    shown, before, after = board.window(10)
    assert (len(shown), before, after) == (10, 245, 245)
    assert "T1-250" in shown
    assert board.window(1000)[0] == list(titles)


def test_doubts_with_commas_stay_apart() -> None:
    parts = [{"value": value, "why": f"warnings: {number}, tasks: 2"} for number, value in enumerate((0.5, 0.2, 1))]
    payload = {"confidence": 0.5, "parts": parts}
    event = Event(1, "op", None, None, None, "run.locked", payload, 1, 1, "", GENESIS, GENESIS)
    line = plain_progress.render(event, plain_progress.LineContext())
    assert line == "Locked in: confidence 0.5 (warnings: 0, tasks: 2; warnings: 1, tasks: 2)"
