"""Copies of the user's folders and files that stay with a working tree and follow the originals by the difference."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator

from idumb.system import clock
from idumb.system.files import private_folders
from idumb.system.files.stamps import Stamp, facts

MOST_BYTES = 1 << 30
MOST_ENTRIES = 100_000
_CLONE = 0x40049409
"""The request FICLONE of Linux."""
_PROGRAMS = "bin/"
_PROGRAM_SIZE = 1 << 16
_VENV = "pyvenv.cfg"


def is_small(source: str, room: int) -> bool:
    """Return whether a path has few enough entries and bytes for a copy, where `room` bytes are free."""
    entries = size = 0
    for _, status in walk(source):
        entries, size = entries + 1, size + status.st_size
        if entries > MOST_ENTRIES or size > min(MOST_BYTES, room):
            return False
    return True


class PathCopies:
    """The copies in one working tree: each knows what it copied, and so what either side changed since.

    A link that leads out of `user`, the working tree of the originals, becomes absolute; any other becomes relative, so
    that it leads to the copy.
    """

    def __init__(self, user: str) -> None:
        self._user = os.path.realpath(user)
        self._copied: dict[str, dict[str, tuple[Stamp, Stamp]]] = {}

    @property
    def places(self) -> frozenset[str]:
        return frozenset(self._copied)

    def bring(self, source: str, target: str) -> None:
        """Make `target` what `source` is. Sockets and pipes are omitted."""
        before = self._copied.get(target, {})
        if target not in self._copied and os.path.lexists(target):
            private_folders.remove_tree(target)
        copied: dict[str, tuple[Stamp, Stamp]] = {}
        names: dict[str, set[str]] = {}
        environment = os.path.isfile(os.path.join(source, _VENV))
        for path, status in walk(source):
            place = os.path.join(target, path) if path else target
            own, present = Stamp(*facts(status)), _present(place)
            if path:
                above, _, name = path.rpartition("/")
                names[above].add(name)
            if stat.S_ISDIR(status.st_mode):
                names[path] = set()
                if present is None or not stat.S_ISDIR(present.mode):
                    private_folders.remove_tree(place)
                    os.mkdir(place)
                os.chmod(place, stat.S_IMODE(status.st_mode) | 0o700)
            elif present is None or before.get(path) != (own, present):
                if present is not None:
                    private_folders.remove_tree(place)
                is_program = environment and path.startswith(_PROGRAMS) and status.st_size < _PROGRAM_SIZE
                original = os.path.join(source, path) if path else source
                # It was just removed, or the user may not read it.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    self._copy(original, place, (source, target) if is_program else None)
                    copied[path] = own, Stamp(*facts(os.lstat(place)))
            else:
                copied[path] = before[path]
        _remove_others(target, names)
        # A check could change a copy within the same tick of the clock, so the youngest are copied again.
        newest = max((present.ctime for _, present in copied.values()), default=0) - clock.TICK
        self._copied[target] = {path: pair for path, pair in copied.items() if pair[1].ctime < newest}

    def remove(self, target: str) -> None:
        self._copied.pop(target, None)
        private_folders.remove_tree(target)

    def forget(self) -> None:
        """Treat every copy as gone."""
        self._copied.clear()

    def _is_inside(self, place: str) -> bool:
        return f"{place}/".startswith(f"{self._user}/")

    def _copy(self, source: str, target: str, moved: tuple[str, str] | None) -> None:
        """Copy a file or a link. `moved`: a program of a virtual environment, which names the folder where it is."""
        if os.path.islink(source):
            text = os.readlink(source)
            folder = os.path.realpath(os.path.dirname(source))
            leads_to = os.path.normpath(os.path.join(folder, text))
            if os.path.isabs(text):
                leads_to = os.path.join(os.path.realpath(os.path.dirname(leads_to)), os.path.basename(leads_to))
            if self._is_inside(leads_to) and (self._is_inside(folder) or not os.path.isabs(text)):
                leads_to = os.path.relpath(leads_to, folder)
            os.symlink(leads_to, target)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(source, "rb") as original, open(os.open(target, flags, 0o600), "wb") as copy:
            if moved is not None:
                old, new = map(os.fsencode, moved)
                copy.write(original.read().replace(old + b"/", new + b"/"))
            elif not _share(original.fileno(), copy.fileno()):
                shutil.copyfileobj(original, copy, 1 << 20)
        shutil.copystat(source, target)


def walk(top: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a path with everything below it, folders first, relative to it; "" is the path itself. Omit pipes."""
    status = os.lstat(top)
    yield "", status
    stack = [""] if stat.S_ISDIR(status.st_mode) else []
    while stack:
        prefix = stack.pop()
        for name, status in _entries(os.path.join(top, prefix)):
            if stat.S_ISDIR(status.st_mode):
                stack.append(f"{prefix}{name}/")
            if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield prefix + name, status


def _entries(folder: str) -> list[tuple[str, os.stat_result]]:
    """Return what is in a folder, nothing if it is not readable; programs may remove files meanwhile."""
    listed = list[tuple[str, os.stat_result]]()
    with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                listed.append((entry.name, entry.stat(follow_symlinks=False)))
    return listed


def _share(original: int, copy: int) -> bool:
    """Let a copy share the blocks of the original until one of them changes, if the file system can do that."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(copy, _CLONE, original)
    except OSError:
        return False
    return True


def _remove_others(target: str, names: dict[str, set[str]]) -> None:
    """Remove what is in the folders of a copy, and has none of the names that it has there."""
    for folder, copied in names.items():
        place = os.path.join(target, folder) if folder else target
        for name in os.listdir(place):
            if name not in copied:
                private_folders.remove_tree(os.path.join(place, name))


def _present(place: str) -> Stamp | None:
    try:
        return Stamp(*facts(os.lstat(place)))
    except OSError:
        return None
