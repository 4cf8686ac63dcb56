"""Inspects the places where idumb works: file systems, free space, owners and modes, leftover files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence

from idumb.system.files import file_systems, user_folders
from idumb.system.processes import child_process, process_tree


class LocalMachine:
    """Facts about the machine and the folders that idumb uses.

    `folder` is where idumb keeps its state in the git folder; it may be missing. `is_clone` says
    whether a path is in a clone of the repository.
    """

    def __init__(self, root: str, git_dir: str, folder: str, is_clone: Callable[[str], bool] = lambda _: False) -> None:
        self._is_clone = is_clone
        self.root = root
        self.git_dir = git_dir
        self.folder = folder

    def state_directory(self) -> tuple[str, str | None]:
        """Its path, and why its content cannot be trusted, if so."""
        return user_folders.path(), user_folders.problem()

    def room(self, path: str) -> tuple[int, int | None]:
        """Free bytes and free inodes; None if the number of files is unlimited."""
        free = file_systems.room(path)
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

    def make_private(self, path: str) -> int | None:
        """Remove the permissions of other users; return the mode, or None if the path no longer exists."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o700
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        return mode

    def left_processes(self) -> Sequence[tuple[int, str]]:
        """(process, run) of orphaned processes of runs in this working tree."""
        others = (pid for pid in process_tree.every_process() if pid != os.getpid())
        return [(pid, _run_of(pid)) for pid in others if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        place = process_tree.variable(pid, child_process.PLACE_COOKIE.encode())
        if place is None or not process_tree.is_alive(pid):
            return False
        where = os.fsdecode(place.partition(b"@")[2])
        return where == self.root or self._is_clone(where)

    def end(self, pid: int) -> None:
        """Kill one of `left_processes`."""
        process_tree.end(lambda: [pid] if self._is_ours(pid) else [], 2.0)


def _run_of(pid: int) -> str:
    return os.fsdecode(process_tree.variable(pid, child_process.RUN_COOKIE.encode()) or b"?")
