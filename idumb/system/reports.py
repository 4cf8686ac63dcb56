"""Reports: files below the repository's root, never through a link, so that no plan can make one lead outside."""

from __future__ import annotations

import contextlib
import errno
import os

from idumb.system import atomic


class LinkInTheWay(OSError):
    """A part of the path is a link or no folder. `filename` is the path as it was asked for."""

    def __init__(self, path: str, part: str) -> None:
        super().__init__(errno.ELOOP, f"`{part}` is a link or no folder; reports go to real folders only", path)


class FileReports:
    """Implements the port `Reports`. Paths are relative to `root`, with `/`; text is UTF-8 with surrogate escapes.

    Reports are projections, so they are renamed into place without being forced to disk.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def write(self, path: str, text: str) -> None:
        folder = self._open_folder(path, create=True)
        try:
            atomic.write_at(folder, _name(path), text.encode("utf-8", "surrogateescape"), durable=False)
        finally:
            os.close(folder)

    def remove(self, path: str) -> None:
        """A file that is missing already is no problem."""
        try:
            folder = self._open_folder(path)
        except FileNotFoundError:
            return
        try:
            os.unlink(_name(path), dir_fd=folder)
        except FileNotFoundError:
            pass
        finally:
            os.close(folder)

    def exists(self, path: str) -> bool:
        """Whether there is a regular file; what a link leads to does not count."""
        import stat

        try:
            folder = self._open_folder(path)
        except OSError:
            return False
        try:
            return stat.S_ISREG(os.stat(_name(path), dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False
        finally:
            os.close(folder)

    def read(self, path: str) -> str | None:
        """None when there is no such file; LinkInTheWay when it is a link."""
        try:
            folder = self._open_folder(path)
        except FileNotFoundError:
            return None
        try:
            return _read(folder, path)
        finally:
            os.close(folder)

    def _open_folder(self, path: str, *, create: bool = False) -> int:
        """A descriptor of the folder that holds `path`, reached step by step without following any link."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        for part in _parts(path)[:-1]:
            try:
                below = _enter(descriptor, part, path, create=create)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in path:
        raise OSError(errno.EINVAL, "not a path below the repository", path)
    return parts


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _enter(folder: int, part: str, path: str, *, create: bool) -> int:
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=folder)
    try:
        return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise LinkInTheWay(path, part) from error
        raise


def _read(folder: int, path: str) -> str | None:
    try:
        # O_NONBLOCK: a pipe of that name must not hang a reading command.
        descriptor = os.open(_name(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkInTheWay(path, _name(path)) from error
        raise
    # A folder of that name is refused by `open`, which then leaves the descriptor to its caller.
    try:
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read().decode("utf-8", "surrogateescape")
    finally:
        os.close(descriptor)
