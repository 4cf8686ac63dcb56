"""Looks at what another program does: the commands that it runs now, and the end of a file that it writes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

_TAIL = 4096


def commands(pid: int) -> list[list[str]]:
    """Return the command line of each program that a process runs now, without those that these start."""
    import psutil

    try:
        return [line for child in psutil.Process(pid).children() if (line := _command(child))]
    except psutil.Error:
        return []


def _command(process: object) -> list[str]:
    import psutil

    try:
        return list(process.cmdline())  # type: ignore[attr-defined]
    except psutil.Error:
        return []


def newest_lines(folder: str, beginning: str) -> Iterator[str]:
    """Yield the last lines, the newest first, of the newest file in a folder whose name begins so."""
    paths = glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(beginning)}*"))
    try:
        with open(max(paths, key=os.path.getmtime), "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - _TAIL))
            text = file.read(_TAIL).decode("utf-8", "replace")
    except (OSError, ValueError):  # there is none, or it is being replaced
        return
    yield from (line.strip() for line in reversed(text.split("\n")) if line.strip())
