"""Writes files whole or not at all: to a temporary name, then renamed into place. Folders are opened without links.

Bytes that are about to be replaced can be kept.
"""

from __future__ import annotations

import contextlib
import itertools
import os

from idumb.system import private_folders
from idumb.system.private_folders import FOLDER, closing

TYPE_CHECKING = False  # `typing` is slow to import, and `idumb status` imports this module; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO


def write(path: str, data: bytes, *, durable: bool = True, mode: int | None = None) -> None:
    """Replace `path` with `data`. If `durable`, file and folder entry are on disk on return.

    `mode` are the permission bits; None keeps those of the replaced file, else the umask's bits of 0666. The folder
    must exist. Raises OSError and leaves the old file unchanged.
    """
    with private_folders.opened(os.path.dirname(path) or ".") as folder:
        try:
            write_at(folder, os.path.basename(path), data, durable=durable, mode=mode)
        except OSError as problem:
            problem.filename, problem.filename2 = path, None
            raise


def write_at(
    folder: int,
    name: str,
    data: bytes,
    *,
    durable: bool = True,
    mode: int | None = None,
    look: Callable[[], None] = lambda: None,
) -> None:
    """Write to a name in an open folder; a link of that name is replaced, not followed.

    `look` is called right before the rename; if it raises, the old file stays.
    """
    bits = _mode_of(folder, name) if mode is None else mode
    temporary = f".idumb.{os.getpid()}-{os.urandom(4).hex()}.tmp"  # short, as the name may be as long as names can be
    try:
        _fill(folder, temporary, data, durable=durable, mode=bits)
        look()
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _discard(folder, temporary)
        raise
    if durable:
        sync(folder)


def create(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Create a durable file. Raises FileExistsError if the name exists, also as a link.

    A crash can leave it empty or truncated, so use it only for files whose content is checked on reading.
    """
    with private_folders.opened(os.path.dirname(path) or ".") as folder:
        _fill(folder, os.path.basename(path), data, durable=True, mode=mode)
        sync(folder)


def open_folder(top: int, parts: Iterable[str], gained: set[str] | None = None) -> int:
    """Return a descriptor of a folder below the open folder `top`; the caller closes it.

    No link is followed: the OSError for one in the way, or for a file, has its name. With `gained`, missing folders are
    created, and the folders that gained an entry are added to it.
    """
    here, path = os.dup(top), ""
    for part in parts:
        with closing(here):
            below = _entered(here, part, path, gained)
        here, path = below, f"{path}/{part}".lstrip("/")
    return here


def _entered(here: int, part: str, path: str, gained: set[str] | None) -> int:
    try:
        return os.open(part, FOLDER, dir_fd=here)
    except FileNotFoundError:
        if gained is None:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
    gained.add(path)
    return os.open(part, FOLDER, dir_fd=here)


def unnamed(data: bytes) -> IO[bytes]:
    """Return an open file without a name that holds `data`, as the input of a program.

    If this process is killed, a pipe would end early, and a program would go on with part of its input. A program may
    also read it slowly, late or not at all.
    """
    if hasattr(os, "memfd_create"):
        stream = os.fdopen(os.memfd_create("input"), "w+b")
    else:
        import tempfile

        stream = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    stream.write(data)
    stream.seek(0)
    return stream


def free_name(path: str, mark: str = "~") -> str:
    """Return `path` with the mark and the lowest number of which there is nothing."""
    places = (f"{path}{mark}{number}" for number in itertools.count(1))
    return next(place for place in places if not os.path.lexists(place))


def sync_folder(path: str) -> None:
    """Force a folder's entries to disk."""
    with private_folders.opened(path) as folder:
        sync(folder)


def sync(descriptor: int) -> None:
    """Force data to the device; on macOS a plain fsync stops at the device's cache."""
    import fcntl

    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, full)
    except OSError:
        os.fsync(descriptor)


def status_at(folder: int, name: str) -> os.stat_result | None:
    """Return what has a name in an open folder; None if nothing has."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _mode_of(folder: int, name: str) -> int | None:
    import stat

    status = status_at(folder, name)
    return stat.S_IMODE(status.st_mode) if status is not None and stat.S_ISREG(status.st_mode) else None


def _fill(folder: int, name: str, data: bytes, *, durable: bool, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with closing(os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=folder)) as descriptor:
        if mode is not None:
            os.fchmod(descriptor, mode)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if durable:
            sync(descriptor)


def _discard(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


class FileBackupStore:
    """Keeps replaced files in idumb's folder in the git folder. Identical content is stored once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def keep(self, kind: str, name: str, data: bytes) -> str:
        """Store `data` durably and return its path. `name` is relative, with `/`, below a folder for each content."""
        import hashlib

        if os.path.isabs(name) or ".." in name.split("/"):
            raise ValueError(f"not a name below a folder: {name}")
        path = os.path.join(self._folder, kind, hashlib.sha256(data).hexdigest()[:16], name)
        private_folders.make(os.path.dirname(path))
        write(path, data, mode=0o600)
        folder = os.path.dirname(path)
        while len(folder := os.path.dirname(folder)) >= len(self._folder):  # the entries of new folders
            sync_folder(folder)
        return path

    def put(self, kind: str, path: str) -> str:
        """Move a file or folder here, within one file system, and return its new path."""
        folder = os.path.join(self._folder, kind)
        private_folders.make(folder)
        target = free_name(os.path.join(folder, os.path.basename(path)))
        os.rename(path, target)
        sync_folder(folder)
        return target
