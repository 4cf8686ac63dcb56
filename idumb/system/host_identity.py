"""Identifies machine, boot and process, to name the holder of a lock and to signal exactly that process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from idumb.system.processes.process_tree import open_handle, status

_WHOLE = "pid:[4026531836]"  # Linux guarantees this number: PROC_PID_INIT_INO
_LOOK = 0.05  # seconds between two polls of something that cannot be waited for


def name() -> str:
    return os.uname().nodename


def boot_id() -> str | None:
    """Return an id of the current boot; None if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.readline().strip()
    except OSError:
        return None


def process_namespace() -> str | None:
    """Return the namespace of process ids; None if the system has only one."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def sees_all_processes() -> bool:
    """Return whether this namespace sees every process of the machine, including those in containers."""
    return process_namespace() == _WHOLE


def process_started(pid: int) -> int | None:
    """Return clock ticks between the boot and the start of a process, or None.

    With the boot id it distinguishes a process from a later one with the same number.
    """
    fields = status(pid)
    return None if fields is None else int(fields[19])


def process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as problem:
        return isinstance(problem, PermissionError)
    return True


def process_is(pid: int, started: int | None) -> bool:
    """Return whether this exact process is alive; a zombie is not."""
    fields = status(pid)
    if fields is None:
        return started is None and process_alive(pid)
    return int(fields[19]) == started and fields[0] not in {b"Z", b"X"}


def process_is_stopped(pid: int) -> bool:
    fields = status(pid)
    return fields is not None and fields[0] in {b"T", b"t"}


def signal_process(pid: int, started: int | None, number: int) -> bool:
    """Signal this exact process, never a later one with its number. Return False if it is gone.

    Raises PermissionError.
    """
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
    """Return whether this exact process ended within `seconds`."""
    import time

    deadline = time.monotonic() + seconds
    import select

    with _handle(pid) as handle:
        while process_is(pid, started):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            select.select([] if handle is None else [handle], [], [], min(remaining, _LOOK))
    return True


@contextlib.contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    """Yield a descriptor of this process that survives reuse of its number, or None."""
    handle: int | None = None
    with contextlib.suppress(ProcessLookupError):
        handle = open_handle(pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
