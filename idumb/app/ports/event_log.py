"""The event log and its index of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from idumb.domain.runs.event import ChainCheck, Event, NewEvent


class EventLog(Protocol):
    def append(
        self, events: Sequence[NewEvent], *, operation: str, fence: int, expected: int | None = None
    ) -> tuple[Event, ...]:
        """One durable transaction; refused when `fence` is not the current one.

        `expected` is the newest event of the run that the caller knows; Refusal `run.moved-on` when there are later
        ones.
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
        """(last sequence number, its hash); (0, GENESIS) when empty."""

    def verify(self) -> ChainCheck:
        """Compute every hash again and follow the chain to the first break."""


class LogFiles(Protocol):
    """Files of the event log beside its database: backups, and segments that older events are moved to."""

    def back_up(self, path: str) -> tuple[int, str]:
        """A file of all events, forced to disk; the last one's number and hash. Refusal `backup.exists`."""

    def check_backup(self, path: str) -> tuple[ChainCheck, bool]:
        """Every hash of a backup again, and whether this log has the same history so far."""

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The segments: number, name, first, last, previous, head, sha256, at, kinds."""

    def starts(self) -> Sequence[tuple[str, str, str, int]]:
        """(run, phase, work tree, first event) of every run of the repository, the oldest first."""

    def archive(self, last: int) -> Sequence[Mapping[str, Any]]:
        """Move the events up to number `last` into segments, each checked before its events go; the new ones."""


class RunIndex(Protocol):
    """Finds runs without replaying them. A row is written in the same transaction as its event."""

    def latest(self, phase: str) -> str | None:
        """Id of the newest run of a phase in this work tree."""

    def last_number(self, phase: str) -> int:
        """The number of the newest run of a phase in this work tree; 0 when there is none."""

    def phases(self) -> tuple[str, ...]: ...
