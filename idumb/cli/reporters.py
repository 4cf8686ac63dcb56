"""Reports the progress of a run: silently, as event lines for programs, or for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from idumb.cli import output
from idumb.domain import notice
from idumb.system.processes import notices
from idumb.views.terminal.plain_progress import PlainProgress, QuietStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from idumb.app.ports.process import Reporter
    from idumb.composition.container import Container
    from idumb.domain.notice import Notify
    from idumb.domain.runs.event import Event


class Silent:
    """Adds notes to the answer's warnings."""

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        pass

    def note(self, text: str) -> None:
        output.note(text)


class EventLines(Silent):
    """Writes each durable event and each note as a JSON line. The run continues if the reader goes away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = QuietStream(stream)

    def event(self, event: Event) -> None:
        self._write(event.as_dict())

    def note(self, text: str) -> None:
        self._write({"kind": "note", "task": None, "payload": {"text": text}})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._stream.write(output.as_line(line))
        self._stream.flush()


class Notifying:
    """Passes everything to another reporter, and sends notices as the user's own file says."""

    def __init__(self, inner: Reporter, notify: Notify, repository: str) -> None:
        self._inner, self._notify, self._repository = inner, notify, repository
        self._asked = False

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        self._inner.begin(titles, statuses)

    def note(self, text: str) -> None:
        self._inner.note(text)

    def event(self, event: Event) -> None:
        self._inner.event(event)
        told = notice.of_event(event, asked=self._asked)
        self._asked = self._asked or event.kind == "decision.asked"
        if told is not None and told["kind"] in self._notify.on:
            texts = {name: output.redacted(text) for name, text in told.items()}
            notices.send({**texts, "repository": self._repository}, self._notify.ways)

    def stop(self) -> None:
        stop = getattr(self._inner, "stop", None)
        if stop is not None:
            stop()


def for_people(services: Container) -> Reporter:
    """Return a live display if the terminal can draw one, else plain lines."""
    import os
    import sys

    from idumb.system.processes import child_process

    variables = child_process.environment(["TERM", "CI", "TTY_COMPATIBLE"])
    capable = variables.get("TERM", "dumb") not in {"dumb", "unknown"} and variables.get("TTY_COMPATIBLE") != "0"
    if sys.stderr.isatty() and capable and "CI" not in variables:
        from idumb.cli import watching
        from idumb.views.terminal.live_progress import LiveProgress

        return LiveProgress(sys.stderr, output.shown, sight=watching.Sight(services, os.getpid()))

    return PlainProgress(sys.stderr, escape=output.shown)
