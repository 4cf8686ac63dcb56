"""Stores bytes that are about to be replaced, below the folder of idumb's own state. Nothing is ever removed."""

from __future__ import annotations

import os

from idumb.system.files import atomic_write, named_files, private_folders


class FileBackupStore:
    """Keeps replaced files in idumb's folder in the git folder. Identical content is stored once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def keep(self, kind: str, name: str, data: bytes) -> str:
        """Store `data` durably and return its path. `name` is relative, with `/`."""
        if os.path.isabs(name) or ".." in name.split("/"):
            raise ValueError(f"not a name below a folder: {name}")
        target = os.path.join(self._folder, kind, *name.split("/"))
        private_folders.make(os.path.dirname(target))
        for number in range(1, 10_000):
            path = target if number == 1 else f"{target}~{number}"
            if not os.path.lexists(path):
                atomic_write.write(path, data, mode=0o600)
                _sync_above(path, self._folder)
                return path
            if _is(path, data):
                return path
        raise FileExistsError(target)

    def put(self, kind: str, path: str) -> str:
        """Move a file or folder here, within one file system, and return its new path."""
        folder = os.path.join(self._folder, kind)
        private_folders.make(folder)
        name = os.path.join(folder, os.path.basename(path))
        target = atomic_write.free_name(name, first=name)
        os.rename(path, target)
        atomic_write.sync_folder(folder)
        return target


def _is(path: str, data: bytes) -> bool:
    try:
        return named_files.read(path, len(data) + 1, links=False) == data
    except OSError:
        return False


def _sync_above(path: str, top: str) -> None:
    """Force the entries of new folders to disk."""
    folder = os.path.dirname(os.path.dirname(path))
    while len(folder) >= len(top):
        atomic_write.sync_folder(folder)
        folder = os.path.dirname(folder)
