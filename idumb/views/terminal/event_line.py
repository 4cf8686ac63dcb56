"""The plain line of an event while a run goes on; most kinds have none, a failed check shows its output too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from idumb.domain import outcome
from idumb.domain.proof import evidence
from idumb.domain.runs.event import Event
from idumb.views import markup, quantities

_WIDTH = 160
_OUTPUT_LINES = 5
FAILED = frozenset({evidence.FAILED, evidence.ERRORED, evidence.TIMED_OUT})


@dataclass(slots=True)
class Knowledge:
    """What lines need from elsewhere: titles in execution order, and what earlier events said."""

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
        return markup.clip(self.escape(" ".join(str(foreign).split())), _WIDTH)

    def named(self, event: Event) -> str:
        """`[2/5] T1-02 Unique slugs`, as far as it is known."""
        task_id = event.task or ""
        title = self.titles.get(task_id) or event.payload.get("title") or ""
        position = self.positions.get(task_id)
        number = f"[{position}/{len(self.positions)}] " if position else ""
        return f"{number}{self.text(task_id)}" + (f" {self.text(title)}" if title else "")

    def because(self, payload: Mapping[str, Any]) -> str:
        reason = payload.get("reason") or payload.get("feedback") or ""
        return f": {self.text(reason)}" if reason else ""


def render(event: Event, known: Knowledge) -> str | None:
    """The line, with a failed check's output below it, or None.

    An event of an odd shape gets a line that says so: progress never stops a run.
    """
    try:
        known.learn(event)
        shown = _LINES.get(event.kind)
        return shown(event, known) if shown is not None else None
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return f"{event.kind} (not shown: {problem!r})"


def _run(event: Event, known: Knowledge) -> str:
    phase = f"Phase {known.text(event.payload['phase'])}: " if event.payload.get("phase") else ""
    # The reason of a resumed run is the command that the user has just typed.
    because = "" if event.kind == "run.resumed" else known.because(event.payload)
    return f"{phase}run {event.run or ''} {event.kind.removeprefix('run.')}{because}"


def _locked(event: Event, known: Knowledge) -> str:
    """What a person believes in when the run begins: the number, and the parts that take away from it."""
    p = event.payload
    doubts = [known.text(part["why"]) for part in p["parts"] if part["value"] is not None and part["value"] < 1]
    return f"Locked in: confidence {p['confidence']:.2f}" + (f" ({'; '.join(doubts)})" if doubts else "")


def _attempt_started(event: Event, known: Knowledge) -> str:
    if event.payload.get("adopted"):
        return f"{known.named(event)} … done according to an old iDumb; its checks decide"
    return f"{known.named(event)} … attempt {event.attempt or 1}"


def _attempt_told(event: Event, known: Knowledge) -> str:
    p = event.payload
    message = f": {known.text(p['message'])}" if p["message"] else ""
    return f"    the {known.text(p['role'])} says {known.text(p['state'])}{message}"


def _attempt_interrupted(event: Event, known: Knowledge) -> str:
    return f"    attempt {event.attempt or 1} interrupted{known.because(event.payload)}"


def _attempt_finished(event: Event, known: Knowledge) -> str | None:
    """Only an attempt that did not end well; the task's own line tells of a good or a waiting one."""
    ended = str(event.payload["outcome"])
    if ended in (outcome.COMPLETED, outcome.WAITING) or event.payload.get("adopted"):
        return None
    return f"    attempt {event.attempt or 1} {ended.replace('_', ' ')}{known.because(event.payload)}"


def _evidence(event: Event, known: Knowledge) -> str:
    p = event.payload
    code = f" (exit {p['exit_code']})" if p.get("exit_code") else ""
    how = known.text(p.get("command") or p.get("text") or "")
    only = ", blocks nothing" if p.get("level") == 0 else ""
    line = f"    {str(p['result']).replace('_', ' ')} {known.text(p['subject'])} {how}{code}{only}"
    shown = _first_lines(str(p.get("output") or ""), known) if p["result"] in FAILED else []
    return "\n".join([line, *shown])


def _first_lines(output: str, known: Knowledge) -> list[str]:
    """What a failed check said first, so that nobody has to ask for it."""
    lines = [line for line in output.splitlines() if line.strip()]
    shown = [f"      | {markup.clip(known.escape(line), _WIDTH)}" for line in lines[:_OUTPUT_LINES]]
    more = len(lines) - len(shown)
    return [*shown, f"      | … and {quantities.counted(more, 'more line')}"] if more > 0 else shown


def _decision(event: Event, known: Knowledge) -> str:
    return f"    decision {event.payload['id']}: {known.text(event.payload.get('what', ''))}"


def _completed(event: Event, known: Knowledge) -> str:
    kept = known.checkpoints.get(event.task or "", {})
    took = f" in {quantities.duration(kept['seconds'])}" if "seconds" in kept else ""
    commit = f", commit {quantities.short(kept['commit'])}" if kept.get("commit") else ""
    return f"    completed{took}{commit}"


def _ended(event: Event, known: Knowledge) -> str:
    return f"    {event.kind.removeprefix('task.')}{known.because(event.payload)}"


def _failed(event: Event, known: Knowledge) -> str:
    """Why is told by the line of the attempt before."""
    attempts = event.payload.get("attempts")
    return f"    failed after {quantities.counted(attempts, 'attempt')}" if attempts else _ended(event, known)


def _waiting(event: Event, known: Knowledge) -> str:
    return f"    {known.text(event.payload.get('reason') or 'waiting')}"


def _settled(event: Event, known: Knowledge) -> str:
    return f"{known.named(event)}: {event.kind.removeprefix('task.')}{known.because(event.payload)}"


def _carried(event: Event, known: Knowledge) -> str:
    return f"{known.named(event)}: done by run {known.text(event.payload['from_run'])}, unchanged since"


_LINES: Mapping[str, Callable[[Event, Knowledge], str | None]] = {
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
    "task.carried": _carried,
}
