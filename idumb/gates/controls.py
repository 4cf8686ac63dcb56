"""Runs checks on the tree before the work, in the proof checkout, in a thread while a builder works.

Results are remembered by tree, command and environment, so that an unchanged base costs nothing in one command.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from idumb.domain import canonical_json
from idumb.domain.proof import evidence
from idumb.system import process_end, process_tree

if TYPE_CHECKING:
    from idumb.gates.checks import ShellChecks

_LATE = f"{evidence.NOT_RUN}: it had not ended when the task was judged"
_SIGNALS = 0.5
"""Seconds after which the wait for a thread lets a signal through that arrived right before it."""


class Controls:
    """The controls of a run: its checks, before the work. Between `start` and `end`, they own the proof checkout."""

    def __init__(self) -> None:
        self._remembered: dict[str, str] = {}
        self._results: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._before: frozenset[int] | None = None

    def start(
        self,
        beside: Callable[[threading.Event], ShellChecks],
        commands: Mapping[str, str],
        *,
        tree: str,
        environment: str,
    ) -> None:
        """Run commands, each with its subject, on a tree.

        `beside` makes the checks, with what stops them. `environment` is a digest of what decides a result besides tree
        and command.
        """
        self.end(limit=0.0)
        keys = {command: canonical_json.digest([tree, command, environment]) for command in commands}
        self._results = {c: self._remembered[key] for c, key in keys.items() if key in self._remembered}
        waiting = {command: key for command, key in keys.items() if command not in self._results}
        if not waiting:
            return
        self._stopped = threading.Event()
        self._before = frozenset(process_tree.children())

        def run() -> None:
            self._results.update(dict.fromkeys(waiting, _LATE))
            self._run_all(beside(self._stopped), {c: (commands[c], key) for c, key in waiting.items()}, tree)

        self._thread = threading.Thread(target=run, name="checks before the work", daemon=True)
        self._thread.start()

    def _run_all(self, checks: ShellChecks, waiting: Mapping[str, tuple[str, str]], tree: str) -> None:
        for command, (subject, key) in waiting.items():
            problem, made = "a signal ended it", None
            try:
                made = checks.command(subject, "", command, tree=tree)
            except Exception as exception:  # noqa: BLE001 - a control never fails a task
                problem = str(exception)
            if self._stopped.is_set():
                return
            if made is None or (made.result == evidence.FAILED and made.exit_code is None):
                self._results[command] = f"{evidence.NOT_RUN}: {problem}"
            else:
                self._results[command] = self._remembered[key] = made.result

    def end(self, *, limit: float | None) -> dict[str, str]:
        """Return the result of each command. After `limit` seconds, the one that runs is killed, and no other begins.

        Afterwards nothing of them runs, also if the user interrupts the wait.
        """
        try:
            self._join(limit)
        finally:
            self._stopped.set()
            self._join(None)
            before, self._before = self._before, None
            if before is not None:  # what cleared its environment: beside a builder, nobody can tell whose it is
                process_end.end_strays(before)
        return dict(self._results)

    def _join(self, limit: float | None) -> None:
        end = math.inf if limit is None else time.monotonic() + limit
        while self._thread is not None and (left := end - time.monotonic()) > 0:
            self._thread.join(min(_SIGNALS, left))
            if not self._thread.is_alive():
                self._thread = None
