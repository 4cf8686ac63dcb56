"""The limits of time of a program, and why work was stopped or killed, as far as it could be observed.

Words always accompany a cause. CPU use comes from psutil, which knows it on every system that idumb supports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

RESOURCES = "resources"
DEADLOCK = "deadlock"
MODEL_STALL = "model-stall"
EXTERNAL = "external"

WALL = "wall"
IDLE = "idle"

LINGER = 30.0  # seconds of silence in which an agent has to end after its final report

WINDOW = 2.0  # seconds over which CPU use is measured
BUSY = 0.25  # cores; less is bookkeeping
_LEAST_FREE = 0.01  # share of the machine's memory


class Cause(Struct, frozen=True):
    """`kind` is RESOURCES, DEADLOCK, MODEL_STALL or EXTERNAL, None if it is unknown; `words` are what was observed."""

    kind: str | None = None
    words: str = ""


class TimeLimits:
    """`expired` is the limit that expired, "" for none, and `cause` why it did.

    Moments are on the monotonic clock, spans in seconds; None means no limit. Once the process has
    `reported`, it may be silent for LINGER at most.
    """

    def __init__(self, started: float, timeout: float | None, idle_timeout: float | None, *, agent: bool) -> None:
        self.expired = ""
        self.cause = Cause()
        self._deadline = None if timeout is None else started + timeout
        self._idle = idle_timeout
        self.reported: Callable[[], bool] = bool
        self._worked = started
        self._agent = agent
        self._waits = False
        spans = [span for span in (timeout, idle_timeout) if span is not None]
        self._window = min(WINDOW, min(spans, default=0.0) / 2)
        self._before: Sample | None = None

    def report(self, *, spoke: bool, waits: bool) -> None:
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
            self._before = sample(pids)
            return False
        limit = WALL if over == self._deadline else IDLE
        busy = works(self._before, sample(pids))
        if limit == IDLE and busy is not False:  # silence is no stall if the system does not show what it does
            self._worked = time.monotonic()
            return False
        silence = None if heard is None else time.monotonic() - heard
        self.expired = limit
        self.cause = of_limit(limit, busy=busy, agent=self._agent, silence=silence, says_it_waits=self._waits)
        return True

    def _over(self, heard: float | None) -> float | None:
        idle = min(LINGER, self._idle) if self._idle is not None and self.reported() else self._idle
        quiet = None if idle is None or self._waits else max(heard or 0.0, self._worked) + idle
        moments = [moment for moment in (self._deadline, quiet) if moment is not None]
        return min(moments, default=None)

    def _is_fresh(self, over: float) -> bool:
        return self._before is not None and self._before.at >= over - self._window


class Sample(Struct, frozen=True):
    """CPU seconds that processes used up to a moment of the monotonic clock, None if the system shows none of them.

    `runs`: one of them wanted a core, although a loaded machine may not have provided one.
    """

    at: float
    cpu: float | None
    runs: bool


def sample(pids: Iterable[int]) -> Sample:
    import psutil

    times, states = list[float](), list[str]()
    for pid in pids:
        try:
            process = psutil.Process(pid)
            times.append(sum(process.cpu_times()[:4]))  # with those of children that have ended
            states.append(process.status())
        except psutil.Error:
            continue
    return Sample(time.monotonic(), sum(times) if times else None, psutil.STATUS_RUNNING in states)


def works(before: Sample | None, now: Sample) -> bool | None:
    """Return whether processes computed between two samples; None if the system does not show it."""
    if before is None or before.cpu is None or now.cpu is None or now.at <= before.at:
        return None
    return (before.runs and now.runs) or (now.cpu - before.cpu) / (now.at - before.at) >= BUSY


def of_limit(limit: str, *, busy: bool | None, agent: bool, silence: float | None, says_it_waits: bool) -> Cause:
    """Return the cause of an expired limit.

    `silence` is in seconds since the last output, None if there was none. `says_it_waits`: the work reported that.
    """
    speech = "no output" if silence is None else f"silent for {max(1, round(silence))} s"
    quiet = limit == IDLE or silence is None or silence >= WINDOW
    if _memory_is_full():
        return Cause(RESOURCES, "the machine's memory is used up")
    if busy:
        return Cause(RESOURCES, f"it was still computing, {speech if quiet else 'recent output'}")
    if says_it_waits:
        return Cause(EXTERNAL, "it reports that it is waiting")
    if quiet and (busy is False or limit == IDLE):
        return Cause(MODEL_STALL if agent else DEADLOCK, f"hardly any CPU used, {speech}")
    return Cause(None, "hardly any CPU used, recent output" if busy is False else speech)


def of_signal(number: int) -> Cause:
    """Explain a signal that idumb did not send. A shell turns that of its last program into 128 plus its number."""
    words = _BY_SIGNAL.get(number)
    return Cause(RESOURCES, words) if words else Cause()


_BY_SIGNAL = {
    9: "killed from outside, usually because memory ran out",
    24: "CPU time limit reached",
    25: "file size limit reached",
}


def _memory_is_full() -> bool:
    import psutil

    memory = psutil.virtual_memory()
    return bool(memory.available < _LEAST_FREE * memory.total)
