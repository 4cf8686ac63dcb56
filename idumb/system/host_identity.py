"""Which machine, which boot and which process: to say who holds a lock, and to reach exactly that process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

_WHOLE = "pid:[4026531836]"  # the number is part of what Linux promises: PROC_PID_INIT_INO
_LOOK = 0.05  # seconds between two looks at something that cannot be waited for


def name() -> str:
    return os.uname().nodename


def boot_id() -> str | None:
    """A name for the time since the machine was started; None where the system does not tell."""
    return _first_line("/proc/sys/kernel/random/boot_id")


def machine_id() -> str | None:
    """The same as long as the system stays installed, and no other machine's; None where there is none.

    A digest: the identifier itself is not to be handed on.
    """
    known = _first_line("/etc/machine-id")
    if not known or known == "uninitialized":
        return None
    import hashlib

    return hashlib.sha256(f"idumb {known}".encode()).hexdigest()[:32]


def process_namespace() -> str | None:
    """The space in which numbers of processes mean anything; None where the system has but one."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def sees_all_processes() -> bool:
    """Whether the numbers of this process's space reach every process of the machine, those in containers too."""
    return process_namespace() == _WHOLE


def booted_at() -> float | None:
    """Seconds since the epoch; nothing that was made before is of a process that lives. None where nobody tells."""
    try:
        with open("/proc/stat", encoding="ascii") as stream:
            return next((float(line.split()[1]) for line in stream if line.startswith("btime ")), None)
    except (OSError, ValueError):
        return None


def process_started(pid: int) -> int | None:
    """Clock ticks between the boot and the start of a process; None where the system does not tell.

    With the boot it tells a process from a later one of the same number.
    """
    fields = _fields(pid)
    return None if fields is None else int(fields[19])


def process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def process_is(pid: int, started: int | None) -> bool:
    """Whether this very process lives; one that has ended and was not collected by its parent does not."""
    fields = _fields(pid)
    if fields is None:
        return started is None and process_alive(pid)
    return int(fields[19]) == started and fields[0] not in {"Z", "X"}


def process_is_stopped(pid: int) -> bool:
    fields = _fields(pid)
    return fields is not None and fields[0] in {"T", "t"}


def signal_process(pid: int, started: int | None, number: int) -> bool:
    """Signal this very process, never a later one of its number; False when it is gone. Raises PermissionError."""
    with _handle(pid) as handle:
        if not process_is(pid, started):
            return False
        try:
            if handle is None:
                os.kill(pid, number)
            else:
                import signal

                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
    return True


def wait_for_end(pid: int, started: int | None, seconds: float) -> bool:
    """Whether this very process ended within `seconds`."""
    import time

    deadline = time.monotonic() + seconds
    with _handle(pid) as handle:
        while process_is(pid, started):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            _pause(handle, min(left, _LOOK))
    return True


def pause(seconds: float = _LOOK) -> None:
    """Between two looks at what somebody else does."""
    _pause(None, seconds)


def _pause(handle: int | None, seconds: float) -> None:
    import select

    select.select([] if handle is None else [handle], [], [], seconds)


@contextlib.contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """A descriptor that means this process even when its number is used again; None where there is no such thing."""
    handle: int | None = None
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on."""
    line = _first_line(f"/proc/{pid}/stat")
    # The program's name stands in parentheses and may hold anything, blanks and parentheses too.
    return line.rpartition(")")[2].split() if line else None


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return None
