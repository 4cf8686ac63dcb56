"""The board of a run: a line for each task, and what works on the running ones. Nothing draws here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from idumb.app.reading.watch import Expected, Now
from idumb.domain import outcome
from idumb.domain.proof import evidence
from idumb.domain.runs import spending
from idumb.domain.runs.event import Event
from idumb.domain.runs.spending import Spent
from idumb.views import phrases
from idumb.views.terminal import plain_progress
from idumb.views.terminal.plain_progress import LineContext

_STATUS = {
    "attempt.started": outcome.RUNNING,
    "attempt.interrupted": outcome.PENDING,
    "task.completed": outcome.COMPLETED,
    "task.carried": outcome.COMPLETED,
    "task.accepted": outcome.ACCEPTED,
    "task.failed": outcome.FAILED,
    "task.skipped": outcome.SKIPPED,
    "task.omitted": outcome.OMITTED,
    "task.waiting": outcome.WAITING,
    "task.reset": outcome.PENDING,
}
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
    """`since` and `took` are seconds of the monotonic clock, `spent` what ended calls used, by task.

    `limit` are the dollars that the run may cost. `look` says what works on a task now, by its attempt and the
    commands of its checks.
    """

    context: LineContext
    status: dict[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    attempt: dict[str, int] = field(default_factory=dict)
    builder: dict[str, str] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    counted: set[tuple[str, int | None, str]] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)
    expected: Mapping[str, Expected] = field(default_factory=dict)
    limit: float | None = None
    look: Callable[[str, int, tuple[str, ...]], Now] = lambda *_: Now()
    last: str = ""
    headed: tuple[str, int] = ("", 0)

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        self.context.begin(titles)
        self.status = dict(statuses)

    def take(self, event: Event, now: float) -> str | None:
        """Update the board. Return the line of the event if it must stay readable above the table, else None."""
        line = plain_progress.render(event, self.context)
        if line is not None:
            self.last = line.partition("\n")[0].strip()
        if line is not None and event.kind == "evidence.recorded" and _stays(event):
            self.failures[event.task or ""] = line
        self._place(event, now)
        return self._under_heading(event, line) if line is not None and _stays(event) else None

    def _under_heading(self, event: Event, line: str) -> str:
        """Return the line, with task and attempt above it if they changed since the last line."""
        heading = (event.task or "", event.attempt or self.attempt.get(event.task or "", 0))
        if event.task is None or heading == self.headed:
            return line
        self.headed = heading
        number = f" … attempt {heading[1]}" if heading[1] else ""
        return f"{self.context.task_label(event)}{number}\n{line}"

    def _place(self, event: Event, now: float) -> None:
        task, status = event.task, _STATUS.get(event.kind)
        if task is not None and event.kind == "attempt.finished":
            self._count(event, task, "builder", "validator")
        elif event.kind == "role.asked":
            self._add("", event.payload)
        if task is None or status is None:
            return
        if status == outcome.RUNNING:
            self.since[task] = now
            self.attempt[task] = event.attempt or 1
            self.builder[task] = str(event.payload.get("builder") or "")
        elif task in self.since:
            self.took[task] = self.took.get(task, 0.0) + now - self.since.pop(task)
        self.status[task] = status
        if status in outcome.DONE:
            self.failures.pop(task, None)

    def _count(self, event: Event, task: str, *roles: str) -> None:
        """Add what the calls of an attempt used: one that waited ends twice, and repeats what it used."""
        for role in roles:
            call, key = event.payload.get(role), (task, event.attempt, role)
            if call and key not in self.counted:
                self.counted.add(key)
                self._add(task, call)

    def _add(self, task: str, call: Mapping[str, Any]) -> None:
        """Add what a call used, as far as it said that; "" is the task of those about the phase."""
        spending.charge(self.spent, task, spending.spent_by_call(call.get("usage")))

    def order(self) -> list[str]:
        """Return the tasks in order; if the run did not list them, those seen so far."""
        return list(self.context.titles or self.context.positions or self.status)

    def window(self, rows: int) -> tuple[list[str], int, int]:
        """Return the tasks around the running one, and how many are hidden before and after them."""
        order = self.order()
        active = [i for i, task in enumerate(order) if self.status.get(task) == outcome.RUNNING]
        settled = [i for i, task in enumerate(order) if self.status.get(task, outcome.PENDING) not in _QUIET]
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
            if self.status.get(task) == outcome.RUNNING:
                yield from ((phrases.clip(f"    {text}", width), "") for text in self._work(task))
            if failures and task in self.failures:
                text = self.failures[task].split("\n")[:_FAILURE_LINES]
                yield from ((phrases.clip(line, width), "dim") for line in text)
        hidden = f" ({before} before, {after} after these)" if before or after else ""
        yield phrases.clip(self.summed() + hidden, width), ""
        yield phrases.clip(self.last, width), "dim"

    def _status(self, task: str) -> str:
        return self.status.get(task, outcome.PENDING)

    def _row(self, task: str, end: str, room: int, longest: int, width: int, now: float) -> Line:
        status = self._status(task)
        sign = _TURN[int(now * 8) % len(_TURN)] if status == outcome.RUNNING else " "
        title = phrases.clip(self.context.text(self.context.titles.get(task, "")), room)
        return phrases.clip(f"{sign} {task:<{longest}}  {title:<{room}}  {end}", width), _STYLES.get(status, "")

    def _time(self, task: str, now: float) -> str:
        """Return how long a task took; of a running one, also how long it is expected to take."""
        started = self.since.get(task)
        seconds = self.took.get(task) if started is None else self.took.get(task, 0.0) + now - started
        expected = self.expected.get(task, Expected()).seconds
        words = "" if seconds is None else phrases.duration(seconds)
        if started is not None and expected is not None:
            words += f" of ~{phrases.duration(expected)}"
        return words + (f" attempt {self.attempt[task]}" if self.attempt.get(task, 1) > 1 else "")

    def _work(self, task: str) -> Iterator[str]:
        """Yield what works on a task, the last line of its agent, and what it used so far."""
        now = self.look(task, self.attempt.get(task, 1), self.expected.get(task, Expected()).commands)
        agent = f"agent {self.builder.get(task) or '?'}" if now.words == "agent" else now.words
        words = [text for text in (agent, now.line) if text]
        if words:
            yield self.context.text(": ".join(words))
        spent = self.spent.get(task, Spent())
        tokens = spent.tokens + (now.tokens or 0)
        used = [f"{tokens} tokens"] if tokens else []
        used += [phrases.money(spent.cost_usd)] if spent.cost_usd else []
        if used:
            yield f"{', '.join(used)} so far"

    def summed(self) -> str:
        values = list(self.status.values())
        total = len(self.order())
        parts = [f"{values.count(s)} {s}" for s in _STYLES if s not in _QUIET and s in values]
        done = f"{', '.join(parts) or 'nothing done yet'} of {phrases.counted(total, 'task')}"
        cost = spending.total(self.spent.values()).cost_usd
        limit = f" of {phrases.money(self.limit)}" if self.limit is not None else ""
        return done + (f", {phrases.money(cost)}{limit}" if cost or limit else "")
