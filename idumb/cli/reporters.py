"""Who watches a run: nobody, a program that reads event lines, or a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from idumb.app import ports
    from idumb.bootstrap import Wired
    from idumb.domain.event import Event


class Silent:
    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class EventLines:
    """One event a line, as JSON, once it is durable. A reader that goes away does not stop the run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        pass

    def event(self, event: Event) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(json.dumps(event.as_dict(), ensure_ascii=True) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None

    def note(self, text: str) -> None:
        pass


def for_people(wired: Wired) -> ports.Reporter:
    """A live display on a terminal, plain lines elsewhere."""
    import os
    import sys

    from idumb.system import escaping

    titles: dict[str, str] = {}
    capable = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")
    if capable:
        from idumb.views.progress_live import LiveProgress

        return LiveProgress(sys.stderr, titles, escape=escaping.show)
    from idumb.views.progress_plain import PlainProgress

    return PlainProgress(sys.stderr, titles, escape=escaping.show)
