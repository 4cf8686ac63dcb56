"""The builder drives idumb: `start` opens an attempt, `submit` has its work judged, `give-up` takes it back.

The stages are those of every attempt (`app/attempt.py`), cut in two where the work is done: nothing is believed of
who does it, and what is judged is the bytes that are there when they say that it is done.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from idumb.app import attempt as attempts
from idumb.app import (
    consent,
    effect,
    enveloping,
    execute_phase,
    leftovers,
    loading,
    opened,
    owed,
    place,
    ports,
    publish,
    recovery,
    runner,
    schedule,
    session,
)
from idumb.app.bench import Attempt, Bench
from idumb.app.execute_phase import Request
from idumb.app.journal import Journal
from idumb.app.recording import evidence_payload
from idumb.app.result import Result
from idumb.app.runner import Ending
from idumb.app.services import Services, attempt_ref
from idumb.domain import agent, errors, outcome
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.event import Event
from idumb.domain.evidence import Evidence
from idumb.domain.plan import STRICT, Task
from idumb.domain.run import HALTED, INTERRUPTED, RunState, TaskState

HERE = "here"


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """`by` is who works on it, `retry` takes up a task that failed for good."""

    task: str
    by: str
    request: Request
    retry: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Submit:
    """`said` is what the builder says of its work: a claim, kept with the record."""

    task: str
    request: Request
    said: str = ""


def start(services: Services, asked: Start) -> Result:
    """Everything that comes before the work, for one task; then the attempt is open and this command ends."""
    phase, task_id = session.find_task(asked.task)
    request = dataclasses.replace(asked.request, phase=phase, workspace=HERE, command="start")
    contract = execute_phase.prepare(services, request)
    task = _buildable(services, contract, task_id)
    with session.owned(services, "start") as owned:
        journal = execute_phase.taken_up(services, owned, contract, request)
        begun = execute_phase.at_work(services, journal, contract, request, lambda bench: _open(bench, task, asked))
        if isinstance(begun, Ending):
            return _not_opened(services, journal, contract, request, task, begun)
    return _opened(services, journal.state, contract, begun)


def _buildable(services: Services, contract: Contract, task_id: str) -> Task:
    if task_id not in contract.tasks:
        raise InputError(
            "task.unknown", f"Phase {contract.phase} has no task {task_id}.", hint=f"idumb graph {contract.phase}"
        )
    task = contract.tasks[task_id]
    if not contracts.in_editor(contract.plan_of(task_id), task, services.settings):
        name = contracts.builder_of(contract.plan_of(task_id), task, services.settings)
        raise Refusal(
            "task.other-builder",
            f"{task_id} is built by {name}, as its plan and the configuration say; nobody else may start it.",
            hint=f"idumb execute-phase {contract.phase} has it built; `builder: {agent.EDITOR}` in the task, the plan"
            " or .idumb/config.yaml leaves it to who drives idumb",
        )
    return task


def _open(bench: Bench, task: Task, asked: Start) -> Attempt | Ending:
    """The stages before the work; an Ending where the task cannot be opened now."""
    execute_phase.ready(bench)
    enveloping.lock_in(bench)
    if asked.retry and bench.journal.state.tasks[task.id].status == outcome.FAILED:
        bench.journal.write(bench.journal.event("task.reset", task.id, reason="retry"))
    _require_turn(bench, task)
    leftovers.refuse_foreign_changes(bench, task)
    if effect.asked(bench, task) is not None:
        return Ending("waiting", f"{task.id} may have had its effect already, and asks first", task.id)
    attempt = runner.made(bench, runner.begin(bench, task), attempts.BEFORE)
    if attempt.outcome is not None:
        attempt = runner.made(bench, attempt, attempts.AFTER)
        return runner.settle(bench, attempt) or Ending("done", attempt.reason, task.id)
    _announce(bench, attempt, asked.by)
    publish.progress(bench)
    return attempt


def _require_turn(bench: Bench, task: Task) -> None:
    """The task is the next, or one of the next; Refusal that says why not."""
    state, contract = bench.journal.state, bench.contract
    shown = schedule.statuses(contract, state)
    status = shown[task.id]
    if status in outcome.DONE or status == outcome.SKIPPED:
        raise Refusal("task.already-done", f"{task.id} is {status} already.", hint=f"idumb next {contract.phase}")
    if status == outcome.FAILED:
        raise Refusal(
            "task.failed",
            f"{task.id} failed: {state.tasks[task.id].reason}",
            hint=f"idumb start {task.id} --retry tries it again; idumb show {task.id} tells what was wrong",
        )
    if status == outcome.WAITING:
        raise Refusal("task.waiting", f"{task.id} waits for a person.", hint="idumb decisions")
    if status in (outcome.PENDING, outcome.BLOCKED):
        waits = ", ".join(f"{d} ({shown[d]})" for d in schedule.blockers(contract, shown, task.id)[:5])
        raise Refusal("task.not-ready", f"{task.id} waits for {waits}.", hint=f"idumb next {contract.phase}")
    other = next((t for t, s in shown.items() if s == outcome.RUNNING and t != task.id), None)
    if other is not None:
        raise Refusal(
            "task.other-unfinished",
            f"{other} is not done, and its work lies in the files; nothing is built on top of it.",
            hint=f"idumb start {other} goes on with it; idumb skip {other} --why REASON leaves it out",
        )


def _announce(bench: Bench, attempt: Attempt, by: str) -> None:
    services, task = bench.services, attempt.task
    if attempt.snapshot is not None and attempt.residue:
        # What checks before the work left is in the base, and no snapshot names that tree.
        ref = attempt_ref(services, bench.run, task.id, attempt.number, "opened")
        services.trees.keep(ref, attempt.base, f"what {task.id} starts from", attempt.snapshot.commit)
    bench.journal.write(
        bench.journal.event(
            opened.KIND,
            task.id,
            attempt.number,
            by=by,
            phase=bench.contract.phase,
            worktree=services.worktree,
            base=attempt.base,
            head=services.history.head().commit,
            evidence=[evidence_payload(e) for e in attempt.evidence],
            residue=list(attempt.residue),
        )
    )


def _opened(services: Services, state: RunState, contract: Contract, attempt: Attempt) -> Result:
    task = attempt.task
    found = opened.find(services)
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "open": None if found is None else found.as_dict(),
            "task": owed.of(services, contract, task, attempt=attempt.number, feedback=attempt.feedback),
            "root": services.root,
            "base": attempt.base,
            "snapshot": attempt.snapshot.commit if attempt.snapshot else None,
            "next": [f"idumb submit {task.id}", f"idumb give-up {task.id} --why REASON"],
        }
    )


def _not_opened(
    services: Services, journal: Journal, contract: Contract, request: Request, task: Task, ending: Ending
) -> Result:
    """A precondition does not hold, or a question comes first: the same answer as of a run that stops there."""
    if ending is runner.AGAIN:
        ending = Ending("halted", journal.state.tasks[task.id].reason, task.id)
    return execute_phase.conclude(services, journal, contract, request, ending)


def submit(services: Services, asked: Submit) -> Result:
    """Have the work of the open attempt judged: ledger, gates, checks, verdict; what holds is committed."""
    phase, task_id = session.find_task(asked.task)
    place.require_initialised(services)
    state = session.require_run(services, phase)
    _require_open(state, task_id)
    contract = loading.runnable(loading.of(services, phase), services.settings)
    session.same_contract(services, contract, state)
    request = dataclasses.replace(asked.request, phase=contract.phase, workspace=HERE, command="submit")
    place.require_guarded(services, state, request.accept_git)
    place.require_repository(services)
    mode = STRICT if state.mode == STRICT else None
    consent.ensure(services, contract, approve=request.approve, mode=mode, earlier=state.earlier)
    place.require_branch(services, state)
    enveloping.require_same(services, state, contract, mode=mode, accepted=request.accept_changed)
    with session.owned(services, "submit") as owned:
        journal = owned.journal(state)
        place.accept_guarded(services, journal, request.accept_git)
        if state.state in (HALTED, INTERRUPTED):
            journal.write(journal.event("run.resumed", reason="submit"))
        task = contract.tasks[task_id]
        attempt, ending = execute_phase.at_work(
            services, journal, contract, request, lambda bench: _judge(bench, task, asked.said)
        )
        return _submitted(services, journal, contract, request, task, attempt, ending)


def _require_open(state: RunState, task_id: str) -> TaskState:
    """The task, where work on it can be submitted: an open attempt, or a submit that was killed while it committed."""
    known = state.tasks.get(task_id)
    if known is None:
        raise InputError("task.unknown", f"Run {state.id} has no task {task_id}.", hint=f"idumb graph {state.phase}")
    if known.opened is not None or known.intended is not None:
        return known
    if known.status in outcome.DONE:
        raise Refusal("task.already-done", f"{task_id} is {known.status} already.", hint=f"idumb next {state.phase}")
    raise Refusal(
        "attempt.not-open",
        f"No attempt at {task_id} is open, so there is nothing that could be submitted or given up.",
        hint=f"idumb start {task_id}",
    )


def _judge(bench: Bench, task: Task, said: str) -> tuple[Attempt | None, Ending | None]:
    recovery.recover(bench)
    enveloping.lock_in(bench)
    known = bench.journal.state.tasks[task.id]
    if known.opened is None:  # a submit was killed while it committed, and is finished or taken back by now
        return None, None if known.status in outcome.DONE else runner.AGAIN
    attempt = _rebuilt(bench, task, known, said)
    attempt = runner.made(bench, attempt, (attempts.check_lock, *attempts.AFTER))
    ending = runner.settle(bench, attempt)
    publish.progress(bench)
    return attempt, ending


def _rebuilt(bench: Bench, task: Task, known: TaskState, said: str) -> Attempt:
    """The attempt as it stood when it was opened, from its events."""
    found = known.opened or {}
    begun = _begun(bench, known)
    p = begun.payload
    seconds = max(0.0, _moment(bench.services.clock.now()) - _moment(begun.at))
    state = bench.journal.state
    return Attempt(
        task,
        bench.plans[task.id],
        known.attempt,
        found["base"],
        known.feedback,
        bench.services.clock.monotonic() - seconds,
        known.accepted_paths,
        snapshot=ports.Snapshot(p["snapshot"], p["present"], p["ref"]),
        standing=ports.Standing(ports.Head(found["head"], state.branch), dict(state.guarded or {})),
        told={name: p[name] for name in ("envelope", "request", "context", "present") if name in p},
        result=agent.AgentResult(outcome.COMPLETED, said, reply=said, seconds=seconds),
        evidence=tuple(Evidence(**{**e, "argv": tuple(e["argv"])}) for e in found["evidence"]),
        residue=tuple(found["residue"]),
    )


def _begun(bench: Bench, known: TaskState) -> Event:
    events = bench.services.log.events(run=bench.run, task=known.id, kind="attempt.started", newest_first=True, limit=1)
    return next(iter(events))


def _moment(text: str) -> float:
    """Seconds since the epoch of the log's way to write a time."""
    return datetime.fromisoformat(text).timestamp()


def _submitted(
    services: Services,
    journal: Journal,
    contract: Contract,
    request: Request,
    task: Task,
    attempt: Attempt | None,
    ending: Ending | None,
) -> Result:
    state = journal.state
    known = state.tasks[task.id]
    following = schedule.Schedule(contract, state).next()
    ended = None
    if ending is not runner.AGAIN and (ending is not None or following is None):
        ended = execute_phase.conclude(services, journal, contract, request, ending or Ending("done"))
    shown = schedule.statuses(contract, state)
    accepted = known.status in outcome.DONE
    data: dict[str, Any] = {
        "run": state.id,
        "phase": state.phase,
        "accepted": accepted,
        "task": session.task_row(state, contract, task.id, shown),
        "attempt": known.attempt,
        **_verdict(attempt),
        "feedback": "" if accepted else known.feedback,
        "ended": None if ended is None else dict(ended.data),
        "next": _after(services, contract, state, task, ending, following, ended),
    }
    warnings = () if ended is None else ended.warnings
    if accepted:
        if ended is None:
            return Result(data, warnings=warnings)
        return Result(data, ended.exit_code, warnings, ended.failure, ended.details)
    if ended is not None and ended.exit_code == errors.EXIT_WAITING:
        return Result(data, ended.exit_code, warnings, ended.failure, ended.details)
    words = f"{task.id} is not accepted: {known.reason}"
    details = {} if ended is None else ended.details
    return Result(data, errors.EXIT_FAILED, warnings, ("task.not-accepted", words, data["next"][0]), details)


def _verdict(attempt: Attempt | None) -> dict[str, Any]:
    """What was judged, and how; all of it empty where an earlier submit had been judged and was only finished."""
    if attempt is None:
        return {"outcome": None, "verdict": None, "evidence": [], "ledger": [], "undeclared": [], "residue": []}
    lines = attempt.ledger
    return {
        "outcome": attempt.outcome,
        "verdict": attempt.verdict,
        "evidence": [evidence_payload(e) for e in attempt.evidence],
        "ledger": lines.as_list(),
        "undeclared": list(lines.paths("undeclared", "protected")),
        "residue": list(attempt.residue),
    }


def _after(
    services: Services,
    contract: Contract,
    state: RunState,
    task: Task,
    ending: Ending | None,
    following: str | None,
    ended: Result | None,
) -> list[str]:
    """What the builder does now, the likeliest first."""
    if ending is runner.AGAIN:
        return [f"idumb start {task.id}", f"idumb show {task.id}", f"idumb skip {task.id} --why REASON"]
    if ended is not None:
        again = [f"idumb start {task.id} --retry"] if state.tasks[task.id].status == outcome.FAILED else []
        return [*again, *ended.data["next"]]
    if following is None:
        return [f"idumb resume {state.phase}"]
    mine = contracts.in_editor(contract.plan_of(following), contract.tasks[following], services.settings)
    return [f"idumb start {following}"] if mine else [f"idumb resume {state.phase}"]


def give_up(services: Services, task: str, why: str, by: str, accept_git: tuple[str, ...] = ()) -> Result:
    """Record that the open attempt is not finished; its work is kept in a snapshot and taken out of the files."""
    if not why.strip():
        raise InputError("task.no-reason", "A reason is needed.", hint=f"--why 'the reason' for {task}")
    phase, task_id = session.find_task(task)
    place.require_initialised(services)
    state = session.require_run(services, phase)
    known = _require_open(state, task_id)
    if known.opened is None:
        raise Refusal("attempt.not-open", f"{task_id} was submitted already.", hint=f"idumb submit {task_id}")
    contract = _locked(services, state)
    place.require_guarded(services, state, accept_git)
    place.require_branch(services, state)
    with session.owned(services, "give-up") as owned:
        journal = owned.journal(state)
        place.accept_guarded(services, journal, accept_git)
        bench = session.bench(services, journal, contract, workspace=HERE)
        recovery.record_interruption(bench, contract.tasks[task_id], f"given up by {by}: {' '.join(why.split())}")
        touched = list(state.tasks[task_id].touched)
        leftovers.take_back(bench, contract.tasks[task_id])
        publish.write_progress(services, contract, state)
    kept = attempt_ref(services, state.id, task_id, known.attempt, "interrupted")
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "task": task_id,
            "attempt": known.attempt,
            "kept": kept,
            "put_back": touched,
            "next": [f"idumb start {task_id}", f"idumb skip {task_id} --why REASON"],
        }
    )


def _locked(services: Services, state: RunState) -> Contract:
    """The contract as the run locked it, whatever became of the plan since: what is begun can always be given up."""
    folder = state.plans[0][0].rpartition("/")[0]
    loaded = loading.locked(services, state, folder)
    if loaded.contract is None:
        raise InputError(
            "plan.invalid", f"The locked plan of phase {state.phase} cannot be read any more.", hint="idumb doctor"
        )
    return loaded.contract
