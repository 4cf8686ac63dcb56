"""Polls a file that a running process writes.

A poll never blocks, whatever the process puts there.
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
"""Seconds between two polls."""


class Watch(Protocol):
    """The watched file. While it says that the process `waits`, silence is not a stall."""

    @property
    def waits(self) -> bool: ...

    def look(self) -> bool:
        """Read the file. Return whether it has new content. A signal interrupts only after the read."""


class Watching:
    """Polls when due, however often it is called."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._due = time.monotonic() + EVERY

    def turn(self, patience: Patience) -> float:
        """Poll if due and update `patience`. Return when the next poll is due, on the monotonic clock."""
        if time.monotonic() >= self._due:
            self.look(patience)
        return self._due

    def look(self, patience: Patience) -> None:
        """Poll now; called before a process is declared silent."""
        self._due = time.monotonic() + EVERY
        with signals.held():
            spoke = self._watch.look()
        patience.told(spoke=spoke, waits=self._watch.waits)


class WatchedFile:
    """A file whose changes are read; while it is unchanged, a poll costs one `lstat`.

    Links are not followed. A file that is not regular or is larger than `most` bytes counts as empty.
    """

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._most = most
        self._seen: tuple[int, ...] | None = None
        self._settled = True

    def news(self) -> bytes | None:
        """Return the content if it may have changed, else None.

        Each change is read in two polls: a second write right after the first, of the same size, can have equal times.
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
