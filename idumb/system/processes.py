"""Running one process: time limit, bounded and hashed output, and nothing left running afterwards.

The end of the process is waited for, never the end of its output: a daemon may hold that open for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from idumb.system import process_tree

if TYPE_CHECKING:
    import select
    import subprocess

RUN_COOKIE = "IDUMB_RUN"
PLACE_COOKIE = "IDUMB_PLACE"
PROCESS_COOKIE = "IDUMB_PROCESS"
HEAD = 8 * 1024
TAIL = 24 * 1024
GRACE = 2.0

Sink = Callable[[bytes], None]

_COOKIE = PROCESS_COOKIE.encode()
_CHUNK = 65536
_DRAIN = 16 * 1024 * 1024
_TICK = 0.02  # seconds between looks where the end of a process cannot be waited for together with its output

# What is running now, by cookie: several threads may each run a process.
_running: dict[str, int] = {}
_spawning = threading.Lock()


@dataclass(frozen=True, slots=True)
class Captured:
    """What a process printed: the first and last bytes, and size and SHA-256 of the whole."""

    head: bytes
    tail: bytes
    size: int
    sha256: str

    @property
    def truncated(self) -> bool:
        return self.size > len(self.head) + len(self.tail)

    def text(self) -> str:
        """Head and tail as text; NUL and bytes that are not UTF-8 are shown as hexadecimal escapes."""
        if not self.truncated:
            return readable(self.head + self.tail)
        # Whole lines only: half a secret at the cut would not be recognised by whoever takes secrets out.
        head = self.head[: self.head.rfind(b"\n") + 1] or self.head
        tail = self.tail[self.tail.find(b"\n") + 1 :] or self.tail
        left_out = self.size - len(head) - len(tail)
        return f"{readable(head).rstrip()}\n[... {left_out} bytes left out ...]\n{readable(tail)}"


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended. `exit_code` is None when a signal ended it, `signal` None when it exited.

    `errors` is None unless standard error was captured apart. `leftovers` are the ids of processes that it left
    running and that were ended.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    output: Captured
    errors: Captured | None
    seconds: float
    leftovers: tuple[int, ...]


def readable(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def environment(names: Iterable[str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The named variables of this process's environment, and `extra`; nothing else reaches a child.

    Relative and empty entries of PATH are left out: they would let the working folder decide what runs.
    """
    chosen = {name: os.environ[name] for name in names if name in os.environ}
    if "PATH" in chosen:
        chosen["PATH"] = os.pathsep.join(p for p in chosen["PATH"].split(os.pathsep) if p.startswith("/"))
    return {**chosen, **(extra or {})}


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    stdin: bytes | None = None,
    timeout: float | None = None,
    separate_errors: bool = False,
    sink: Sink | None = None,
    grace: float = GRACE,
) -> Finished:
    """Run a program to its end and end everything it started; raises OSError when it cannot be started.

    `environment` is all that the child gets, beside a cookie that marks its processes. `timeout` and `grace` (between
    the request to stop and the kill) are in seconds. Once the output is larger than what is kept of it, `sink` is given
    all of it, piece by piece from the beginning. Without `stdin` the child reads /dev/null.
    """
    adopting = process_tree.adopt_orphans()
    before = frozenset(process_tree.children()) if adopting else frozenset()
    cookie = os.urandom(12).hex()
    started = time.monotonic()
    child: subprocess.Popen[bytes] | None = None
    captures: list[_Capture] = []
    pump: _Pump | None = None
    timed_out = False
    leftovers: tuple[int, ...] = ()
    try:
        child = _spawn(argv, cwd, {**environment, PROCESS_COOKIE: cookie}, stdin, cookie, separate=separate_errors)
        captures = [_Capture(pipe, sink) for pipe in (child.stdout, child.stderr) if pipe is not None]
        pump = _Pump(child, captures)
        timed_out = not pump.until_exit(None if timeout is None else started + timeout)
        if timed_out:
            process_tree.send(process_tree.descendants([child.pid]), signal.SIGTERM)
            pump.until_exit(time.monotonic() + grace)
    finally:
        leftovers = _end_rest(child, cookie, before, grace)
        if pump is not None:
            pump.close()
    seconds = time.monotonic() - started
    results = [capture.result() for capture in captures]
    code = child.returncode
    return Finished(
        code if code >= 0 else None,
        -code if code < 0 else None,
        timed_out,
        results[0],
        results[1] if separate_errors else None,
        seconds,
        leftovers,
    )


def run_cookies(run: str, root: str) -> dict[str, str]:
    """What every process of a run carries.

    The id of a run says what is done, so two clones of a repository can have the same; with the folder it is unique.
    """
    return {RUN_COOKIE: run, PLACE_COOKIE: f"{run}@{root}"}


def end_all(name: str, value: str, grace: float = GRACE) -> tuple[int, ...]:
    """End every process started with `name=value` in its environment, whoever is its parent; their ids."""

    def find() -> list[int]:
        return process_tree.descendants(process_tree.carrying(name, value))

    return process_tree.end(find, grace)


def end_strays(grace: float = GRACE) -> tuple[int, ...] | None:
    """End adopted orphans that carry a cookie of processes run before; None where they cannot be found this way."""
    if not process_tree.adopt_orphans():
        return None

    def find() -> list[int]:
        return [pid for pid in _strays("", frozenset()) if process_tree.variable(pid, _COOKIE) is not None]

    return process_tree.end(find, grace)


def _spawn(
    argv: Sequence[str], cwd: str, environment: Mapping[str, str], stdin: bytes | None, cookie: str, *, separate: bool
) -> subprocess.Popen[bytes]:
    import subprocess

    source = subprocess.DEVNULL if stdin is None else _readable_file(stdin)
    try:
        # Held while the child exists without its own environment yet, so that no thread takes it for a stray.
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
            )
            _running[cookie] = child.pid
    finally:
        if stdin is not None:
            os.close(source)
    return child


def _readable_file(data: bytes) -> int:
    """An unnamed file that holds `data`: a child may read it slowly, late or not at all without blocking anyone."""
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


class _Capture:
    """Takes in one pipe: hashes all, keeps the first and last bytes, and passes large output on."""

    def __init__(self, pipe: IO[bytes], sink: Sink | None) -> None:
        import hashlib

        self.pipe = pipe
        self.handle = pipe.fileno()
        self.open = True
        self._sha256 = hashlib.sha256()
        self._head = b""
        self._tail = bytearray()
        self._size = 0
        self._sink = sink
        os.set_blocking(self.handle, False)

    def read(self) -> int:
        """Take in what is there now; the number of bytes, 0 when nothing is there or the pipe is at its end."""
        try:
            data = os.read(self.handle, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self.open = False
        elif self._sink is not None:
            self._pass_on(self._sink, data)
        self._keep(data)
        return len(data)

    def _pass_on(self, sink: Sink, data: bytes) -> None:
        if self._size + len(data) > HEAD + TAIL:
            if self._size <= HEAD + TAIL:  # until now everything was kept
                sink(self._head + bytes(self._tail))
            sink(data)

    def _keep(self, data: bytes) -> None:
        self._sha256.update(data)
        self._size += len(data)
        if missing := HEAD - len(self._head):
            self._head += data[:missing]
            data = data[missing:]
        self._tail += data
        if len(self._tail) > TAIL + 4 * _CHUNK:
            del self._tail[:-TAIL]

    def result(self) -> Captured:
        return Captured(self._head, bytes(self._tail[-TAIL:]), self._size, self._sha256.hexdigest())


class _Pump:
    """Moves output into the captures until the process ends or a moment is reached."""

    def __init__(self, child: subprocess.Popen[bytes], captures: Sequence[_Capture]) -> None:
        import select

        self._child = child
        self._captures = {capture.handle: capture for capture in captures}
        self._poll: select.poll = select.poll()
        for handle in self._captures:
            self._poll.register(handle, select.POLLIN)
        self._process = -1
        if sys.platform == "linux":
            self._process = os.pidfd_open(child.pid)
            self._poll.register(self._process, select.POLLIN)

    def until_exit(self, deadline: float | None) -> bool:
        """Whether the process ended before `deadline` (on the monotonic clock)."""
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return self._child.poll() is not None
            if self._turn(left) and self._child.poll() is not None:
                return True

    def _turn(self, left: float | None) -> bool:
        """Wait for one thing to happen; whether the process may have ended."""
        if self._process < 0:
            left = _TICK if left is None else min(left, _TICK)
        ended = self._process < 0
        for handle, _ in self._poll.poll(None if left is None else max(1, left * 1000)):
            if handle == self._process:
                ended = True
            elif self._captures[handle].read() == 0 and not self._captures[handle].open:
                self._poll.unregister(handle)
        return ended

    def close(self) -> None:
        """Take in what is still in the pipes, a bounded amount, and close them."""
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
    """End the process if it still runs, then all that it left behind; the ids of the latter.

    `child` is None when it could not be started, or when an interrupt came just then; it is a stray in that case.
    """
    if child is not None and child.poll() is None:
        _end_child(child, grace)
    _running.pop(cookie, None)
    if process_tree.adopt_orphans():
        return process_tree.end(lambda: _strays(cookie, before), grace)
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
    """Living processes below adopted orphans that belong to `cookie`, or to nobody who still runs."""
    with _spawning:
        direct = set(_running.values())
        others = {name.encode() for name in _running if name != cookie}
        roots = [pid for pid in process_tree.children() if pid not in before and pid not in direct]
    own_session = os.getsid(0)
    # What this process started for itself shares its session; what was run here never does.
    roots = [
        pid for pid in roots if process_tree.session(pid) not in {None, own_session} and not _belongs_to(pid, others)
    ]
    living = []
    for pid in process_tree.descendants(roots):
        if process_tree.is_alive(pid):
            living.append(pid)
        else:
            process_tree.reap(pid)
    return living


def _belongs_to(pid: int, cookies: set[bytes]) -> bool:
    found = process_tree.variable(pid, _COOKIE)
    if found is None and cookies:
        # A process that is just being executed has no environment for a moment.
        process_tree.wait_gone([pid], _TICK)
        found = process_tree.variable(pid, _COOKIE)
    return found in cookies
