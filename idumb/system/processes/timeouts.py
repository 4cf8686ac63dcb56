"""Time limits of a process, total and silent, with an observation shortly before either expires."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from idumb.system.processes import process_tree, stalls


class Patience:
    """`seen` is what was observed when a limit expired, or None.

    Moments are on the monotonic clock, spans in seconds; None means no limit.
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
        self._before: process_tree.Sample | None = None

    def told(self, *, spoke: bool, waits: bool) -> None:
        """Record the process's own report: new content, or that it is waiting.

        Neither counts as silence. Waiting does not extend the total limit.
        """
        self._waits = waits
        if spoke or waits:
            self._worked = time.monotonic()

    def next_look(self, heard: float | None) -> float | None:
        """Return when to call `look`; `heard` is when the process last printed something, or None."""
        over = self._over(heard)
        if over is None:
            return None
        return over if self._is_fresh(over) else over - self._window

    def look(self, heard: float | None, pids: Sequence[int]) -> bool:
        """Return whether a limit has expired. Called earlier, it records what the processes have used so far."""
        over = self._over(heard)
        if over is None or not self._is_fresh(over):
            self._before = process_tree.sample(pids)
            return False
        idle = over != self._deadline
        seen = process_tree.look(
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


# Our name, and the system's name for the same limit.
NAMES: Mapping[str, str] = {
    "memory": "RLIMIT_AS",
    "cpu": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_size": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
}


Ceilings = tuple[tuple[int, int], ...]


def ceilings(limits: Mapping[str, int]) -> Ceilings:
    """Return (system number, value) of each limit; omit names that the system does not have."""
    import resource

    known = ((getattr(resource, NAMES[name], None), value) for name, value in limits.items())
    return tuple((number, value) for number, value in known if number is not None)


def apply(chosen: Ceilings) -> None:
    """Set the limits for this process, never above its current ones."""
    import resource

    for number, value in chosen:
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # Above a soft CPU limit comes a signal that can be caught; the hard limit kills.
        top = most + 1 if number == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or most < hard) else most
        resource.setrlimit(number, (most, top))
