"""The machine: clock, files, toolchain, redaction, agent hosts, backups, local data and health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from idumb.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from idumb.domain.runs.sandbox import Fence, Support


class Clock(Protocol):
    def now(self) -> str:
        """UTC, ISO 8601 with microseconds and `Z`."""

    def monotonic(self) -> float:
        """Seconds, only for durations."""

    def pause(self, seconds: float) -> None:
        """Wait for this time or until an interruption."""


class Files(Protocol):
    """Files of the working tree that commands name."""

    def digests(self, paths: Iterable[str]) -> Mapping[str, str]:
        """SHA-256 of each path that is a file, following links; other paths are omitted."""

    def signature(self, paths: Iterable[str]) -> str | None:
        """A text that changes if one of the files may have changed; None if it is too early to tell."""

    def existing(self, paths: Iterable[str]) -> frozenset[str]:
        """The paths that exist, including broken links."""

    def programs(self, names: Iterable[str]) -> Mapping[str, str]:
        """The absolute path, by name, of each program that can start and is outside the root."""

    def startable(self, programs: Iterable[str]) -> frozenset[str]:
        """The programs that can start: names on PATH, and paths of executables relative to the root."""

    def similar(self, paths: Iterable[str]) -> Mapping[str, str]:
        """The paths that an existing file or folder differs from only in case, and this one."""

    def links(self, folders: Iterable[str]) -> Mapping[str, str]:
        """Folders that are or are below a link, and their targets: relative to the root, or absolute if outside."""


class Toolchain(Protocol):
    """What attempts depend on and no plan names. Every call reads it again."""

    def files(self) -> tuple[str, ...]:
        """Absolute paths of the files that `template` and `versions` depend on."""

    def template(self, name: str) -> str:
        """The text of a shipped prompt template; "" if there is none."""

    def versions(self) -> Mapping[str, str]:
        """Program name to version text."""


class Sandboxes(Protocol):
    """What limits where programs write."""

    def support(self) -> Support:
        """What this machine supports; it is tried once."""

    def launcher(self, level: str, fence: Fence) -> tuple[str, ...]:
        """Arguments before those of a program, which then writes only where `fence` allows it; () for no sandbox."""


class Redaction(Protocol):
    """Removes secrets from text and finds them in bytes."""

    def redact_output(self, text: str) -> str:
        """Output of a program, without anything that may be a secret."""

    def redact(self, text: str) -> str:
        """Text that idumb writes to the log, reports and commits, without the secrets that are certain."""

    def redacted(self, texts: Iterable[str]) -> dict[str, str]:
        """The texts that hold a secret, each with its redacted form."""

    def may_match(self, redacted: str, text: str) -> bool:
        """Whether `redacted` may be `text` after redaction, including by a secret that is unknown now."""

    def knows_secrets(self) -> bool:
        """Whether there is any value that `find` could find."""

    def find(self, pieces: Iterable[bytes]) -> Sequence[tuple[str, int]]:
        """The variable and line of each known secret in a sequence of byte chunks."""

    def variables_in(self, pieces: Iterable[bytes], names: frozenset[str]) -> frozenset[str]:
        """The wanted variables whose values occur in the bytes. Stops reading once it has found them all."""


class HostFiles(Protocol):
    """Files of agent hosts below one root, without following links. A failed write raises OSError."""

    def read(self, path: str) -> str | None:
        """The text; None if nothing has that name, "" if it is not a readable file."""

    def prepare(self, paths: Iterable[str]) -> None:
        """Record the folders that `write` will create for these paths. Call it before the first `write`."""

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders."""

    def remove(self, path: str) -> None: ...

    def below(self, folder: str, depth: int) -> tuple[str, ...]:
        """File names in a folder; with `depth` 1, those in its subfolders, as `folder/file`."""

    def clear_folders(self) -> None:
        """Remove the empty folders that `prepare` recorded, and then the record."""


class BackupStore(Protocol):
    """Keeps replaced files in idumb's folder in the repository's git folder."""

    def keep(self, kind: str, name: str, data: bytes) -> str:
        """Store a durable copy of `data`; return its path. The same bytes under the same name are stored once."""


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder that idumb keeps for this repository, and its size."""

    contents: str
    path: str
    files: int
    bytes: int


class LocalData(Protocol):
    """What idumb keeps for this repository besides plans, commits, refs and `.idumb/`."""

    def list(self) -> tuple[LocalFolder, ...]: ...

    def projects(self) -> tuple[str, ...]:
        """Return the subfolders that are projects and have state here."""

    def held(self) -> AbstractContextManager[None]:
        """Own every working tree. Refusal `lock.held` if one has an owner."""

    def place_for_backup(self, name: str) -> str: ...

    def begin_backup(self, folder: str) -> None:
        """Create the backup folder. Refusal `backup.exists` if it is not empty."""

    def back_up(self, folder: str) -> None: ...

    def keep(self, folder: str, name: str, source: str) -> None:
        """Copy another folder into a backup."""

    def remove(self) -> None: ...

    def remove_files(self, path: str) -> None:
        """Remove a folder of the working tree with its content."""


class Machine(Protocol):
    """Facts about the machine and the folders that idumb uses. `folder` is idumb's own in the git folder."""

    root: str
    git_dir: str
    folder: str

    def state_directory(self) -> tuple[str, str | None]:
        """Its path, and why its content cannot be trusted, if so."""

    def file_system(self, path: str) -> str:
        """The type of a path's file system; "" if unknown."""

    def room(self, path: str) -> tuple[int, int | None]:
        """Free bytes and free inodes; None if the number of files is unlimited."""

    def user(self) -> int: ...

    def owner(self, path: str) -> int: ...

    def writable(self, path: str) -> bool:
        """Whether files can be created in a folder; true if it does not exist."""

    def exposed(self) -> Sequence[tuple[str, int, int]]:
        """(path, owner, mode) of entries in `folder` that other users own or can read or write."""

    def make_private(self, path: str) -> int | None:
        """Remove the permissions of other users; return the mode, or None if the path no longer exists."""

    def temporary(self) -> Sequence[tuple[str, float]]:
        """(path, age in seconds) of temporary files of dead idumb processes."""

    def set_aside(self, path: str) -> str:
        """Move a file into `folder`; return its new path, "" if it no longer exists."""

    def left_processes(self) -> Sequence[tuple[int, str]]:
        """(process, run) of orphaned processes of runs in this working tree."""

    def end(self, pid: int) -> None:
        """Kill one of `left_processes`."""
