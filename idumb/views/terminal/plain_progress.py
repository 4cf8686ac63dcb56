"""Progress as plain lines, for pipes, logs and simple terminals. Most events have no line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TextIO

from msgspec import Struct, field

from idumb.domain import outcome
from idumb.domain.runs.event import Event
from idumb.views import forms, markup, phrases

_WIDTH = 160
_OUTPUT_LINES = 5


class QuietStream:
    """A stream that goes silent once it fails: a closed pipe or a full disk must not stop a run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        self._try(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(lambda stream: stream.flush())

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _try(self, action: Callable[[TextIO], object]) -> None:
        if self._stream is None:
            return
        try:
            action(self._stream)
        except (OSError, ValueError):
            self._stream = None


class PlainProgress:
    """A `Reporter` that prints lines. `escape` makes foreign text safe for a terminal."""

    def __init__(self, stream: TextIO, escape: Callable[[str], str] = markup.visible) -> None:
        self._stream = QuietStream(stream)
        self._context = LineContext(escape=escape)

    def begin(self, titles: Mapping[str, str], statuses: Mapping[str, str]) -> None:
        del statuses  # lines show events, not the whole state
        self._context.begin(titles)

    def event(self, event: Event) -> None:
        line = render(event, self._context)
        if line is not None:
            self._write(line)

    def note(self, text: str) -> None:
        self._write(self._context.escape(text))

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class LineContext(Struct):
    """Context of progress lines: titles in execution order, and checkpoints of tasks whose line is still to come."""

    titles: Mapping[str, str] = field(default_factory=dict)
    escape: Callable[[str], str] = markup.visible
    positions: dict[str, int] = field(default_factory=dict)
    checkpoints: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def begin(self, titles: Mapping[str, str]) -> None:
        self.titles = titles
        self.positions = {task_id: i for i, task_id in enumerate(titles, 1)}

    def learn(self, event: Event) -> None:
        if event.kind == "run.started":
            self.positions = {task_id: i for i, (task_id, _) in enumerate(event.payload["tasks"], 1)}
        elif event.kind == "checkpoint.recorded":
            self.checkpoints[event.task or ""] = event.payload

    def text(self, foreign: object) -> str:
        """Return a foreign text clipped, on one line and safe for a terminal."""
        return phrases.clip(self.escape(" ".join(str(foreign).split())), _WIDTH)

    def task_label(self, event: Event) -> str:
        """Return `[2/5] T1-02 Unique slugs`, as far as known."""
        task_id = event.task or ""
        title = self.text(self.titles.get(task_id) or event.payload.get("title") or "")
        position = self.positions.get(task_id)
        number = f"[{position}/{len(self.positions)}] " if position else ""
        return f"{number}{self.text(task_id)} {title}".rstrip()


def render(event: Event, context: LineContext) -> str | None:
    """Return the line, with the output of a failed check below it, or None.

    A malformed event gets a line that says so, because progress output must never stop a run.
    """
    try:
        context.learn(event)
        form = _LINES.get(event.kind)
        lines = [] if form is None else forms.fill(form, _values(event, context))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return f"{event.kind} (not shown: {problem!r})"
    return "\n".join(lines) or None


def _values(event: Event, context: LineContext) -> Mapping[str, Any]:
    """Return what the form of an event can say; all of it is safe for a terminal."""
    payload = event.payload
    short = {name: value for name, value in payload.items() if name != "output"}
    safe = {name: context.text(value) if isinstance(value, str) else value for name, value in short.items()}
    if event.kind == "evidence.recorded":
        safe |= {"words": phrases.evidence(safe), "shown": _first_lines(payload, context)}
    elif event.kind == "run.locked":
        doubts = (context.text(part["why"]) for part in payload["parts"] if part["value"] not in (None, 1))
        safe["doubts"] = "; ".join(doubts)
    return {
        **safe,
        "run": event.run,
        "ended": event.kind.partition(".")[2],
        "attempt": event.attempt or 1,
        "label": context.task_label(event),
        "kept": context.checkpoints.pop(event.task or "", {}) if event.kind == "task.completed" else {},
        # Completed and waiting attempts are shown by the line of the task.
        "is_over": payload.get("outcome") in (outcome.COMPLETED, outcome.WAITING),
    }


def _first_lines(row: Mapping[str, Any], context: LineContext) -> str:
    """Return the first lines of a failed check's output."""
    lines = [line for line in str(row.get("output") or "").splitlines() if line.strip() and phrases.says_why(row)]
    more = len(lines) - _OUTPUT_LINES
    shown = [f"      | {phrases.clip(context.escape(line), _WIDTH)}" for line in lines[:_OUTPUT_LINES]]
    return "\n".join([*shown, f"      | … and {phrases.counted(more, 'more line')}"] if more > 0 else shown)


_RUN = "[Phase {phase}: ]run {run} {ended}[: {reason}]"
_SETTLED = "{label}: {ended}[: {reason}]"
_LINES: Mapping[str, str] = {
    "run.started": _RUN,
    "run.resumed": "[Phase {phase}: ]run {run} {ended}",  # its reason is the command that the user just typed
    "run.halted": _RUN,
    "run.interrupted": _RUN,
    "run.paused": _RUN,
    "run.completed": _RUN,
    "run.failed": _RUN,
    "run.locked": "Locked in: confidence {confidence}[ ({doubts})]",
    "attempt.started": "{label} … attempt {attempt}",
    "attempt.told": "    the {role} says {state}[: {message}]",
    "attempt.interrupted": "    attempt {attempt} interrupted[: {reason or feedback}]",
    "attempt.finished": "    {is_over:!attempt} {attempt} {outcome:spoken}[: {reason or feedback}]",
    "evidence.recorded": "    {words}\n{shown}",
    "decision.asked": "    decision {id}: {what}",
    "task.completed": "    completed[ in {kept.seconds:duration}][, commit {kept.commit:short}]",
    "task.failed": "    failed after {attempts:+attempt}\nelse     failed[: {reason}]",
    "task.waiting": "{decisions:!}    [{reason}][{reason:!waiting}]",  # the line of its question says so
    "task.accepted": _SETTLED,
    "task.skipped": _SETTLED,
    "task.omitted": _SETTLED,
    "task.carried": "{label}: done by run {from_run}, unchanged since",
}
