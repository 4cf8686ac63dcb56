"""Files of agent hosts, below one root and never through a link. Records which folders it created, for removal."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterable

from idumb.system.files import atomic_write, user_folders
from idumb.system.files.report_files import FileReports, LinkInTheWay

_MOST = 10_000


class HostFiles:
    """Files of agent hosts below one root, without following links. A failed write raises OSError.

    Paths are relative to `root`, with `/`.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._files = FileReports(root)

    def read(self, path: str) -> str | None:
        """Return the text; None if there is no file, "" if it is unreadable and must not be replaced.

        Raises LinkInTheWay if a parent folder is a link.
        """
        try:
            text = self._files.read(path)
        except LinkInTheWay:
            if self._through_link(path.rpartition("/")[0]):
                raise
            text = None
        except OSError:
            text = None
        return "" if text is None and self._is_there(path) else text

    def prepare(self, paths: Iterable[str]) -> None:
        """Record the folders to create; nothing is written before that succeeds."""
        if not os.path.isdir(self._root) and os.path.lexists(self._root):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self._root)
        self._remember(created=[folder for path in paths for folder in self._missing(path)])

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders."""
        os.makedirs(self._root, exist_ok=True)
        self._files.write(path, text)

    def remove(self, path: str) -> None:
        self._files.remove(path)

    def below(self, folder: str, depth: int) -> tuple[str, ...]:
        """Return names of files in a folder, or with `depth` 1 in its subfolders; links are not followed."""
        names = []
        for name in self._names(folder):
            if depth:
                names += [f"{name}/{below}" for below in self._names(f"{folder}/{name}")]
            else:
                names.append(name)
        return tuple(names)

    def clear_folders(self) -> None:
        """Remove the folders that `write` created if they are empty, deepest first."""
        removed = []
        for folder in sorted(self._created_folders(), key=lambda path: path.count("/"), reverse=True):
            with contextlib.suppress(OSError):
                if not self._through_link(folder):
                    os.rmdir(os.path.join(self._root, folder))
            if not os.path.lexists(os.path.join(self._root, folder)):
                removed.append(folder)
        self._remember(removed=removed)

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

    def _missing(self, path: str) -> list[str]:
        parts = path.split("/")[:-1]
        folders = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        return [folder for folder in folders if not os.path.lexists(os.path.join(self._root, folder))]

    def _record(self) -> str:
        name = hashlib.sha256(os.fsencode(os.path.realpath(self._root))).hexdigest()[:32]
        return os.path.join(user_folders.path(), "hosts", f"{name}.json")

    def _created_folders(self) -> list[str]:
        """Return the folders that idumb created; none if the record is missing or damaged, so that each stays."""
        try:
            with open(self._record(), encoding="utf-8") as stream:
                record = json.load(stream)
            folders = record["folders"]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        return [f for f in folders if isinstance(f, str) and ".." not in f.split("/") and not f.startswith("/")]

    def _remember(self, created: list[str] | None = None, removed: list[str] | None = None) -> None:
        before = self._created_folders()
        after = [folder for folder in dict.fromkeys([*before, *(created or ())]) if folder not in (removed or ())]
        if after == before:
            return
        if not after:
            self._forget()
            return
        user_folders.prepare("hosts")
        data = json.dumps({"root": self._root, "folders": after}, indent=1)
        atomic_write.write(self._record(), data.encode("utf-8", "surrogateescape"), durable=False, mode=0o600)

    def _forget(self) -> None:
        """Remove the record when no created folder is left."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._record())
        with contextlib.suppress(OSError):  # records of other places may exist
            os.rmdir(os.path.dirname(self._record()))


def user_root(variable: str | None, path: str) -> tuple[str, str]:
    """Return (root, folder below it) of a user's host folder; `variable` replaces the first part of `path`.

    A value that is not an absolute path is ignored.
    """
    home = os.path.expanduser("~")
    folder = os.environ.get(variable, "") if variable else ""
    rest = path.partition("/")[2]
    return (folder, rest) if os.path.isabs(folder) else (home, path)
