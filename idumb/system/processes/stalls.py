"""Classifies why work reached its time limit, from what its processes did shortly before.

`look` collects the observations; `cause_of` judges them. A class is an outside judgement, so the words of `explain`
always accompany it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from idumb.lazy_dataclass import dataclass
from idumb.system.processes.process_tree import read, status

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

_NEARLY = 0.97
_OPEN = {"01", "02"}  # established, and connecting
_LEAST_FREE = 0.01  # share of the machine's memory
# Names of (what is used, how much may be) in control groups of version 2 and 1.
_MEMORY = (("memory.current", "memory.max"), ("memory.usage_in_bytes", "memory.limit_in_bytes"))
_PROCESSES = (("pids.current", "pids.max"),)

Row = tuple[str, str, str]


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


def cause_of(seen: Observation) -> Cause:
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
    words = (word for wait in seen.waits for part, word in _WAITS.items() if part in wait)
    return " and ".join(list(dict.fromkeys(words))[:_SHOWN])


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


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds that a tree used up to a moment of the monotonic clock, and whether any process wanted more."""

    at: float
    cpu: float
    runs: bool


def sample(pids: Sequence[int]) -> Sample:
    return Sample(time.monotonic(), sum(map(_cpu, pids)), any(_state(pid) == "R" for pid in pids))


def look(
    pids: Sequence[int],
    before: Sample | None,
    *,
    limit: str,
    agent: bool,
    silence: float | None,
    says_it_waits: bool = False,
) -> Observation:
    """Return what the processes do now; `before` is an earlier sample of the same tree."""
    now = sample(pids)
    sleepers = [pid for pid in pids if _state(pid) == "S"]
    return Observation(
        limit=limit,
        agent=agent,
        busy=_busy(before, now),
        runs=before is not None and before.runs and now.runs,
        states="".join(sorted({_state(pid) for pid in pids} - {""})),
        waits=tuple(sorted({wait for pid in sleepers if (wait := _text(f"/proc/{pid}/wchan")) not in {"", "0"}})),
        connections=len(connections(pids)),
        silence=silence,
        window=WINDOW if before is None else now.at - before.at,
        full=_full(pids),
        says_it_waits=says_it_waits,
    )


def _busy(before: Sample | None, now: Sample) -> float:
    if before is None or now.at <= before.at:
        return 0.0
    return max(0.0, now.cpu - before.cpu) / (now.at - before.at)


def _cpu(pid: int) -> float:
    """Return the CPU seconds of the process and of its ended children."""
    fields = status(pid)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _state(pid: int) -> str:
    fields = status(pid)
    return fields[0].decode("ascii") if fields else ""


def connections(pids: Sequence[int]) -> list[Row]:
    """Return (local, remote, inode) of the processes' internet sockets that connect to other processes."""
    inodes = {inode for pid in pids for inode in _sockets(pid)}
    if not inodes:
        return []
    rows = [row for row in _table(pids) if row[2] in inodes]
    ours = {(local, remote) for local, remote, _ in rows}
    return [row for row in rows if (row[1], row[0]) not in ours]


def _sockets(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _table(pids: Sequence[int]) -> Iterator[Row]:
    """Return the kernel's socket table, as seen by the first process that still exists."""
    for pid in pids:
        names = [f"/proc/{pid}/net/{kind}" for kind in ("tcp", "tcp6", "udp", "udp6")]
        texts = [_text(name) for name in names]
        if any(texts):
            for line in "\n".join(texts).splitlines():
                cells = line.split()
                if len(cells) > 9 and cells[3] in _OPEN:
                    yield cells[1], cells[2], cells[9]
            return


def _full(pids: Sequence[int]) -> str:
    """Return the name of a limit that is reached, or ""."""
    if _machine_is_full() or any(_address_space_is_full(pid) for pid in pids) or _group_is_full("memory", _MEMORY):
        return "memory"
    return "processes" if _group_is_full("pids", _PROCESSES) else ""


def _machine_is_full() -> bool:
    sizes = {}
    for line in _text("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name in {"MemTotal", "MemAvailable"}:
            sizes[name] = int(rest.split()[0])
    return sizes.get("MemAvailable", 1) < _LEAST_FREE * sizes.get("MemTotal", 1)


def _address_space_is_full(pid: int) -> bool:
    for line in _text(f"/proc/{pid}/limits").splitlines():
        if line.startswith("Max address space"):
            limit = line.split()[3]
            if not limit.isdecimal():
                return False
            pages = _text(f"/proc/{pid}/statm").split()
            return bool(pages) and int(pages[0]) * os.sysconf("SC_PAGE_SIZE") >= _NEARLY * int(limit)
    return False


def _group_is_full(controller: str, names: Sequence[tuple[str, str]]) -> bool:
    """Return whether a control group of this process is at its limit; its descendants are in the same group."""
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in {"", controller}:
            continue
        folder = f"/sys/fs/cgroup/{controllers}{path}" if controllers else f"/sys/fs/cgroup{path}"
        for used, most in names:
            spent, limit = _text(f"{folder}/{used}").strip(), _text(f"{folder}/{most}").strip()
            if spent.isdecimal() and limit.isdecimal() and int(spent) >= _NEARLY * int(limit):
                return True
    return False


def _text(path: str) -> str:
    try:
        return read(path).decode("utf-8", "replace")
    except OSError:
        return ""
