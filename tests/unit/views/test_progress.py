"""Plain progress: one line for each event that matters."""

from __future__ import annotations

import io

from idumb.domain.event import GENESIS, Event
from idumb.views import progress_plain
from tests.unit.views import examples


def _lines(log: examples.Log) -> list[str]:
    stream = io.StringIO()
    reporter = progress_plain.PlainProgress(stream, {i: log.contract.tasks[i].title for i in log.contract.order})
    for event in log.events:
        reporter.event(event)
    return stream.getvalue().splitlines()


def test_plain_progress_reads_like_a_log() -> None:
    assert _lines(examples.partial_run())[:8] == [
        "Phase 1: run 0123456789abcdef started",
        "    passed AC-1 pytest -q",
        "[1/5] T1-01 Slug function … attempt 1",
        "    completed in 1m15s, commit 1a2b3c4",
        "[2/5] T1-02 Unique slugs … attempt 1",
        "    attempt 1 failed: AC-1 failed",
        "    failed AC-1 pytest -q (exit 1)",
        "    failed AC-1 pytest -q -k unique (exit 1)",
    ]


def test_plain_progress_does_without_titles() -> None:
    stream = io.StringIO()
    reporter = progress_plain.PlainProgress(stream)
    for event in examples.partial_run().events:
        reporter.event(event)
    assert "[2/5] T1-02 … attempt 2\n" in stream.getvalue()


def test_foreign_text_in_progress_is_escaped() -> None:
    log = examples.Log(examples.slugs(title=examples.NASTY))
    log.fail("T1-02", examples.NASTY)
    assert not any("\x1b" in line or "\u202e" in line for line in _lines(log))


def test_an_event_of_an_odd_shape_does_not_stop_a_run() -> None:
    stream = io.StringIO()
    odd = Event(1, "op", None, None, None, "evidence.recorded", {}, 1, 1, "", GENESIS, GENESIS)
    progress_plain.PlainProgress(stream).event(odd)
    assert stream.getvalue().startswith("evidence.recorded (not shown")


class _Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_failing_stream_does_not_stop_a_run() -> None:
    reporter = progress_plain.PlainProgress(_Broken())
    reporter.note("one")
    reporter.note("two")
    closed = io.StringIO()
    closed.close()
    progress_plain.PlainProgress(closed).note("three")
