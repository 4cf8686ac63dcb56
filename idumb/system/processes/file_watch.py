"""Looking now and then at what a process says in a file, while it runs.

A look never waits: whatever the process puts there, the rest of idumb goes on.
"""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Protocol

from idumb.system.files import named_files
from idumb.system.processes import signals

if TYPE_CHECKING:
    from idumb.system.processes.timeouts import Patience

EVERY = 0.5
"""Seconds between two looks."""


class Watch(Protocol):
    """What is looked at. While it `waits` for somebody, silence of the process is no stall."""

    @property
    def waits(self) -> bool: ...

    def look(self) -> bool:
        """Whether something new was said. A signal interrupts it only when it is done."""


class Watching:
    """Looks when it is time to, however often the process is turned to for other reasons."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._due = time.monotonic() + EVERY

    def turn(self, patience: Patience) -> float:
        """Look where it is time to, and let `patience` know; when the next look is due, on the monotonic clock."""
        if time.monotonic() >= self._due:
            self.look(patience)
        return self._due

    def look(self, patience: Patience) -> None:
        """Look now, as it is due before anything is called silent."""
        self._due = time.monotonic() + EVERY
        with signals.held():
            spoke = self._watch.look()
        patience.told(spoke=spoke, waits=self._watch.waits)


class WatchedFile:
    """A file whose changes are read; as long as it stays as it is, a look costs one `lstat`.

    Links are not followed. What is no regular file, or has more than `most` bytes, has nothing in it.
    """

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._most = most
        self._seen: tuple[int, ...] | None = None
        self._settled = True

    def news(self) -> bytes | None:
        """What is in it, where that may be new; None where it is as it was.

        Each change is read in two looks: one right after the first, with the same size, could have the same times.
        """
        seen = self._signature()
        if seen == self._seen and self._settled:
            return None
        self._settled, self._seen = seen == self._seen, seen
        if seen is None:
            return b""
        try:
            data = named_files.read(self._path, self._most + 1, links=False)
        except OSError:
            return b""
        return data if len(data) <= self._most else b""

    def _signature(self) -> tuple[int, ...] | None:
        try:
            found = os.lstat(self._path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode) or found.st_size > self._most:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
