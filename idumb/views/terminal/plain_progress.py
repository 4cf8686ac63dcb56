"""Progress as plain lines: for pipes, logs and terminals that cannot do more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO

from idumb.domain.runs.event import Event
from idumb.views import markup
from idumb.views.terminal import event_line


class PlainProgress:
    """A `Reporter`. `titles` maps task id to title in execution order; it may be filled after this is made.

    `escape` makes foreign text safe for a terminal. A stream that fails is given up; the run goes on.
    """

    def __init__(
        self, stream: TextIO, titles: Mapping[str, str] | None = None, escape: Callable[[str], str] = markup.visible
    ) -> None:
        self._stream: TextIO | None = stream
        self._known = event_line.Knowledge({} if titles is None else titles, escape)

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        del statuses  # lines tell what happens, not where everything is
        self._known.begin(titles)

    def event(self, event: Event) -> None:
        line = event_line.render(event, self._known)
        if line is not None:
            self._write(line)

    def note(self, text: str) -> None:
        self._write(self._known.escape(text))

    def _write(self, line: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # A closed pipe or a full disk behind the progress is no reason to stop the work.
            self._stream = None
