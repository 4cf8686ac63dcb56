"""Progress on a terminal that can redraw: the board of the run.

Failures and notes are printed above the board and stay there. All text is plain text to rich, never markup. If the
terminal fails, output stops and the run continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from idumb.domain.runs.event import Event
from idumb.system.clock import nanoseconds
from idumb.views import markup
from idumb.views.terminal import ask
from idumb.views.terminal.board import Board
from idumb.views.terminal.plain_progress import LineContext, QuietStream

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from idumb.app.reading.watch import Expected, Now
    from idumb.domain.runs.run import RunState

_ROWS = 12


class Sight(Protocol):
    """Sees what a run does now, and knows its state, what is expected of its tasks, and what it may cost."""

    def known(self, run: str) -> tuple[RunState, Mapping[str, Expected], float | None]: ...

    def look(self, task: str, attempt: int, commands: tuple[str, ...]) -> Now: ...


class LiveProgress:
    """A `Reporter` that redraws a board."""

    def __init__(
        self,
        stream: TextIO,
        escape: Callable[[str], str] = markup.visible,
        clock: Callable[[], float] = lambda: nanoseconds() / 1e9,
        sight: Sight | None = None,
    ) -> None:
        from rich.console import Console

        self.board = Board(LineContext(escape=escape))
        self.clock = clock
        self._sight, self._has_seen = sight, False
        quiet = cast("TextIO", QuietStream(stream))
        self._console: Console = Console(file=quiet, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._held: list[str] | None = None  # lines held back during a question

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        self.board.begin(titles, statuses)

    def event(self, event: Event) -> None:
        line = self.board.take(event)
        if line is not None:
            self._print(line)
        if event.kind == "decision.answered":
            self._has_seen = False  # a person may have raised what the run may cost
        if event.kind == "attempt.started":
            self.see(event.run or "")
            self.show()

    def see(self, run: str) -> None:
        """Let the board show what works on the tasks of a run, how long that takes, and what it may cost.

        What is known is read from the whole run, so not for each attempt.
        """
        if self._sight is not None and not self._has_seen:
            self._has_seen = True
            state, self.board.expected, self.board.limit = self._sight.known(run)
            # That of a dry run is in another log.
            self.board.state = max(self.board.state, state, key=lambda each: each.last_seq)
            self.board.look = self._sight.look

    def note(self, text: str) -> None:
        self._print(self.board.context.escape(text))

    def _print(self, line: str) -> None:
        from rich.text import Text

        if self._held is not None:
            self._held.append(line)
        else:
            self._console.print(Text(line), soft_wrap=True)

    def pause(self) -> None:
        """Take the board away: a question is on the terminal."""
        if self._live is not None:
            self._live.transient = True
        self._end()
        self._held = []

    def resume(self) -> None:
        """Print the lines that were held back. The next attempt starts the board again."""
        held, self._held = self._held or [], None
        for line in held:
            self._print(line)

    def stop(self) -> None:
        """Stop and leave the last board on the screen."""
        self._end()
        ask.displays.discard(self)

    def frame(self) -> None:
        """Print the board as it is now."""
        self._console.print(self.picture(failures=True))

    def show(self) -> None:
        """Show the board, and redraw it until `stop`."""
        from rich.live import Live

        if self._live is None:
            # Everything is printed above the board by this class; a question must reach the terminal as it is.
            self._live = Live(
                get_renderable=self.picture,
                console=self._console,
                refresh_per_second=8,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            ask.displays.add(self)
            self._live.start()

    def _end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def picture(self, *, failures: bool = False) -> RenderableType:
        """Return the current board; rich calls this several times a second."""
        from rich.console import Group
        from rich.text import Text

        width, rows = max(20, self._console.width - 1), max(3, min(_ROWS, self._console.height - 6))
        lines = self.board.lines(self.clock(), width, rows, failures=failures)
        return Group(*(Text(text, style=style) for text, style in lines))
