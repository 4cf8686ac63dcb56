"""Why work that was stopped for its time had not ended: a class, from what its processes did just before.

Pure: what is looked at is gathered in `observing`. A class is a judgement from outside, so the words of `explain`
always stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

RESOURCES = "resources"
DEADLOCK = "deadlock"
MODEL_STALL = "model-stall"
EXTERNAL = "external"
CLASSES = (RESOURCES, DEADLOCK, MODEL_STALL, EXTERNAL)

WALL = "wall"
IDLE = "idle"

WINDOW = 2.0  # seconds over which the use of the CPU is measured
BUSY = 0.25  # cores; less is bookkeeping

_SHOWN = 4
_WAITS = {
    "futex": "a lock",
    "lock": "a file lock",
    "flock": "a file lock",
    "pipe": "a pipe",
    "wait": "a child process",
    "unix": "a socket of this machine",
    "nanosleep": "a timer",
    "tty": "a terminal",
}


@dataclass(frozen=True, slots=True)
class Observation:
    """What the processes of one piece of work did when its time was over.

    `limit` is WALL or IDLE. `busy` is in cores, over the last `window` seconds; `runs` tells of who wanted a core
    whenever we looked, though a loaded machine may not have given it. `states` are the letters of the
    processes (R runs, S sleeps, D waits for a device, T is stopped), `waits` the names of what the sleeping ones wait
    on, as the kernel has them. `connections` counts those with somebody outside of the work. `silence` is in seconds
    since the last output, None where there was none. `full` names a limit that is reached: memory or processes.
    `says_it_waits`: the work itself said that it waits for somebody.
    """

    limit: str = WALL
    agent: bool = False
    busy: float = 0.0
    runs: bool = False
    states: str = ""
    waits: tuple[str, ...] = ()
    connections: int = 0
    silence: float | None = None
    window: float = WINDOW
    full: str = ""
    says_it_waits: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """`kind` is one of CLASSES."""

    kind: str
    words: str


def of(seen: Observation) -> Cause:
    return Cause(classify(seen), explain(seen))


def classify(seen: Observation) -> str:
    """One of CLASSES."""
    if seen.full or _works(seen):
        return RESOURCES
    if seen.says_it_waits:
        return EXTERNAL
    if "T" in seen.states:
        return DEADLOCK
    if seen.connections or "D" in seen.states:
        return MODEL_STALL if seen.agent and seen.connections else EXTERNAL
    if seen.agent and seen.limit == IDLE:
        return MODEL_STALL
    # It still talks, works little and holds no connection: it looks again and again for something that does not come.
    return EXTERNAL if _talks(seen) and _polls(seen) and not seen.agent else DEADLOCK


def is_idle(seen: Observation) -> bool:
    """Whether silence means that nothing happens: who computes without a word is not idle."""
    return not _works(seen)


def _works(seen: Observation) -> bool:
    return seen.runs or seen.busy >= BUSY


def explain(seen: Observation) -> str:
    """What was seen, in words for a person."""
    parts = [f"{seen.full} limit reached"] if seen.full else []
    if seen.says_it_waits:
        parts.append("reports that it is waiting")
    parts.append(f"{seen.busy:.1f} cores busy" if _works(seen) else "hardly any CPU used")
    if "T" in seen.states:
        parts.append("a process is stopped")
    if "D" in seen.states:
        parts.append("a process waits for a device")
    if seen.connections:
        parts.append(f"{seen.connections} open connection{'s' if seen.connections > 1 else ''}")
    elif waits := waited_for(seen):
        parts.append(f"waits for {waits}")
    parts.append(_speech(seen))
    return ", ".join(parts)


def _speech(seen: Observation) -> str:
    if seen.silence is None:
        return "no output"
    return "recent output" if _talks(seen) else f"silent for {max(1, round(seen.silence))} s"


def waited_for(seen: Observation) -> str:
    known = (word for wait in seen.waits for part, word in _WAITS.items() if part in wait)
    return " and ".join(list(dict.fromkeys(known))[:_SHOWN])


def _talks(seen: Observation) -> bool:
    return seen.silence is not None and seen.silence < seen.window


def _polls(seen: Observation) -> bool:
    return any("sleep" in wait or "poll" in wait for wait in seen.waits)


def of_signal(number: int, *, starved: bool) -> Cause | None:
    """What a signal that nobody here sent tells of a limit; `starved`: the system killed for want of memory meanwhile.

    A shell turns the signal of its last program into 128 and its number.
    """
    if number == _KILL:
        words = (
            "the system killed it because memory ran out"
            if starved
            else "killed from outside, usually because memory ran out"
        )
        return Cause(RESOURCES, words)
    words = _BY_SIGNAL.get(number, "")
    return Cause(RESOURCES, words) if words else None


_KILL = 9
_BY_SIGNAL = {24: "CPU time limit reached", 25: "file size limit reached"}
