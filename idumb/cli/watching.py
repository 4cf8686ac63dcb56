"""Shows a run of another process on this terminal, as that process shows it on its own."""

from __future__ import annotations

import contextlib
import gc
import glob
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from idumb.app.core import run_lookup
from idumb.app.core.services import Result
from idumb.app.reading import watch
from idumb.app.reading.watch import Expected, Now
from idumb.app.upkeep import event_log
from idumb.cli import output
from idumb.composition import before_services
from idumb.domain import errors
from idumb.system import process_tree
from idumb.views import answer
from idumb.views.terminal.live_progress import LiveProgress
from idumb.views.terminal.plain_progress import PlainProgress

if TYPE_CHECKING:
    from idumb.app.ports import Reporter
    from idumb.composition.container import Container
    from idumb.domain.runs.run import RunState

_EVENTS = 8
_RINGS = frozenset({"decision.asked", "run.completed", "run.failed", "run.halted", "run.paused"})


def once(services: Container, phase: str | None, *, as_json: bool) -> Result:
    """Return the run as it is now; as text, one frame is printed."""
    state = watch.newest(services, phase)
    if not as_json:
        display, _ = _replayed(services, state, sys.stdout)
        display.frame()
    return Result(watch.summary(services, state))


@contextlib.contextmanager
def _until_interrupted() -> Iterator[None]:
    """End the command on Ctrl-C without a word, as every program does that follows something: nothing went wrong."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(errors.EXIT_INTERRUPTED) from None


@_until_interrupted()
def follow(services: Container, phase: str | None, *, bell: bool) -> Result:
    """Show the run and those after it, until Ctrl-C; without a terminal, until the run ends."""
    is_terminal = sys.stdout.isatty()
    shown = 0
    while True:
        state = watch.newest(services, phase)
        if state.last_seq > shown:
            shown = max(shown, _follow(services, state, shown, live=is_terminal, bell=bell))
        if not is_terminal:
            return Result(watch.summary(services, watch.newest(services, phase)))
        services.clock.pause(watch.PAUSE)


def _follow(services: Container, state: RunState, after: int, *, live: bool, bell: bool) -> int:
    """Show a run from its first event, in silence up to `after`, until nobody works on it. Return the last event."""
    if live:
        display, last = _replayed(services, state, sys.stdout)
        display.show()
        try:
            return _report_events(services, state.id, display, max(after, last), bell=bell)
        finally:
            display.stop()
    lines = PlainProgress(sys.stdout, escape=output.shown)
    lines.begin(*watch.described(services, state))
    return _report_events(services, state.id, lines, after, bell=bell)


def _report_events(services: Container, run: str, reporter: Reporter, after: int, *, bell: bool) -> int:
    """Report the events of a run after this one, until nobody works on it. Return the last event."""
    for event in watch.events(services, run, after=after):
        reporter.event(event)
        after = event.seq
        if bell and event.kind in _RINGS:
            sys.stdout.write("\a")
            sys.stdout.flush()
    return after


@_until_interrupted()
def everything(services: Container, *, once: bool) -> Result:
    """Return every phase and the newest events; at a terminal, show them again whenever something changes."""
    if once or not sys.stdout.isatty():
        return Result(_everything(services))
    from rich.live import Live
    from rich.text import Text

    seen: object = None
    with Live(screen=True, auto_refresh=False) as live:
        while True:
            now = services.log.head(), services.owner.holder()
            if now != seen:
                seen = now
                lines = output.redacted(answer.render("monitoring.everything", _everything(services))).splitlines()
                shown = "\n".join(lines[-live.console.height :])  # below are the newest phases and the next command
                gc.enable()  # making the view of the status switches it off, as if the command ended then
                live.update(Text(shown, no_wrap=True, overflow="ellipsis"), refresh=True)
            services.clock.pause(watch.PAUSE)


def _everything(services: Container) -> dict[str, Any]:
    events = list(services.log.events(newest_first=True, limit=_EVENTS))
    return {
        "status": before_services.refreshed_status(services),
        "events": [event.as_dict() for event in reversed(events)],
    }


@_until_interrupted()
def follow_log(services: Container, phase: str | None, run: str | None, task: str | None, **filters: Any) -> None:
    """Print the events that match, then each new one, until nobody works on the run."""
    run = run or watch.newest(services, phase).id
    head = services.log.head()[0]  # before the events are read, so that none falls between
    shown = event_log.list_events(services, phase=None, run=run, task=task, **filters).data["events"]
    last = max([head, *(row["seq"] for row in shown)])
    _print_events(shown)
    chosen = event_log.selections_of(filters["kind"])
    for event in watch.events(services, run, after=last):
        fits = not chosen or any(one.kind == event.kind and one.fits(event.payload) for one in chosen)
        if fits and task in (None, event.task):
            _print_events([event.as_dict()])


def _print_events(rows: list[dict[str, Any]]) -> None:
    if rows:
        output.write(sys.stdout, answer.render("look.log", {"events": rows}))


def _replayed(services: Container, state: RunState, stream: TextIO) -> tuple[LiveProgress, int]:
    """Return a display that shows the present without having printed anything, and the last event."""
    last, holder = 0, services.owner.holder() or {"standing": "elsewhere"}
    pid = None if holder["standing"] == "elsewhere" else holder["pid"]
    display = LiveProgress(stream, output.shown, sight=Sight(services, pid))
    display.begin(*watch.described(services, state))
    for event in services.log.events(run=state.id):
        display.board.take(event)
        last = event.seq
    display.see(state.id)
    return display, last


class Sight:
    """What the programs of a run do now. `pid` is the process that works on it; None if that is not here."""

    def __init__(self, services: Container, pid: int | None) -> None:
        self._services, self._pid, self._folder = services, pid, ""
        self._seen: dict[tuple[str, int], tuple[float, Now]] = {}

    def known(self, run: str) -> tuple[RunState, Mapping[str, Expected], float | None]:
        self._folder = self._services.transcripts_of(run)
        state = run_lookup.run_of(self._services, run)
        return state, watch.expected_of(self._services, state), watch.most_dollars(self._services, state)

    def look(self, task: str, attempt: int, commands: tuple[str, ...]) -> Now:
        """Return what works on a task, at most a second old."""
        at, now = self._seen.get((task, attempt), (0.0, Now()))
        if time.monotonic() - at > 1:
            now = self._now(task, attempt, commands)
            self._seen[task, attempt] = time.monotonic(), now
        return now

    def _now(self, task: str, attempt: int, commands: tuple[str, ...]) -> Now:
        lines = list(_newest_lines(self._folder, f"{task}-{attempt}-"))
        counts = (_TOKENS.fullmatch(line) for line in lines)
        tokens = next((int(count[1]) for count in counts if count), None)
        line = next((line for line in lines if not _TOKENS.fullmatch(line)), "")
        running = [] if self._pid is None else process_tree.commands(self._pid)
        checks = [command for command in commands if any(command in argv for argv in running)]
        others = [argv for argv in running if not any(command in argv for command in commands)]
        if any(os.path.basename(argv[0]) != "git" for argv in others):
            return Now("agent", line, tokens)
        if checks:
            return Now(f"check `{checks[0]}`", "", tokens)
        return Now("delivery" if others else "", "", tokens)


_TOKENS = re.compile(r"(\d+) tokens so far")
_TAIL = 4096


def _newest_lines(folder: str, beginning: str) -> Iterator[str]:
    """Yield the last lines, the newest first, of the newest file in a folder whose name begins so."""
    paths = glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(beginning)}*"))
    try:
        with open(max(paths, key=os.path.getmtime), "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - _TAIL))
            text = file.read(_TAIL).decode("utf-8", "replace")
    except (OSError, ValueError):  # there is none, or it is being replaced
        return
    yield from (line.strip() for line in reversed(text.split("\n")) if line.strip())
