"""Who watches a run: nobody, a program that reads event lines, or a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from idumb.cli import output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from idumb.app.ports.ui import Reporter
    from idumb.domain.runs.event import Event


class Silent:
    """What is noted goes with the answer."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        pass

    def note(self, text: str) -> None:
        output.note(text)


class EventLines:
    """One event a line, as JSON, once it is durable, and notes. A reader that goes away does not stop the run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        self._write(event.as_dict())

    def note(self, text: str) -> None:
        self._write({"kind": "note", "task": None, "payload": {"text": text}})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(output.as_line(line))
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


def for_people() -> Reporter:
    """A live display on a terminal that can draw one, plain lines elsewhere."""
    import sys

    from idumb.system.processes import child_process

    known = child_process.environment(["TERM", "CI"])
    if sys.stderr.isatty() and known.get("TERM", "dumb") != "dumb" and "CI" not in known:
        from idumb.views.progress_live import LiveProgress

        return LiveProgress(sys.stderr, escape=_shown)
    from idumb.views.progress_plain import PlainProgress

    return PlainProgress(sys.stderr, escape=_shown)


def _shown(text: str) -> str:
    return output.escaped(output.redacted(text))
