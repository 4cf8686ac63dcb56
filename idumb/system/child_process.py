"""Runs one process with limits and bounded, hashed output, and leaves nothing running.

It waits for the process to end, not for its output to end: a daemon may hold the output open for ever.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from idumb.system import atomic_write, launcher, process_end, process_tree, signals, stalls, supervision
from idumb.system.process_end import GRACE
from idumb.system.process_tree import PLACE_COOKIE, PROCESS_COOKIE, RUN_COOKIE
from idumb.system.stalls import TimeLimits
from idumb.system.supervision import Captured, Sink, Supervisor, Talk, Talking, Watch

if TYPE_CHECKING:
    from threading import Event

_SIGNALLED = 128  # a shell adds the number of the signal that ended its last program
_NOT_STARTED = frozenset({126, 127})
"""Exit codes of a shell, `env` or `timeout` for a program that it cannot run or cannot find."""


class Finished(Struct, frozen=True):
    """How a process ended. `exit_code` is None if a signal ended it, `signal` is None if it exited.

    `errors` is None unless standard error was captured separately. `limit` is the expired limit (`wall`, `idle`, or ""
    for none) and `allowed` its length in seconds. `cause` is the kind of a `stalls.Cause` if the process did not end by
    itself and it is known, and `why` the observations behind it. `sandbox` is the level that was in force, "" if none
    was configured.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    output: Captured
    errors: Captured | None
    seconds: float
    limit: str = ""
    allowed: float | None = None
    cause: str | None = None
    why: str = ""
    sandbox: str = ""

    @property
    def crashed(self) -> bool:
        """Return whether the process did not finish by itself: a signal ended it, or a shell could not start it."""
        return not self.timed_out and (self.signal is not None or self.exit_code in _NOT_STARTED)

    def words(self) -> str:
        """Describe how it ended; "" after a normal exit."""
        because = f" ({f'{self.cause}: ' if self.cause else ''}{self.why})" if self.why else ""
        if self.timed_out:
            span = f"{self.allowed or 0:.3f}".rstrip("0").rstrip(".")
            return f"stopped after {span} s{' of silence' if self.limit == stalls.IDLE else ''}{because}"
        if self.signal is not None:
            return f"ended by signal {self.signal}{because}"
        return f"exit {self.exit_code}{because}" if self.cause else ""


def environment(names: Iterable[str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the named variables of this process's environment plus `extra`; a child gets nothing else.

    Relative and empty entries of PATH are omitted: they would let the working folder decide which program runs.
    """
    chosen = {name: os.environ[name] for name in names if name in os.environ}
    if "PATH" in chosen:
        chosen["PATH"] = os.pathsep.join(p for p in chosen["PATH"].split(os.pathsep) if p.startswith("/"))
    return {**chosen, **(extra or {})}


def set_variable(name: str, value: str) -> None:
    """Give this process a variable, which `environment` returns if it is asked for it."""
    os.environ[name] = value


def variables() -> tuple[str, ...]:
    """Return the names of all variables of this process."""
    return tuple(os.environ)


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    stdin: bytes | None = None,
    timeout: float | None = None,
    idle_timeout: float | None = None,
    limits: Mapping[str, int] | None = None,
    agent: bool = False,
    separate_errors: bool = False,
    sink: Sink | None = None,
    grace: float = GRACE,
    talk: Talk | None = None,
    watch: Watch | None = None,
    reported: Callable[[], bool] = bool,
    beside: Event | None = None,
) -> Finished:
    """Run a program to its end and end everything it started. Raises OSError if it cannot start.

    `environment` is all that the child gets, plus a cookie that marks its processes. `timeout`, `idle_timeout` (time
    without output and without work) and `grace` (from SIGTERM to SIGKILL) are in seconds. `limits` has the names of
    `idumb.domain.settings.Limits`. `agent` is the kind of worker: it decides what waiting means, and on Linux the
    program ends with this process.

    `sink` receives all output in pieces. Without `stdin` the child reads /dev/null. A `talk` replaces `stdin`: it
    receives the output and replies; when it is over, the program is ended unless it exits by itself. A `watch` is
    polled while the program runs. Once it has `reported`, it may not be silent for long. `beside` is for a program that
    runs in another thread: once it is set, the program is killed, and only what carries the program's cookie is ended
    with it, because this process may run git at the same time.
    """
    started = time.monotonic()
    before = frozenset(process_tree.children()) if process_end.adopt_orphans() else frozenset()
    cookie = os.urandom(12).hex()
    child: Program | None = None
    supervisor: Supervisor | None = None
    talking = None if talk is None else Talking(talk)
    try:
        variables = {**environment, PROCESS_COOKIE: cookie}
        source = stdin if talking is None else talking.reader
        with signals.held():  # until everything that the cleanup needs is known
            words = (*launcher.limited(limits or {}, bound=agent), *argv)
            child = _started(words, cwd, variables, source, cookie, separate=separate_errors)
            captures = supervision.captures(child, sink, talking)
            supervisor = Supervisor(
                child,
                captures,
                talking,
                watch,
                TimeLimits(started, timeout, idle_timeout, agent=agent),
                beside,
                (lambda: None) if beside else functools.partial(process_end.reap, cookie, before),
            )
        supervisor.limits.reported = reported
        over = supervisor.until_over(child.tree)
        if not over:
            process_end.send(child.tree(), signal.SIGKILL if beside and beside.is_set() else signal.SIGTERM)
        if not over or talking is not None:
            supervisor.until_exit(time.monotonic() + grace)
    finally:
        process_end.end_program(child, cookie, None if beside else before, grace, os.path.realpath(cwd))
        if supervisor is not None:
            supervisor.close()
        if talking is not None:
            talking.close()
        if child is not None:
            child.close()
    code = child.wait()
    output, *errors = [capture.result() for capture in captures]
    if words != (*argv,) and (why := launcher.why_not_started(code, (errors[0] if errors else output).head)):
        raise OSError(why)
    limit, cause = supervisor.limits.expired, supervisor.limits.cause
    if not limit and (code < 0 or code > _SIGNALLED):
        cause = stalls.of_signal(-code if code < 0 else code - _SIGNALLED)
    return Finished(
        code if code >= 0 else None,
        -code if code < 0 else None,
        bool(limit),
        output,
        errors[0] if errors else None,
        time.monotonic() - started,
        limit,
        {"": None, stalls.IDLE: idle_timeout, stalls.WALL: timeout}[limit],
        cause.kind,
        cause.words,
    )


def run_cookies(run: str, root: str) -> dict[str, str]:
    """Return the cookie that every process of a run carries.

    Two clones of a repository can have the same run id; with the folder it is unique.
    """
    return {RUN_COOKIE: run, PLACE_COOKIE: f"{run}@{root}"}


def _started(
    argv: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    stdin: bytes | int | None,
    cookie: str,
    *,
    separate: bool,
) -> Program:
    with _opened(stdin) as source, process_end.spawning:
        child = Program(argv, cwd, environment, source, separate=separate)
        process_end.running[cookie] = child.pid
    return child


class Program:
    """A program that was started, the leader of a session of its own. OSError if it cannot be started.

    `end` is a descriptor that can be read when it has ended, -1 where the system has none. `stderr` is None if it
    shares standard output.
    """

    def __init__(
        self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], stdin: int, *, separate: bool
    ) -> None:
        import subprocess  # it is slow to import

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
        handle = process_end.open_handle(self.pid)
        self.end = -1 if handle is None else handle
        self.poll, self.wait = self._process.poll, self._process.wait

    def tree(self) -> list[int]:
        """Return the program and its descendants. Some systems show no descendants."""
        return process_tree.descendants([self.pid])

    def close(self) -> None:
        """Call this after the end."""
        if self.end >= 0:
            os.close(self.end)


@contextlib.contextmanager
def _opened(stdin: bytes | int | None) -> Iterator[int]:
    """Yield a descriptor of the input. It is closed afterwards: the program has its own."""
    source = os.devnull if stdin is None else stdin
    with atomic_write.unnamed(source) if isinstance(source, bytes) else open(source, "rb") as stream:
        yield stream.fileno()
