"""Which processes are there, and did one end? A killed one takes a moment, more of them on a busy machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from idumb.system import process_end, process_tree


def has_ended(pid: int, within: float = 30) -> bool:
    """Wait for the end of a process; return False if it is still alive after so many seconds."""
    process_end.wait_gone([pid], within)
    return not process_tree.is_alive(pid)


def running() -> Iterator[tuple[int, bytes, str]]:
    """The id, command line and folder of each process that may be seen (Linux; elsewhere this is unknown)."""
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(place.name), (place / "cmdline").read_bytes(), os.readlink(place / "cwd")
