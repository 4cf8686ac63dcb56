"""Reports the progress of a run: silently, as event lines for programs, or for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from idumb.cli import output
from idumb.views.terminal.plain_progress import PlainProgress, QuietStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from idumb.app.ports.process import Reporter
    from idumb.domain.runs.event import Event


class Silent:
    """Adds notes to the answer's warnings."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        pass

    def note(self, text: str) -> None:
        output.note(text)


class EventLines:
    """Writes each durable event and each note as a JSON line. The run continues if the reader goes away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = QuietStream(stream)

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        self._write(event.as_dict())

    def note(self, text: str) -> None:
        self._write({"kind": "note", "task": None, "payload": {"text": text}})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._stream.write(output.as_line(line))
        self._stream.flush()


def for_people() -> Reporter:
    """Return a live display if the terminal can draw one, else plain lines."""
    import sys

    from idumb.system.processes import child_process

    variables = child_process.environment(["TERM", "CI", "TTY_COMPATIBLE"])
    capable = variables.get("TERM", "dumb") not in {"dumb", "unknown"} and variables.get("TTY_COMPATIBLE") != "0"
    if sys.stderr.isatty() and capable and "CI" not in variables:
        from idumb.views.terminal.live_progress import LiveProgress

        return LiveProgress(sys.stderr, escape=output.shown)

    return PlainProgress(sys.stderr, escape=output.shown)
