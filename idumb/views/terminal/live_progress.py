"""Progress on a terminal that can redraw: a table of tasks with their state and time.

Failures and notes are printed above the table and stay there. All text is plain text to rich, never markup. If the
terminal fails, output stops and the run continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TextIO, cast

from idumb.domain import outcome
from idumb.domain.runs.event import Event
from idumb.lazy_dataclass import dataclass
from idumb.views import markup, quantities
from idumb.views.terminal import ask, plain_progress
from idumb.views.terminal.plain_progress import LineContext, QuietStream

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_ROWS = 12
_TITLE_WIDTH = 48
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


def _stays(event: Event) -> bool:
    if event.kind == "evidence.recorded":
        return event.payload.get("result") in plain_progress.FAILED
    if event.kind == "attempt.finished":
        return event.payload.get("outcome") not in {outcome.COMPLETED, outcome.WAITING}
    return event.kind in _STAYING


@dataclass(slots=True)
class Board:
    """The state shown, built from events alone; `since` and `took` are seconds of the monotonic clock."""

    context: LineContext
    status: dict[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    attempt: dict[str, int] = field(default_factory=dict)
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
        if task is None or status is None:
            return
        if status == outcome.RUNNING:
            self.since[task] = now
            self.attempt[task] = event.attempt or 1
        elif task in self.since:
            self.took[task] = self.took.get(task, 0.0) + now - self.since.pop(task)
        self.status[task] = status

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

    def seconds(self, task: str, now: float) -> float | None:
        started = self.since.get(task)
        if started is None:
            return self.took.get(task)
        return self.took.get(task, 0.0) + now - started

    def summed(self) -> str:
        values = list(self.status.values())
        total = len(self.order())
        parts = [f"{values.count(s)} {s}" for s in _STYLES if s not in _QUIET and s in values]
        return f"{', '.join(parts) or 'nothing done yet'} of {quantities.counted(total, 'task')}"


class LiveProgress:
    """A `Reporter` that redraws a table."""

    def __init__(
        self, stream: TextIO, escape: Callable[[str], str] = markup.visible, clock: Callable[[], float] = time.monotonic
    ) -> None:
        from rich.console import Console

        self.board = Board(LineContext(escape=escape))
        self.clock = clock
        quiet = cast("TextIO", QuietStream(stream))
        self._console: Console = Console(file=quiet, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._held: list[str] | None = None  # lines held back during a question

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        self.board.begin(titles, statuses)

    def event(self, event: Event) -> None:
        line = self.board.take(event, self.clock())
        if line is not None:
            self._print(line)
        if event.kind == "attempt.started":
            self.show()

    def note(self, text: str) -> None:
        self._print(self.board.context.escape(text))

    def _print(self, line: str) -> None:
        from rich.text import Text

        if self._held is not None:
            self._held.append(line)
        else:
            self._console.print(Text(line), soft_wrap=True)

    def pause(self) -> None:
        self._end()
        self._held = []

    def resume(self) -> None:
        """Print the lines that were held back. The next attempt starts the table again."""
        held, self._held = self._held or [], None
        for line in held:
            self._print(line)

    def stop(self) -> None:
        """Stop and leave the last table on the screen."""
        self._end()
        ask.remove_display(self)

    def frame(self) -> None:
        """Print the table as it is now."""
        self._console.print(self.picture())

    def show(self) -> None:
        """Show the table, and redraw it until `stop`."""
        from rich.live import Live

        if self._live is None:
            # Everything is printed above the table by this class; a question must reach the terminal as it is.
            self._live = Live(
                get_renderable=self.picture,
                console=self._console,
                refresh_per_second=8,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            ask.register_display(self)
            self._live.start()

    def _end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def picture(self) -> RenderableType:
        """Return the current table; rich calls this several times a second."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        now = self.clock()
        shown, before, after = self.board.window(max(3, min(_ROWS, self._console.height - 6)))
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for task in shown:
            table.add_row(*self._row(task, now))
        hidden = f" ({before} before, {after} after these)" if before or after else ""
        width = max(20, self._console.width - 1)
        return Group(
            table,
            Text(quantities.clip(self.board.summed() + hidden, width)),
            Text(quantities.clip(self.board.last, width), style="dim"),
        )

    def _row(self, task: str, now: float) -> tuple[Any, ...]:
        from rich.spinner import Spinner
        from rich.text import Text

        status = self.board.status.get(task, outcome.PENDING)
        style = _STYLES.get(status, "")
        seconds = self.board.seconds(task, now)
        took = "" if seconds is None else quantities.duration(seconds)
        if self.board.attempt.get(task, 1) > 1:
            took += f" attempt {self.board.attempt[task]}"
        title = quantities.clip(self.board.context.text(self.board.context.titles.get(task, "")), _TITLE_WIDTH)
        sign = Spinner("line", style=style) if status == outcome.RUNNING else Text(" ")
        return sign, Text(task), Text(title), Text(status, style=style), Text(took)
