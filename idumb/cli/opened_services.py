"""Opens and closes the services that a command runs with."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from idumb.app.ports.process import Asker, Reporter
from idumb.cli import output
from idumb.composition.container import Container
from idumb.domain.errors import IdumbError, Interrupted, Refusal
from idumb.domain.notice import Notify
from idumb.domain.settings import ASK_TIMEOUT
from idumb.git import discover
from idumb.markdown import single_settings


@contextlib.contextmanager
def opened(*, as_json: bool, events: bool = False, progress: bool = False, writes: bool = False) -> Iterator[Container]:
    """Yield the services of the repository that contains the current folder.

    With `progress` or `writes`, a signal does not end the process: tasks stop at the next safe point.
    """
    if progress and sys.platform == "win32":
        raise Refusal("system.windows", "Running plans is not supported on Windows; commands that only read work.")
    notify = single_settings.notify() if progress else None
    container = Container(
        os.getcwd(),
        lambda: _asker(container, as_json=as_json or events),
        lambda: _reporter(container, notify, as_json=as_json, events=events, progress=progress),
        lambda number: _report_forced_stop(number, as_json=as_json),
    )
    container.change_setting = lambda name, value: _change_setting(container, name, value)
    if sys.platform != "win32":
        from idumb.system.processes import signals

        signals.keep_exit_codes()
    output.redact_by(lambda: container.redaction)
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
    from idumb.cli import reporters

    shown: Reporter
    if events:
        shown = reporters.EventLines(sys.stdout)
    else:
        shown = reporters.Silent() if as_json or not progress else reporters.for_people(container)
    return shown if notify is None else reporters.Notifying(shown, notify, container.root)


def _report_forced_stop(number: int, *, as_json: bool) -> None:
    """Report a second stop signal, bypassing all buffers: the process ends at once."""
    if as_json and output.has_printed_object():
        return  # the command has its answer and is about to exit
    import json

    from idumb.cli import main
    from idumb.domain import refusals
    from idumb.views import answer

    interrupted = Interrupted(number)
    message = "Stopped at once. The next idumb resume recovers the interrupted work"
    error: dict[str, Any] = {
        "code": interrupted.code,
        "message": message,
        "hint": interrupted.hint,
        "details": refusals.failed(message, {}, interrupted=True),
    }
    if as_json:
        os.write(1, json.dumps(answer.whole(main.named(sys.argv[1:]), data={}, error=error)).encode("ascii") + b"\n")
    else:
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(2, b"\x1b[?25h\n")  # the live display hides the cursor
        os.write(2, f"idumb: {message} [{interrupted.code}]\n  next: {interrupted.hint}\n".encode("ascii"))
