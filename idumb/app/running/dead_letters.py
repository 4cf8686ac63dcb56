"""Dead letters: failed tasks and runs, read from the log. A retry is an attempt under the same checks.

A letter is a row as `dlq` answers it: `kind` is `task` or `run`, `class` one of `failures.CLASSES`, and
`decision` the open question about a failed task, or None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from idumb.app.attempt import agent_client
from idumb.app.core import questions, run_lookup
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Result, Services
from idumb.app.running import resume
from idumb.app.running.resume import Retry
from idumb.domain import failures, outcome, wording
from idumb.domain.action import REASON, Action
from idumb.domain.errors import InputError, Refusal
from idumb.domain.failures import Breaker
from idumb.domain.runs import project_key, replay, run
from idumb.domain.runs.run import RunState, TaskState

Letter = dict[str, Any]
_ENDS = {run.FAILED: "run.failed", run.HALTED: "run.halted"}


def listing(services: Services, *, phase: str | None, **wanted: str | bool | None) -> Result:
    """Return the letters that match, oldest first. `wanted` has a value, or None, for some keys of a letter."""
    letters = (one for one in _letters(services) if phase is None or services.plans.same_phase(phase, one["phase"]))
    fitting = [one for one in letters if all(value in (None, one[name]) for name, value in wanted.items())]
    return Result({"dead_letters": fitting})


def show(services: Services, name: str) -> Result:
    """Return one letter, with the newest events of its task or run."""
    letter = _find(services, name)
    trail = list(services.log.events(run=letter["run"], task=letter["task"], newest_first=True, limit=20))
    events = [{"seq": e.seq, "kind": e.kind, "at": e.at, "task": e.task} for e in reversed(trail)]
    return Result({"dead_letter": {**letter, "events": events}})


def retry(services: Services, name: str, approve: tuple[str, ...]) -> Result:
    """Resume the run with one more attempt of the failed task, or of each failed task of the run."""
    letter = _find(services, name)
    if not letter["can_retry"]:
        words = f"{letter['id']} cannot be retried here: {letter['why_not']}."
        raise Refusal("dead-letter.not-retryable", words, hint=Action("status"))
    task = letter["task"]
    again = Retry(failed=task is None, only=(task,) if task else (), once=True)
    return resume.resume(services, RunRequest(letter["phase"], approve=approve), again)


def _letter(services: Services, state: RunState, tree: str, task: str | None, **facts: Any) -> Letter:
    id = state.id if task is None else f"{state.id}.{task}"
    here = tree == services.worktree
    ways = [Action.of("show", task, "--debug") if task else Action("status")]
    ways += [Action("decisions")] if here and facts.get("decision") else []
    ways += [Action.of("dlq", "retry", id), Action.of("drop", task or state.phase, "--why", REASON)] if here else []
    return {
        "id": id,
        "kind": "run" if task is None else "task",
        "run": state.id,
        "phase": state.phase,
        "worktree": tree,
        "task": task,
        "agent": None,
        "cause": None,
        "decision": None,
        **facts,
        "can_retry": here,
        "why_not": "" if here else f"it belongs to the working tree {project_key.shown(tree)}",
        "next": ways,
    }


def _retry_after(services: Services, breakers: Mapping[str, Breaker], letter: Letter) -> str | None:
    """Return until when the agent is not asked, because calls of it failed; None if it can be asked now."""
    now, rule, agent = services.clock.now(), agent_client.rule(services.settings), letter["agent"]
    own = (
        one for key, one in breakers.items() if agent in key.split() or (not agent and one.failure == letter["failure"])
    )
    wait = max((failures.before_call(one, now, rule)[1] for one in own), default=0.0)
    return f"{datetime.fromisoformat(now) + timedelta(seconds=wait):%Y-%m-%dT%H:%M:%S.%fZ}" if wait else None


def _letters(services: Services) -> list[Letter]:
    """Return the letters of the newest run of each phase and working tree, oldest first."""
    newest: dict[tuple[str, str], str] = {}
    for start in services.log_files.starts():
        if project_key.parts(start.worktree)[1] == services.folder:
            newest[start.phase, start.worktree] = start.run
    letters: list[Letter] = []
    for (_, tree), run_id in newest.items():
        state = run_lookup.run_of(services, run_id)
        failed = [
            _of_task(services, state, task, tree) for task in state.tasks.values() if task.status == outcome.FAILED
        ]
        letters += [*failed, *_of_run(services, state, tree, failed)]
    breakers = agent_client.breakers(services) if letters else {}
    letters = [{**letter, "retry_after": _retry_after(services, breakers, letter)} for letter in letters]
    return sorted(letters, key=lambda letter: str(letter["at"]))


def _of_task(services: Services, state: RunState, task: TaskState, tree: str) -> Letter:
    finished = [*services.log.events(run=state.id, task=task.id, kind="attempt.finished")]
    last: Mapping[str, Any] = finished[-1].payload if finished else {}
    builder: Mapping[str, Any] = last.get("builder") or {}
    started = run_lookup.last_event(services, "attempt.started", state.id, task.id)
    failed = run_lookup.last_event(services, "task.failed", state.id, task.id)
    assert failed is not None  # noqa: S101 - a task is failed since this event
    return _letter(
        services,
        state,
        tree,
        task.id,
        reason=failed.payload.get("reason") or task.reason,
        attempts=len({e.attempt for e in finished if replay.counts(e.payload)}),  # one that waited ends twice
        agent=None if started is None else started.payload["builder"],
        cause=last.get("cause"),
        failure=builder.get("failure"),
        at=failed.at,
        decision=_question(state, task.id),
        **{"class": failures.class_of(last.get("outcome"), last.get("cause"), builder.get("failure"))},
    )


def _question(state: RunState, task: str) -> str | None:
    """Return the id of the open question about a task that failed with all its attempts."""
    ids = (i for i, q in state.decisions.items() if q["task"] == task and questions.is_current(state, q))
    return next((i for i in ids if i not in state.answers), None)


def _of_run(services: Services, state: RunState, tree: str, failed: Sequence[Letter]) -> Iterator[Letter]:
    """Yield the letter of a run that failed or halted. One that halted to wait for a person did not fail."""
    kind = _ENDS.get(state.state)
    if kind is None or any(task.status == outcome.WAITING for task in state.tasks.values()):
        return
    for event in services.log.events(run=state.id, kind=kind, newest_first=True, limit=1):
        failure, stopped = event.payload.get("failure"), state.tasks.get(event.payload.get("task", ""))
        classes = [letter["class"] for letter in failed] + ([failures.class_of(None, None, failure)] if failure else [])
        hardest = max(classes, key=failures.CLASSES.index, default=failures.SYSTEM)
        yield _letter(
            services,
            state,
            tree,
            None,
            reason=event.payload.get("reason") or f"{', '.join(letter['task'] for letter in failed)} failed",
            attempts=sum(letter["attempts"] for letter in failed) + (stopped.attempt.number if stopped else 0),
            failure=failure,
            at=event.at,
            **{"class": hardest},
        )


def _find(services: Services, name: str) -> Letter:
    """Find a letter by its id, a prefix of it, or a task."""
    letters = _letters(services)
    exact = [letter for letter in letters if name.lower() in {letter["id"].lower(), (letter["task"] or "").lower()}]
    matches = exact or [letter for letter in letters if name and letter["id"].startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise InputError("dead-letter.unknown", f"There is no dead letter {name}.", hint=Action.of("dlq", "list"))
    several = wording.listed(letter["id"] for letter in matches)
    raise InputError("dead-letter.ambiguous", f"{name} is ambiguous: {several}.", hint=Action.of("dlq", "list"))
