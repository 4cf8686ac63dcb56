"""The journal of one writing command: appends events under its operation and fence, and keeps the state in step."""

from __future__ import annotations

from typing import Any

from idumb.app.ports.event_log import EventLog
from idumb.app.ports.ui import Reporter
from idumb.domain import canonical_json
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event, NewEvent
from idumb.domain.runs.run import RunState


class Journal:
    """Every durable step goes through `write`: one transaction, then the state, then whoever watches."""

    def __init__(self, log: EventLog, reporter: Reporter, *, operation: str, fence: int, state: RunState) -> None:
        self._log = log
        self._reporter = reporter
        self.operation = operation
        self.fence = fence
        self.state = state

    def write(self, *events: NewEvent) -> tuple[Event, ...]:
        known = self.state.last_seq if self.state.id else None
        written = self._log.append(events, operation=self.operation, fence=self.fence, expected=known)
        for event in written:
            replay.apply(self.state, event)
            self._reporter.event(event)
        return written

    def event(self, kind: str, task: str | None = None, attempt: int | None = None, /, **payload: Any) -> NewEvent:
        """An event of this run; `payload` may have keys of any name."""
        return NewEvent(kind, payload, run=self.state.id or None, task=task, attempt=attempt)


def operation_id(log: EventLog, worktree: str, command: str, at: str) -> str:
    """Unique, because the head of the log is part of it, every operation appends, and a work tree has one at a time."""
    seq, head = log.head()
    return canonical_json.digest([seq, head, worktree, command, at])[:12]
