"""Bytecode of Python modules outside the tree, which a check need not compile again.

Bytecode decides what a check runs, so none that a builder or a check wrote may reach another check. What the user's
Python wrote before the run is next to its source, and its ctime proves its age, because no program can set that back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from idumb import lazy_pattern
from idumb.system import clock
from idumb.system.files import private_folders
from idumb.system.files.stamps import Stamp, facts

_NAME = lazy_pattern.compile(r"(.+?)\.(?:cpython|pypy|graalpy)-?[0-9][^/]*\.pyc")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST = 1 << 24
_MARGIN = 10_000_000_000
"""Nanoseconds by which the clock of a file server may be behind."""


class _Module(NamedTuple):
    """A file of bytecode that was written here, and the state of its source.

    `checked` is the time of the last write that would have been noticed when the file was read.
    """

    stamp: Stamp
    checked: int
    digest: bytes
    source: str
    source_stamp: Stamp


class Bytecode:
    """The trustworthy content of PYTHONPYCACHEPREFIX. `started` is when the run started, in nanoseconds."""

    def __init__(self, started: int) -> None:
        self._before = started - _MARGIN
        self._modules: dict[str, _Module] = {}

    def clean(self, prefix: str, root: str) -> None:
        """Replace the bytecode that checks left in a folder by the user's own, and remove what the user does not have.

        `root` is the tree of the check: its own modules are always compiled again. Raises OSError.
        """
        earlier, self._modules = self._modules, {}
        folder = os.open(prefix, _FOLDER)
        try:
            os.fchmod(folder, 0o700)
            now = None if private_folders.hides_writes(prefix) else os.fstat(folder).st_ctime_ns
            self._modules.update(_Cleaning(earlier, self._before, root, now).modules(folder, "/"))
        finally:
            os.close(folder)


class _Cleaning:
    """One walk over the folder, by descriptors, because a link could lead to files of the user.

    `now` is the time of the file system, in nanoseconds; None if writes may leave no time.
    """

    def __init__(self, earlier: dict[str, _Module], before: int, root: str, now: int | None) -> None:
        self._earlier = earlier
        self._before = before
        self._root = f"{root}/"
        self._real_root = f"{os.path.realpath(root)}/"
        self._settled = 0 if now is None else now - clock.TICK

    def modules(self, folder: int, path: str) -> Iterator[tuple[str, _Module]]:
        """Yield what is trustworthy; remove the rest, and folders that are empty without it."""
        is_own = path.startswith(self._root) and f"{os.path.realpath(path)}/".startswith(self._real_root)
        with os.scandir(folder) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in names:
            if is_folder:
                below = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from self.modules(below, f"{path}{name}/")
                    is_empty = not os.listdir(below)
                finally:
                    os.close(below)
                if is_empty:
                    os.rmdir(name, dir_fd=folder)
                continue
            module = None if is_own else self._kept(folder, path, name) or self._copied(folder, path, name)
            if module is not None:
                yield f"{path}{name}", module
            else:
                os.unlink(name, dir_fd=folder)

    def _kept(self, folder: int, path: str, name: str) -> _Module | None:
        """Return a module whose file and source are as they were; read the file if its times do not show that."""
        module = self._earlier.get(f"{path}{name}")
        if module is None or _stamp(module.source) != module.source_stamp:
            return None
        if facts(os.stat(name, dir_fd=folder, follow_symlinks=False)) != module.stamp:
            return None
        if module.checked > module.stamp.ctime:
            return module
        if hashlib.sha256(_content(name, folder)).digest() != module.digest:
            return None
        return module._replace(checked=self._settled)

    def _copied(self, folder: int, path: str, name: str) -> _Module | None:
        """Write the user's bytecode of a module, if that and the source are older than the run."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        source = f"{path}{match[1]}.py"
        stamp = _stamp(source)
        if stamp is None or stamp.ctime >= self._before:
            return None
        try:
            opened = os.open(f"{path}__pycache__/{name}", _OLD)
            with open(opened, "rb") as stream:
                data = stream.read(_LARGEST)
                if os.fstat(opened).st_ctime_ns >= self._before or not _is_of(data, stamp):
                    return None
        except OSError:
            return None
        os.unlink(name, dir_fd=folder)
        written = os.open(name, _NEW, 0o600, dir_fd=folder)
        with open(written, "wb") as copy:
            copy.write(data)
        written_stamp = Stamp(*facts(os.stat(name, dir_fd=folder, follow_symlinks=False)))
        return _Module(written_stamp, 0, hashlib.sha256(data).digest(), source, stamp)


def _stamp(path: str) -> Stamp | None:
    try:
        return Stamp(*facts(os.stat(path)))
    except OSError:
        return None


def _is_of(data: bytes, source: Stamp) -> bool:
    """Return whether Python would accept the bytecode for a source with this stamp; it compares size and mtime."""
    stated = (0).to_bytes(4, "little"), source.mtime // 1_000_000_000, source.size
    return data[4:16] == stated[0] + b"".join((number & 0xFFFFFFFF).to_bytes(4, "little") for number in stated[1:])


def _content(name: str, folder: int) -> bytes:
    with open(os.open(name, _OLD, dir_fd=folder), "rb") as stream:
        return stream.read(_LARGEST)
