"""Reads files that commands name, attempts depend on or programs write. No read blocks, whatever is at the path."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from idumb.system import clock, shipped

ROLES = ("builder", "validator")

_LONGEST = 4096


class LocalToolchain:
    """What attempts depend on and no plan names. Every call reads it again.

    `git` finds the git program, `git_version` runs it.
    """

    def __init__(self, git: Callable[[], str], git_version: Callable[[], str]) -> None:
        self._git = git
        self._git_version = git_version

    def files(self) -> tuple[str, ...]:
        """Absolute paths of the files that `template` and `versions` depend on."""
        return (self._git(), *(shipped.path(f"prompts/{role}.md") for role in ROLES))

    def template(self, name: str) -> str:
        """The text of a shipped prompt template."""
        return shipped.template(f"prompts/{name}.md")

    def versions(self) -> Mapping[str, str]:
        """Program name to version text."""
        import platform

        return {"python": platform.python_version(), "git": self._git_version()}


class NamedFiles:
    """Files of the working tree at `root` that commands name."""

    def __init__(self, root: str) -> None:
        self._root = root

    def digests(self, paths: Iterable[str]) -> Mapping[str, str]:
        """SHA-256 of each path that is a file, following links; other paths are omitted."""
        pairs = ((path, _digest(os.path.join(self._root, path))) for path in paths)
        return {path: digest for path, digest in pairs if digest is not None}

    def signature(self, paths: Iterable[str]) -> str | None:
        """Return a fingerprint of type, size, inode and times of each path; None if one changed within a clock tick."""
        now = clock.nanoseconds()
        digest = hashlib.sha256()
        for path in paths:
            try:
                status = os.stat(os.path.join(self._root, path))
            except OSError:
                digest.update(f"{path}\0-\0".encode("utf-8", "surrogateescape"))
                continue
            if max(status.st_ctime_ns, status.st_mtime_ns) > now - clock.TICK:
                return None
            facts = (*status[:7], status.st_mtime_ns, status.st_ctime_ns)  # from the mode to the size
            digest.update(f"{path}\0{facts}\0".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def existing(self, paths: Iterable[str]) -> frozenset[str]:
        """The paths that exist, including broken links."""
        return frozenset(path for path in paths if os.path.lexists(os.path.join(self._root, path)))

    def programs(self, names: Iterable[str]) -> Mapping[str, str]:
        """The absolute path, by name, of each program that can start and is outside the root."""
        import shutil  # it loads all compressors

        root = os.path.realpath(self._root) + os.sep
        places = {name: shutil.which(name) for name in names if "/" not in name or os.path.isabs(name)}
        programs = {name: os.path.abspath(place) for name, place in places.items() if place is not None}
        inside = {
            place for place in programs.values() if place.startswith(root) or os.path.realpath(place).startswith(root)
        }
        return {name: place for name, place in programs.items() if place not in inside}

    def startable(self, programs: Iterable[str]) -> frozenset[str]:
        """The programs that can start: names on PATH, and paths of executables relative to the root."""
        import shutil

        placed = ((name, os.path.join(self._root, name) if "/" in name else name) for name in programs)
        return frozenset(name for name, place in placed if shutil.which(place) is not None)

    def links(self, folders: Iterable[str]) -> Mapping[str, str]:
        """Folders that are or are below a link, and their targets: relative to the root, or absolute if outside."""
        root = os.path.realpath(self._root)
        possible = (folder for folder in folders if len(folder) < _LONGEST)  # nothing exists at a longer path
        real = {folder: os.path.realpath(os.path.join(root, folder)) for folder in possible}
        behind = {folder: place for folder, place in real.items() if place != os.path.normpath(f"{root}/{folder}")}
        return {folder: _place_of(place, root) for folder, place in behind.items()}


def _place_of(real: str, root: str) -> str:
    if real == root:
        return ""
    inside = real.startswith(root.rstrip("/") + "/")
    return os.path.relpath(real, root) if inside else real


def _digest(path: str) -> str | None:
    """Return the file's SHA-256; None if it is not a regular file or cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError):
        return None


def read(path: str, most: int, *, links: bool = True) -> bytes:
    """Return the first `most` bytes of a regular file. Raises OSError otherwise, and for a link without `links`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device", path)
    with open(descriptor, "rb") as stream:
        return stream.read(most)


def read_object(path: str, most: int = 64 * 1024 * 1024, *, links: bool = True) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if there is none, or it is larger than `most` bytes."""
    import json

    try:
        data = read(path, most + 1, links=links)
        value = json.loads(data) if len(data) <= most else None
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
