"""The files of another tool's plan: one file with its neighbours, or the Markdown and JSON files of a folder."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping

from idumb.domain.errors import InputError

LARGEST = 32 * 1024 * 1024
"""Bytes of a file. A plan cannot be larger either."""


class SourceFiles(Mapping[str, str]):
    """The texts by name, "" for the file itself. A file is read when it is asked for, once and as a whole.

    `read` returns the bytes of a file, or at least one more than `LARGEST`. A file that is larger is refused with
    InputError `import.unreadable`: a part of it would be imported as the whole, and written back as the whole. Raises
    OSError if a folder cannot be listed.
    """

    def __init__(self, root: str, path: str, read: Callable[[str], bytes]) -> None:
        self._read = read
        whole = os.path.join(root, path)
        if os.path.isdir(whole):
            self._paths = {name: posixpath.join(path, name) for name in _below(whole)}
        else:
            above = posixpath.dirname(path)
            near = _neighbours(os.path.join(root, above) if above else root)
            self._paths = {"": path, **{name: posixpath.join(above, name) for name in near}}
        self._texts: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = self._text(self._paths[name])
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def _text(self, path: str) -> str:
        data = self._read(path)
        if len(data) > LARGEST:
            message = f"{path} is larger than {LARGEST >> 20} MiB."
            raise InputError("import.unreadable", message, hint="Split it, and import the part with the tasks")
        return data.decode("utf-8", "surrogateescape")


def _below(whole: str) -> Iterator[str]:
    """Yield the names of Markdown and JSON files below a folder, without hidden folders."""
    for folder, folders, names in os.walk(whole, onerror=_fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = os.path.relpath(folder, whole).replace(os.sep, "/")
        for name in sorted(names):
            if name.endswith((".md", ".json")):
                yield name if below == "." else f"{below}/{name}"


def _neighbours(folder: str) -> Iterator[str]:
    """Yield the names beside a file that some tools divide a plan into."""
    if os.path.isfile(os.path.join(folder, "proposal.md")):
        yield "proposal.md"
    try:
        names = sorted(os.listdir(os.path.join(folder, "tasks")))
    except OSError:
        names = []
    yield from (f"tasks/{name}" for name in names if name.endswith(".md"))


def _fail(problem: OSError) -> None:
    raise problem
