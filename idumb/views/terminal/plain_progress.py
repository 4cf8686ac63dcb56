"""Progress as plain lines, for pipes, logs and simple terminals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO

from idumb.domain.runs.event import Event
from idumb.views import markup
from idumb.views.terminal import event_line


class PlainProgress:
    """A `Reporter` that prints lines. `titles` maps task id to title in execution order and may be filled later.

    `escape` makes foreign text safe for a terminal. If the stream fails, output stops and the run continues.
    """

    def __init__(
        self, stream: TextIO, titles: Mapping[str, str] | None = None, escape: Callable[[str], str] = markup.visible
    ) -> None:
        self._stream: TextIO | None = stream
        self._known = event_line.LineContext({} if titles is None else titles, escape)

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        del statuses  # lines show events, not the whole state
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
            # A closed pipe or a full disk must not stop the run.
            self._stream = None
