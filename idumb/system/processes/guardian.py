"""A process between idumb and a program that ends the program when idumb ends, for any reason.

It is a Python without `site`, which idumb keeps for the programs that follow. A fork of idumb could do the same, but
the copy of idumb's memory costs more than most programs that a plan runs.

It adopts the orphans of a program, so even a daemon with an empty environment in its own session is a descendant. It
holds no file of idumb's and ignores requests to stop.

Its standard input is a socket. An order is LENGTH and that many bytes: `marshal` of (places, argv, cwd, environment,
limits), all text as bytes. With it come the program's three standard streams. Answers are ANSWER:

- (STARTED, process id), or (NO_FOLDER, errno) or (NO_PROGRAM, errno);
- when the program has ended, (ENDED, wait status). If it left something behind or changed the guardian, (LEFT, wait
  status) instead. idumb then ends what is left, and sends one byte. If nothing is left, (ENDED, wait status) follows;
  otherwise the guardian exits, and idumb adopts what is left.
"""

from __future__ import annotations

import _socket
import errno
import marshal
import os
import resource
import select
import struct

from idumb.system.processes import process_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Sequence
    from typing import NoReturn
else:
    # As with `_socket`: what is around these modules in Python takes as long to load as the interpreter itself.
    import _signal as signal

LENGTH = struct.Struct("=Q")
ANSWER = struct.Struct("=Bi")
STARTED, NO_FOLDER, NO_PROGRAM, ENDED, LEFT = range(5)

_CHUNK = 1 << 16
_STREAMS = struct.Struct("=3i")
_CLOSE_ON_EXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
_DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
_IGNORED = (*_DEAF, signal.SIGXFSZ)  # the last one by Python
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_ROUNDS = 200


def main() -> None:
    channel = _socket.socket(fileno=0)
    process_tree.become_reaper()  # before a program can leave an orphan
    for deaf_to in _DEAF:
        signal.signal(deaf_to, signal.SIG_IGN)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    own = _own_state()
    while True:
        order, streams = _received(channel)
        try:
            what, number = _started(order, streams, mask)
        except OSError as problem:
            what, number = NO_PROGRAM, problem.errno or 0
        for stream in streams:
            os.close(stream)
        program = number if what == STARTED else None
        try:
            channel.send(ANSWER.pack(what, number))
            if program is not None:
                status, program = _status(program, channel, woken), None
                _tell_end(status, channel, own)
        except OSError:  # idumb has ended
            _end_all(program)


def _own_state() -> list[object]:
    """Return what a program can change in this process, and the next one would inherit."""
    state: list[object] = [os.getpriority(os.PRIO_PROCESS, 0), *map(resource.getrlimit, _LIMITS)]
    if hasattr(os, "sched_getaffinity"):
        state += [os.sched_getaffinity(0), os.sched_getscheduler(0)]
    try:
        state.append(process_tree.read("/proc/self/oom_score_adj"))
    except OSError:
        pass
    return state


def _received(channel: _socket.socket) -> tuple[bytes, Sequence[int]]:
    """Return the next order; exit if idumb has ended."""
    data, extra, _, _ = channel.recvmsg(_CHUNK, _socket.CMSG_SPACE(_STREAMS.size), _CLOSE_ON_EXEC)
    streams = [stream for _, _, content in extra for stream in _STREAMS.unpack(content)]
    while data and len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
        more = channel.recv(_CHUNK)
        data = data + more if more else b""
    if not data:
        os._exit(0)
    for stream in streams:
        os.set_inheritable(stream, False)  # noqa: FBT003 - the system's own
    return data[LENGTH.size :], streams


def _started(order: bytes, streams: Sequence[int], mask: Iterable[int]) -> tuple[int, int]:
    """Start a program in a session of its own. Return the answer; OSError if there is no room for a process."""
    failed, fail = os.pipe()
    with open(failed, "rb", buffering=0) as report:
        try:
            program = os.fork()
            if program == 0:
                _become(order, streams, mask, fail)
        finally:
            os.close(fail)
        answer = report.read(ANSWER.size)
    if not answer:
        return STARTED, program
    os.waitpid(program, 0)
    what, number = ANSWER.unpack(answer)
    return what, number


def _become(order: bytes, streams: Sequence[int], mask: Iterable[int], fail: int) -> NoReturn:
    """Become the program in a new process, or tell `fail` why not."""
    what, number = NO_PROGRAM, 0
    try:
        os.setsid()
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        for ignored in _IGNORED:
            signal.signal(ignored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        places, argv, cwd, environment, limits = marshal.loads(order)  # noqa: S302 - from idumb, by a pair of sockets
        what = NO_FOLDER
        os.chdir(cwd)
        what = NO_PROGRAM
        _set_limits(limits)
        for place in places:
            try:
                os.execve(place, argv, environment)  # noqa: S606 - what a plan or an agent names
            except (FileNotFoundError, NotADirectoryError) as problem:
                number = number or problem.errno or 0
            except OSError as problem:
                number = problem.errno or 0
    except OSError as problem:
        number = problem.errno or 0
    finally:
        # A NUL in an argument, or a limit that no system has, has no number of its own.
        os.write(fail, ANSWER.pack(what, number or errno.EINVAL))
        os._exit(1)


def _set_limits(limits: Sequence[tuple[int, int]]) -> None:
    """Set (system number, value) of each limit for this process, never above its current ones."""
    for number, value in limits:
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # Above a soft CPU limit comes a signal that can be caught; the hard limit kills.
        top = most + 1 if number == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or most < hard) else most
        resource.setrlimit(number, (most, top))


def _tell_end(status: int, channel: _socket.socket, own: object) -> None:
    """Return if nothing of the program is left, and this process is in its `own` state; else, exit."""
    if not _is_clean(own):
        channel.send(ANSWER.pack(LEFT, status))
        if not channel.recv(1):
            _end_all(None)
        if not _is_clean(own):
            os._exit(0)
    channel.send(ANSWER.pack(ENDED, status))


def _is_clean(own: object) -> bool:
    return not _any_child_left() and own == _own_state()


def _status(program: int, channel: _socket.socket, woken: int) -> int:
    """Return the wait status of a program when it has ended. If idumb ends before, so do both."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while (status := _reap(program)) is None:
        for handle, _ in poll.poll():
            if handle == woken:
                os.read(woken, _CHUNK)
            else:
                _end_all(program)
    return status


def _reap(program: int) -> int | None:
    """Collect ended children. Return the wait status of the program if it is one of them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == program:
            return status
        if pid == 0:
            return None


def _end_all(program: int | None) -> NoReturn:
    """Kill the program and what it started: idumb is gone and the result does not count, so do not ask them to finish.

    Without `program`, it has ended, and its id may be another's.
    """
    for _ in range(_ROUNDS):
        if program is not None:
            process_tree.send_group(program, signal.SIGKILL)
        below = process_tree.descendants(process_tree.children())
        process_tree.end_groups(below)
        process_tree.send(below, signal.SIGKILL)
        if not _any_child_left():
            break
        process_tree.wait_gone(below, 0.05)
    os._exit(1)


def _any_child_left() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
