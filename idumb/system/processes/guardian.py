"""A process between idumb and an agent that ends the agent when idumb ends, for any reason.

It adopts the orphans of the agent, so even a daemon with an empty environment in its own session is a descendant. It
holds no file of idumb's, ignores requests to stop, and exits as the agent exits.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn

from idumb.system.processes import process_tree

_DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
_ROUNDS = 200
_EMPTY: Mapping[str, str] = MappingProxyType({})


def stand_between(alive: int, argv: Sequence[str] = (), environment: Mapping[str, str] = _EMPTY) -> None:
    """Become the guardian. Call in a new process before exec; returns in a second one, which executes the program.

    `alive` is the read end of a pipe whose other end idumb holds. With `argv`, the program is started without a copy of
    this process's memory, which costs more than most programs that a plan runs. If that fails, the second process is
    made after all: there, it fails in the same way, and that is reported.
    """
    process_tree.become_reaper()  # before the program can leave an orphan
    program = _started(argv, environment) if argv else None
    if program is None:
        program = os.fork()
        if program == 0:
            os.setsid()
            return
    try:
        _watch(program, alive)
    finally:
        os._exit(1)


def _started(argv: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """Start a program in a session of its own, as `subprocess` would; None if it cannot be started."""
    name = argv[0]
    places = [name] if "/" in name else [f"{folder}/{name}" for folder in os.get_exec_path(environment)]
    try:
        closed = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable_pipes()]
        for place in places:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return os.posix_spawn(place, list(argv), environment, file_actions=closed, setsid=True)
    except (OSError, ValueError, NotImplementedError):
        pass  # another system, an unreadable program, a name with a NUL
    return None


def _inheritable_pipes() -> list[int]:
    """Close idumb's files, except pipes: one of them reports whether the program could be started.

    Return the pipes that the program would inherit.
    """
    shared = []
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the list itself is closed already
            if number > 2 and not stat.S_ISFIFO(os.fstat(number).st_mode):
                os.close(number)
            elif number > 2 and os.get_inheritable(number):
                shared.append(number)
    return shared


def _watch(program: int, alive: int) -> NoReturn:
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    # Descriptors 0 and 1 are not streams here but the ends of pipes.
    os.dup2(alive, 0)
    os.closerange(1, _most_files())
    woken, wake = os.pipe2(os.O_NONBLOCK) if hasattr(os, "pipe2") else _pipe()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        _reap(program)
        for handle, _ in poll.poll():
            if handle == 0:
                _end_all(program)
            else:
                os.read(woken, 4096)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _most_files() -> int:
    return min(os.sysconf("SC_OPEN_MAX"), 1 << 20)


def _reap(program: int) -> None:
    """Collect ended children; when the program itself has ended, stop watching."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == program:
            _end_like(status)
        if pid == 0:
            return


def _end_like(status: int) -> NoReturn:
    """Exit with the same code or signal; idumb adopts the processes that the program left behind."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _end_all(program: int) -> NoReturn:
    """Kill the program: idumb is gone and its result does not count, so do not ask it to finish."""
    for _ in range(_ROUNDS):
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
