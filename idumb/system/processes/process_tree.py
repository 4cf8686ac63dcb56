"""Finds and ends processes: children, adopted orphans, and processes that carry a cookie.

On Linux this process becomes the reaper of its orphaned descendants, so nothing that it starts escapes through `setsid`
or a double fork. On other systems only the process group of the started program is reached.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from idumb.system.processes import stalls

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
_SCANS = 50
_GROUP, _SESSION, _THREADS = 2, 3, 17  # fields of /proc/PID/stat, counted from the state on

Find = Callable[[], list[int]]

_adopting: bool | None = None


def adopt_orphans() -> bool:
    """Make this process the parent of descendants whose own parent ends; False where the system cannot."""
    global _adopting  # noqa: PLW0603 (an attribute of the process, asked for once)
    if _adopting is None:
        _adopting = sys.platform == "linux" and os.path.exists("/proc/thread-self/children") and become_reaper()
    return _adopting


def become_reaper() -> bool:
    """Request the orphans of descendants; a forked process must request them itself."""
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def children(pid: int | None = None) -> list[int]:
    """Return the ids of a process's children (of this process by default), zombies included."""
    folder = f"/proc/{pid or 'self'}/task"
    found: list[int] = []
    # A process or thread can end between two reads; its children then have another parent.
    with contextlib.suppress(OSError):
        for thread in os.listdir(folder):
            with contextlib.suppress(OSError):
                found.extend(map(int, read(f"{folder}/{thread}/children").split()))
    return found


def descendants(roots: Iterable[int]) -> list[int]:
    """Return the given processes and all their descendants, parents first."""
    found = list(dict.fromkeys(roots))
    seen = set(found)
    for pid in found:
        for child in children(pid):
            if child not in seen:
                seen.add(child)
                found.append(child)
    return found


def variable(pid: int, name: bytes) -> bytes | None:
    """Return a variable from the environment that a process was started with, or None."""
    environment = _environment(pid)
    start = (b"\0" + environment).find(b"\0" + name + b"=")
    return None if start < 0 else environment[start + len(name) + 1 :].split(b"\0", 1)[0]


def _environment(pid: int) -> bytes:
    """Read from the other threads if the first thread of the process has ended."""
    with contextlib.suppress(OSError):
        if found := read(f"/proc/{pid}/environ"):
            return found
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                if found := read(f"/proc/{pid}/task/{thread}/environ"):
                    return found
    return b""


def carrying(name: str, value: str) -> list[int]:
    """Return every live process started with `name=value`, except this one and its ancestors."""
    spared = {os.getpid(), *ancestors(os.getpid())}
    key, wanted = name.encode(), os.fsencode(value)
    seen = spared
    found: list[int] = []
    for _ in range(_SCANS):
        # A process that keeps forking is gone when it is read; only the newest ones remain.
        fresh = [pid for pid in reversed(_every_process()) if pid not in seen]
        found += [pid for pid in fresh if variable(pid, key) == wanted and is_alive(pid)]
        if not fresh:
            break
        seen |= {*fresh}
    return found


def _every_process() -> list[int]:
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
    except OSError:
        return []


def ancestors(pid: int) -> list[int]:
    """Return the ancestors of a process, nearest first; none if the system does not show them."""
    found: list[int] = []
    while (fields := status(pid)) is not None and (parent := int(fields[1])) > 0 and parent not in found:
        found.append(parent)
        pid = parent
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie. If only its first thread ended, it is alive."""
    fields = status(pid)
    return fields is not None and (fields[0] not in {b"Z", b"X"} or int(fields[_THREADS]) > 1)


def session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def end_groups(pids: Iterable[int]) -> None:
    """Kill the process groups of processes, except those in this process's own session.

    A process that keeps forking is never where it was seen, but its group is. Zombies still have a group.
    """
    own = os.getsid(0)
    known = (status(pid) for pid in pids)
    for group in {int(fields[_GROUP]) for fields in known if fields is not None and int(fields[_SESSION]) != own}:
        send_group(group, signal.SIGKILL)


def reap(pid: int) -> None:
    """Collect an adopted child that has ended, so that it does not remain a zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def end(find: Find, grace: float, chase: Callable[[], None] = lambda: None) -> tuple[int, ...]:
    """End the processes that `find` returns until it returns none: SIGTERM first, SIGKILL `grace` seconds later.

    `chase` is called before each further search after the grace period.
    """
    found = find()
    ended = set(found)
    try:
        send(found, signal.SIGTERM)
        if found:
            wait_gone(found, grace)
    finally:
        # Also if an interrupt ends the wait: no process may outlive this call.
        for _ in range(_ROUNDS):
            chase()
            found = find()
            if not found:
                break
            ended.update(found)
            end_groups(found)
            send(found, signal.SIGKILL)
            wait_gone(found, 0.2)
    return tuple(sorted(ended))


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def send_group(group: int, number: int) -> bool:
    """Signal a process group. Return whether it existed."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def wait_gone(pids: Iterable[int], seconds: float) -> None:
    """Return when all processes have ended, or after `seconds`."""
    deadline = time.monotonic() + seconds
    handles = _handles(pids)
    try:
        while handles and (left := deadline - time.monotonic()) > 0:
            for handle in _ready(handles, left):
                os.close(handle)
                handles.remove(handle)
    finally:
        for handle in handles:
            os.close(handle)


def _handles(pids: Iterable[int]) -> list[int]:
    handles: list[int] = []
    if sys.platform == "linux":
        for pid in pids:
            with contextlib.suppress(OSError):
                handles.append(os.pidfd_open(pid))
    return handles


def _ready(handles: list[int], seconds: float) -> list[int]:
    import select

    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    return [handle for handle, _ in poll.poll(seconds * 1000)]


def status(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the state on."""
    try:
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None


def read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


_NEARLY = 0.97


_OPEN = {"01", "02"}  # established, and connecting


_LEAST_FREE = 0.01  # share of the machine's memory


Row = tuple[str, str, str]


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
) -> stalls.Observation:
    """Return what the processes do now; `before` is an earlier sample of the same tree."""
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
    """Return how often the system has killed for memory since boot; 0 if unknown."""
    for line in _text("/proc/vmstat").splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


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
