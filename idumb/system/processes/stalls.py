"""Classifies why work reached its time limit, from what its processes did shortly before.

Pure: `process_tree` collects the observations. A class is an outside judgement, so the words of `explain` always
accompany it.
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

WINDOW = 2.0  # seconds over which CPU use is measured
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
    """What the processes of one piece of work did when its time limit expired.

    `limit` is WALL or IDLE. `busy` is in cores, over the last `window` seconds; `runs` is true if some process wanted a
    core at each sample, although a loaded machine may not have provided one. `states` are process states (R running, S
    sleeping, D waiting for a device, T stopped), `waits` the kernel's names of what sleeping processes wait for.
    `connections` counts connections to processes outside the work. `silence` is in seconds since the last output, None
    if there was none. `full` names a limit that is reached: memory or processes. `says_it_waits` is true if the work
    reported that it is waiting.
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
    """Return one of CLASSES."""
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
    # It prints, works little and has no connection: it polls for something that does not arrive.
    return EXTERNAL if _talks(seen) and _polls(seen) and not seen.agent else DEADLOCK


def is_idle(seen: Observation) -> bool:
    """Return whether silence means inactivity: a process that computes silently is not idle."""
    return not _works(seen)


def _works(seen: Observation) -> bool:
    return seen.runs or seen.busy >= BUSY


def explain(seen: Observation) -> str:
    """Describe the observations for the user."""
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
    """Explain a signal that idumb did not send. `starved`: the system killed a process for memory meanwhile.

    A shell turns the signal of its last program into 128 plus its number.
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
