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
    from idumb.domain.runs.run import RunState

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
        display, _ = _replayed(services, state, sys.stdout)
        display.frame()
    return Result(watch.summary(services, state))


def follow(services: Services, phase: str | None, *, bell: bool) -> Result:
    """Show the run and those after it, until Ctrl-C; without a terminal, until the run ends."""
    is_terminal = sys.stdout.isatty()
    shown = 0
    while True:
        state = watch.newest(services, phase)
        if state.last_seq > shown:
            shown = max(shown, _follow(services, state, shown, live=is_terminal, bell=bell))
        if not is_terminal:
            return Result(watch.summary(services, watch.newest(services, phase)))
        services.clock.pause(watch.PAUSE)


def _follow(services: Services, state: RunState, after: int, *, live: bool, bell: bool) -> int:
    """Show a run from its first event, in silence up to `after`, until nobody works on it. Return the last event."""
    if live:
        display, last = _replayed(services, state, sys.stdout)
        display.show()
        last = _shown(services, state.id, display, max(after, last), bell=bell)
        display.stop()
        return last
    lines = PlainProgress(sys.stdout, escape=output.shown)
    lines.begin(*watch.described(services, state))
    return _shown(services, state.id, lines, after, bell=bell)


def _shown(services: Services, run: str, reporter: Reporter, after: int, *, bell: bool) -> int:
    """Report the events of a run after this one, until nobody works on it. Return the last event."""
    for event in watch.events(services, run, after=after):
        reporter.event(event)
        after = event.seq
        if bell and event.kind in _RINGS:
            sys.stdout.write("\a")
            sys.stdout.flush()
    return after


def _replayed(services: Services, state: RunState, stream: TextIO) -> tuple[LiveProgress, int]:
    """Return a display that shows the present without having printed anything, and the last event."""
    clock, last = Past(services.clock.now()), 0
    display = LiveProgress(stream, escape=output.shown, clock=clock)
    titles, statuses = watch.described(services, state)
    display.begin(titles, dict.fromkeys(statuses, "pending"))
    for event in services.log.events(run=state.id):
        clock.at = event.at
        display.board.take(event, clock())
        last = event.seq
    clock.at = None
    display.board.status.update(statuses)
    return display, last
