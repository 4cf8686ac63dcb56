"""Resume a run from its last checkpoint, retry failed tasks, and ask about those that used up their attempts."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from idumb.app.contract import changed_contract, run_lock
from idumb.app.core import questions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.run_context import RunRequest
from idumb.app.core.services import Result, Services
from idumb.app.running import admission, ended_run
from idumb.app.session import operation
from idumb.app.worktree import preconditions
from idumb.domain import outcome
from idumb.domain.action import UNDECLARED, Action, Answer, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import Task
from idumb.domain.runs.run import COMPLETED, JUDGED, RunState, TaskState


class Retry(Struct, frozen=True):
    """Which failed tasks to retry: all of them (`failed`), or `only` these; `once` allows one attempt for each.

    `judge`: only judge their work again, without their builders. `guidance` is what `who` tells the builders of the
    next attempts.
    """

    failed: bool = False
    only: Collection[str] = ()
    once: bool = False
    judge: bool = False
    guidance: str = ""
    who: str = ""

    def selects(self, task: TaskState) -> bool:
        """Return whether the task is to be retried if it failed."""
        return self.failed or task.id in self.only or (self.judge and _has_work(task))


_NO_RETRY = Retry()


def resume(services: Services, request: RunRequest, again: Retry = _NO_RETRY) -> Result:
    """Continue the phase's unfinished run, under the same consent."""
    contract = admission.startable_contract(services, request)
    state = run_lookup.require_run(services, contract.phase)
    changed_contract.require_contract_of_run(services, contract, state)
    guided = _guided_tasks(contract, state, again)
    if (
        again.judge
        and not again.failed
        and state.opened is None  # that is refused below
        and not any(t.status == outcome.FAILED and _has_work(t) for t in state.tasks.values())
    ):
        raise Refusal(
            "resume.nothing-to-judge",
            f"No failed task of phase {state.phase} left work that could be judged.",
            hint=Action.of("resume", state.phase, "--retry-failed"),
            details={"phase": state.phase},
        )
    request = admission.of_run(request, state)
    is_done = state.state == COMPLETED and state.restoring is None
    admission.require_ready(services, contract, state, request, runs=not (is_done and state.verified))
    if is_done and (state.verified or not request.verify):
        with operation.owned(services, "resume") as owned:
            from idumb.app.verify import verify_work  # it loads the checks

            # It was stopped before it wrote its reports.
            verify_work.publish(services, owned.journal(state), contract, state.verification)
        return ended_run.complete(state)
    from idumb.app.running import run_lifecycle  # it loads the engine, and often there is nothing to do

    preconditions.require_branch(services, state)
    run_lock.require_same_environment(services, state, contract, request)
    with operation.recorded(services, "resume", state) as journal:
        preconditions.accept_guarded_files(services, journal, request.accept_git)
        run_lifecycle.finish_restore(services, journal, contract)
        journal.append("run.resumed", reason="resume")
        _reset(services, journal, contract, again, request.on_deviation)
        guidance = {"guidance": again.guidance, "by": again.who}
        journal.write(*(journal.event("task.guided", task, **guidance) for task in guided))
        return run_lifecycle.run_to_end(services, journal, contract, request)


def _has_work(task: TaskState) -> bool:
    """Return whether the last attempt changed files."""
    return task.work.left_tree not in (None, task.work.base)


def _reset(services: Services, journal: Journal, contract: Contract, again: Retry, on_deviation: str | None) -> None:
    """Reset the tasks to retry, or answer for those that undeclared changes stopped, so that their work is judged."""
    for task, task_state in list(journal.state.tasks.items()):
        open_one = _waits_about_deviations(journal.state, task_state)
        if task_state.status != outcome.FAILED and not open_one:
            continue
        if again.selects(task_state):
            judged = again.judge and _has_work(task_state)
            once = {"once": True} if again.once or judged else {}  # a second attempt would start the builder
            journal.append("task.reset", task, reason=JUDGED if judged else "retry", **once)
        elif on_deviation is not None and task_state.work.deviations:
            _decide_deviations(services, journal, contract.tasks[task], on_deviation, again.who)


def _decide_deviations(services: Services, journal: Journal, task: Task, choice: str, who: str) -> None:
    """Record the answer about the undeclared changes of a task; nothing if it is not among the choices."""
    number = journal.state.tasks[task.id].attempt.number
    deviations = run_lookup.deviations(services, journal.state.id, task.id)
    question = questions.asked_before(journal.state, questions.about_deviations(task, number, deviations))
    if deviations.can_be_decided and question.choice(choice) is not None:
        waits = journal.event("task.waiting", task.id, number, decisions=[question.id], reason=question.what)
        answer = journal.answer_event(Answer(question.id, choice, who, ""), task.id)
        journal.write(journal.question_event(question, task.id, number), waits, answer)


def _waits_about_deviations(state: RunState, task: TaskState) -> bool:
    kinds = {state.decisions[id]["kind"] for id in task.decisions}  # a task that has ended keeps its questions
    return task.status == outcome.WAITING and UNDECLARED in kinds


def _guided_tasks(contract: Contract, state: RunState, again: Retry) -> tuple[str, ...]:
    """Return the tasks whose next attempts get the guidance: those that are retried, else the next task."""
    if not again.guidance:
        return ()
    attempted = (task for task in state.tasks.values() if task.attempt.number and _is_attempted(state, task, again))
    guided = tuple(task.id for task in attempted) or tuple(schedule.ready(contract, state))[:1]
    if not guided:
        retry = Action.of("resume", state.phase, "--retry-failed", "--guidance", again.guidance)
        raise Refusal(
            "resume.no-attempt",
            f"No attempt of phase {state.phase} follows, so nothing can use the guidance.",
            hint=retry if any(t.status == outcome.FAILED for t in state.tasks.values()) else Action("status"),
            details={"phase": state.phase},
        )
    return guided


def _is_attempted(state: RunState, task: TaskState, again: Retry) -> bool:
    if task.status == outcome.FAILED or _waits_about_deviations(state, task):
        return again.selects(task)
    answered = bool(task.decisions) and all(question_id in state.answers for question_id in task.decisions)
    return task.status in schedule.RUNNABLE or (task.status == outcome.WAITING and answered)


def ask_and_resume(services: Services, request: RunRequest, result: Result) -> Result:
    """Ask about each failed task and resume; return the last result. Unanswered questions keep waiting."""
    if not services.asker.interactive:
        return result
    from idumb.app.running import decisions  # it imports much, and only a question at a terminal needs it

    phase, choices, last = str(result.data.get("phase")), set[str](), result
    asked_ids: set[str] = set()
    while (question := _next_question(services, phase, asked_ids)) is not None:
        asked_ids.add(question.id)
        answer = services.asker.ask(question)
        if answer is not None:
            last = decisions.decide(services, answer)
            choices.add(answer.choice)
    if questions.ROLL_BACK in choices:  # resuming would repeat the work that was just rolled back
        rest = {"decisions": [], "next": list(last.data["next"])}
        return replace(result, data={**result.data, **rest}, warnings=(*result.warnings, *last.warnings))
    if not choices:
        return result
    again = replace(request, phase=phase, force=False, branch=None)
    return ask_and_resume(services, again, resume(services, again))


def _next_question(services: Services, phase: str, seen: Collection[str]) -> Decision | None:
    """Return the first question about a failed task that was not asked yet; an answer may settle several."""
    state = run_lookup.latest_run(services, phase)
    rows = schedule.open_questions(state) if state is not None else []
    row = next((d for d in rows if d["subject"] == questions.EXHAUSTED and d["id"] not in seen), None)
    return None if row is None else Decision.recorded(row)
