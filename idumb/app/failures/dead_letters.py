"""Dead letters: failed tasks and runs, read from the log; tried again under the same checks, or hidden, never lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from idumb.app.core import run_lookup
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.engine import exhausted_tasks
from idumb.app.running import resume
from idumb.app.running.resume import Retry
from idumb.app.running.run_request import Request
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import outcome, wording
from idumb.domain.decision import Answer
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs import dead_letter, replay_attempt, run
from idumb.domain.runs.event import Event
from idumb.domain.runs.run import RunState

REMOVED = "dead-letter.removed"


@dataclass(frozen=True, slots=True)
class Letter:
    """`kind` is `task` or `run`, `class_` one of `dead_letter.CLASSES`, `state` one of `dead_letter.STATES`.

    `seq` and `at` are of the event by which it failed; `cause` and `failure` as in `idumb.domain.agent.AgentResult`.
    `decision` is the question that asks what is to become of a failed task; None where none waits.
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


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters; None does not choose. `every` takes those that need nobody any more too."""

    class_: str | None = None
    phase: str | None = None
    agent: str | None = None
    every: bool = False


def listing(services: Services, wanted: LetterFilter) -> Result:
    """`idumb dlq list`: what is parked, the oldest first."""

    def fits(letter: Letter) -> bool:
        return (
            (wanted.every or letter.state == dead_letter.PARKED)
            and wanted.class_ in {None, letter.class_}
            and wanted.agent in {None, letter.agent}
            and (wanted.phase is None or services.plans.same_phase(wanted.phase, letter.phase))
        )

    rows = [_row(services, letter) for letter in _letters(services, every=wanted.every) if fits(letter)]
    return Result({"dead_letters": rows})


def show(services: Services, name: str) -> Result:
    """`idumb dlq show ID`: one with the events of its task, or of its run, since the last attempt began."""
    letter = _find(services, name)
    trail = list(services.log.events(run=letter.run, task=letter.task, newest_first=True, limit=20))
    events = [{"seq": e.seq, "kind": e.kind, "at": e.at, "task": e.task} for e in reversed(trail)]
    return Result({"dead_letter": {**_row(services, letter), "events": events}})


def retry(services: Services, name: str, approve: tuple[str, ...]) -> Result:
    """`idumb dlq retry ID`: one attempt more of that task, or of each that failed in that run; then the run goes on."""
    letter = _find(services, name)
    why = _why_not(services, letter)
    if why:
        raise Refusal("dead-letter.not-retryable", f"{letter.id} cannot be tried again: {why}.", hint=_hint(letter))
    only = () if letter.task is None else (letter.task,)
    again = Retry(failed=not only, only=only, once=True)
    return resume.resume(services, Request(letter.phase, approve=approve), again)


def remove(services: Services, name: str, who: str, why: str) -> Result:
    """`idumb dlq remove ID`: it is not listed any more. What it tells of stays in the log, and as it is."""
    preconditions.require_initialised(services)
    letter = _find(services, name)
    if letter.state == dead_letter.REMOVED:
        raise Refusal("dead-letter.removed", f"{letter.id} was removed already.", hint="idumb dlq list --all")
    asked = letter.decision if letter.worktree == services.worktree else None
    with operation.owned(services, "dlq") as owned:
        journal = owned.journal(RunState() if asked is None else run_lookup.run_of(services, letter.run))
        events = [journal.event(REMOVED, letter=letter.id, failed=letter.seq, by=who, reason=why)]
        if asked is not None:  # who wants to see no more of the failure is not asked about it either
            answer = Answer(asked, exhausted_tasks.REMOVED, who, why)
            events.append(journal.event("decision.answered", letter.task, **asdict(answer)))
        journal.write(*events)
    return Result({"dead_letter": _row(services, replace(letter, state=dead_letter.REMOVED, decision=None))})


def _row(services: Services, letter: Letter) -> dict[str, Any]:
    row = asdict(letter)
    row["class"] = row.pop("class_")
    why = _why_not(services, letter)
    shown = f"idumb debug {letter.phase}" + (f" --task {letter.task}" if letter.task else "")
    again = [] if why else [*(["idumb decisions"] if letter.decision else []), f"idumb dlq retry {letter.id}"]
    hide = [] if letter.state == dead_letter.REMOVED else [f"idumb dlq remove {letter.id}"]
    return row | {"retryable": not why, "why_not": why, "next": [shown, *again, *hide]}


def _hint(letter: Letter) -> str:
    return f"idumb status; idumb log --run {letter.run}"


def _why_not(services: Services, letter: Letter) -> str:
    """Why no new attempt can be made of it here; "" where one can."""
    if letter.state == dead_letter.SETTLED:
        return "it is settled"
    if letter.state == dead_letter.REPLACED:
        return "a later run of the phase took its place"
    return "" if letter.worktree == services.worktree else f"it belongs to the work tree {letter.worktree}"


def _letters(services: Services, *, every: bool) -> list[Letter]:
    """All letters, the oldest first; without `every` of the newest runs alone, as only those can be parked."""
    starts = {run_: (phase, tree) for run_, phase, tree, _ in services.log_files.starts()}
    newest = {where: run_ for run_, where in starts.items()}
    wanted = starts if every else {run_: where for run_, where in starts.items() if newest[where] == run_}
    hidden = {e.payload["letter"]: int(e.payload["failed"]) for e in services.log.events(kind=REMOVED)}
    found: list[Letter] = []
    for run_, events in _failures(services, wanted).items():
        phase, tree = starts[run_]
        made = _of_run(services, run_lookup.run_of(services, run_), events, phase, tree)
        if newest[phase, tree] != run_:
            made = [replace(one, state=dead_letter.REPLACED) for one in made]
        found += made
    # What is settled or replaced stays so, hidden or not: there is nothing in it to try again.
    gone = {one.id for one in found if one.state == dead_letter.PARKED and hidden.get(one.id, 0) >= one.seq}
    stood = [replace(one, state=dead_letter.REMOVED) if one.id in gone else one for one in found]
    return sorted(stood, key=lambda letter: letter.seq)


def _failures(services: Services, wanted: Mapping[str, tuple[str, str]]) -> dict[str, list[Event]]:
    """Run to the events by which a task of it, or itself, failed last."""
    last: dict[tuple[str, str | None], Event] = {}
    for kind in ("task.failed", "run.failed", "run.halted"):
        for event in services.log.events(kind=kind):
            key = (event.run or "", event.task)
            if key[0] in wanted and (key not in last or last[key].seq < event.seq):
                last[key] = event
    by_run: dict[str, list[Event]] = {}
    for (run_, _), event in last.items():
        by_run.setdefault(run_, []).append(event)
    return by_run


def _of_run(services: Services, state: RunState, events: list[Event], phase: str, tree: str) -> list[Letter]:
    tasks = [_of_task(services, state, e, phase, tree) for e in events if e.task is not None and e.task in state.tasks]
    standing = [one for one in tasks if one.state == dead_letter.PARKED]
    whole = [_of_whole(state, e, phase, tree, standing) for e in events if e.task is None]
    # A run is halted to wait for a person too; one that does not stand as it did then tells of no failure.
    return [*tasks, *(one for one in whole if one.state == dead_letter.PARKED)]


def _of_task(services: Services, state: RunState, event: Event, phase: str, tree: str) -> Letter:
    ended = [e.payload for e in services.log.events(run=state.id, task=event.task, kind="attempt.finished")]
    said: Mapping[str, Any] = ended[-1] if ended else {}
    builder: Mapping[str, Any] = said.get("builder") or {}
    known = state.tasks[event.task or ""]
    begun = services.log.events(run=state.id, task=event.task, kind="attempt.started", newest_first=True, limit=1)
    return Letter(
        dead_letter.letter_id(state.id, event.task),
        dead_letter.TASK,
        state.id,
        phase,
        tree,
        event.task,
        dead_letter.failure_class(said.get("outcome"), said.get("cause"), builder.get("failure")),
        event.payload.get("reason") or known.reason,
        sum(map(replay_attempt.counts, ended)),
        next((e.payload["builder"] for e in begun), None),
        said.get("cause"),
        builder.get("failure"),
        event.seq,
        event.at,
        dead_letter.PARKED if known.status == outcome.FAILED else dead_letter.SETTLED,
        exhausted_tasks.standing(state, known.id),
    )


def _of_whole(state: RunState, event: Event, phase: str, tree: str, failed: list[Letter]) -> Letter:
    """A run stands as it ended while nothing else was recorded of it that goes on, asks or goes back."""
    ended = {"run.failed": run.FAILED, "run.halted": run.HALTED}[event.kind]
    asks = any(t.status == outcome.WAITING for t in state.tasks.values())
    stands = state.state == ended and state.reason == event.payload.get("reason", "") and not asks
    failure, stopped = event.payload.get("failure"), state.tasks.get(event.payload.get("task", ""))
    classes = [*(one.class_ for one in failed), *([dead_letter.failure_class(None, None, failure)] if failure else [])]
    return Letter(
        dead_letter.letter_id(state.id, None),
        dead_letter.RUN,
        state.id,
        phase,
        tree,
        None,
        dead_letter.run_class(classes),
        event.payload.get("reason") or f"{', '.join(one.task or '' for one in failed)} failed",
        sum(one.attempts for one in failed) + (stopped.attempt.number if stopped is not None else 0),
        None,
        None,
        failure,
        event.seq,
        event.at,
        dead_letter.PARKED if stands else dead_letter.SETTLED,
    )


def _find(services: Services, name: str) -> Letter:
    """By its id, the beginning of one, or a task, whose newest letter is meant."""
    every = _letters(services, every=True)
    exact = [one for one in every if one.id == name]
    found = exact or list(_of_name(every, name))
    if len(found) == 1:
        return found[0]
    if found:
        several = wording.listed(one.id for one in found)
        raise InputError("dead-letter.ambiguous", f"{name} may mean {several}.", hint="idumb dlq list --all")
    raise InputError("dead-letter.unknown", f"There is no dead letter {name}.", hint="idumb dlq list --all")


def _of_name(every: list[Letter], name: str) -> Iterator[Letter]:
    of_task = [one for one in every if one.task is not None and one.task.lower() == name.lower()]
    if of_task:
        yield of_task[-1]
    elif name:
        yield from (one for one in every if one.id.startswith(name))
