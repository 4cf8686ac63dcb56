"""Files of a workspace, below one folder, so that no symbolic link can redirect a write.

Writes are atomic but not forced to disk: the snapshot that follows is the durable copy.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Self

from idumb.system import atomic_write
from idumb.system.atomic_write import status_at
from idumb.system.rooted_files import LinkInTheWay, RootedFiles

LARGEST = 256 * 1024 * 1024  # bytes of a file that is read as a whole


class FileProblem(Exception):
    """A file could not be read or written; the message is for the user."""


class WorkspaceFiles(RootedFiles):
    """The files below a root that is opened once: it stays the same folder, whatever a program puts at its path."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._opened = super()._open_root()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._opened)

    def read(self, path: str) -> bytes:
        """Return the bytes of a regular file. Raises FileProblem if it is larger than `LARGEST`."""
        data, size = self.beginning(path, LARGEST + 1)
        if max(len(data), size) > LARGEST:
            raise FileProblem(f"{path} is larger than {LARGEST} bytes")
        return data

    def beginning(self, path: str, most: int) -> tuple[bytes, int]:
        """Return (at most `most` first bytes of a regular file, its size)."""
        with _described(path):
            data, status = self.head(path, most)
        if not stat.S_ISREG(status.st_mode):
            raise FileProblem(f"{path} is not a regular file")
        return data, status.st_size

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        """Replace or create a file. Without `mode` an existing file keeps its own and a new one gets 0o644.

        A symbolic link at `path` is replaced by the file, never followed.
        """
        with _described(path), self._parent(path, create=True) as (folder, name):
            status = status_at(folder, name)
            is_file = status is not None and stat.S_ISREG(status.st_mode)
            if status is not None and not is_file and not stat.S_ISLNK(status.st_mode):
                raise FileProblem(f"{path} is a folder or a special file")
            if mode is None:
                mode = status.st_mode & 0o777 if status is not None and is_file else 0o644
            atomic_write.write_at(folder, name, data, durable=False, mode=mode)

    def delete(self, path: str) -> None:
        """Remove a file or a symbolic link and then, like git, the parent folders that are empty."""
        with _described(path), self._parent(path) as (folder, name):
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                raise FileProblem(f"{path} is a folder; delete_file deletes only files")
            os.unlink(name, dir_fd=folder)
        self.remove_empty_above(path)

    def move(self, source: str, target: str) -> None:
        """Rename a file or a symbolic link; never overwrite an existing `target`."""
        with (
            _described(source),
            self._parent(source) as (from_folder, from_name),
            self._parent(target, create=True) as (to_folder, to_name),
        ):
            moved, present = os.lstat(from_name, dir_fd=from_folder), status_at(to_folder, to_name)
            if stat.S_ISDIR(moved.st_mode):
                raise FileProblem(f"{source} is a folder; move_file moves only files")
            # On a case-insensitive file system, `a` and `A` are one file and can be renamed into each other.
            is_renaming = source.casefold() == target.casefold()
            if present is not None and not (is_renaming and os.path.samestat(moved, present)):
                raise FileProblem(f"{target} already exists")
            os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
        self.remove_empty_above(source)

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents if they are missing."""
        with _described(path), self._parent(f"{path.rstrip('/')}/*", create=True):
            pass

    def _open_root(self) -> int:
        return os.dup(self._opened)


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
    except IsADirectoryError:
        raise FileProblem(f"{path} is not a regular file") from None
    except OSError as problem:
        raise FileProblem(f"{path}: {problem.strerror}") from problem
    except ValueError as problem:
        raise FileProblem(f"{path!r}: {problem}") from problem
