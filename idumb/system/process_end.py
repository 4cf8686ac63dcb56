"""Ends processes: a program with everything that it started, adopted orphans, and exactly one process by its identity.

On Linux this process becomes the reaper of its orphaned descendants, so nothing that it starts escapes through `setsid`
or a double fork. On other systems the descendants and the process group of the started program are reached.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import time

from idumb.system import process_tree

# `idumb status` may load this module, whose start `typing`, `signal` and `threading` would double.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from idumb.system.child_process import Program

    Find = Callable[[], list[int]]

GRACE = 2.0

_TERM, _KILL = 15, 9  # on every system, see kill(1)

_COOKIE = process_tree.PROCESS_COOKIE.encode()
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
_LOOK = 0.02  # seconds between two looks at something that cannot be waited for
_EXEC = 0.02  # seconds in which a process that executes a program has its environment again

# Running programs, by cookie: several threads may each run one. The lock is held while a new child has no environment
# of its own, so that no thread ends it as an orphan.
running: dict[str, int] = {}
spawning = _thread.allocate_lock()

_adopting: bool | None = None


def adopt_orphans() -> bool:
    """Make this process the parent of descendants whose own parent ends; False where the system cannot."""
    global _adopting  # noqa: PLW0603 (an attribute of the process, asked for once)
    if _adopting is None:
        _adopting = False
        if sys.platform == "linux" and os.path.exists("/proc/thread-self/children"):
            import ctypes

            with contextlib.suppress(OSError, AttributeError):  # without a dynamic loader
                _adopting = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    return _adopting


def end_program(child: Program | None, cookie: str, before: frozenset[int] | None, grace: float, folder: str) -> None:
    """End a program if it still runs, then everything it left behind.

    `child` is None if it could not start, or if an interrupt arrived at that moment; it is then an orphan. Without
    `before`, the children that existed before it, only what carries its cookie is known to be its own, and what works
    in its `folder` without a home.
    """
    try:
        if child is not None and child.poll() is None:
            _end_child(child, grace)
    finally:
        running.pop(cookie, None)
    if not adopt_orphans():
        end_all(process_tree.PROCESS_COOKIE, cookie, grace)
        if child is not None and send_group(child.pid, _TERM):
            wait_gone(_members(child.pid), grace)
            send_group(child.pid, _KILL)
    elif before is None:
        end(lambda: _carriers(cookie, folder), grace)
    elif _strays(cookie, before):  # adopted before the program itself can be seen as ended
        end(lambda: _left(cookie, before), grace, lambda: _collect(cookie, before))


def _end_child(child: Program, grace: float) -> None:
    try:
        send(child.tree(), _TERM)
        wait_gone([child.pid], grace)
    finally:
        send(child.tree(), _KILL)
        send_group(child.pid, _KILL)
        child.wait()


def end_all(name: str, value: str, grace: float = GRACE, *, folder: str = "") -> tuple[int, ...]:
    """End every process that is `carrying` the cookie, whatever its parent. Return their ids."""

    def find() -> list[int]:
        return process_tree.descendants(process_tree.carrying(name, value, folder))

    return end(find, grace) if process_tree.carrying(name, value, folder) else ()


def end_strays(before: frozenset[int] | None = None) -> tuple[int, ...] | None:
    """End adopted orphans that carry a cookie of finished processes; with `before`, all orphans but these.

    None if they cannot be found this way.
    """
    if not adopt_orphans():
        return None
    if before is not None:
        return end(lambda: _left("", before), GRACE, lambda: _collect("", before))

    def find() -> list[int]:
        return [pid for pid in _left("", frozenset()) if process_tree.variable(pid, _COOKIE) is not None]

    return end(find, GRACE, lambda: reap("", frozenset()))


def end(find: Find, grace: float, chase: Callable[[], None] = lambda: None) -> tuple[int, ...]:
    """End the processes that `find` returns until it returns none: SIGTERM first, SIGKILL `grace` seconds later.

    `chase` is called before each further search after the grace period.
    """
    living = find()
    ended = set(living)
    try:
        send(living, _TERM)
        if living:
            wait_gone(living, grace)
    finally:
        # Also if an interrupt ends the wait: no process may outlive this call.
        for _ in range(_ROUNDS):
            chase()
            living = find()
            if not living:
                break
            ended.update(living)
            end_groups(living)
            send(living, _KILL)
            wait_gone(living, 0.2)
    return tuple(sorted(ended))


def _carriers(cookie: str, folder: str) -> list[int]:
    """Return live processes below adopted orphans that carry the cookie, or work in the folder without a home."""
    name = cookie.encode()

    def belongs(pid: int) -> bool:
        environment = process_tree.environment_of(pid)
        return process_tree.variable(pid, _COOKIE) == name or process_tree.works_bare(pid, environment, folder)

    roots = filter(belongs, process_tree.children())
    return list(filter(process_tree.is_alive, process_tree.descendants(roots)))


def _strays(cookie: str, before: frozenset[int]) -> list[int]:
    """Return processes below adopted orphans, zombies included, that belong to `cookie` or to no running program."""
    with spawning:
        direct = set(running.values())
        others = {name.encode() for name in running if name != cookie}
        roots = [pid for pid in process_tree.children() if pid not in before and pid not in direct]
    # idumb's own processes share its session; programs that it runs never do.
    roots = [pid for pid in roots if _is_apart(pid) and not _belongs_to(pid, others)]
    return process_tree.descendants(roots)


def _is_apart(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except OSError:
        return False


def _belongs_to(pid: int, cookies: set[bytes]) -> bool:
    cookie = process_tree.variable(pid, _COOKIE)
    if cookie is None and cookies:
        # During exec a process briefly has no environment.
        wait_gone([pid], _EXEC)
        cookie = process_tree.variable(pid, _COOKIE)
    return cookie in cookies


def _left(cookie: str, before: frozenset[int], *, alive: bool = True) -> list[int]:
    """Return those of the strays that are alive, or those that have ended."""
    return [pid for pid in _strays(cookie, before) if process_tree.is_alive(pid) is alive]


def reap(cookie: str, before: frozenset[int]) -> None:
    """Collect orphans of a program that ended while it runs: it may wait until their ids are gone."""
    if adopt_orphans():
        _reap(_left(cookie, before, alive=False))


def _collect(cookie: str, before: frozenset[int]) -> None:
    """Collect zombies, and end processes that continued in a child of their own."""
    dead = _left(cookie, before, alive=False)
    end_groups(dead)
    _reap(dead)


def _reap(pids: Iterable[int]) -> None:
    """Collect adopted children that have ended, so that they do not remain zombies."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def end_groups(pids: Iterable[int]) -> None:
    """Kill the process groups of processes, except those in this process's own session.

    A process that keeps forking is never where it was seen, but its group is. Zombies still have a group.
    """
    groups: set[int] = set()
    for pid in filter(_is_apart, pids):
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups:
        send_group(group, _KILL)


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def send_group(group: int, number: int) -> bool:
    """Signal a process group. Return whether it existed."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _members(group: int) -> list[int]:
    import psutil

    pids: list[int] = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == group:
                pids.append(pid)
    return pids


def signal_process(pid: int, started: int | None, number: int) -> bool:
    """Signal this exact process, never a later one with its number. Return False if it is gone.

    Raises PermissionError.
    """
    with _opened_handle(pid) as handle:
        if not process_tree.process_is(pid, started):
            return False
        try:
            if handle is None:
                os.kill(pid, number)
            else:
                import signal

                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
    return True


def wait_for_end(pid: int, started: int | None, seconds: float) -> bool:
    """Return whether this exact process ended within `seconds`."""
    deadline = time.monotonic() + seconds
    with _opened_handle(pid) as handle:
        while process_tree.process_is(pid, started):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            _ready([] if handle is None else [handle], min(remaining, _LOOK))
    return True


def wait_gone(pids: Iterable[int], seconds: float) -> None:
    """Return when all processes have ended, or after `seconds`. Their exit codes stay for those who wait for them."""
    deadline = time.monotonic() + seconds
    handles: list[int] = []
    others: list[int] = []
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                handle = open_handle(pid)
                others.append(pid) if handle is None else handles.append(handle)
        while (handles or others) and (remaining := deadline - time.monotonic()) > 0:
            for handle in _ready(handles, min(remaining, _LOOK) if others else remaining):
                os.close(handle)
                handles.remove(handle)
            others = list(filter(process_tree.is_alive, others))
    finally:
        for handle in handles:
            os.close(handle)


def _ready(handles: list[int], seconds: float) -> list[int]:
    import select

    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    return [handle for handle, _ in poll.poll(seconds * 1000)]


def open_handle(pid: int) -> int | None:
    """Return a descriptor of this process, which can be read when it has ended; None where the system has none.

    Raises ProcessLookupError.
    """
    if sys.platform == "linux":
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:  # an old kernel, or too many open files
            pass
    return None


@contextlib.contextmanager
def _opened_handle(pid: int) -> Iterator[int | None]:
    """Yield a descriptor of this process that survives reuse of its number, or None."""
    handle: int | None = None
    with contextlib.suppress(ProcessLookupError):
        handle = open_handle(pid)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)
