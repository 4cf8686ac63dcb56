"""What the system shows of processes: relatives, environments, identities, and the marks that children inherit.

On Linux `/proc` is read directly: processes that keep forking are faster than a library. The marks tell honest programs
from people. They do not stop a hostile program.
"""

from __future__ import annotations

import contextlib
import os
import sys

from msgspec import Struct

# `idumb status` loads this module, whose start `typing` would double.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PROCESS_COOKIE, RUN_COOKIE, PLACE_COOKIE = "IDUMB_PROCESS", "IDUMB_RUN", "IDUMB_PLACE"
_ROLE, _SUBJECT = "IDUMB_ROLE", "IDUMB_TASK"

_THREADS, _STARTED = 17, 19  # fields of /proc/PID/stat, counted from the state on
_SCANS = 50


class Mark(Struct, frozen=True):
    """`folder` is the project for which the marked process was started, `who` its description for the user."""

    folder: str
    who: str


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
        with contextlib.suppress(OSError):  # the thread has ended; its children have another parent
            pids.extend(map(int, _read(f"/proc/{process}/task/{thread}/children").split()))
    return pids


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


def ancestors() -> list[int]:
    """Return the ancestors of this process, nearest first; none if the system does not show them."""
    pids: list[int] = []
    pid = os.getpid()
    while (fields := status(pid)) is not None and (parent := int(fields[1])) > 0 and parent not in pids:
        pids.append(parent)
        pid = parent
    return pids


def every_process() -> list[int]:
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
    except OSError:
        return []


def carrying(name: str, value: str, folder: str = "") -> list[int]:
    """Return every live process started with `name=value`, except this one and its ancestors.

    Also those without a home that work below `folder`, if it is given: they cleared their environment.
    """
    seen = {os.getpid(), *ancestors()}
    entry = b"\0" + os.fsencode(f"{name}={value}") + b"\0"

    def belongs(pid: int, environment: bytes) -> bool:
        return entry in b"\0" + environment + b"\0" or works_bare(pid, environment, folder)

    carriers: list[int] = []
    blank: list[int] = []
    for _ in range(_SCANS):
        # A process that keeps forking is gone when it is read; only the newest ones remain.
        fresh = [pid for pid in reversed(every_process()) if pid not in seen]
        if not fresh:
            break
        for pid in fresh:
            environment = environment_of(pid)
            if not environment:
                blank.append(pid)
            elif belongs(pid, environment) and is_alive(pid):
                carriers.append(pid)
        seen.update(fresh)
    # During exec a process briefly has no environment.
    return carriers + [pid for pid in blank if belongs(pid, environment_of(pid)) and is_alive(pid)]


def works_bare(pid: int, environment: bytes, folder: str) -> bool:
    """Return whether a process without a home works below a folder, if there is one."""
    if not folder or b"\0HOME=" in b"\0" + environment:
        return False
    try:
        place = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False
    return f"{place}/".startswith(f"{folder.rstrip('/')}/")


def variable(pid: int, name: bytes) -> bytes | None:
    """Return a variable from the environment that a process was started with, or None."""
    environment = environment_of(pid)
    start = (b"\0" + environment).find(b"\0" + name + b"=")
    return None if start < 0 else environment[start + len(name) + 1 :].split(b"\0", 1)[0]


def environment_of(pid: int) -> bytes:
    """Return what a process was started with; b"" if it cannot be read.

    If the first thread of the process has ended, its other threads show it.
    """
    try:
        if content := _read(f"/proc/{pid}/environ"):
            return content
    except PermissionError:  # another user's; the system also hides it once the first thread has ended
        if (status(pid) or [b""])[0] != b"Z":
            return b""
    except OSError:
        pass
    for thread in _threads(pid):
        with contextlib.suppress(OSError):
            if thread != str(pid) and (content := _read(f"/proc/{pid}/task/{thread}/environ")):
                return content
    return b""


def _threads(process: int | str) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:  # the process has ended
        return []


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def status(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the state on."""
    try:
        return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie. If only its first thread ended, it is alive."""
    fields = status(pid)
    if fields is None:  # it has ended, or the system does not show it, as if too many files are open
        return process_alive(pid)
    return fields[0] not in {b"Z", b"X"} or int(fields[_THREADS]) > 1


def process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as problem:
        return isinstance(problem, PermissionError)
    return True


def process_is(pid: int, started: int | None) -> bool:
    """Return whether this exact process is alive; a zombie is not."""
    fields = status(pid)
    if fields is None:
        return started is None and process_alive(pid)
    return int(fields[_STARTED]) == started and fields[0] not in {b"Z", b"X"}


def process_is_stopped(pid: int) -> bool:
    fields = status(pid)
    return fields is not None and fields[0] in {b"T", b"t"}


def process_started(pid: int) -> int | None:
    """Return clock ticks between the boot and the start of a process, or None.

    With the boot id it distinguishes a process from a later one with the same number.
    """
    fields = status(pid)
    return None if fields is None else int(fields[_STARTED])


def own_mark() -> Mark | None:
    """Return the mark in this process's environment, or None."""
    return _mark(os.environ.get)


def marks_above() -> Iterator[Mark]:
    """Return the marks of the ancestor processes, nearest first; none if the system does not show them.

    A program that removes the mark from its own environment cannot remove it from its ancestors'.
    """
    for pid in ancestors():
        variables = {name: variable(pid, name.encode()) for name in (PLACE_COOKIE, _ROLE, _SUBJECT)}
        mark = _mark({name: os.fsdecode(value) for name, value in variables.items() if value is not None}.get)
        if mark is not None:
            yield mark


def _mark(variable: Callable[[str], str | None]) -> Mark | None:
    place = variable(PLACE_COOKIE)
    if place is None:
        return None
    role, subject = variable(_ROLE), variable(_SUBJECT)
    return Mark(place.partition("@")[2], f"the {role} of {subject}" if role and subject else "a check")


def commands(pid: int) -> list[list[str]]:
    """Return the command line of each program that a process runs now, without those that these start."""
    import psutil

    lines: list[list[str]] = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children():
            with contextlib.suppress(psutil.Error):
                lines.append(child.cmdline())
    return [line for line in lines if line]


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
