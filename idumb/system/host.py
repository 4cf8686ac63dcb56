"""Which machine, which boot and which process this is, to say who holds a lock."""

from __future__ import annotations

import os


def name() -> str:
    return os.uname().nodename


def boot_id() -> str | None:
    """A name for the time since the machine was started; None where the system does not tell."""
    return _first_line("/proc/sys/kernel/random/boot_id")


def process_started(pid: int) -> int | None:
    """Clock ticks between the boot and the start of a process; None where the system does not tell.

    With the boot it tells a process from a later one of the same number.
    """
    line = _first_line(f"/proc/{pid}/stat")
    if line is None:
        return None
    # The program's name stands in parentheses and may hold anything, blanks and parentheses too.
    return int(line.rpartition(")")[2].split()[19])


def process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _first_line(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return None
