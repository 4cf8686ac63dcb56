"""A program that idumb starts, with what its supervision needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from idumb.system.processes import process_tree


class Program:
    """A program that was started, the leader of a session of its own. OSError if it cannot be started.

    `end` is a descriptor that can be read when it has ended, -1 where the system has none. `stderr` is None if it
    shares standard output.
    """

    def __init__(
        self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], stdin: int, *, separate: bool
    ) -> None:
        self._process = subprocess.Popen(
            [*argv],
            bufsize=0,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if separate else subprocess.STDOUT,
            start_new_session=True,
        )
        self.stdout, self.stderr = self._process.stdout, self._process.stderr
        self.pid = self._process.pid
        handle = process_tree.open_handle(self.pid)
        self.end = -1 if handle is None else handle
        self.poll, self.wait = self._process.poll, self._process.wait

    def tree(self) -> list[int]:
        """Return the program and its descendants. Some systems show no descendants."""
        return process_tree.descendants([self.pid])

    def close(self) -> None:
        """Call this after the end."""
        if self.end >= 0:
            os.close(self.end)
