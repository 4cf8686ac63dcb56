"""Files of agent hosts, below one root and never through a link."""

from __future__ import annotations

import contextlib
import errno
import os

from idumb.system.files.report_files import FileReports, LinkInTheWay

_MOST = 10_000


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
