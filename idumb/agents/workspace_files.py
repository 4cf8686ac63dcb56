"""Files below one folder, accessed through descriptors, so that no symbolic link can redirect a write.

Each part of a path is opened relative to its parent with O_NOFOLLOW, and the operation uses the same descriptor, so the
checked file is the file that changes. Writes are atomic but not forced to disk: the snapshot that follows is the
durable copy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Self

from idumb.system import atomic_write, rooted_files
from idumb.system.rooted_files import LinkInTheWay

LARGEST = 256 * 1024 * 1024  # bytes of a file that is read as a whole


class FileProblem(Exception):
    """A file could not be read or written; the message is for the user."""


class WorkspaceFiles:
    """The files below `root`, an absolute path. Paths are relative, use `/`, and have already been checked as text."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._root)

    def read(self, path: str) -> bytes:
        """Return the bytes of a regular file. Raises FileProblem if it is larger than `LARGEST`."""
        data, size = self.head(path, LARGEST + 1)
        if max(len(data), size) > LARGEST:
            raise FileProblem(f"{path} is larger than {LARGEST} bytes")
        return data

    def head(self, path: str, most: int) -> tuple[bytes, int]:
        """Return (at most `most` first bytes of a regular file, its size)."""
        with _described(path), self._parent(path) as (folder, name):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    raise FileProblem(f"{path} is not a regular file")
                with open(handle, "rb", closefd=False) as stream:
                    return stream.read(most), status.st_size
            finally:
                os.close(handle)

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        """Replace or create a file. Without `mode` an existing file keeps its own and a new one gets 0o644.

        A symbolic link at `path` is replaced by the file, never followed.
        """
        with _described(path), self._parent(path, make=True) as (folder, name):
            status = _status(folder, name)
            if status is not None and not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                raise FileProblem(f"{path} is a folder or a special file")
            if mode is None:
                mode = stat.S_IMODE(status.st_mode) & 0o777 if status and stat.S_ISREG(status.st_mode) else 0o644
            atomic_write.write_at(folder, name, data, durable=False, mode=mode)

    def delete(self, path: str) -> None:
        """Remove a file or a symbolic link and then, like git, the parent folders that are empty."""
        with _described(path), self._parent(path) as (folder, name):
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                raise FileProblem(f"{path} is a folder; delete_file deletes only files")
            os.unlink(name, dir_fd=folder)
        self._prune(path)

    def move(self, source: str, target: str) -> None:
        """Rename a file or a symbolic link; never overwrite an existing `target`."""
        with (
            _described(source),
            self._parent(source) as (from_folder, from_name),
            self._parent(target, make=True) as (to_folder, to_name),
        ):
            if stat.S_ISDIR(os.lstat(from_name, dir_fd=from_folder).st_mode):
                raise FileProblem(f"{source} is a folder; move_file moves only files")
            if _status(to_folder, to_name) is not None and not self._same(source, target):
                raise FileProblem(f"{target} already exists")
            os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
        self._prune(source)

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents if they are missing."""
        path = path.rstrip("/")
        with _described(path), self._parent(f"{path}/.", make=True):
            pass

    def _prune(self, path: str) -> None:
        """Remove empty parents. Git's trees have no empty folders, and a leftover folder could block a file."""
        parts = path.split("/")[:-1]
        with contextlib.suppress(OSError, FileProblem):
            while parts:
                with self._parent("/".join(parts)) as (folder, name):
                    os.rmdir(name, dir_fd=folder)
                parts.pop()

    def _same(self, source: str, target: str) -> bool:
        # On a case-insensitive file system, `a` and `A` are one file and can be renamed into each other.
        with self._parent(source) as (a, name), self._parent(target) as (b, other):
            src, dst = os.lstat(name, dir_fd=a), os.lstat(other, dir_fd=b)
            return (src.st_dev, src.st_ino) == (dst.st_dev, dst.st_ino) and source.casefold() == target.casefold()

    @contextlib.contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Return a descriptor of the folder that contains `path`, and the last part of the path."""
        *parts, name = path.split("/")
        folder = rooted_files.open_folder(self._root, parts, path, create=make)
        try:
            yield folder, name
        finally:
            os.close(folder)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _described(path: str) -> Iterator[None]:
    """Turn system errors into messages about `path`."""
    try:
        yield
    except FileNotFoundError:
        raise FileProblem(f"{path} does not exist") from None
    except LinkInTheWay as link:
        words = f"{link.filename}: {link.part} is a symbolic link or not a folder; idumb does not follow it"
        raise FileProblem(words) from None
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise FileProblem(f"{path} is a symbolic link; idumb does not follow it") from None
        raise FileProblem(f"{path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise FileProblem(f"{path!r}: {problem}") from problem
