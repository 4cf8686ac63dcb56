"""Progress as plain lines, for pipes, logs and simple terminals. Most events have no line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TextIO

from msgspec import Struct, field

from idumb.domain import outcome
from idumb.domain.proof import evidence
from idumb.domain.runs.event import Event
from idumb.views import markup, phrases

_WIDTH = 160
_OUTPUT_LINES = 5
FAILED = frozenset({evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT})


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

    def texts(self, *foreign: object) -> list[str]:
        """Return foreign texts, each clipped, on one line and safe for a terminal."""
        lines = [" ".join(str(text).split()) for text in foreign]
        shown = self.escape("\n".join(lines)).split("\n")
        if len(shown) != len(lines):  # a secret may seem to begin in one text and end in the next
            shown = [self.escape(line) for line in lines]
        return [phrases.clip(line, _WIDTH) for line in shown]

    def text(self, foreign: object) -> str:
        return self.texts(foreign)[0]

    def task_label(self, event: Event) -> str:
        """Return `[2/5] T1-02 Unique slugs`, as far as known."""
        task_id = event.task or ""
        title = self.titles.get(task_id) or event.payload.get("title") or ""
        position = self.positions.get(task_id)
        number = f"[{position}/{len(self.positions)}] " if position else ""
        return number + " ".join(self.texts(task_id, title) if title else self.texts(task_id))

    def because(self, payload: Mapping[str, Any]) -> str:
        reason = payload.get("reason") or payload.get("feedback") or ""
        return f": {self.text(reason)}" if reason else ""


def render(event: Event, context: LineContext) -> str | None:
    """Return the line, with the output of a failed check below it, or None.

    A malformed event gets a line that says so, because progress output must never stop a run.
    """
    try:
        context.learn(event)
        shown = _LINES.get(event.kind)
        return shown(event, context) if shown is not None else None
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return f"{event.kind} (not shown: {problem!r})"


def _run(event: Event, context: LineContext) -> str:
    phase = f"Phase {context.text(event.payload['phase'])}: " if event.payload.get("phase") else ""
    # The reason of a resumed run is the command that the user just typed.
    because = "" if event.kind == "run.resumed" else context.because(event.payload)
    return f"{phase}run {event.run or ''} {event.kind.removeprefix('run.')}{because}"


def _locked(event: Event, context: LineContext) -> str:
    """Return the confidence at the start of a run, with the parts that reduce it."""
    p = event.payload
    doubts = [context.text(part["why"]) for part in p["parts"] if part["value"] is not None and part["value"] < 1]
    return f"Locked in: confidence {p['confidence']:.2f}" + (f" ({'; '.join(doubts)})" if doubts else "")


def _attempt_started(event: Event, context: LineContext) -> str:
    return f"{context.task_label(event)} … attempt {event.attempt or 1}"


def _attempt_told(event: Event, context: LineContext) -> str:
    p = event.payload
    message = f": {context.text(p['message'])}" if p["message"] else ""
    return f"    the {context.text(p['role'])} says {context.text(p['state'])}{message}"


def _attempt_interrupted(event: Event, context: LineContext) -> str:
    return f"    attempt {event.attempt or 1} interrupted{context.because(event.payload)}"


def _attempt_finished(event: Event, context: LineContext) -> str | None:
    """Return a line for an attempt that failed; completed and waiting ones are shown by the line of the task."""
    ended = str(event.payload["outcome"])
    if ended in (outcome.COMPLETED, outcome.WAITING):
        return None
    return f"    attempt {event.attempt or 1} {ended.replace('_', ' ')}{context.because(event.payload)}"


def _evidence(event: Event, context: LineContext) -> str:
    p = event.payload
    code = f" (exit {p['exit_code']})" if p.get("exit_code") else ""
    subject, how = context.texts(p["subject"], p.get("command") or p.get("text") or "")
    only = " (level 0: only reported)" if p.get("level") == 0 else ""
    line = f"    {str(p['result']).replace('_', ' ')} {subject} {how}{code}{only}{phrases.passed_before(p)}"
    shown = (
        _first_lines(str(p.get("output") or ""), context) if p["result"] in FAILED or phrases.is_open_gate(p) else []
    )
    return "\n".join([line, *shown])


def _first_lines(output: str, context: LineContext) -> list[str]:
    """Return the first lines of a failed check's output."""
    lines = [line for line in output.splitlines() if line.strip()]
    shown = [f"      | {phrases.clip(context.escape(line), _WIDTH)}" for line in lines[:_OUTPUT_LINES]]
    more = len(lines) - len(shown)
    return [*shown, f"      | … and {phrases.counted(more, 'more line')}"] if more > 0 else shown


def _decision(event: Event, context: LineContext) -> str:
    return f"    decision {event.payload['id']}: {context.text(event.payload.get('what', ''))}"


def _completed(event: Event, context: LineContext) -> str:
    kept = context.checkpoints.pop(event.task or "", {})
    took = f" in {phrases.duration(kept['seconds'])}" if "seconds" in kept else ""
    commit = f", commit {phrases.short(kept['commit'])}" if kept.get("commit") else ""
    return f"    completed{took}{commit}"


def _ended(event: Event, context: LineContext) -> str:
    return f"    {event.kind.removeprefix('task.')}{context.because(event.payload)}"


def _failed(event: Event, context: LineContext) -> str:
    """Return the line of a failed task; the line of its attempt has the reason."""
    attempts = event.payload.get("attempts")
    return f"    failed after {phrases.counted(attempts, 'attempt')}" if attempts else _ended(event, context)


def _waiting(event: Event, context: LineContext) -> str | None:
    """Return why a task waits; None if the line of its question says so."""
    return None if event.payload.get("decisions") else f"    {context.text(event.payload.get('reason') or 'waiting')}"


def _settled(event: Event, context: LineContext) -> str:
    return f"{context.task_label(event)}: {event.kind.removeprefix('task.')}{context.because(event.payload)}"


def _carried(event: Event, context: LineContext) -> str:
    return f"{context.task_label(event)}: done by run {context.text(event.payload['from_run'])}, unchanged since"


_LINES: Mapping[str, Callable[[Event, LineContext], str | None]] = {
    "run.started": _run,
    "run.resumed": _run,
    "run.halted": _run,
    "run.interrupted": _run,
    "run.paused": _run,
    "run.completed": _run,
    "run.failed": _run,
    "run.locked": _locked,
    "attempt.started": _attempt_started,
    "attempt.told": _attempt_told,
    "attempt.interrupted": _attempt_interrupted,
    "attempt.finished": _attempt_finished,
    "evidence.recorded": _evidence,
    "decision.asked": _decision,
    "task.completed": _completed,
    "task.failed": _failed,
    "task.waiting": _waiting,
    "task.accepted": _settled,
    "task.skipped": _settled,
    "task.omitted": _settled,
    "task.carried": _carried,
}
