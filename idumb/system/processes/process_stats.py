"""Looks at a tree of processes from outside: CPU time, states, what they wait on, connections, limits (Linux).

Elsewhere, and where the system does not let us look, the answer is that nothing was seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from idumb.system.processes import process_tree, stalls

_NEARLY = 0.97
_OPEN = {"01", "02"}  # established, and still connecting
_LEAST_FREE = 0.01  # of the machine's memory

Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds that a tree had used at a moment of the monotonic clock, and whether any of it wanted more then."""

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
) -> stalls.Observation:
    """What the processes do now; `before` is a sample of the same tree, taken a moment ago."""
    now = sample(pids)
    sleepers = [pid for pid in pids if _state(pid) == "S"]
    return stalls.Observation(
        limit=limit,
        agent=agent,
        busy=_busy(before, now),
        runs=before is not None and before.runs and now.runs,
        states="".join(sorted({_state(pid) for pid in pids} - {""})),
        waits=tuple(sorted({wait for pid in sleepers if (wait := _text(f"/proc/{pid}/wchan")) not in {"", "0"}})),
        connections=len(connections(pids)),
        silence=silence,
        window=stalls.WINDOW if before is None else now.at - before.at,
        full=_full(pids),
        says_it_waits=says_it_waits,
    )


def _busy(before: Sample | None, now: Sample) -> float:
    if before is None or now.at <= before.at:
        return 0.0
    return max(0.0, now.cpu - before.cpu) / (now.at - before.at)


def out_of_memory_kills() -> int:
    """How often the system has killed for want of memory since it was started; 0 where it does not tell."""
    for line in _text("/proc/vmstat").splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


def _cpu(pid: int) -> float:
    """Of the process and of its children that have ended, in seconds."""
    fields = process_tree.status(pid)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _state(pid: int) -> str:
    fields = process_tree.status(pid)
    return fields[0].decode("ascii") if fields else ""


def connections(pids: Sequence[int]) -> list[Row]:
    """(local, remote, inode) of internet sockets of these processes whose other end is not theirs too."""
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
    """The kernel's table of sockets, as the first of the processes that is still there sees it."""
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
    """The name of a limit that is reached, "" where none is."""
    if _machine_is_full() or any(_address_space_is_full(pid) for pid in pids) or _group_is_full("memory", _MEMORY):
        return "memory"
    return "processes" if _group_is_full("pids", _PROCESSES) else ""


def _machine_is_full() -> bool:
    found = {}
    for line in _text("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name in {"MemTotal", "MemAvailable"}:
            found[name] = int(rest.split()[0])
    return found.get("MemAvailable", 1) < _LEAST_FREE * found.get("MemTotal", 1)


def _address_space_is_full(pid: int) -> bool:
    for line in _text(f"/proc/{pid}/limits").splitlines():
        if line.startswith("Max address space"):
            limit = line.split()[3]
            if not limit.isdecimal():
                return False
            pages = _text(f"/proc/{pid}/statm").split()
            return bool(pages) and int(pages[0]) * os.sysconf("SC_PAGE_SIZE") >= _NEARLY * int(limit)
    return False


# Names of (what is used, how much may be) in control groups of version 2 and 1.
_MEMORY = (("memory.current", "memory.max"), ("memory.usage_in_bytes", "memory.limit_in_bytes"))
_PROCESSES = (("pids.current", "pids.max"),)


def _group_is_full(controller: str, names: Sequence[tuple[str, str]]) -> bool:
    """Whether a control group of this process is at its limit; the processes below are in the same one."""
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
        return process_tree.read(path).decode("utf-8", "replace")
    except OSError:
        return ""
