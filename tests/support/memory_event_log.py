"""The event log and its index of runs in memory, for tests of the engine. Held to the same contract as SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from idumb.app.ports import Clock
from idumb.domain import canonical_json
from idumb.domain.errors import Refusal, StoreError
from idumb.domain.runs.event import BESIDE, GENESIS, KINDS, ChainCheck, Event, NewEvent
from idumb.store import event_chain
from tests.support.memory_ownership import MemoryWorktree


class MemoryEventLog:
    """As `SqliteEventLog`, for one working tree and one process."""

    def __init__(self, clock: Clock, worktree: MemoryWorktree) -> None:
        self.clock = clock
        self.worktree = worktree
        self.stored: list[Event] = []

    def append(
        self, events: Sequence[NewEvent], *, operation: str, fence: int, expected: int | None = None
    ) -> tuple[Event, ...]:
        if not events:
            return ()
        texts = [canonical_json.encode(dict(new.payload)).decode("ascii") for new in events]
        unknown = [new.kind for new in events if new.kind not in KINDS]
        if unknown:
            raise ValueError(f"no such kind of event: {unknown[0]}")
        if fence != self.worktree.fence or not fence:
            raise StoreError("store.fence", "another idumb has taken over this work tree", hint="idumb status")
        of_this_run = (event for event in self.stored if event.run == events[0].run and event.kind not in BESIDE)
        newest = max((event.seq for event in of_this_run), default=0)
        if expected is not None and newest > expected:
            raise Refusal("run.moved-on", "Another idumb process has continued this run.", hint="idumb status")
        at = self.clock.now()
        return tuple(self._place(new, text, operation, at) for new, text in zip(events, texts, strict=True))

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
    ) -> Iterator[Event]:
        equal = {"run": run, "task": task, "kind": kind, "operation": operation}
        filters = {name: value for name, value in equal.items() if value is not None}
        matching = [
            event
            for event in self.stored
            if event.seq > after
            and all(getattr(event, name) == value for name, value in filters.items())
            and (since is None or event.at >= since)
            and (until is None or event.at <= until)
        ]
        if newest_first:
            matching.reverse()
        return iter(matching[:limit])

    def head(self) -> tuple[int, str]:
        return (self.stored[-1].seq, self.stored[-1].hash) if self.stored else (0, GENESIS)

    def verify(self) -> ChainCheck:
        return event_chain.follow((_row(event) for event in self.stored), {})

    def _place(self, new: NewEvent, text: str, operation: str, at: str) -> Event:
        heads = {event.run: event.hash for event in self.stored}
        row = event_chain.chain(
            [(new, text)], len(self.stored), heads, operation=operation, fence=self.worktree.fence, at=at
        )[0]
        fields = dict(zip(event_chain.COLUMNS.split(", "), row, strict=True))
        event = Event(**{**fields, "payload": json.loads(text)})
        self.stored.append(event)
        return event


def _row(event: Event) -> event_chain.Row:
    text = canonical_json.encode(dict(event.payload)).decode("ascii")
    return tuple({**event.as_dict(), "payload": text}.values())
