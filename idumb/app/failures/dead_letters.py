"""Dead letters: failed tasks and runs, read from the log. Retry them under the same checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from idumb.app.core import questions, run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.running import resume
from idumb.app.running.resume import Retry
from idumb.app.running.run_request import Request
from idumb.domain import failures, outcome, wording
from idumb.domain.action import REASON, Action
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs import dead_letter, project_key, replay, run
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Letter:
    """`kind` is `task` or `run`, `class_` one of `failures.CLASSES`, `state` one of `dead_letter.STATES`.

    `seq` and `at` are of the event that recorded the failure; `cause` and `failure` are as in
    `idumb.domain.agent.AgentResult`. `decision` is the open question about a failed task; None if there is none.
    """

    id: str
    kind: str
    run: str
    phase: str
    worktree: str
    task: str | None
    class_: str
    reason: str
    attempts: int
    agent: str | None
    cause: str | None
    failure: str | None
    seq: int
    at: str
    state: str = dead_letter.PARKED
    decision: str | None = None


def listing(services: Services, *, class_: str | None, phase: str | None, agent: str | None, every: bool) -> Result:
    """Return the letters that match, oldest first; `every` includes letters that need no action."""

    def fits(letter: Letter) -> bool:
        return (
            (every or letter.state == dead_letter.PARKED)
            and class_ in {None, letter.class_}
            and agent in {None, letter.agent}
            and (phase is None or services.plans.same_phase(phase, letter.phase))
        )

    rows = [_row(services, letter) for letter in _letters(services, every=every) if fits(letter)]
    return Result({"dead_letters": rows})


def show(services: Services, name: str) -> Result:
    """Return one letter, with the newest events of its task or run."""
    letter = _find(services, name)
    trail = list(services.log.events(run=letter.run, task=letter.task, newest_first=True, limit=20))
    events = [{"seq": e.seq, "kind": e.kind, "at": e.at, "task": e.task} for e in reversed(trail)]
    return Result({"dead_letter": {**_row(services, letter), "events": events}})


def retry(services: Services, name: str, approve: tuple[str, ...]) -> Result:
    """Resume the run with one more attempt of the failed task, or of each failed task of the run."""
    letter = _find(services, name)
    why = _retry_obstacle(services, letter)
    if why:
        raise Refusal("dead-letter.not-retryable", f"{letter.id} cannot be retried: {why}.", hint=_hint(letter))
    only = () if letter.task is None else (letter.task,)
    again = Retry(failed=not only, only=only, once=True)
    return resume.resume(services, Request(letter.phase, approve=approve), again)


def _row(services: Services, letter: Letter) -> dict[str, Any]:
    row = asdict(letter)
    row["class"] = row.pop("class_")
    why = _retry_obstacle(services, letter)
    debug_command = Action.of("show", letter.task, "--debug") if letter.task else Action("status")
    retry_commands = (
        [] if why else [*([Action("decisions")] if letter.decision else []), Action.of("dlq", "retry", letter.id)]
    )
    drop_commands = [Action.of("drop", letter.task, "--why", REASON)] if letter.task and not why else []
    return row | {"retryable": not why, "why_not": why, "next": [debug_command, *retry_commands, *drop_commands]}


def _hint(letter: Letter) -> str:
    return f"idumb status; idumb log --run {letter.run}"


def _retry_obstacle(services: Services, letter: Letter) -> str:
    """Return why the letter cannot be retried here, or ""."""
    if letter.state == dead_letter.SETTLED:
        return "it is settled"
    if letter.state == dead_letter.REPLACED:
        return "a later run of the phase replaced it"
    return (
        ""
        if letter.worktree == services.worktree
        else f"it belongs to the working tree {project_key.words(letter.worktree)}"
    )


def _letters(services: Services, *, every: bool) -> list[Letter]:
    """Return all letters, oldest first. Without `every`, only those of the newest runs, which alone can be parked."""
    starts = {
        run_: (phase, tree)
        for run_, phase, tree, _ in services.log_files.starts()
        if project_key.place(tree)[1] == services.folder
    }
    newest = {where: run_ for run_, where in starts.items()}
    selected_runs = starts if every else {run_: where for run_, where in starts.items() if newest[where] == run_}
    letters: list[Letter] = []
    for run_, events in _failures(services, selected_runs).items():
        phase, tree = starts[run_]
        of_run = _letters_of_run(services, run_lookup.run_of(services, run_), events, phase, tree)
        if newest[phase, tree] != run_:
            of_run = [replace(letter, state=dead_letter.REPLACED) for letter in of_run]
        letters += of_run
    return sorted(letters, key=lambda letter: letter.seq)


def _failures(services: Services, selected_runs: Mapping[str, tuple[str, str]]) -> dict[str, list[Event]]:
    """Return, by run, the events that recorded its last failure and those of its tasks."""
    last: dict[tuple[str, str | None], Event] = {}
    for kind in ("task.failed", "run.failed", "run.halted"):
        for event in services.log.events(kind=kind):
            key = (event.run or "", event.task)
            if key[0] in selected_runs and (key not in last or last[key].seq < event.seq):
                last[key] = event
    by_run: dict[str, list[Event]] = {}
    for (run_, _), event in last.items():
        by_run.setdefault(run_, []).append(event)
    return by_run


def _letters_of_run(services: Services, state: RunState, events: list[Event], phase: str, tree: str) -> list[Letter]:
    tasks = [
        _task_letter(services, state, e, phase, tree) for e in events if e.task is not None and e.task in state.tasks
    ]
    parked = [letter for letter in tasks if letter.state == dead_letter.PARKED]
    whole = [_run_letter(state, e, phase, tree, parked) for e in events if e.task is None]
    # A run also halts to wait for a person. Only a run that is still in the recorded state failed.
    return [*tasks, *(letter for letter in whole if letter.state == dead_letter.PARKED)]


def _task_letter(services: Services, state: RunState, event: Event, phase: str, tree: str) -> Letter:
    finished = [*services.log.events(run=state.id, task=event.task, kind="attempt.finished")]
    last: Mapping[str, Any] = finished[-1].payload if finished else {}
    builder: Mapping[str, Any] = last.get("builder") or {}
    task_state = state.tasks[event.task or ""]
    started = services.log.events(run=state.id, task=event.task, kind="attempt.started", newest_first=True, limit=1)
    return Letter(
        dead_letter.letter_id(state.id, event.task),
        dead_letter.TASK,
        state.id,
        phase,
        tree,
        event.task,
        failures.class_of(last.get("outcome"), last.get("cause"), builder.get("failure")),
        event.payload.get("reason") or task_state.reason,
        len({e.attempt for e in finished if replay.counts(e.payload)}),  # one that waited ends twice
        next((e.payload["builder"] for e in started), None),
        last.get("cause"),
        builder.get("failure"),
        event.seq,
        event.at,
        dead_letter.PARKED if task_state.status == outcome.FAILED else dead_letter.SETTLED,
        questions.about_failure(state, task_state.id),
    )


def _run_letter(state: RunState, event: Event, phase: str, tree: str, failed: list[Letter]) -> Letter:
    """Return the letter of a run. It is parked only while the run is still in the state that the event recorded."""
    ended = {"run.failed": run.FAILED, "run.halted": run.HALTED}[event.kind]
    asks = any(t.status == outcome.WAITING for t in state.tasks.values())
    unchanged = state.state == ended and state.reason == event.payload.get("reason", "") and not asks
    failure, stopped = event.payload.get("failure"), state.tasks.get(event.payload.get("task", ""))
    classes = [*(letter.class_ for letter in failed), *([failures.class_of(None, None, failure)] if failure else [])]
    return Letter(
        dead_letter.letter_id(state.id, None),
        dead_letter.RUN,
        state.id,
        phase,
        tree,
        None,
        dead_letter.run_class(classes),
        event.payload.get("reason") or f"{', '.join(letter.task or '' for letter in failed)} failed",
        sum(letter.attempts for letter in failed) + (stopped.attempt.number if stopped is not None else 0),
        None,
        None,
        failure,
        event.seq,
        event.at,
        dead_letter.PARKED if unchanged else dead_letter.SETTLED,
    )


def _find(services: Services, name: str) -> Letter:
    """Find a letter by its id, a prefix of it, or a task, which means its newest letter."""
    letters = _letters(services, every=True)
    exact = [letter for letter in letters if letter.id == name]
    matches = exact or list(_by_name(letters, name))
    if len(matches) == 1:
        return matches[0]
    if matches:
        several = wording.listed(letter.id for letter in matches)
        raise InputError(
            "dead-letter.ambiguous", f"{name} is ambiguous: {several}.", hint=Action.of("dlq", "list", "--all")
        )
    raise InputError("dead-letter.unknown", f"There is no dead letter {name}.", hint=Action.of("dlq", "list", "--all"))


def _by_name(letters: list[Letter], name: str) -> Iterator[Letter]:
    of_task = [letter for letter in letters if letter.task is not None and letter.task.lower() == name.lower()]
    if of_task:
        yield of_task[-1]
    elif name:
        yield from (letter for letter in letters if letter.id.startswith(name))
