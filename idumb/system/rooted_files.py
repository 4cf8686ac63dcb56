"""Files below one root and never through a link, so no plan can write outside: reports, and those of agent hosts."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

from idumb.system import atomic_write
from idumb.system.private_folders import closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from idumb.system.redaction import Redactor

_LARGEST = 64 * 1024 * 1024  # bytes; no report is that large, and a repository may contain a file of any size


class LinkInTheWay(OSError):
    """A part of the path is a link or not a folder. `filename` is the requested path."""

    def __init__(self, path: str, part: str) -> None:
        super().__init__(
            errno.ELOOP, f"`{part}` is a link or not a folder; idumb does not follow links to its own files", path
        )
        self.part = part


class RootedFiles:
    """Files below `root`, an absolute path. Paths are relative to it, with `/`.

    Each part of a path is opened relative to its parent without following a link, and the operation uses the same
    descriptor, so the checked file is the one that is read or changed.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def status(self, path: str) -> os.stat_result | None:
        """Return what is at a path itself; None if nothing is there, or if a link or a file is in the way."""
        try:
            with self._parent(path) as (folder, name):
                return atomic_write.status_at(folder, name)
        except (FileNotFoundError, LinkInTheWay):
            return None

    def head(self, path: str, most: int) -> tuple[bytes, os.stat_result]:
        """Return at most `most` first bytes of a regular file, and its status. Other files have none; none blocks.

        Raises OSError for a folder, LinkInTheWay for a link.
        """
        with self._parent(path) as (folder, name):
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise LinkInTheWay(path, name) from error
                raise
        # `open` refuses a folder of that name and leaves the descriptor to its caller.
        with closing(descriptor), open(descriptor, "rb", closefd=False) as stream:
            status = os.fstat(descriptor)
            return stream.read(most) if stat.S_ISREG(status.st_mode) else b"", status

    def remove_empty_above(self, path: str) -> None:
        """Remove the folders above a path that are empty, as git does: one that is left could block a file."""
        with contextlib.suppress(OSError):
            while path := path.rpartition("/")[0]:
                with self._parent(path) as (folder, name):
                    os.rmdir(name, dir_fd=folder)

    @contextlib.contextmanager
    def _parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder that contains `path`, and the last name."""
        *parts, name = path.split("/")
        if not {"", ".", ".."}.isdisjoint((*parts, name)) or "\0" in path:
            raise OSError(errno.EINVAL, "not a path in the repository", path)
        with closing(self._open_root()) as root:
            try:
                folder = atomic_write.open_folder(root, parts, set() if create else None)
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENOTDIR}:
                    raise LinkInTheWay(path, str(error.filename)) from error
                raise
        with closing(folder):
            yield folder, name

    def _open_root(self) -> int:
        return os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class ProjectFiles(RootedFiles):
    """The files of a project: what idumb writes for people, such as reports, and what it reads of theirs.

    Text is UTF-8 with surrogate escapes. The files are renamed into place without being forced to disk. `guard` is
    called before each change and raises if this process must no longer write. `redactor` removes known secrets from a
    report.
    """

    def __init__(
        self, root: str, guard: Callable[[], None] = lambda: None, redactor: Callable[[], Redactor] | None = None
    ) -> None:
        super().__init__(root)
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
        with contextlib.suppress(OSError):
            status = self.status(path)
            return status is not None and stat.S_ISREG(status.st_mode)
        return False

    def read(self, path: str) -> str | None:
        """Return the text; None if the file is missing or too large. Raises LinkInTheWay for a link."""
        try:
            data, _ = self.head(path, _LARGEST + 1)
        except FileNotFoundError:
            return None
        return data.decode("utf-8", "surrogateescape") if len(data) <= _LARGEST else None

    def below(self, folder: str) -> tuple[str, ...]:
        """Return every regular file below `folder`, sorted, without following links."""
        top = os.path.join(self._root, folder)
        paths: list[str] = []
        for here, _, names in os.walk(top) if not os.path.islink(top) else ():
            below = os.path.relpath(here, self._root)
            paths += [path for name in names if self.exists(path := f"{below}/{name}")]
        return tuple(sorted(paths))


class HostFiles(ProjectFiles):
    """Files of agent hosts below one root. A failed write raises OSError."""

    def read(self, path: str) -> str | None:
        """Return the text; None if there is no file, "" if it is unreadable and must not be replaced.

        Raises LinkInTheWay if a parent folder is a link.
        """
        with contextlib.suppress(FileNotFoundError), self._parent(path):
            pass
        try:
            text = super().read(path)
        except OSError:
            text = None
        return "" if text is None and self.status(path) is not None else text

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders."""
        os.makedirs(self._root, exist_ok=True)
        super().write(path, text)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders above it that are empty then."""
        super().remove(path)
        self.remove_empty_above(path)


def user_root(variable: str | None, path: str) -> tuple[str, str]:
    """Return (root, folder below it) of a user's host folder; `variable` replaces the first part of `path`.

    A value that is not an absolute path is ignored.
    """
    home = os.path.expanduser("~")
    folder = os.environ.get(variable, "") if variable else ""
    rest = path.partition("/")[2]
    return (folder, rest) if os.path.isabs(folder) else (home, path)
