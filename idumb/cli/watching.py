"""Shows a run of another process on this terminal, as that process shows it on its own."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from idumb.app.core.result import Result
from idumb.app.reading import watch
from idumb.cli import output
from idumb.views.terminal.live_progress import LiveProgress
from idumb.views.terminal.plain_progress import PlainProgress

if TYPE_CHECKING:
    from idumb.app.core.services import Services
    from idumb.app.ports.process import Reporter
    from idumb.domain.runs.event import Event

_RINGS = frozenset({"decision.asked", "run.completed", "run.failed", "run.halted", "run.paused"})


class Past:
    """A clock in monotonic seconds. While it is `at` a time of the log, it shows what it was then."""

    def __init__(self, now: str) -> None:
        self._offset = time.monotonic() - _seconds(now)
        self.at: str | None = None

    def __call__(self) -> float:
        return time.monotonic() if self.at is None else _seconds(self.at) + self._offset


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def once(services: Services, phase: str | None, *, as_json: bool) -> Result:
    """Return the run as it is now; as text, one frame is printed."""
    state = watch.newest(services, phase)
    if not as_json:
        display = _display(services, sys.stdout)
        _replay(services, display, state.id)
        display.frame()
    return Result(watch.summary(services, state))


def follow(services: Services, phase: str | None, *, bell: bool) -> Result:
    """Show the run and those after it, until Ctrl-C; without a terminal, until the run ends."""
    is_terminal = sys.stdout.isatty()
    shown = 0
    while True:
        state = watch.newest(services, phase)
        if state.last_seq > shown:
            shown = max(shown, _follow(services, state.id, shown, live=is_terminal, bell=bell))
        if not is_terminal:
            return Result(watch.summary(services, watch.newest(services, phase)))
        services.clock.pause(watch.PAUSE)


def _follow(services: Services, run: str, after: int, *, live: bool, bell: bool) -> int:
    """Show a run from its first event, in silence up to `after`, until nobody works on it. Return the last event."""
    reporter: Reporter = _display(services, sys.stdout) if live else PlainProgress(sys.stdout, escape=output.shown)
    last = after
    if isinstance(reporter, LiveProgress):
        last = max(last, _replay(services, reporter, run))
        reporter.show()
    else:
        reporter.begin(*watch.described(services, watch.run_of(services, run)))
    for event in watch.events(services, run, after=last):
        reporter.event(event)
        last = event.seq
        if bell and event.kind in _RINGS:
            sys.stdout.write("\a")
            sys.stdout.flush()
    if isinstance(reporter, LiveProgress):
        reporter.stop()
    return last


def _display(services: Services, stream: TextIO) -> LiveProgress:
    return LiveProgress(stream, escape=output.shown, clock=Past(services.clock.now()))


def _replay(services: Services, display: LiveProgress, run: str) -> int:
    """Bring the display to the present without printing; return the last event."""
    clock, last = display.clock, 0
    titles, statuses = watch.described(services, watch.run_of(services, run))
    display.begin(titles, dict.fromkeys(statuses, "pending"))
    event: Event
    for event in services.log.events(run=run):
        if isinstance(clock, Past):
            clock.at = event.at
        display.board.take(event, clock())
        last = event.seq
    if isinstance(clock, Past):
        clock.at = None
    display.board.status.update(statuses)
    return last
