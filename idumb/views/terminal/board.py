"""The board of a run: a line for each task, and what works on the running ones. Nothing draws here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct, field

from idumb.app.reading.watch import Expected, Now
from idumb.domain import outcome
from idumb.domain.proof import evidence
from idumb.domain.runs import replay, spending
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState, TaskState
from idumb.views import phrases
from idumb.views.terminal import plain_progress
from idumb.views.terminal.plain_progress import LineContext

_STYLES = {
    outcome.RUNNING: "bold blue",
    outcome.COMPLETED: "green",
    outcome.ACCEPTED: "green",
    outcome.FAILED: "bold red",
    outcome.WAITING: "magenta",
    outcome.BLOCKED: "yellow",
    outcome.SKIPPED: "dim",
    outcome.OMITTED: "dim",
    outcome.PENDING: "dim",
}
_STAYING = frozenset({"attempt.interrupted", "decision.asked", "task.failed", "run.halted"})
_QUIET = frozenset({outcome.PENDING, outcome.READY})
_TURN = "|/-\\"
_TITLE, _FAILURE_LINES = 48, 4

Line = tuple[str, str]
"""Text and style."""


def _stays(event: Event) -> bool:
    if event.kind == "evidence.recorded":
        return event.payload.get("result") in evidence.BROKEN
    if event.kind == "attempt.finished":
        return event.payload.get("outcome") not in {outcome.COMPLETED, outcome.WAITING}
    return event.kind in _STAYING


class Board(Struct):
    """The run's `state`, and what else is known of its tasks.

    `waiting` are statuses that the state does not have; `begun` when the last attempt began, and its builder. `limit`
    are the dollars that the run may cost. `look` says what works on a task now, by its attempt and its checks.
    """

    context: LineContext
    state: RunState = field(default_factory=RunState)
    waiting: dict[str, str] = field(default_factory=dict)
    begun: dict[str, tuple[float, str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    expected: Mapping[str, Expected] = field(default_factory=dict)
    limit: float | None = None
    look: Callable[[str, int, tuple[str, ...]], Now] = lambda *_: Now()
    last: str = ""
    headed: tuple[str, int] = ("", 0)

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        self.context.begin(titles)
        self.waiting = {task: status for task, status in statuses.items() if status in (outcome.READY, outcome.BLOCKED)}

    def take(self, event: Event) -> str | None:
        """Update the board. Return the line of the event if it must stay readable above the table, else None."""
        line = plain_progress.render(event, self.context)
        if line is not None:
            self.last = line.partition("\n")[0].strip()
        if line is not None and event.kind == "evidence.recorded" and _stays(event):
            self.failures[event.task or ""] = line
        if event.seq > self.state.last_seq:
            with contextlib.suppress(*replay.UNREADABLE):
                replay.apply(self.state, event)
        if event.kind == "attempt.started":
            began = datetime.fromisoformat(event.at).timestamp()
            self.begun[event.task or ""] = began, str(event.payload.get("builder") or "?")
        if self._task(event.task or "").status in outcome.DONE:
            self.failures.pop(event.task or "", None)
        return self._under_heading(event, line) if line is not None and _stays(event) else None

    def _under_heading(self, event: Event, line: str) -> str:
        """Return the line, with task and attempt above it if they changed since the last line."""
        heading = (event.task or "", event.attempt or self._task(event.task or "").attempt.number)
        if event.task is None or heading == self.headed:
            return line
        self.headed = heading
        number = f" … attempt {heading[1]}" if heading[1] else ""
        return f"{self.context.task_label(event)}{number}\n{line}"

    def order(self) -> list[str]:
        """Return the tasks in order; if the run did not list them, those seen so far."""
        return list(self.context.titles or self.context.positions or self.state.tasks)

    def window(self, rows: int) -> tuple[list[str], int, int]:
        """Return the tasks around the running one, and how many are hidden before and after them."""
        order = self.order()
        active = [i for i, task in enumerate(order) if self._status(task) == outcome.RUNNING]
        settled = [i for i, task in enumerate(order) if self._status(task) not in _QUIET]
        centre = active[0] if active else max(settled, default=0)
        first = max(0, min(centre - rows // 2, len(order) - rows))
        shown = order[first : first + rows]
        return shown, first, len(order) - first - len(shown)

    def lines(self, now: float, width: int, rows: int, *, failures: bool) -> Iterator[Line]:
        """Yield the board in lines no wider than this. `failures`: with the first lines of checks that failed."""
        shown, before, after = self.window(rows)
        longest = max(map(len, shown), default=0)
        ends = {task: f"{self._status(task):<9}  {self._time(task, now)}".rstrip() for task in shown}
        room = max(8, min(_TITLE, width - longest - max(map(len, ends.values()), default=0) - 6))
        for task in shown:
            yield self._row(task, ends[task], room, longest, width, now)
            if self._status(task) == outcome.RUNNING:
                yield from ((phrases.clip(f"    {text}", width), "") for text in self._work(task))
            if failures and task in self.failures:
                text = self.failures[task].split("\n")[:_FAILURE_LINES]
                yield from ((phrases.clip(line, width), "dim") for line in text)
        hidden = f" ({before} before, {after} after these)" if before or after else ""
        yield phrases.clip(self.summed() + hidden, width), ""
        yield phrases.clip(self.last, width), "dim"

    def _task(self, task: str) -> TaskState:
        return self.state.tasks.get(task) or TaskState(task, "")

    def _status(self, task: str) -> str:
        state = self._task(task)
        status = outcome.RUNNING if state.attempt.running else state.status
        return self.waiting.get(task, status) if status == outcome.PENDING else status

    def _row(self, task: str, end: str, room: int, longest: int, width: int, now: float) -> Line:
        status = self._status(task)
        sign = _TURN[int(now * 8) % len(_TURN)] if status == outcome.RUNNING else " "
        title = phrases.clip(self.context.text(self.context.titles.get(task, "")), room)
        return phrases.clip(f"{sign} {task:<{longest}}  {title:<{room}}  {end}", width), _STYLES.get(status, "")

    def _time(self, task: str, now: float) -> str:
        """Return how long a task took; of a running one, also how long it is expected to take."""
        state, expected = self._task(task), self.expected.get(task, Expected()).seconds
        seconds = state.progress.seconds
        if state.attempt.running and task in self.begun:
            seconds += now - self.begun[task][0]
        words = phrases.duration(seconds) if state.attempt.number else ""
        if state.attempt.running and expected is not None:
            words += f" of ~{phrases.duration(expected)}"
        return words + (f" attempt {state.attempt.number}" if state.attempt.number > 1 else "")

    def _work(self, task: str) -> Iterator[str]:
        """Yield what works on a task, the last line of its agent, and what it used so far."""
        state = self._task(task)
        now = self.look(task, state.attempt.number, self.expected.get(task, Expected()).commands)
        agent = f"agent {self.begun[task][1]}" if now.words == "agent" and task in self.begun else now.words
        words = [text for text in (agent, now.line) if text]
        if words:
            yield self.context.text(": ".join(words))
        tokens, cost = state.progress.spent.tokens + (now.tokens or 0), state.progress.spent.cost_usd
        used = [*([f"{tokens} tokens"] if tokens else []), *([phrases.money(cost)] if cost else [])]
        if used:
            yield f"{', '.join(used)} so far"

    def summed(self) -> str:
        values = [self._status(task) for task in self.order()]
        parts = [f"{values.count(s)} {s}" for s in _STYLES if s not in _QUIET and s in values]
        done = f"{', '.join(parts) or 'nothing done yet'} of {phrases.counted(len(values), 'task')}"
        cost = spending.total(self.state.spent.values()).cost_usd
        limit = f" of {phrases.money(self.limit)}" if self.limit is not None else ""
        return done + (f", {phrases.money(cost)}{limit}" if cost or limit else "")
