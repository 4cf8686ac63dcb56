"""The journal of one writing command: appends events and applies them to the run's state."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from idumb.app.core.services import EventLog
from idumb.app.ports import Asker, Reporter
from idumb.domain import canonical_json
from idumb.domain.action import Answer, Decision
from idumb.domain.runs import replay
from idumb.domain.runs.event import Event, NewEvent
from idumb.domain.runs.run import RunState


class Journal:
    """Every durable step goes through `write`: one transaction, then the state, then the reporter."""

    def __init__(self, log: EventLog, reporter: Reporter, *, operation: str, fence: int, state: RunState) -> None:
        self._log = log
        self._reporter = reporter
        self.operation = operation
        self.fence = fence
        self.state = state

    def write(self, *events: NewEvent) -> tuple[Event, ...]:
        newest = self.state.last_seq if self.state.id else None
        written = self._log.append(events, operation=self.operation, fence=self.fence, expected=newest)
        for event in written:
            replay.apply(self.state, event)
        for event in written:
            self._reporter.event(event)
        return written

    def append(self, kind: str, task: str | None = None, attempt: int | None = None, /, **payload: Any) -> None:
        """Append one event of this run to the log."""
        self.write(self.event(kind, task, attempt, **payload))

    def event(self, kind: str, task: str | None = None, attempt: int | None = None, /, **payload: Any) -> NewEvent:
        """An event of this run; `payload` may have keys of any name."""
        return NewEvent(kind, payload, run=self.state.id or None, task=task, attempt=attempt)

    def question_event(
        self, question: Decision, task: str | None = None, attempt: int | None = None, /, **more: Any
    ) -> NewEvent:
        return self.event("decision.asked", task, attempt, **question.row(), **more)

    def answer_event(self, answer: Answer, task: str | None = None, /) -> NewEvent:
        return self.event("decision.answered", task, **asdict(answer))

    def answer(self, decision: str) -> Answer | None:
        """Return the answer to a question that the log has."""
        row = self.state.answers.get(decision)
        return None if row is None else Answer(decision, row["choice"], row["by"], row.get("guidance", ""))

    def ask_once(self, asker: Asker, question: Decision) -> Answer | None:
        """Return the recorded answer, or ask now and record question and answer. None while the question waits."""
        recorded = self.answer(question.id)
        if recorded is not None:
            return recorded
        answer = asker.ask(question)
        events = [] if question.id in self.state.decisions else [self.question_event(question, question.task)]
        if answer is not None:
            events.append(self.answer_event(answer, question.task))
        if events:
            self.write(*events)
        return answer


def operation_id(log: EventLog, worktree: str, command: str, at: str) -> str:
    """A unique id: every operation appends to the log, and the log's head is part of the id."""
    seq, head = log.head()
    return canonical_json.digest([seq, head, worktree, command, at])[:12]
