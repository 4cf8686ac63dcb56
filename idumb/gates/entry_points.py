"""The entry points of checks: files outside the repository that decide which program or package a check runs.

Each has a recorded state. A file whose size, times and inode are as recorded is not read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from idumb import lazy_pattern
from idumb.domain.plans import shell
from idumb.lazy_dataclass import dataclass
from idumb.system import clock
from idumb.system.files import stamps
from idumb.system.files.private_folders import MANIFESTS

_HOOKS = frozenset({"sitecustomize", "usercustomize"})
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_MATTERS = lazy_pattern.compile(
    r"(?s)\d|python3|__init__\.|(site|user)customize(\.|\Z)|(site|dist)-packages\Z|.*\.pth\Z"
)
"""The names in folders of Python that can be or hold an entry point; folders of packages have thousands of others."""
_ABOVE = {**{name: name for name in MANIFESTS if name != ".git"}, ".cargo": ".cargo/config.toml"}
"""What tools search for in every parent folder, and the file or folder that decides what they run or load then."""
_SYSTEM = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin"})
"""Folders with so many programs that only their own times are looked at before each check."""
_MOST_PROGRAMS = 20
"""New programs that evidence names; a package manager may install hundreds."""
_MOST_READ = 1 << 20
"""Larger files count as changed if their times change; reading a big program would cost more than a check."""

Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's signature and digest. Both are "" or () for a missing file; no digest for a file that was not read.

    `settled` is false if the file changed so recently that its signature cannot show another change.
    """

    signature: Signature
    digest: str
    settled: bool

    @property
    def changed_at(self) -> int:
        """Return when the file last changed, in nanoseconds; 0 without a file. No program can set this time back."""
        return self.signature[-1] if self.signature else 0

    def as_list(self) -> list[Any]:
        return [list(self.signature), self.digest, self.settled]

    @classmethod
    def from_list(cls, row: Sequence[Any]) -> FileState:
        signature, digest, settled = row
        return cls(tuple(map(int, signature)), str(digest), bool(settled))


class EntryPoints:
    """Records the state of the entry points when it is made, and names those that differ later.

    `files` are watched as such; `python_prefixes` are folders with `lib/python3.x`, in addition to those of the
    interpreters in `search_path`. `above` are the folders above the working tree of checks, in which tools search for
    manifests and packages. Evidence names what is `provided`, so packages there are no entry points.
    """

    def __init__(
        self,
        files: Iterable[str],
        search_path: Sequence[str],
        python_prefixes: Iterable[str],
        above: Sequence[str] = (),
        provided: Sequence[str] = (),
    ) -> None:
        self._started = clock.nanoseconds()
        self._above = above
        self._provided = tuple(f"{folder}/" for folder in provided)
        self._packages: dict[str, None] = {}
        self._listed: dict[str, None] = {}
        self._prefixes = tuple(dict.fromkeys((*python_prefixes, *self._python_prefixes(search_path))))
        self._programs: dict[str, tuple[str, FileState]] = {}
        self._search_path = _inodes(folder for folder in search_path if not f"{folder}/".startswith(self._provided))
        self._named: dict[str, tuple[str, ...]] = {}
        self._known = {path: _state(path) for path in (*files, *self._python_files(), *self._manifests())}
        self._folders = _signatures(self._listed)
        self._new: tuple[str, ...] = ()

    @property
    def started(self) -> int:
        """Return when the run started, in nanoseconds."""
        return self._started

    def as_dict(self) -> dict[str, Any]:
        """Return the recorded states, for a later process that continues the run."""
        files = {path: state.as_list() for path, state in self._known.items()}
        programs = {name: [path, *state.as_list()] for name, (path, state) in self._programs.items()}
        return {"started": self._started, "files": files, "programs": programs, "folders": self._search_path}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Replace the recorded states by those of an earlier process. Raises LookupError, TypeError or ValueError."""
        files = {str(path): FileState.from_list(row) for path, row in record["files"].items()}
        programs = {str(n): (str(path), FileState.from_list(row)) for n, (path, *row) in record["programs"].items()}
        self._search_path |= {str(path): int(inode) for path, inode in record.get("folders", {}).items()}
        self._started, self._known, self._programs = int(record["started"]), files, programs
        self._folders = None

    def record(self, commands: Iterable[str], search_path: Sequence[str]) -> None:
        """Record which programs these commands start, unless they are recorded."""
        self._named |= {command: _programs(command) for command in commands}
        for name in sorted({name for names in self._named.values() for name in names}.difference(self._programs)):
            path = _find(name, search_path)
            self._programs[name] = (path, _state(path))

    def changed(self, command: str, search_path: Sequence[str]) -> tuple[str, ...]:
        """Return the paths of entry points that differ from their recorded state, for one command."""
        changed = [path for path, state in self._known.items() if not _is_same(path, state)]
        changed += [path for path in self._new_python_files() if path not in changed]
        changed += [path for path in self._manifests() if path not in self._known]
        changed += self._new_packages()
        for name in self._named[command] if command in self._named else _programs(command):
            path = _find(name, search_path)
            if path and self._is_other_program(name, path) and path not in changed:
                changed.append(path)
        changed += [path for path in self._new_programs() if path not in changed]
        return tuple(changed)

    def _new_programs(self) -> Iterable[str]:
        """Return programs on PATH that changed since the run started: what a command starts may start any of them."""
        return tuple(itertools.islice(self._each_new_program(), _MOST_PROGRAMS))

    def _each_new_program(self) -> Iterator[str]:
        recorded = {path for path, _ in self._programs.values()}
        for folder, inode in self._search_path.items():
            with contextlib.suppress(OSError):
                status = os.stat(folder)
                if inode not in (0, status.st_ino):  # a link that leads to another folder now
                    yield folder
                elif folder not in _SYSTEM or status.st_ctime_ns > self._started:
                    yield from (path for path in self._programs_in(folder) if path not in recorded)

    def _programs_in(self, folder: str) -> Iterator[str]:
        """Yield the programs in a folder that changed since the run started, by themselves or where a link leads."""
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    newest = status.st_ctime_ns
                    if stat.S_ISLNK(status.st_mode):
                        status = entry.stat()
                        newest = max(newest, status.st_ctime_ns)
                    if newest > self._started and stat.S_ISREG(status.st_mode) and status.st_mode & 0o111:
                        yield entry.path

    def _new_python_files(self) -> Iterable[str]:
        """Return files that did not exist when the run started. Folders with the same times are not listed again."""
        if self._folders is None or _signatures(self._listed) != self._folders:
            self._listed.clear()
            present = tuple(dict.fromkeys(self._python_files()))
            self._folders = _signatures(self._listed)
            self._new = tuple(path for path in present if path not in self._known)
        return self._new

    def _new_packages(self) -> Iterator[str]:
        """Yield packages that were installed since the run started. Bytecode that Python adds to one is no change."""
        for folder in self._packages:
            if _changed_at(folder) <= self._started:
                continue
            with contextlib.suppress(OSError):
                for name in sorted(os.listdir(folder)):
                    path = f"{folder}/{name}"
                    inner = (f"{path}/{each}" for each in ("__init__.py", "METADATA"))
                    if name == "__pycache__" or _MATTERS.match(name):
                        continue
                    if _changed_at(next(filter(os.path.exists, inner), path)) > self._started:
                        yield path

    def _is_other_program(self, name: str, path: str) -> bool:
        if name in self._programs:
            known_path, known = self._programs[name]
            return path != known_path or not _is_same(path, known)
        state = _state(path)
        if state.changed_at > self._started:
            return True
        self._programs[name] = (path, state)
        return False

    def _python_prefixes(self, search_path: Iterable[str]) -> Iterator[str]:
        """Yield the folders that contain `lib/python3.x` of the interpreters on PATH."""
        prefixes: dict[str, None] = {}
        for folder in search_path:
            for name in ("python3", "python"):
                program = f"{folder}/{name}"
                if not folder.startswith("/") or not os.path.exists(program):
                    continue
                for each in (program, os.path.realpath(program)):
                    prefix = os.path.dirname(os.path.dirname(each))
                    prefixes[prefix] = None
                    if os.path.basename(os.path.dirname(each)) == "shims":
                        prefixes |= dict.fromkeys(f"{prefix}/versions/{v}" for v in self._list(f"{prefix}/versions"))
        for prefix in prefixes:
            if os.path.isdir(f"{prefix}/lib"):
                yield prefix
                if os.path.isdir(f"{prefix}/local/lib"):
                    yield f"{prefix}/local"

    def _python_files(self) -> Iterator[str]:
        """Yield the files that an interpreter on PATH runs when it starts."""
        for prefix in self._prefixes:
            library = f"{prefix}/lib"
            for name in self._list(library):
                if name.startswith("python3"):
                    yield from self._start_files(f"{library}/{name}")

    def _start_files(self, folder: str) -> Iterator[str]:
        yield from self._hooks(folder, self._list(folder))
        for name in _PACKAGES:
            packages = f"{folder}/{name}"
            names = self._list(packages)
            yield from self._hooks(packages, names)
            yield from (f"{packages}/{each}" for each in names if each.endswith(".pth"))
            if not packages.startswith(self._provided):
                self._packages[packages] = None

    def _manifests(self) -> Iterator[str]:
        """Yield what decides about a project, or has packages for it, in the folders above."""
        for folder in self._above:
            with contextlib.suppress(OSError):
                yield from (f"{folder}/{_ABOVE[name]}" for name in sorted(_ABOVE.keys() & set(os.listdir(folder))))

    def _hooks(self, folder: str, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            if name.partition(".")[0] in _HOOKS:
                path = f"{folder}/{name}"
                inner = [each for each in self._list(path) if each.startswith("__init__.")]
                yield from (f"{path}/{each}" for each in inner) if inner else (path,)

    def _list(self, folder: str) -> tuple[str, ...]:
        """Return the names in a folder that can matter."""
        self._listed[folder] = None
        try:
            return tuple(sorted(filter(_MATTERS.match, os.listdir(folder))))
        except OSError:
            return ()


def _programs(command: str) -> tuple[str, ...]:
    """Return the programs that a command names, without those relative to the tree, which is judged itself."""
    return tuple(filter(_is_outside, shell.read(command).programs))


def _is_outside(program: str) -> bool:
    return "/" not in program or program.startswith("/")


def _find(name: str, search_path: Sequence[str]) -> str:
    """Return the path of a program, "" if there is none."""
    candidates = (name,) if name.startswith("/") else (f"{folder}/{name}" for folder in search_path)
    return next((path for path in candidates if os.access(path, os.X_OK) and os.path.isfile(path)), "")


def _inodes(folders: Iterable[str]) -> dict[str, int]:
    """Return the inode of each folder, 0 if it is missing; of two names for one folder, only the first."""
    by_real = {os.path.realpath(folder): folder for folder in reversed([*folders])}
    return {folder: (_signature(folder) or (0,))[0] for folder in reversed(by_real.values())}


def _changed_at(path: str) -> int:
    signature = _signature(path)
    return signature[-1] if signature else 0


def _state(path: str) -> FileState:
    signature = _signature(path)
    return FileState(signature, _digest(path, signature), _are_settled([signature]))


def _is_same(path: str, known: FileState) -> bool:
    """Return whether a file is as recorded, reading it only if its signature does not show that."""
    signature = _signature(path)
    if signature == known.signature and known.settled:
        return True
    if not signature or not known.signature or not known.digest:
        return signature == known.signature
    return _digest(path, signature) == known.digest


def _signatures(paths: Iterable[str]) -> dict[str, Signature] | None:
    """Return the signature of each path; None if one changed so recently that its next change may not show."""
    signatures = {path: _signature(path) for path in paths}
    return signatures if _are_settled(signatures.values()) else None


def _signature(path: str) -> Signature:
    """Return the stamp of what a path leads to; () if nothing is there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return stamps.facts(status)


def _are_settled(signatures: Iterable[Signature]) -> bool:
    """Return whether none of the files changed just now."""
    just_now = clock.nanoseconds() - clock.TICK
    return all(signature[-1] < just_now for signature in signatures if signature)


def _digest(path: str, signature: Signature) -> str:
    if not signature or not stat.S_ISREG(signature[1]) or signature[2] > _MOST_READ:
        return ""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read(_MOST_READ + 1)).hexdigest()
    except OSError:
        return "unreadable"
