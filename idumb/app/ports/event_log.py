"""The event log and its index of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

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
