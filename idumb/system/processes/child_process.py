"""Runs one process with limits and bounded, hashed output, and leaves nothing running.

It waits for the process to end, not for its output to end: a daemon may hold the output open for ever.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from idumb.system.processes import guardian, process_tree, signals, stalls, timeouts
from idumb.system.processes.duplex_pipe import Talk, Talking
from idumb.system.processes.file_watch import Watch, Watching
from idumb.system.processes.output_capture import HEAD, TAIL, Capture, Captured, Progress, Sink
from idumb.system.processes.timeouts import Patience

if TYPE_CHECKING:
    import select
    import subprocess

__all__ = ["HEAD", "TAIL"]

RUN_COOKIE = "IDUMB_RUN"
PLACE_COOKIE = "IDUMB_PLACE"
PROCESS_COOKIE = "IDUMB_PROCESS"
GRACE = 2.0

_COOKIE = PROCESS_COOKIE.encode()
_NOT_STARTED = frozenset({126, 127})
"""Exit codes of a shell, `env` or `timeout` for a program that it cannot run or cannot find."""

_DRAIN = 16 * 1024 * 1024
_TICK = 0.02  # seconds between polls where the system cannot wait for output and exit together

# Running processes, by cookie: several threads may each run one.
_running: dict[str, int] = {}
_spawning = threading.Lock()


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended. `exit_code` is None if a signal ended it, `signal` is None if it exited.

    `errors` is None unless standard error was captured separately. `leftovers` are the ids of processes that it left
    running and that were ended. `limit` is the expired limit (`wall`, `idle`, or "" for none) and `allowed` its length
    in seconds. `cause` is one of `stalls.CLASSES` if the process did not end by itself, and `why` the observations
    behind it.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    output: Captured
    errors: Captured | None
    seconds: float
    leftovers: tuple[int, ...]
    limit: str = ""
    allowed: float | None = None
    cause: str | None = None
    why: str = ""

    @property
    def crashed(self) -> bool:
        """Return whether the process did not finish by itself: a signal ended it, or a shell could not start it."""
        return not self.timed_out and (self.signal is not None or self.exit_code in _NOT_STARTED)

    def words(self) -> str:
        """Describe how it ended; "" after a normal exit."""
        because = f" ({self.cause}: {self.why})" if self.cause else ""
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
    guarded: bool = False,
    separate_errors: bool = False,
    sink: Sink | None = None,
    grace: float = GRACE,
    talk: Talk | None = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Run a program to its end and end everything it started. Raises OSError if it cannot start.

    `environment` is all that the child gets, plus a cookie that marks its processes. `timeout`, `idle_timeout` (time
    without output and without work) and `grace` (from SIGTERM to SIGKILL) are in seconds. `limits` are those of
    `idumb.system.limits`. A `guarded` program ends when this process is killed. `agent` names the kind of worker, which
    decides what its waiting means. If the output exceeds what is kept, `sink` receives all of it in pieces. Without
    `stdin` the child reads /dev/null. A `talk` replaces `stdin`: it receives the output and replies; when it is over,
    the program is ended unless it exits by itself. A `watch` is polled while the program runs. `progress` decides which
    standard output counts as activity; standard error then does not count.
    """
    adopting = process_tree.adopt_orphans()
    before = frozenset(process_tree.children()) if adopting else frozenset()
    cookie = os.urandom(12).hex()
    started = time.monotonic()
    kills = process_tree.out_of_memory_kills()
    child: subprocess.Popen[bytes] | None = None
    captures: list[Capture] = []
    pump: _Pump | None = None
    patience = Patience(started, timeout, idle_timeout, agent=agent)
    alive = os.pipe() if guarded else None
    leftovers: tuple[int, ...] = ()
    talking = None if talk is None else Talking(talk)
    try:
        prepare = _preparation(timeouts.ceilings(limits or {}), alive)
        everything = {**environment, PROCESS_COOKIE: cookie}
        given = stdin if talking is None else talking.reader
        with signals.held():
            child = _spawn(argv, cwd, everything, given, cookie, separate=separate_errors, prepare=prepare)
        said = Capture(child.stdout, sink, talking.tap if talking else None, progress) if child.stdout else None
        errors = Capture(child.stderr, sink, None, _no_progress if progress else None) if child.stderr else None
        captures = [capture for capture in (said, errors) if capture is not None]
        pump = _Pump(child, captures, talking, None if watch is None else Watching(watch))
        tree = functools.partial(_tree, child.pid, guarded=guarded)
        if not pump.until_over(patience, tree):
            process_tree.send(tree(), signal.SIGTERM)
        if patience.seen is not None or talking is not None:
            pump.until_exit(time.monotonic() + grace)
    finally:
        leftovers = _end_rest(child, cookie, before, grace)
        if pump is not None:
            pump.close()
        for end in alive or ():
            os.close(end)
        if talking is not None:
            talking.close()
    results = [capture.result() for capture in captures]
    code, seen = child.returncode, patience.seen
    starved = process_tree.out_of_memory_kills() > kills
    cause = stalls.of_signal(-code if code < 0 else code - 128, starved=starved) if seen is None else stalls.of(seen)
    return Finished(
        code if code >= 0 else None,
        -code if code < 0 else None,
        seen is not None,
        results[0],
        results[1] if separate_errors else None,
        time.monotonic() - started,
        leftovers,
        seen.limit if seen is not None else "",
        None if seen is None else idle_timeout if seen.limit == stalls.IDLE else timeout,
        cause.kind if cause else None,
        cause.words if cause else "",
    )


def _no_progress(_: bytes) -> bool:
    return False


def _tree(root: int, *, guarded: bool) -> list[int]:
    """Return the program and its descendants, without the guardian."""
    return process_tree.descendants([root])[1 if guarded else 0 :]


def _preparation(chosen: timeouts.Ceilings, alive: tuple[int, int] | None) -> Callable[[], None] | None:
    """Return the function to call in the new process before exec, or None, which makes the fork cheaper."""
    if not chosen and alive is None:
        return None

    def prepare() -> None:
        if alive is not None:
            guardian.stand_between(alive[0])
        timeouts.apply(chosen)

    return prepare


def run_cookies(run: str, root: str) -> dict[str, str]:
    """Return the cookie that every process of a run carries.

    Two clones of a repository can have the same run id; with the folder it is unique.
    """
    return {RUN_COOKIE: run, PLACE_COOKIE: f"{run}@{root}"}


def end_all(name: str, value: str, grace: float = GRACE) -> tuple[int, ...]:
    """End every process started with `name=value` in its environment, whatever its parent. Return their ids."""

    def find() -> list[int]:
        return process_tree.descendants(process_tree.carrying(name, value))

    return process_tree.end(find, grace)


def end_strays(grace: float = GRACE) -> tuple[int, ...] | None:
    """End adopted orphans that carry a cookie of finished processes; None if they cannot be found this way."""
    if not process_tree.adopt_orphans():
        return None

    def find() -> list[int]:
        return [pid for pid in _living("", frozenset()) if process_tree.variable(pid, _COOKIE) is not None]

    return process_tree.end(find, grace, lambda: _reap(_dead("", frozenset())))


def _spawn(
    argv: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    stdin: bytes | int | None,
    cookie: str,
    *,
    separate: bool,
    prepare: Callable[[], None] | None,
) -> subprocess.Popen[bytes]:
    import subprocess

    source = subprocess.DEVNULL if stdin is None else stdin if isinstance(stdin, int) else _readable_file(stdin)
    try:
        # Held while the new child has no environment of its own, so that no thread ends it as an orphan.
        with _spawning:
            child = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=environment,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if separate else subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
                preexec_fn=prepare,  # noqa: PLW1509 - what it calls takes no lock that a thread could hold
            )
            _running[cookie] = child.pid
    except subprocess.SubprocessError as problem:
        # Only the second fork can fail between fork and exec; Python reports it without an errno.
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), argv[0]) from problem
    finally:
        if stdin is not None:
            os.close(source)
    return child


def _readable_file(data: bytes) -> int:
    """Return an unnamed file with `data`: a child can read it slowly, late or not at all without blocking idumb."""
    if sys.platform == "linux":
        handle = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        import tempfile

        handle, path = tempfile.mkstemp()
        os.unlink(path)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


class _Pump:
    """Moves output into the captures until the process ends or a deadline passes."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        captures: Sequence[Capture],
        talking: Talking | None,
        watching: Watching | None,
    ) -> None:
        import select

        self._child = child
        self._talking = talking
        self._watching = watching
        self._captures = {capture.handle: capture for capture in captures}
        self._poll: select.poll = select.poll()
        for handle in self._captures:
            self._poll.register(handle, select.POLLIN)
        self._process = -1
        if sys.platform == "linux":
            self._process = os.pidfd_open(child.pid)
            self._poll.register(self._process, select.POLLIN)

    def until_exit(self, deadline: float | None) -> bool:
        """Return whether the process ended before `deadline` (on the monotonic clock)."""
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return self._child.poll() is not None
            if self._turn(left) and self._child.poll() is not None:
                return True

    def until_over(self, patience: Patience, tree: Callable[[], list[int]]) -> bool:
        """Return whether the process, or the dialogue with it, ended in time."""
        while True:
            if self._talking is not None and self._talking.is_over(self._poll):
                return True
            due = None if self._watching is None else self._watching.turn(patience)
            heard = max((c.heard for c in self._captures.values() if c.heard is not None), default=None)
            moment, now = patience.next_look(heard), time.monotonic()
            if moment is not None and moment <= now:
                if self._child.poll() is not None:
                    return True
                if self._watching is not None:
                    self._watching.look(patience)
                if patience.look(heard, tree()):
                    return False
                continue
            until = min((at for at in (moment, due) if at is not None), default=None)
            if self._turn(None if until is None else until - now) and self._child.poll() is not None:
                return True

    def _turn(self, left: float | None) -> bool:
        """Wait for one event. Return whether the process may have ended."""
        if self._process < 0:
            left = _TICK if left is None else min(left, _TICK)
        ended = self._process < 0
        for handle, _ in self._poll.poll(None if left is None else max(1, left * 1000)):
            if handle == self._process:
                ended = True
            elif self._talking is not None and self._talking.owns(handle):
                pass
            elif self._captures[handle].read() == 0 and not self._captures[handle].open:
                self._poll.unregister(handle)
        return ended

    def close(self) -> None:
        """Read a bounded amount of remaining output from the pipes and close them."""
        for capture in self._captures.values():
            taken = 0
            while capture.open and taken < _DRAIN and (count := capture.read()):
                taken += count
            capture.pipe.close()
        if self._process >= 0:
            os.close(self._process)


def _end_rest(
    child: subprocess.Popen[bytes] | None, cookie: str, before: frozenset[int], grace: float
) -> tuple[int, ...]:
    """End the process if it still runs, then everything it left behind. Return the ids of the latter.

    `child` is None if it could not start, or if an interrupt arrived at that moment; it is then an orphan.
    """
    if child is not None and child.poll() is None:
        _end_child(child, grace)
    _running.pop(cookie, None)
    if process_tree.adopt_orphans():
        return process_tree.end(lambda: _living(cookie, before), grace, lambda: _collect(cookie, before))
    leftovers = end_all(PROCESS_COOKIE, cookie, grace)
    if child is not None and process_tree.send_group(child.pid, signal.SIGTERM):
        process_tree.wait_gone([child.pid], 0)
        process_tree.send_group(child.pid, signal.SIGKILL)
    return leftovers


def _end_child(child: subprocess.Popen[bytes], grace: float) -> None:
    tree = process_tree.descendants([child.pid])
    try:
        process_tree.send(tree, signal.SIGTERM)
        process_tree.wait_gone([child.pid], grace)
    finally:
        process_tree.send(process_tree.descendants([child.pid]), signal.SIGKILL)
        process_tree.send_group(child.pid, signal.SIGKILL)
        child.wait()


def _strays(cookie: str, before: frozenset[int]) -> list[int]:
    """Return processes below adopted orphans, zombies included, that belong to `cookie` or to no running process."""
    with _spawning:
        direct = set(_running.values())
        others = {name.encode() for name in _running if name != cookie}
        roots = [pid for pid in process_tree.children() if pid not in before and pid not in direct]
    own_session = os.getsid(0)
    # idumb's own processes share its session; programs that it runs never do.
    roots = [
        pid for pid in roots if process_tree.session(pid) not in {None, own_session} and not _belongs_to(pid, others)
    ]
    return process_tree.descendants(roots)


def _living(cookie: str, before: frozenset[int]) -> list[int]:
    return [pid for pid in _strays(cookie, before) if process_tree.is_alive(pid)]


def _collect(cookie: str, before: frozenset[int]) -> None:
    """Collect zombies, and end processes that continued in a child of their own."""
    dead = _dead(cookie, before)
    process_tree.end_groups(dead)
    _reap(dead)


def _dead(cookie: str, before: frozenset[int]) -> list[int]:
    return [pid for pid in _strays(cookie, before) if not process_tree.is_alive(pid)]


def _reap(pids: Iterable[int]) -> None:
    for pid in pids:
        process_tree.reap(pid)


def _belongs_to(pid: int, cookies: set[bytes]) -> bool:
    found = process_tree.variable(pid, _COOKIE)
    if found is None and cookies:
        # During exec a process briefly has no environment.
        process_tree.wait_gone([pid], _TICK)
        found = process_tree.variable(pid, _COOKIE)
    return found in cookies
