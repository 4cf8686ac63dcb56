"""The event log and its index of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from idumb.domain.runs.event import ChainCheck, Event, NewEvent


class EventLog(Protocol):
    def append(
        self, events: Sequence[NewEvent], *, operation: str, fence: int, expected: int | None = None
    ) -> tuple[Event, ...]:
        """Append in one durable transaction. Refuses if `fence` is not the current one.

        `expected` is the newest event of the run that the caller knows. Refusal `run.moved-on` if there are later ones.
        """

    def events(
        self,
        *,
        run: str | None = None,
        task: str | None = None,
        kind: str | None = None,
        operation: str | None = None,
        since: str | None = None,
        until: str | None = None,
        after: int = 0,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Event]: ...

    def head(self) -> tuple[int, str]:
        """(last sequence number, its hash); (0, GENESIS) if the log is empty."""

    def verify(self) -> ChainCheck:
        """Recompute every hash and follow the chain to the first break."""


class LogFiles(Protocol):
    """Files of the event log outside its database: backups and archive segments."""

    def back_up(self, path: str) -> tuple[int, str]:
        """Write all events to a file; return the number and hash of the last one. Refusal `backup.exists`."""

    def check_backup(self, path: str) -> tuple[ChainCheck, bool]:
        """Recompute every hash of a backup, and compare its events with this log."""

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The segments: number, name, first, last, previous, head, sha256, at, kinds."""

    def starts(self) -> Sequence[tuple[str, str, str, int]]:
        """(run, phase, working tree, first event) of every run of the repository, oldest first."""

    def archive(self, last: int) -> Sequence[Mapping[str, Any]]:
        """Move events up to `last` into segments, each verified before its events are removed; return the new ones."""


class RunIndex(Protocol):
    """Finds runs without replaying them. A row is in the same transaction as its event."""

    def latest(self, phase: str) -> str | None:
        """Id of the newest run of a phase in this working tree."""

    def last_number(self, phase: str) -> int:
        """Number of the newest run of a phase in this working tree; 0 if there is none."""

    def phases(self) -> tuple[str, ...]: ...
