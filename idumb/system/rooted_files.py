"""Files below one root and never through a link, so no plan can write outside: reports, and those of agent hosts."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence

from idumb.system import atomic_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from idumb.system.redaction import Redactor

_MOST = 10_000
_LARGEST = 64 * 1024 * 1024  # bytes; no report is that large, and a repository may contain a file of any size


class LinkInTheWay(OSError):
    """A part of the path is a link or not a folder. `filename` is the requested path."""

    def __init__(self, path: str, part: str) -> None:
        super().__init__(
            errno.ELOOP, f"`{part}` is a link or not a folder; idumb does not follow links to its own files", path
        )
        self.part = part


class FileReports:
    """Files in `.idumb/brain/` and the phase folder, which can be rebuilt from the log.

    Paths are relative to `root`, with `/`; text is UTF-8 with surrogate escapes. The files are renamed into
    place without being forced to disk. `guard` is called before each change and raises if this process must no longer
    write. `redactor` removes known secrets from a report.
    """

    def __init__(
        self, root: str, guard: Callable[[], None] = lambda: None, redactor: Callable[[], Redactor] | None = None
    ) -> None:
        self._root = root
        self._guard = guard
        self._redactor = redactor

    def write(self, path: str, text: str) -> None:
        """Write atomically, create folders and redact secrets. Refuses links that lead out of the repository."""
        self.write_source(path, text if self._redactor is None else self._redactor().redact(text))

    def write_source(self, path: str, text: str) -> None:
        """Write without redaction: a plan, whose commands run, or another file of the user."""
        self._guard()
        data = text.encode("utf-8", "surrogateescape")
        try:
            with self._parent(path, create=True) as (folder, name):
                atomic_write.write_at(folder, name, data, durable=False, look=self._guard)
        except LinkInTheWay:
            raise
        except OSError as problem:
            problem.filename, problem.filename2 = os.path.join(self._root, path), None
            raise

    def remove(self, path: str) -> None:
        """Remove a file; a missing file is not an error."""
        self._guard()
        with contextlib.suppress(FileNotFoundError), self._parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def exists(self, path: str) -> bool:
        """Return whether a regular file exists; the target of a link does not count."""
        import stat

        try:
            with self._parent(path) as (folder, name):
                return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError:
            return False

    def read(self, path: str) -> str | None:
        """Return the text; None if the file is missing or too large. Raises LinkInTheWay for a link."""
        try:
            with self._parent(path) as (folder, name):
                return _read(folder, name, path)
        except FileNotFoundError:
            return None

    def files(self, folder: str) -> tuple[str, ...]:
        """Return every regular file below `folder`, sorted, without following links."""
        import stat

        top = os.path.join(self._root, *_parts(folder))
        paths: list[str] = []
        for here, _, names in os.walk(top) if not os.path.islink(top) else ():
            below = os.path.relpath(here, self._root).replace(os.sep, "/")
            for name in names:
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(os.lstat(os.path.join(here, name)).st_mode):
                        paths.append(f"{below}/{name}")
        return tuple(sorted(paths))

    @contextlib.contextmanager
    def _parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder that contains `path`, opened without following links, and the last name."""
        *parts, name = _parts(path)
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            folder = open_folder(root, parts, path, create=create)
        finally:
            os.close(root)
        try:
            yield folder, name
        finally:
            os.close(folder)


class HostFiles(FileReports):
    """Files of agent hosts below one root, without following links. A failed write raises OSError."""

    def read(self, path: str) -> str | None:
        """Return the text; None if there is no file, "" if it is unreadable and must not be replaced.

        Raises LinkInTheWay if a parent folder is a link.
        """
        try:
            text = super().read(path)
        except LinkInTheWay:
            if self._through_link(path.rpartition("/")[0]):
                raise
            text = None
        except OSError:
            text = None
        return "" if text is None and self._is_there(path) else text

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders."""
        try:
            os.makedirs(self._root, exist_ok=True)
        except FileExistsError as problem:
            raise NotADirectoryError(errno.ENOTDIR, f"{self._root} is not a folder") from problem
        super().write(path, text)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders above it that are empty then."""
        super().remove(path)
        while (path := path.rpartition("/")[0]) and not self._through_link(path):
            try:
                os.rmdir(os.path.join(self._root, path))
            except OSError:  # something else is in it
                return

    def below(self, folder: str, depth: int) -> tuple[str, ...]:
        """Return names of files in a folder, or with `depth` 1 in its subfolders; links are not followed."""
        names = []
        for name in self._names(folder):
            if depth:
                names += [f"{name}/{below}" for below in self._names(f"{folder}/{name}")]
            else:
                names.append(name)
        return tuple(names)

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self._root, path))

    def _names(self, folder: str) -> list[str]:
        if self._through_link(folder):
            return []
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            return sorted(os.listdir(os.path.join(self._root, folder)))[:_MOST]
        return []

    def _through_link(self, path: str) -> bool:
        parts = path.split("/")
        places = ("/".join(parts[: n + 1]) for n in range(len(parts)))
        return any(os.path.islink(os.path.join(self._root, place)) for place in places)


def user_root(variable: str | None, path: str) -> tuple[str, str]:
    """Return (root, folder below it) of a user's host folder; `variable` replaces the first part of `path`.

    A value that is not an absolute path is ignored.
    """
    home = os.path.expanduser("~")
    folder = os.environ.get(variable, "") if variable else ""
    rest = path.partition("/")[2]
    return (folder, rest) if os.path.isabs(folder) else (home, path)


def open_folder(root: int, parts: Sequence[str], path: str, *, create: bool = False) -> int:
    """Return a descriptor of the folder `parts` below a descriptor. Raises LinkInTheWay with the whole `path`."""
    try:
        return atomic_write.open_folder(root, parts, set() if create else None)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
            raise LinkInTheWay(path, str(error.filename)) from error
        raise


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in path:
        raise OSError(errno.EINVAL, "not a path in the repository", path)
    return parts


def _read(folder: int, name: str, path: str) -> str | None:
    try:
        # O_NONBLOCK: a pipe of that name must not block a reading command.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkInTheWay(path, name) from error
        raise
    # `open` refuses a folder of that name and leaves the descriptor to its caller.
    try:
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(_LARGEST + 1)
        return data.decode("utf-8", "surrogateescape") if len(data) <= _LARGEST else None
    finally:
        os.close(descriptor)
