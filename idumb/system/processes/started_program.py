"""Programs that run, plainly or under a guardian, with what their supervision needs.

A guardian (see `guardian`) is kept for the programs that follow; it ends with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from idumb.system.processes import guardian, process_tree

_FOLDER = os.path.abspath(f"{__file__}/../../../..")
_START = "import sys; sys.path.append(sys.argv[1]); from idumb.system.processes import guardian; guardian.main()"
_OF_THE_LOADER = ("LD_", "DYLD_")
"""Variables that Python itself may need to start."""
_PATIENCE = 30.0
"""Seconds in which a guardian must start a program, or end."""


class PlainProgram:
    """A program that this process starts itself. OSError if it cannot be started."""

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
        self.pid = self.group = self._process.pid
        self.end = os.pidfd_open(self.pid) if sys.platform == "linux" else -1

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self) -> int:
        return self._process.wait()

    def end_left(self, grace: float) -> tuple[int, ...]:  # noqa: ARG002 - a plain program has no guardian
        return ()

    def kill(self) -> None:
        process_tree.send_group(self.group, signal.SIGKILL)

    def close(self) -> None:
        if self.end >= 0:
            os.close(self.end)


class _Guardian:
    def __init__(self) -> None:
        if not sys.executable:
            raise FileNotFoundError(errno.ENOENT, "sys.executable names no Python", "python")
        no_bytecode = ["-B"] if sys.dont_write_bytecode else []
        self.channel, theirs = socket.socketpair()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", *no_bytecode, "-c", _START, _FOLDER],
                cwd="/",
                env={name: value for name, value in os.environ.items() if name.startswith(_OF_THE_LOADER)},
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,  # so that a terminal's Ctrl-C does not reach it
            )
        except OSError:
            self.channel.close()
            raise
        finally:
            theirs.close()

    def start(self, order: bytes, streams: Sequence[int]) -> tuple[int, int]:
        """Give an order; return the first answer. OSError if the guardian does not work."""
        message = guardian.LENGTH.pack(len(order)) + order
        self.channel.settimeout(_PATIENCE)
        try:
            sent = socket.send_fds(self.channel, [message], streams)
            self.channel.sendall(message[sent:])
            answer = self.channel.recv(guardian.ANSWER.size)
            if not answer:
                raise ConnectionResetError(errno.ECONNRESET, "the process that starts programs has ended")
        except BaseException:
            self.process.kill()
            self.end()
            raise
        self.channel.settimeout(0)
        what, number = guardian.ANSWER.unpack(answer)
        return what, number

    def serves_again(self) -> bool:
        """Say that what a program left has ended. Return whether the guardian agrees; otherwise it has exited."""
        process_tree.send([self.process.pid], signal.SIGCONT)  # what is left may have stopped it
        self.channel.settimeout(_PATIENCE)
        with contextlib.suppress(OSError):
            self.channel.send(b"\0")
            if self.channel.recv(guardian.ANSWER.size):
                self.channel.settimeout(0)
                return True
        process_tree.wait_gone([self.process.pid], _PATIENCE)
        return False

    def end(self) -> int:
        """Let it exit, with its program if that still runs. Return its exit code."""
        self.channel.close()
        try:
            return self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


_free: list[_Guardian] = []


def expect_guarded() -> None:
    """Start a guardian early, so that the first program need not wait for it.

    If this fails, the start of the first program tries again and reports the error.
    """
    if not _free:
        with contextlib.suppress(OSError):
            _free.append(_Guardian())


def _free_guardian() -> _Guardian:
    with contextlib.suppress(IndexError):  # several threads start programs
        while (one := _free.pop()).process.poll() is not None:
            one.end()
        return one
    return _Guardian()


@atexit.register
def end_free_guardians() -> None:
    """Call this when no program follows, or leave it to the exit of this process."""
    while _free:
        _free.pop().end()


class GuardedProgram:
    """A program under a guardian. Everything that belongs to it is below the guardian.

    `limits` are (system number, value) of resource limits. OSError if it cannot be started.
    """

    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        stdin: int,
        limits: Sequence[tuple[int, int]],
        *,
        separate: bool,
    ) -> None:
        self._code: int | None = None
        self._is_free = self._has_left = False
        name = argv[0]
        places = [name] if "/" in name else [os.path.join(folder, name) for folder in os.get_exec_path(environment)]
        variables = {os.fsencode(key): os.fsencode(value) for key, value in environment.items()}
        order = marshal.dumps(
            (
                [os.fsencode(place) for place in places],
                [os.fsencode(word) for word in argv],
                os.fsencode(os.path.abspath(cwd)),
                variables,
                [*limits],
            )
        )
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            self.stdout, out = _pipe(ours, theirs)
            self.stderr, err = _pipe(ours, theirs) if separate else (None, out)
            try:
                self._guardian = _free_guardian()
                what, number = self._guardian.start(order, [stdin, out, err])
            except OSError as problem:
                raise OSError(problem.errno or errno.EIO, problem.strerror or str(problem), name) from problem
            if what != guardian.STARTED:
                _free.append(self._guardian)
                raise OSError(number, os.strerror(number), cwd if what == guardian.NO_FOLDER else name)
            ours.pop_all()
        self.pid, self.group, self.end = self._guardian.process.pid, number, self._guardian.channel.fileno()

    def poll(self) -> int | None:
        if self._code is None:
            with contextlib.suppress(BlockingIOError):
                self._code = self._end_code()
        return self._code

    def wait(self) -> int:
        waiting = select.poll()
        waiting.register(self.end, select.POLLIN)
        while (code := self.poll()) is None:
            waiting.poll()
        return code

    def _end_code(self) -> int:
        """Return how the program ended. BlockingIOError if it runs."""
        try:
            answer = self._guardian.channel.recv(guardian.ANSWER.size)
        except ConnectionResetError:
            answer = b""
        if not answer:  # somebody killed the guardian, so the program has no result
            self._guardian.process.wait()
            return -signal.SIGKILL
        what, status = guardian.ANSWER.unpack(answer)
        self._is_free, self._has_left = what == guardian.ENDED, what == guardian.LEFT
        return os.waitstatus_to_exitcode(status)

    def end_left(self, grace: float) -> tuple[int, ...]:
        if not self._has_left:
            return ()
        self._has_left = False
        try:
            return self._end_below(grace)
        finally:
            self._is_free = self._guardian.serves_again()

    def _end_below(self, grace: float) -> tuple[int, ...]:
        """End everything below the guardian. Return the ids."""

        def below() -> list[int]:
            return process_tree.descendants(process_tree.children(self.pid))

        def living() -> list[int]:
            return [*filter(process_tree.is_alive, below())]

        return process_tree.end(living, grace, lambda: process_tree.end_groups(below()))

    def kill(self) -> None:
        """Kill the guardian too, last: it has a process group for itself."""
        process_tree.send_group(self.group, signal.SIGKILL)
        self._end_below(grace=0)
        process_tree.send_group(self.pid, signal.SIGKILL)
        self.wait()
        self._is_free = self._has_left = False

    def close(self) -> None:
        if self._is_free:
            _free.append(self._guardian)
        else:
            self._guardian.end()


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[IO[bytes], int]:
    """Return the end to read and the one to write, each closed with its stack."""
    read, write = os.pipe()
    theirs.callback(os.close, write)
    return ours.enter_context(open(read, "rb", buffering=0)), write
