"""The machine: clock, files, the user's settings of agent hosts, local data, health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    def now(self) -> str:
        """UTC, ISO 8601 with microseconds and `Z`."""

    def monotonic(self) -> float:
        """Seconds, for durations only."""

    def pause(self, seconds: float) -> None:
        """Wait, until an interruption at most."""


class Files(Protocol):
    """Files of the work tree that commands name."""

    def digests(self, paths: Iterable[str]) -> Mapping[str, str]:
        """SHA-256 of the bytes of each path that is a file, links followed; the others are left out."""

    def signature(self, paths: Iterable[str]) -> str | None:
        """Another text as soon as one of the files may have changed; None where that cannot be told yet."""

    def there(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths at which something is, be it a link that leads nowhere."""

    def programs(self, names: Iterable[str]) -> Mapping[str, str]:
        """The absolute path of each program that can be started and lies outside the root."""

    def startable(self, programs: Iterable[str]) -> frozenset[str]:
        """Those that can be started: names on PATH, and paths of executable files, seen from the root."""

    def links(self, folders: Iterable[str]) -> Mapping[str, str]:
        """Folders that are links or lie below one, and where they lead: from the root, or absolute where outside."""


class Toolchain(Protocol):
    """What attempts depend on and no plan names. Every call reads it again."""

    def files(self) -> tuple[str, ...]:
        """Absolute paths of the files that `template` and `versions` depend on."""

    def template(self, name: str) -> str:
        """The text of a shipped prompt template; "" if there is none."""

    def versions(self) -> Mapping[str, str]:
        """Program name to version text."""


class Redaction(Protocol):
    """Removes secrets from text and finds them in bytes."""

    def redact_output(self, text: str) -> str:
        """Output of a program, without anything that may be a secret."""

    def redact(self, text: str) -> str:
        """Text that idumb writes to the log, reports and commits, without the secrets that are certain."""

    def may_match(self, redacted: str, text: str) -> bool:
        """Whether `redacted` may be `text` after redaction, including by a secret that is unknown now."""

    def knows_secrets(self) -> bool:
        """Whether there is any value that `find` could find."""

    def find(self, pieces: Iterable[bytes]) -> Sequence[tuple[str, int]]:
        """The variable and line of each known secret in a sequence of byte chunks."""

    def variables_in(self, pieces: Iterable[bytes], wanted: frozenset[str]) -> frozenset[str]:
        """The wanted variables whose values occur in the bytes. Stops reading once it has found them all."""


class HostFiles(Protocol):
    """Files of agent hosts below one root, never reached through a link. What cannot be written is an OSError."""

    def read(self, path: str) -> str | None:
        """None where there is nothing of that name, "" where it is no readable file."""

    def prepare(self, paths: Iterable[str]) -> None:
        """Before the first `write` of these paths: the folders that it will make are remembered."""

    def write(self, path: str, text: str) -> None:
        """Atomically, creating folders."""

    def remove(self, path: str) -> None: ...

    def below(self, folder: str, depth: int) -> tuple[str, ...]:
        """Names of files in a folder; with `depth` 1 those in its folders, as `folder/file`."""

    def clear_folders(self) -> None:
        """Remove those that were made at any time and that are empty, and then what was remembered of them."""


class BackupStore(Protocol):
    """Keeps what something else replaces, below idumb's own folder in the repository's git folder."""

    def keep(self, kind: str, name: str, data: bytes) -> str:
        """The path of a durable copy of `data`; the same bytes under the same name are kept once."""


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder that idumb keeps for this repository, with how much is in it."""

    what: str
    path: str
    files: int
    bytes: int


class LocalData(Protocol):
    """All that idumb keeps for this repository beside plans, commits, refs and `.idumb/`."""

    def list(self) -> tuple[LocalFolder, ...]: ...

    def held(self) -> AbstractContextManager[None]:
        """Own every work tree; Refusal `lock.held` where one has an owner."""

    def place_for_backup(self, name: str) -> str: ...

    def begin_backup(self, folder: str) -> None:
        """Refusal `backup.exists` where something is in that folder."""

    def back_up(self, folder: str) -> None: ...

    def keep(self, folder: str, name: str, source: str) -> None:
        """Copy one more folder into a backup."""

    def remove(self) -> None: ...

    def remove_files(self, path: str) -> None:
        """Remove one folder of the work tree with all in it."""


class Machine(Protocol):
    """What the machine tells of the places that idumb works in. `folder` is idumb's own in the git folder."""

    root: str
    git_dir: str
    folder: str

    def state_directory(self) -> tuple[str, str | None]:
        """Where it is, and why what lies in it cannot be trusted."""

    def file_system(self, path: str) -> str:
        """The type of the file system that holds a path; "" where the system does not tell."""

    def room(self, path: str) -> tuple[int, int | None]:
        """Bytes and files that can still be written there; None where files have no limit."""

    def user(self) -> int: ...

    def owner(self, path: str) -> int: ...

    def writable(self, path: str) -> bool:
        """Whether entries can be made in a folder; true where there is none."""

    def exposed(self) -> Sequence[tuple[str, int, int]]:
        """(path, owner, mode) of what others own, or can reach and may read or write, in `folder`."""

    def make_private(self, path: str) -> int | None:
        """Take the rights of others away; the mode, None where it was gone already."""

    def temporary(self) -> Sequence[tuple[str, float]]:
        """(path, age in seconds) of temporary files that dead processes of idumb left."""

    def set_aside(self, path: str) -> str:
        """Move a file into `folder`; where it is now, "" when it was gone already."""

    def left_processes(self) -> Sequence[tuple[int, str]]:
        """(process, run) of what was started by runs in this place and still lives."""

    def end(self, pid: int) -> None:
        """End one of `left_processes`."""
