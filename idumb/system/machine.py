"""The machine: its name and boot, free space, file systems, who reaches a place, and processes that were left."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from idumb.system import private_folders, process_end, process_tree, user_folders

_WHOLE = "pid:[4026531836]"  # Linux guarantees this number: PROC_PID_INIT_INO
# A failed write releases its space, so some is free again afterwards.
_FEW_BYTES = 1 << 20
_FEW_FILES = 64


class LocalMachine:
    """Facts about the machine and the folders that idumb uses.

    `folder` is where idumb keeps its state in the git folder; it may be missing. `is_checkout` says whether a path is
    in a checkout of the repository.
    """

    def __init__(
        self, root: str, git_dir: str, folder: str, is_checkout: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._is_checkout = is_checkout
        self.root = root
        self.git_dir = git_dir
        self.folder = folder

    def state_directory(self) -> tuple[str, str | None]:
        """Its path, and why its content cannot be trusted, if so."""
        return user_folders.path(), user_folders.problem()

    def room(self, path: str) -> tuple[int, int | None]:
        """Free bytes and free inodes; None if the number of files is unlimited."""
        free = room(path)
        return free.bytes, free.files

    def user(self) -> int:
        return os.geteuid()

    def owner(self, path: str) -> int:
        return os.stat(path).st_uid

    def writable(self, path: str) -> bool:
        """Whether files can be created in a folder; true if it does not exist."""
        return not os.path.isdir(path) or os.access(path, os.W_OK | os.X_OK)

    def exposed(self) -> Sequence[tuple[str, int, int]]:
        """(path, owner, mode) of `folder` if other users own it, or can reach what is in it."""
        try:
            status = os.lstat(self.folder)
        except OSError:
            return ()
        mode = stat.S_IMODE(status.st_mode)
        return [(self.folder, status.st_uid, mode)] if status.st_uid != os.geteuid() or mode & 0o077 else ()

    def make_private(self, path: str) -> int:
        """Remove the permissions of other users; return the mode."""
        with private_folders.closing(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as descriptor:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o700
            os.fchmod(descriptor, mode)
        return mode

    def left_processes(self) -> Sequence[tuple[int, str]]:
        """(process, run) of orphaned processes of runs in this working tree."""
        others = (pid for pid in process_tree.every_process() if pid != os.getpid())
        return [(pid, _run_of(pid)) for pid in others if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        place = process_tree.variable(pid, process_tree.PLACE_COOKIE.encode())
        if place is None or not process_tree.is_alive(pid):
            return False
        where = os.fsdecode(place.partition(b"@")[2])
        return where == self.root or self._is_checkout(where)

    def end(self, pid: int) -> None:
        """Kill one of `left_processes`."""
        process_end.end(lambda: [pid] if self._is_ours(pid) else [], 2.0)


def _run_of(pid: int) -> str:
    return os.fsdecode(process_tree.variable(pid, process_tree.RUN_COOKIE.encode()) or b"?")


class Room(NamedTuple):
    """What an unprivileged user can still write. `files` is None if the file system has no such limit."""

    mount: str
    bytes: int
    files: int | None


def room(path: str) -> Room:
    """Return the free space of the file system that holds `path`, or would. Raises OSError."""
    existing = _existing(os.path.abspath(path))
    numbers = os.statvfs(existing)
    return Room(_mount(existing), numbers.f_bavail * numbers.f_frsize, numbers.f_favail if numbers.f_files else None)


def _existing(path: str) -> str:
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _mount(path: str) -> str:
    """Return the nearest folder at which something is mounted."""
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path


def described(path: str) -> str:
    """Return ` (/home has 0 bytes and 12 files free)`, to follow a message; "" if unknown."""
    try:
        return _words(room(path))
    except OSError:
        return ""


def nearly_full(path: str) -> str:
    """Return the same if little enough is free to explain a failed write; else ""."""
    try:
        free = room(path)
    except OSError:
        return ""
    few = free.files is not None and free.files < _FEW_FILES
    return _words(free) if few or free.bytes < _FEW_BYTES else ""


def _words(free: Room) -> str:
    files = "" if free.files is None else f" and {free.files} files"
    return f" ({free.mount} has {free.bytes} bytes{files} free)"


def kind_of(path: str) -> str:
    """Return the system's name of the type of the file system that holds `path`, or would; "" if unknown."""
    import psutil

    real = f"{os.path.realpath(_existing(path))}/"
    mounts = [(each.mountpoint, each.fstype) for each in psutil.disk_partitions(all=True)]  # the latest last
    above = [(mount, kind) for mount, kind in reversed(mounts) if real.startswith(f"{mount.rstrip('/')}/")]
    return max(above, key=lambda row: len(row[0]), default=("", ""))[1]


def name() -> str:
    return os.uname().nodename


def boot_id() -> str | None:
    """Return an id of the current boot; None if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.readline().strip()
    except OSError:
        return None


def process_namespace() -> str | None:
    """Return the namespace of process ids; None if the system has only one."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def sees_all_processes() -> bool:
    """Return whether this namespace sees every process of the machine, including those in containers."""
    return process_namespace() == _WHOLE
