"""Runs checks on the tree before the work, in a thread and a working tree of their own, while a builder works.

Results are remembered by tree, command and environment, so that an unchanged base costs nothing in one command.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from idumb.domain import canonical_json
from idumb.domain.proof import evidence

if TYPE_CHECKING:
    from idumb.gates.checks import ShellChecks
    from idumb.gates.proving import Proving


_LATE = f"{evidence.NOT_RUN}: it had not ended when the task was judged"
_KILLED = 2.0
"""Seconds in which a check ends that was killed, with everything that it started."""


_SIGNALS = 0.5
"""Seconds after which the wait for a thread lets a signal through that arrived right before it."""
_IDLE = 0.05
"""Seconds in which a thread ends that runs no check, unless it checks out the tree."""


class _StoppedError(Exception):
    """A check was started although the checks were stopped."""


class BaseChecks:
    """The checks of a run before the work.

    `opened` returns the working tree in which they run; it is called in the thread of the caller.
    """

    def __init__(self, opened: Callable[[], Proving]) -> None:
        self._opened = opened
        self._remembered: dict[str, str] = {}
        self._results: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._process: tuple[int, int | None] | None = None

    def start(
        self,
        beside: Callable[[Proving, str | None, Callable[[int], None]], ShellChecks],
        commands: Mapping[str, str],
        *,
        tree: str,
        head: str | None,
        environment: str,
        timeout: float,
        delay: float,
    ) -> None:
        """Run commands, each with its subject, on a tree, after `delay` seconds. Times are in seconds.

        `beside` opens the checks of a working tree for a commit as HEAD, with a function to call with the id of each
        process. `environment` is a digest of what decides a result besides tree and command.
        """
        self.stop()
        if self._thread is not None:  # it still checks out the tree of an earlier task
            self._results = dict.fromkeys(commands, f"{evidence.NOT_RUN}: an earlier one had not ended")
            return
        keys = {command: canonical_json.digest([tree, command, environment]) for command in commands}
        self._results = {c: self._remembered[key] for c, key in keys.items() if key in self._remembered}
        waiting = {command: key for command, key in keys.items() if command not in self._results}
        if not waiting:
            return
        proving = self._opened()
        self._stopped = threading.Event()

        def run() -> None:
            if not self._stopped.wait(delay):
                proving.renew()
                self._results.update(dict.fromkeys(waiting, _LATE))
                with contextlib.closing(beside(proving, head, self._started)) as checks:
                    self._run_all(checks, {c: (commands[c], key) for c, key in waiting.items()}, tree, timeout)

        self._thread = threading.Thread(target=run, name="checks before the work", daemon=True)
        self._thread.start()

    def _run_all(self, checks: ShellChecks, waiting: Mapping[str, tuple[str, str]], tree: str, timeout: float) -> None:
        for command, (subject, key) in waiting.items():
            if self._stopped.is_set():
                return
            problem, made = "a signal ended it", None
            try:
                made = checks.command(subject, "", command, timeout=timeout, tree=tree)
            except Exception as exception:  # noqa: BLE001 - a control never fails a task
                problem = str(exception)
            finally:
                self._ended()
            if self._stopped.is_set():
                return
            if made is None or (made.result == evidence.FAILED and made.exit_code is None):
                self._results[command] = f"{evidence.NOT_RUN}: {problem}"
            else:
                self._results[command] = self._remembered[key] = made.result

    def _started(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended, and its guardian knows that already
            self._process = pid, os.pidfd_open(pid) if sys.platform == "linux" else None
        if self._stopped.is_set():
            raise _StoppedError

    def _ended(self) -> None:
        process, self._process = self._process, None
        if process is not None and process[1] is not None:
            os.close(process[1])

    def results(self, *, wait: bool) -> dict[str, str]:
        """Return the result of each command that has ended; with `wait`, of all."""
        while wait and self._thread is not None and self._thread.is_alive():
            self._thread.join(_SIGNALS)
        return dict(self._results)

    def stop(self) -> None:
        """End the check that runs now, and begin no other."""
        self._stopped.set()
        thread = self._thread
        if thread is None:
            return
        thread.join(_KILLED if self._kill() else _IDLE)
        if not thread.is_alive():
            self._thread = None

    def _kill(self) -> bool:
        """Kill the process that runs now, whose thread ends what it left. Return whether one runs."""
        process = self._process
        if process is None:
            return False
        pid, descriptor = process
        with contextlib.suppress(OSError):
            if descriptor is None:
                os.kill(pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True

    def close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
