"""Finds and ends processes: children, adopted orphans, and processes that carry a cookie.

On Linux this process becomes the reaper of its orphaned descendants, so nothing that it starts escapes through `setsid`
or a double fork, and `/proc` is read directly: processes that keep forking are faster than a library. On other systems
the descendants and the process group of the started program are reached.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import time

# `idumb status` loads this module, whose start `typing`, `signal` and `threading` would double.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from idumb.system.processes.started_program import Program

    Find = Callable[[], list[int]]

PROCESS_COOKIE = "IDUMB_PROCESS"
GRACE = 2.0

_TERM, _KILL = 15, 9  # on every system, see kill(1)

_COOKIE = PROCESS_COOKIE.encode()
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
_SCANS = 50
_LOOK = 0.02  # seconds between two looks at something that cannot be waited for
_EXEC = 0.02  # seconds in which a process that executes a program has its environment again
_GROUP, _SESSION, _THREADS = 2, 3, 17  # fields of /proc/PID/stat, counted from the state on

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


def children(pid: int | None = None) -> list[int]:
    """Return the ids of a process's children (of this process by default), zombies included."""
    if sys.platform != "linux":  # psutil looks at every process, which on Linux takes 200 times as long
        import psutil

        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []
    process = pid or "self"
    pids: list[int] = []
    for thread in _threads(process):
        try:
            pids.extend(map(int, read(f"/proc/{process}/task/{thread}/children").split()))
        except OSError:  # the thread has ended; its children have another parent
            pass
    return pids


def _threads(process: int | str) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:  # the process has ended
        return []


def descendants(roots: Iterable[int]) -> list[int]:
    """Return the given processes and all their descendants, parents first."""
    tree = list(dict.fromkeys(roots))
    seen = set(tree)
    for pid in tree:
        for child in children(pid):
            if child not in seen:
                seen.add(child)
                tree.append(child)
    return tree


def variable(pid: int, name: bytes) -> bytes | None:
    """Return a variable from the environment that a process was started with, or None."""
    environment = _environment(pid)
    start = (b"\0" + environment).find(b"\0" + name + b"=")
    return None if start < 0 else environment[start + len(name) + 1 :].split(b"\0", 1)[0]


def _environment(pid: int) -> bytes:
    """Return what a process was started with; b"" if it cannot be read.

    If the first thread of the process has ended, its other threads show it.
    """
    try:
        if content := read(f"/proc/{pid}/environ"):
            return content
    except PermissionError:
        return b""
    except OSError:
        pass
    for thread in _threads(pid):
        try:
            if thread != str(pid) and (content := read(f"/proc/{pid}/task/{thread}/environ")):
                return content
        except OSError:
            pass
    return b""


def carrying(name: str, value: str, folder: str = "") -> list[int]:
    """Return every live process started with `name=value`, except this one and its ancestors.

    Also those without a home that work below `folder`, if it is given: they cleared their environment.
    """
    seen = {os.getpid(), *ancestors(os.getpid())}
    entry = b"\0" + os.fsencode(f"{name}={value}") + b"\0"

    def belongs(pid: int, environment: bytes) -> bool:
        return entry in b"\0" + environment + b"\0" or _works_bare(pid, environment, folder)

    carriers: list[int] = []
    blank: list[int] = []
    for _ in range(_SCANS):
        # A process that keeps forking is gone when it is read; only the newest ones remain.
        fresh = [pid for pid in reversed(every_process()) if pid not in seen]
        if not fresh:
            break
        for pid in fresh:
            environment = _environment(pid)
            if not environment:
                blank.append(pid)
            elif belongs(pid, environment) and is_alive(pid):
                carriers.append(pid)
        seen.update(fresh)
    # During exec a process briefly has no environment.
    return carriers + [pid for pid in blank if belongs(pid, _environment(pid)) and is_alive(pid)]


def _works_bare(pid: int, environment: bytes, folder: str) -> bool:
    """Return whether a process without a home works below a folder, if there is one."""
    if not folder or b"\0HOME=" in b"\0" + environment:
        return False
    try:
        place = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False
    return f"{place}/".startswith(f"{folder.rstrip('/')}/")


def every_process() -> list[int]:
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
    except OSError:
        return []


def ancestors(pid: int) -> list[int]:
    """Return the ancestors of a process, nearest first; none if the system does not show them."""
    pids: list[int] = []
    while (fields := status(pid)) is not None and (parent := int(fields[1])) > 0 and parent not in pids:
        pids.append(parent)
        pid = parent
    return pids


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie. If only its first thread ended, it is alive."""
    fields = status(pid)
    return fields is not None and (fields[0] not in {b"Z", b"X"} or int(fields[_THREADS]) > 1)


def end_groups(pids: Iterable[int]) -> None:
    """Kill the process groups of processes, except those in this process's own session.

    A process that keeps forking is never where it was seen, but its group is. Zombies still have a group.
    """
    own = os.getsid(0)
    states = (status(pid) for pid in pids)
    for group in {int(fields[_GROUP]) for fields in states if fields is not None and int(fields[_SESSION]) != own}:
        send_group(group, _KILL)


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


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


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
            others = list(filter(_runs, others))
    finally:
        for handle in handles:
            os.close(handle)


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


def _runs(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def _ready(handles: list[int], seconds: float) -> list[int]:
    import select

    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    return [handle for handle, _ in poll.poll(seconds * 1000)]


def status(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the state on."""
    try:
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None


def read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


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
        end_all(PROCESS_COOKIE, cookie, grace)
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
        return descendants(carrying(name, value, folder))

    return end(find, grace) if carrying(name, value, folder) else ()


def end_strays(before: frozenset[int] | None = None) -> tuple[int, ...] | None:
    """End adopted orphans that carry a cookie of finished processes; with `before`, all orphans but these.

    None if they cannot be found this way.
    """
    if not adopt_orphans():
        return None
    if before is not None:
        return end(lambda: _left("", before), GRACE, lambda: _collect("", before))

    def find() -> list[int]:
        return [pid for pid in _left("", frozenset()) if variable(pid, _COOKIE) is not None]

    return end(find, GRACE, lambda: reap("", frozenset()))


def _carriers(cookie: str, folder: str) -> list[int]:
    """Return live processes below adopted orphans that carry the cookie, or work in the folder without a home."""
    name = cookie.encode()
    roots = [p for p in children() if variable(p, _COOKIE) == name or _works_bare(p, _environment(p), folder)]
    return list(filter(is_alive, descendants(roots)))


def _strays(cookie: str, before: frozenset[int]) -> list[int]:
    """Return processes below adopted orphans, zombies included, that belong to `cookie` or to no running program."""
    with spawning:
        direct = set(running.values())
        others = {name.encode() for name in running if name != cookie}
        roots = [pid for pid in children() if pid not in before and pid not in direct]
    # idumb's own processes share its session; programs that it runs never do.
    roots = [pid for pid in roots if _is_apart(pid) and not _belongs_to(pid, others)]
    return descendants(roots)


def _is_apart(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except OSError:
        return False


def _belongs_to(pid: int, cookies: set[bytes]) -> bool:
    cookie = variable(pid, _COOKIE)
    if cookie is None and cookies:
        # During exec a process briefly has no environment.
        wait_gone([pid], _EXEC)
        cookie = variable(pid, _COOKIE)
    return cookie in cookies


def _left(cookie: str, before: frozenset[int], *, alive: bool = True) -> list[int]:
    """Return those of the strays that are alive, or those that have ended."""
    return [pid for pid in _strays(cookie, before) if is_alive(pid) is alive]


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
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass


def may_be_at_work(program: str, places: Iterable[str], path: str) -> bool:
    """Return whether a live process could have created `path`.

    Such a process runs a program whose name begins with `program` and works in one of `places`, or has `path` open.
    Processes of users other than the file's owner are excluded. Returns True if the system hides where one works.
    """
    import psutil

    try:
        owner = os.lstat(path).st_uid
    except FileNotFoundError:
        return False
    roots = tuple(f"{os.path.realpath(place).rstrip('/')}/" for place in places)
    for process in psutil.process_iter():
        try:
            if process.pid == os.getpid() or process.uids().effective != owner:
                continue
            if process.name().startswith(program) and f"{process.cwd()}/".startswith(roots):
                return True
        except psutil.AccessDenied:
            return True
        except psutil.Error:  # ended, or a zombie
            continue
        if holds(process.pid, path):
            return True
    return False


def holds(pid: int, path: str) -> bool:
    """Return whether the process has the file open. False if the system does not show it."""
    import psutil

    try:
        return any(file.path == path for file in psutil.Process(pid).open_files())
    except psutil.Error:
        return False
