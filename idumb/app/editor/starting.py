"""`start`: a builder that drives idumb itself begins a task. Everything before the work is done; then it is open.

The stages are those of every attempt (`app/attempt.py`), cut in two where the work is done: nothing is believed of
who does it, and what `submit` judges is the bytes that are there when they say that it is done.
"""

from __future__ import annotations

import dataclasses

from idumb.app.attempt import adoption, budget, build, entry, projections, questions
from idumb.app.attempt import pipeline as attempts
from idumb.app.attempt.proofs import evidence_payload
from idumb.app.contract import environment_lock
from idumb.app.core import open_attempt, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.run_context import Attempt, Bench
from idumb.app.core.services import Services, attempt_ref
from idumb.app.engine import runner
from idumb.app.engine.runner import Ending
from idumb.app.reading import task_brief
from idumb.app.running import admission, run_lifecycle
from idumb.app.running.run_request import Request
from idumb.app.session import next_steps, operation
from idumb.app.worktree import task_base
from idumb.domain import agent, outcome, wording
from idumb.domain import contract as contracts
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.plans import step_plan
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import RunState

HERE = "here"


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """`by` is who works on it, `retry` takes up a task that failed for good."""

    task: str
    by: str
    request: Request
    retry: bool = False


def start(services: Services, asked: Start) -> Result:
    """Everything that comes before the work, for one task; then the attempt is open and this command ends."""
    phase, task_id = run_lookup.find_task(asked.task)
    again = f"idumb start {task_id}"
    request = dataclasses.replace(asked.request, phase=phase, workspace=HERE, command="start", again=again)
    contract = admission.admit(services, request)
    task = _buildable(services, contract, task_id)
    with operation.owned(services, "start") as owned:
        journal = run_lifecycle.take_up(services, owned, contract, request)
        begun = run_lifecycle.supervise(services, journal, contract, request, lambda bench: _open(bench, task, asked))
        if isinstance(begun, Ending):
            return _not_opened(services, journal, contract, request, task, begun)
    return _opened(services, journal.state, contract, begun)


def _buildable(services: Services, contract: Contract, task_id: str) -> Task:
    if task_id not in contract.tasks:
        raise InputError(
            "task.unknown",
            f"Phase {contract.phase} has no task {task_id}.",
            hint=f"idumb graph {contract.phase}",
            details={"phase": contract.phase},
        )
    task = contract.tasks[task_id]
    if not contracts.in_editor(contract.plan_of(task_id), task, services.settings):
        name = contracts.builder_of(contract.plan_of(task_id), task, services.settings)
        raise Refusal(
            "task.other-builder",
            f"{task_id} is built by {name}, as its plan and the configuration say; nobody else may start it.",
            hint=f"idumb execute-phase {contract.phase} has it built; `builder: {agent.EDITOR}` in the task, the plan"
            " or .idumb/config.yaml leaves it to who drives idumb",
            details={"run": step_plan.run_command(contract.phase)},
        )
    return task


def _open(bench: Bench, task: Task, asked: Start) -> Attempt | Ending:
    """The stages before the work; an Ending where the task cannot be opened now."""
    run_lifecycle.make_ready(bench)
    environment_lock.lock_in(bench)
    if asked.retry and bench.journal.state.tasks[task.id].status == outcome.FAILED:
        bench.journal.write(bench.journal.event("task.reset", task.id, reason="retry"))
    _require_turn(bench, task)
    if adoption.claimed(bench, task):
        runner.adopt(bench, task)
        _require_turn(bench, task)
    task_base.refuse_foreign_changes(bench, task)
    question = questions.ask_about_effect(bench, task)
    if question is not None and question != questions.SKIP:
        return Ending("waiting", f"{task.id} may have had its effect already, and asks first", task.id)
    if question == questions.SKIP:
        return Ending("halted", f"{task.id} is left out, as a person said", task.id)
    ceiling = budget.asked(bench, task)
    if ceiling is not None:
        return runner.at_ceiling(bench, task, *ceiling)
    attempt = runner.made(bench, entry.begin(bench, task), attempts.BEFORE)
    if attempt.outcome is not None:
        attempt = runner.made(bench, attempt, attempts.AFTER)
        return runner.settle(bench, attempt) or Ending("done", attempt.reason, task.id)
    _announce(bench, attempt, asked.by)
    projections.progress(bench)
    return attempt


def _require_turn(bench: Bench, task: Task) -> None:
    """The task is the next, or one of the next; Refusal that says why not."""
    state, contract = bench.journal.state, bench.contract
    shown = schedule.statuses(contract, state)
    status = shown[task.id]
    if status in outcome.DONE or status == outcome.SKIPPED:
        raise Refusal(
            "task.already-done",
            f"{task.id} is {status} already.",
            hint=f"idumb next {contract.phase}",
            details={"task": task.id},
        )
    if status == outcome.FAILED:
        raise Refusal(
            "task.failed",
            f"{task.id} failed: {state.tasks[task.id].reason}",
            hint=f"idumb start {task.id} --retry tries it again; idumb show {task.id} tells what was wrong",
            details={"task": task.id},
        )
    if status == outcome.WAITING:
        asked = next_steps.pending(state)
        words = "waits for a person." if asked else f"waits: {state.tasks[task.id].reason}"
        raise Refusal(
            "task.waiting",
            f"{task.id} {words}",
            hint="idumb decisions" if asked else f"idumb resume {contract.phase}",
            details={"phase": contract.phase},
        )
    if status in (outcome.PENDING, outcome.BLOCKED):
        waits = wording.listed(f"{d} ({shown[d]})" for d in schedule.blockers(contract, shown, task.id))
        raise Refusal(
            "task.not-ready",
            f"{task.id} waits for {waits}.",
            hint=f"idumb next {contract.phase}",
            details={"task": task.id},
        )
    other = next((t for t, s in shown.items() if s == outcome.RUNNING and t != task.id), None)
    if other is not None:
        raise Refusal(
            "task.other-unfinished",
            f"{other} is not done, and its work lies in the files; nothing is built on top of it.",
            hint=f"idumb start {other} goes on with it; idumb skip {other} --why REASON leaves it out",
            details={"other": other},
        )


def _announce(bench: Bench, attempt: Attempt, by: str) -> None:
    services, task = bench.services, attempt.task
    if attempt.snapshot is not None and attempt.residue:
        # What checks before the work left is in the base, and no snapshot names that tree.
        ref = attempt_ref(services, bench.run, task.id, attempt.number, "opened")
        services.trees.keep(ref, attempt.base, f"what {task.id} starts from", attempt.snapshot.commit)
    bench.journal.write(
        bench.journal.event(
            open_attempt.KIND,
            task.id,
            attempt.number,
            by=by,
            phase=bench.contract.phase,
            worktree=services.worktree,
            base=attempt.base,
            head=services.history.head().commit,
            evidence=[evidence_payload(e) for e in attempt.evidence],
            residue=list(attempt.residue),
            **({"caches": list(attempt.caches)} if attempt.caches else {}),
        )
    )


def _opened(services: Services, state: RunState, contract: Contract, attempt: Attempt) -> Result:
    task = attempt.task
    found = open_attempt.find(services)
    return Result(
        {
            "run": state.id,
            "phase": state.phase,
            "open": None if found is None else found.as_dict(),
            "task": task_brief.brief(
                services,
                contract,
                task,
                attempt=attempt.number,
                feedback=attempt.feedback,
                decided=build.decisions_made(state),
            ),
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
    return run_lifecycle.close(services, journal, contract, request, ending)
