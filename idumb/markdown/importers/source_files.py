"""The files of another tool's plan: one file with its neighbours, or those of a folder."""

from __future__ import annotations

import glob
import os
import posixpath
from collections import UserDict
from collections.abc import Callable, Iterator

from idumb.domain.errors import InputError

_BESIDE = ("proposal.md", "*SUMMARY.md", "tasks/**/*.md", "*.jsonl", "../*.jsonl", "config.y*ml", "../config.y*ml")
LARGEST = 32 * 1024 * 1024
"""Bytes of a file. A plan cannot be larger either."""


class SourceFiles(UserDict[str, str]):
    """The texts by name, "" for the file itself. A file is read when it is asked for, and as a whole.

    `read` returns the bytes of a file, or at least one more than `LARGEST`. A file that is larger is refused with
    InputError `import.unreadable`: a part of it would be imported as the whole. Raises OSError if a folder cannot be
    listed.
    """

    def __init__(self, root: str, path: str, read: Callable[[str], bytes]) -> None:
        super().__init__()
        self._read = read
        whole = os.path.join(root, path)
        folder = path if os.path.isdir(whole) else posixpath.dirname(path)
        names = _below(whole) if os.path.isdir(whole) else _neighbours(os.path.join(root, folder) if folder else root)
        self.data = {name: posixpath.join(folder, name) for name in names}
        self.data |= {} if os.path.isdir(whole) else {"": path}

    def __getitem__(self, name: str) -> str:
        path = self.data[name]
        data = self._read(path)
        if len(data) > LARGEST:
            message = f"{path} is larger than {LARGEST >> 20} MiB."
            raise InputError("import.unreadable", message, hint="Split it, and import the part with the tasks")
        return data.decode("utf-8", "surrogateescape")


def _below(whole: str) -> Iterator[str]:
    """Yield the names of the files below a folder that a tool may write, without hidden folders."""
    for folder, folders, names in os.walk(whole, onerror=_fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = os.path.relpath(folder, whole).replace(os.sep, "/")
        for name in sorted(names):
            if name.endswith((".md", ".json", ".jsonl", ".yml", ".yaml")):
                yield name if below == "." else f"{below}/{name}"
    yield from glob.glob("../config.y*ml", root_dir=whole)


def _neighbours(folder: str) -> Iterator[str]:
    """Yield the names of the files beside one that say more about its plan."""
    for pattern in _BESIDE:
        yield from sorted(glob.glob(pattern, root_dir=folder, recursive=True))


def _fail(problem: OSError) -> None:
    raise problem
