"""How long a process may take and how long it may be silent, with a look at it shortly before either is over."""

from __future__ import annotations

import time
from collections.abc import Sequence

from idumb.system.processes import process_stats, stalls


class Patience:
    """`seen` is what was observed when a time was over; None while none is.

    Moments are of the monotonic clock, spans in seconds; None is for ever.
    """

    def __init__(self, started: float, timeout: float | None, idle_timeout: float | None, *, agent: bool) -> None:
        self.seen: stalls.Observation | None = None
        self._deadline = None if timeout is None else started + timeout
        self._idle = idle_timeout
        self._worked = started
        self._agent = agent
        self._waits = False
        spans = [span for span in (timeout, idle_timeout) if span is not None]
        self._window = min(stalls.WINDOW, min(spans, default=0.0) / 2)
        self._before: process_stats.Sample | None = None

    def told(self, *, spoke: bool, waits: bool) -> None:
        """What the process says of itself beside its output: something new, or that it waits for somebody now.

        Neither is silence. Who waits still has no more time than it had.
        """
        self._waits = waits
        if spoke or waits:
            self._worked = time.monotonic()

    def next_look(self, heard: float | None) -> float | None:
        """When to call `look`; `heard` is when the process last printed something, None for never."""
        over = self._over(heard)
        if over is None:
            return None
        return over if self._is_fresh(over) else over - self._window

    def look(self, heard: float | None, pids: Sequence[int]) -> bool:
        """Whether a time is over. Called before that, it notes what the processes have used until now."""
        over = self._over(heard)
        if over is None or not self._is_fresh(over):
            self._before = process_stats.sample(pids)
            return False
        idle = over != self._deadline
        seen = process_stats.look(
            pids,
            self._before,
            limit=stalls.IDLE if idle else stalls.WALL,
            agent=self._agent,
            silence=None if heard is None else time.monotonic() - heard,
            says_it_waits=self._waits,
        )
        if idle and not stalls.is_idle(seen):
            self._worked = time.monotonic()
            return False
        self.seen = seen
        return True

    def _over(self, heard: float | None) -> float | None:
        quiet = None if self._idle is None or self._waits else max(heard or 0.0, self._worked) + self._idle
        known = [moment for moment in (self._deadline, quiet) if moment is not None]
        return min(known, default=None)

    def _is_fresh(self, over: float) -> bool:
        return self._before is not None and self._before.at >= over - self._window
