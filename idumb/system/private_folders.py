"""Private folders: only this user has access. Where temporary ones may be, their locks, and how they are removed.

A temporary folder has a lock that ends with its process: it distinguishes a folder in use from one that a killed
process left. Locks are taken by filelock, on descriptors of ours.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

MANIFESTS = (
    ".git",
    "Cargo.toml",
    "WORKSPACE",
    "build.gradle",
    "composer.json",
    "conftest.py",
    "deno.json",
    "go.mod",
    "go.work",
    "node_modules",
    "package.json",
    "pnpm-workspace.yaml",
    "pom.xml",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "tsconfig.json",
)
"""Node, Python, Go, Cargo and others search every parent folder for these."""
_LOCK = ".lock"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would block
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPENED = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_SHORT = 64
"""Bytes of a path in which programs can create sockets: theirs may have 104, and tests add folders and names."""


def make(path: str, *, root: str = "/") -> None:
    """Create `path` and its missing parents below `root`, each with mode 0700; existing folders stay as they are.

    Raises OSError if `root` is missing: if a git folder was moved away, recreating it would leave only idumb's files
    there and block the way back. `os.makedirs` applies its mode only to the last folder.
    """
    if path in {"", root} or os.path.isdir(path):
        return
    make(os.path.dirname(path), root=root)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Yield an open descriptor; close it afterwards."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(folder: str) -> list[str]:
    """Return the sorted names in a folder; none if it is missing, or cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def opened(folder: str) -> AbstractContextManager[int]:
    """Open a folder, which a link may name, for the length of a block."""
    return closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


def unsafe(place: str, *, folder: bool = False) -> str | None:
    """Return why another user could have written a file (or folder), or None."""
    try:
        status = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    right_type = stat.S_ISDIR(status.st_mode) if folder else stat.S_ISREG(status.st_mode)
    if not right_type:
        return f"{place} is not a {'folder' if folder else 'file'}"
    if status.st_uid != os.geteuid():
        return f"{place} belongs to another user (uid {status.st_uid})"
    if status.st_mode & 0o022:
        return f"{place} can be written by other users (mode {status.st_mode & 0o777:04o})"
    return None


def temporary(name: str) -> tuple[str, ...]:
    """Return the folders that may hold temporary folders, the preferred one first; few of them exist.

    Each user has their own, because others may write to the folders above.
    """
    chosen = os.environ.get("TMPDIR", "")
    above = [chosen] if os.path.isabs(chosen) else []
    own = f"{name}-{os.geteuid()}"
    return tuple(
        dict.fromkeys(os.path.join(os.path.realpath(folder), own) for folder in (*above, "/tmp", "/var/tmp"))  # noqa: S108
    )


def place(candidates: Sequence[str], avoid: Sequence[str]) -> str:
    """Return the first usable folder, created if missing; rather one without a manifest above it.

    It is private and outside the folders `avoid`. Raises OSError if no folder can be written.
    """
    tops = [os.path.realpath(folder) for folder in avoid]
    outside = (folder for folder in candidates if not any(_is_below(folder, top) for top in tops))
    usable = [folder for folder in outside if _is_private(folder)]
    if not usable:
        raise PermissionError(f"no folder for temporary files can be written: {', '.join(candidates)}")
    return next((folder for folder in usable if manifest_above(folder) is None), usable[0])


def manifest_above(folder: str) -> str | None:
    """Return the nearest manifest in a folder or above it, or None."""
    while True:
        for name in MANIFESTS:
            if os.path.lexists(os.path.join(folder, name)):
                return os.path.join(folder, name)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_below(folder: str, top: str) -> bool:
    return f"{folder}/".startswith(f"{top.rstrip('/')}/")


def _is_private(folder: str) -> bool:
    """Create a folder if it is missing. Return whether it belongs to the user alone and programs can run there."""
    try:
        make(folder)
        return (
            unsafe(folder, folder=True) is None
            and os.access(folder, os.W_OK | os.X_OK)
            and not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)  # only Linux names the flag
        )
    except OSError:
        return False


class TemporaryFolder:
    """A folder for files that only this process needs. A later process removes it if this one is killed."""

    def __init__(self, name: str, avoid: Sequence[str] = ()) -> None:
        """Create it with a short path, outside the folders `avoid`. Raises OSError."""
        short = [top for top in temporary(name) if len(os.fsencode(top)) <= _SHORT]
        top = place(short, avoid)
        for folder in abandoned(top):
            remove(folder)
        self.path, self._lock = lock_folder(top)
        os.mkdir(self.path, 0o700)

    def close(self) -> None:
        unlock_folder(self.path, self._lock)
        remove_empty(os.path.dirname(self.path))


def lock_folder(top: str) -> tuple[str, int]:
    """Lock a free name: the lock comes before the folder and goes after it. Return the folder and the lock.

    Nothing is at the folder. A name is skipped if what a killed process left there cannot be removed.
    """
    number = 0
    make(top)
    while True:
        number += 1
        folder = os.path.join(top, str(number))
        descriptor = take_lock(folder + _LOCK)
        if descriptor is not None and try_to_remove(folder):
            return folder, descriptor
        if descriptor is not None:
            os.close(descriptor)
        make(top)  # another process removes it when it is empty


def unlock_folder(folder: str, descriptor: int) -> None:
    """Remove a folder, then its lock."""
    with closing(descriptor):
        remove(folder)


def abandoned(top: str) -> Iterator[str]:
    """Yield the folders that no process holds. Each is locked while the caller removes it."""
    names = names_in(top)
    held = {name.removesuffix(_LOCK) for name in names if name.endswith(_LOCK)}
    for name in sorted(name for name in held | set(names) if name.isdecimal()):
        descriptor = take_lock(os.path.join(top, name + _LOCK), create=False) if name in held else None
        if name in held and descriptor is None:
            continue
        try:
            yield os.path.join(top, name)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def take_lock(path: str, *, create: bool = True) -> int | None:
    """Return the descriptor of the locked file; None if another process has the lock, or there is no file.

    Raises OSError, also if the file system has no locks.
    """
    while True:
        try:
            descriptor = os.open(path, _OPENED | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError:
            if create:
                raise
            return None
        try:
            if lock_descriptor(descriptor) and is_at(path, descriptor):
                return descriptor
            is_held = is_at(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if is_held:
            return None  # otherwise it was replaced or removed between opening and locking


def lock_descriptor(descriptor: int) -> bool:
    """Lock an open file; return False if another process has the lock."""
    import filelock  # it takes as long as a small command

    return filelock.lock_descriptor(descriptor, blocking=False)


def release_lock(descriptor: int) -> None:
    """Unlock explicitly, and close: a program may have inherited the descriptor by mistake."""
    import filelock

    with contextlib.suppress(OSError):
        filelock.unlock_descriptor(descriptor)
    os.close(descriptor)


def is_at(path: str, descriptor: int) -> bool:
    """Return whether the open file is the one at the path."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except OSError:
        return False


def remove(folder: str) -> bool:
    """Remove a folder and its lock. Return False if the folder stays; a later command tries again."""
    if not try_to_remove(folder):
        return False
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder + _LOCK)
    return True


def try_to_remove(folder: str) -> bool:
    """Remove a folder. Return False if it stays: something is mounted in it, or files in it belong to another user."""
    with contextlib.suppress(OSError):
        remove_tree(folder)
    return not os.path.lexists(folder)


def remove_empty(top: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(top)


def remove_tree(folder: str) -> None:
    """Remove a folder with its content, or whatever is at its path, without following links.

    What cannot be removed stays. Raises OSError if something is mounted below it: that may be files of the user.
    """
    if os.path.isdir(folder) and not os.path.islink(folder):
        require_no_mounts(folder)
    with contextlib.suppress(OSError):
        above, name = os.path.split(os.path.abspath(folder))
        with closing(os.open(above, FOLDER)) as opened:
            remove_at(name, opened)


def remove_at(name: str, at: int) -> None:
    """Remove what has a name in an open folder, also folders without permissions and however deep.

    Raises OSError if something cannot be removed, FileNotFoundError if nothing has the name.
    """
    if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        _unlink(name, at)
        return
    import shutil

    # Folders may be nested more deeply than Python recurses, or have no permissions, as in Go's module cache.
    with contextlib.suppress(RecursionError, OSError):
        shutil.rmtree(name, dir_fd=at)
        return
    import subprocess

    for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        subprocess.run(
            [*command, "--", name],
            cwd=f"/dev/fd/{at}",
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    with contextlib.suppress(FileNotFoundError):
        os.stat(name, dir_fd=at, follow_symlinks=False)
        raise OSError(errno.ENOTEMPTY, "it cannot be removed", name)


def _unlink(name: str, at: int) -> None:
    try:
        os.unlink(name, dir_fd=at)
    except PermissionError:
        os.fchmod(at, 0o700)
        os.unlink(name, dir_fd=at)


def require_no_mounts(folder: str) -> None:
    """Raise OSError if something is mounted at a folder or below it, as far as the system tells."""
    import psutil

    top = os.path.realpath(folder)
    found = [
        each.mountpoint for each in psutil.disk_partitions(all=True) if f"{each.mountpoint}/".startswith(f"{top}/")
    ]
    if found:
        words = "something is mounted here, so idumb does not remove it; unmount it"
        raise OSError(errno.EBUSY, words, found[0])
