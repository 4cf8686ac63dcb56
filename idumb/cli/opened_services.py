"""Opens and closes the services that a command runs with, and reports the progress of a run."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from idumb.app.ports import Asker, Reporter
from idumb.cli import output
from idumb.composition.container import Container
from idumb.domain.errors import IdumbError, Interrupted
from idumb.domain.settings import ASK_TIMEOUT, DECISION, FAILED, FINISHED, Notify
from idumb.git import discover
from idumb.markdown import single_settings
from idumb.system import signals

if TYPE_CHECKING:
    from idumb.domain.runs.event import Event


@contextlib.contextmanager
def opened(*, as_json: bool, events: bool = False, progress: bool = False, writes: bool = False) -> Iterator[Container]:
    """Yield the services of the repository that contains the current folder.

    With `progress` or `writes`, a signal does not end the process: tasks stop at the next safe point.
    """
    notify = single_settings.notify() if progress else None
    container = Container(
        os.getcwd(),
        lambda: _asker(container, as_json=as_json or events),
        lambda: _reporter(container, notify, as_json=as_json, events=events, progress=progress),
        lambda number: _report_forced_stop(number, as_json=as_json),
    )
    container.change_setting = functools.partial(_change_setting, container)
    signals.keep_exit_codes()
    output.redact_by(lambda: container.redactor)
    _note_unused_project(container.project)
    if progress or writes:
        container.interrupts.install()
    try:
        yield container
    finally:
        stop = getattr(container.__dict__.get("reporter"), "stop", None)
        if stop is not None:
            stop()
        container.close()


def _note_unused_project(project: discover.Project) -> None:
    """Warn if the command was started in a folder whose own plans or configuration are not used."""
    folder = discover.unused_project(os.getcwd(), project)
    if folder is not None:
        output.note(
            f"Plans and settings of {folder}/ are not used: idumb uses those of {project.root}, the project around it."
            " See idumb help configuration"
        )


def _asker(container: Container, *, as_json: bool) -> Asker:
    from idumb.views.terminal import ask

    if as_json:
        return ask.Nobody()
    return ask.at_terminal(container.interrupts.armed, lambda: _ask_timeout(container), output.redacted)


def _ask_timeout(container: Container) -> float:
    """Return how many seconds a question waits; the default if the configuration is unreadable, reported elsewhere."""
    try:
        return float(container.settings.ask.get("timeout", ASK_TIMEOUT))
    except (IdumbError, OSError):
        return float(ASK_TIMEOUT)


def _change_setting(container: Container, name: str, value: str) -> None:
    from idumb.cli import configuring

    configuring.change(container, name, value)


def _reporter(container: Container, notify: Notify | None, *, as_json: bool, events: bool, progress: bool) -> Reporter:
    shown: Reporter = Silent()
    if events:
        shown = EventLines(sys.stdout)
    elif progress and not as_json:
        shown = for_people(container)
    return shown if notify is None else Notifying(shown, notify, container.root)


def _report_forced_stop(number: int, *, as_json: bool) -> None:
    """Report a second stop signal, on a stream of its own: the process ends at once, whatever it was writing."""
    if as_json and output.has_printed_object():
        return  # the command has its answer and is about to exit
    if as_json:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    else:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\n")  # the live display hides the cursor
    stopped = Interrupted(number)
    stopped.message = "Stopped at once. The next idumb resume recovers the interrupted work"
    output.fail(output.command_in(sys.argv[1:]), stopped, as_json=as_json)


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
        from idumb.views.terminal.plain_progress import QuietStream

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
        told = _notice(event, asked=self._asked)
        self._asked = self._asked or event.kind == "decision.asked"
        if told is not None and told["kind"] in self._notify.on:
            from idumb.system import notices

            texts = {name: output.redacted(text) for name, text in told.items()}
            notices.send({**texts, "repository": self._repository}, self._notify.ways)

    def stop(self) -> None:
        stop = getattr(self._inner, "stop", None)
        if stop is not None:
            stop()


def _notice(event: Event, *, asked: bool) -> dict[str, str] | None:
    """Return the notice that an event calls for; None if it calls for none.

    If the run has `asked` a person, the notice of that question also covers its halt.
    """
    following = "idumb status"
    if event.kind == "run.completed":
        kind, words = FINISHED, "The run has ended: every task is settled"
    elif event.kind == "run.failed" or (event.kind == "run.halted" and not asked):
        kind, words = FAILED, f"The run stopped: {event.payload.get('reason') or 'tasks failed'}"
    elif event.kind == "decision.asked":
        kind, words, following = DECISION, str(event.payload["what"]), "idumb decisions"
    else:
        return None
    return {"kind": kind, "run": event.run or "", "task": event.task or "", "words": words, "next": following}


def for_people(services: Container) -> Reporter:
    """Return a live display if the terminal can draw one, else plain lines."""
    from idumb.system import child_process

    variables = child_process.environment(["TERM", "CI", "TTY_COMPATIBLE"])
    capable = variables.get("TERM", "dumb") not in {"dumb", "unknown"} and variables.get("TTY_COMPATIBLE") != "0"
    if sys.stderr.isatty() and capable and "CI" not in variables:
        from idumb.cli import watching
        from idumb.views.terminal.live_progress import LiveProgress

        return LiveProgress(sys.stderr, output.shown, sight=watching.Sight(services, os.getpid()))
    from idumb.views.terminal.plain_progress import PlainProgress

    return PlainProgress(sys.stderr, escape=output.shown)
