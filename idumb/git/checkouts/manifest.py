"""What idumb put into a checkout besides its tree: the record, by stamps, and safe ways to change it.

A program may put a link in the place of any folder of a checkout, so nothing here follows one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import operator
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from idumb.domain.paths import folders_above
from idumb.lazy_dataclass import dataclass
from idumb.system.files import atomic_write, private_folders

Facts = tuple[int, ...]
"""Of a file or link its stamp; of a folder its mode."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CTIME = 4
_TICK = 0.001

stamp: Callable[[os.stat_result], tuple[int, int, int, int, int]] = operator.attrgetter(
    "st_ino", "st_mode", "st_size", "st_mtime_ns", "st_ctime_ns"
)
"""What the system says of a file without reading it; times are in nanoseconds. No program can set ctime, so every write
changes the stamp, unless it comes within `clock.TICK`. A device may have another number after a restart of the machine.
"""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a checkout, by path; folders come before their content.

    - `paths`: the topmost paths.
    - `key`: what the content depends on. `originals`: the stamps of the files from which copies were made.
    """

    paths: tuple[str, ...] = ()
    copies: Mapping[str, Facts] = dataclasses.field(default_factory=dict)
    originals: Mapping[str, Facts] = dataclasses.field(default_factory=dict)
    key: str = ""

    def save(self, place: str) -> None:
        """Write it to a file, once no later change can have the same time as one that it records."""
        private_folders.make(os.path.dirname(place))
        times = (int(facts[_CTIME]) for facts in self.copies.values() if len(facts) > _CTIME)
        _let_time_pass(f"{place}.time", max(times, default=0))
        content = json.dumps([self.paths, self.copies, self.originals, self.key])
        atomic_write.write(place, content.encode("ascii"), durable=False, mode=0o600)

    def changed(self, present: Mapping[str, Facts]) -> list[str]:
        """Return what was changed or removed, folders first."""
        return [path for path, facts in self.copies.items() if present.get(path) != facts]

    def added(self, present: Iterable[str]) -> list[str]:
        """Return what is not idumb's."""
        return [path for path in present if path not in self.copies]


def load(place: str) -> Manifest:
    """Return what was saved; an empty manifest if there is none, or it is damaged."""
    try:
        with open(place, encoding="ascii") as stream:
            paths, copies, originals, key = json.load(stream)
        return Manifest(tuple(paths), _facts(copies), _facts(originals), key)
    except (OSError, ValueError, TypeError, AttributeError):
        return Manifest()


def _facts(rows: Mapping[str, Sequence[int]]) -> dict[str, Facts]:
    return {path: tuple(row) for path, row in rows.items()}


def present(root: str, paths: Iterable[str]) -> dict[str, Facts]:
    """Return what is at these paths and below them."""
    rows = (row for path in paths if has_room(root, path) for row in walk(root, path, is_own=True))
    return {path: (status.st_mode,) if stat.S_ISDIR(status.st_mode) else stamp(status) for path, status in rows}


def walk(top: str, path: str, *, is_own: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a path of the folder `top`, then all below it; the entries of a folder follow one another.

    What may not be read is left out; in a checkout, which `is_own`, it is made readable.
    """
    try:
        status = os.lstat(os.path.join(top, path))
    except OSError:
        return
    yield path, status
    stack = [(path, status)] if stat.S_ISDIR(status.st_mode) else []
    while stack:
        folder, status = stack.pop()
        if is_own and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            with opened(top, folder):
                pass
        # Programs may remove files meanwhile.
        with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(os.path.join(top, folder)) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    status, name = entry.stat(follow_symlinks=False), f"{folder}/{entry.name}"
                    if stat.S_ISDIR(status.st_mode):
                        stack.append((name, status))
                    yield name, status


def has_room(root: str, path: str) -> bool:
    """Return whether each folder above a path is one, or missing: not a link, not a file."""
    for above in folders_above((path,)):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISDIR(os.lstat(os.path.join(root, above)).st_mode):
                return False
    return True


@contextlib.contextmanager
def opened(root: str, folder: str) -> Iterator[int]:
    """Open a folder below `root`, and make what is missing; what is in the place of a folder is removed."""
    descriptor = os.open(root, _FOLDER)
    try:
        for name in filter(None, folder.split("/")):
            below = _entered(name, descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _entered(name: str, at: int) -> int:
    try:
        status = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=at)
    else:
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=at)
            os.mkdir(name, dir_fd=at)
        elif status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(name, 0o700, dir_fd=at)
    return os.open(name, _FOLDER, dir_fd=at)


def remove(root: str, path: str) -> None:
    """Remove what is at a path of a checkout, with all below it. Nothing is done if a link is on the way.

    Raises OSError if something is mounted there, or stays.
    """
    place = os.path.join(root, path)
    if not has_room(root, path) or not os.path.lexists(place):
        return
    if stat.S_ISDIR(os.lstat(place).st_mode):
        private_folders.require_no_mounts(place)
    with opened(root, os.path.dirname(path)) as folder, contextlib.suppress(FileNotFoundError):
        private_folders.remove_at(os.path.basename(path), folder)


def _let_time_pass(place: str, newest: int) -> None:
    """Wait until the file system gives another time than `newest`: some do so only every few milliseconds."""
    while True:
        atomic_write.write(place, b"", durable=False, mode=0o600)
        if os.lstat(place).st_ctime_ns != newest:
            return
        time.sleep(_TICK)
