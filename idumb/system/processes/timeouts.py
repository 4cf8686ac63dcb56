"""How long a process may take and how long it may be silent, with a look at it shortly before either is over."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from idumb.system.processes import process_tree, stalls


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
        self._before: process_tree.Sample | None = None

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


# Our name, and the system's for the same.
NAMES: Mapping[str, str] = {
    "memory": "RLIMIT_AS",
    "cpu": "RLIMIT_CPU",
    "processes": "RLIMIT_NPROC",
    "file_size": "RLIMIT_FSIZE",
    "open_files": "RLIMIT_NOFILE",
}


Ceilings = tuple[tuple[int, int], ...]


def ceilings(limits: Mapping[str, int]) -> Ceilings:
    """(the system's number, value) of each; a name that the system does not have is left out."""
    import resource

    known = ((getattr(resource, NAMES[name], None), value) for name, value in limits.items())
    return tuple((number, value) for number, value in known if number is not None)


def apply(chosen: Ceilings) -> None:
    """Set them for this process, never above what it has already."""
    import resource

    for number, value in chosen:
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # Above a soft limit of CPU time comes a signal that can be caught; the hard one kills.
        top = most + 1 if number == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or most < hard) else most
        resource.setrlimit(number, (most, top))
