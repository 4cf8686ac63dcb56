"""File systems on which a program can write into a file without a trace in its times."""

from __future__ import annotations

import functools
import os

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def possible(path: str) -> bool:
    """Return whether a write through shared memory may leave the times of a file at `path` as they are."""
    try:
        return _is_in_memory(os.stat(path).st_dev)
    except OSError:
        return True


@functools.lru_cache(maxsize=8)
def _is_in_memory(device: int) -> bool:
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
            rows = [line.split(" ") for line in stream]
    except OSError:  # only Linux has it, and only Linux has these file systems
        return False
    return any(row[2] == number and row[row.index("-") + 1] in _IN_MEMORY for row in rows)
