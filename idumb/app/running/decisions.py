"""Decisions: list the questions that wait, and record answers in log and plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from idumb.app.consent import asking, phase_grants
from idumb.app.consent.asking import Unanswered
from idumb.app.contract import contract_versions, loading
from idumb.app.core import questions, run_lookup, schedule
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services
from idumb.app.planning import plan_questions
from idumb.app.review import ask_consent
from idumb.app.session import operation
from idumb.app.worktree import done_work, preconditions
from idumb.domain import outcome, wording
from idumb.domain.action import HISTORY, PHASE, SKIP, Action, Answer
from idumb.domain.contract import Contract
from idumb.domain.errors import InputError, Refusal
from idumb.domain.finding import nearest
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import ANSWERED, START, RunState


def waiting(services: Services) -> Result:
    """Return every question that waits for an answer, in all phases of this working tree."""
    now, changed, rows = services.clock.now(), list[str](), list[dict[str, Any]]()
    for state in run_lookup.latest_runs(services):
        asked = schedule.open_questions(state, now)
        if asked and _is_current(services, state):
            rows += [{**question, "phase": state.phase} for question in asked]
        elif asked:
            changed.append(state.phase)
    data = {"decisions": [*consent_questions(services), *plan_questions.open_questions(services), *rows]}
    words = "asks, too, but HEAD is on another branch, or its plan changed since"
    warnings = [f"Phase {phase} {words}: idumb check-plan {phase}" for phase in changed]
    if (holder := services.owner.holder()) is not None:
        warnings.append(f"idumb {holder['command']} runs as process {holder['pid']}, and may ask at its own terminal")
    return Result(data, warnings=tuple(warnings))


def _is_current(services: Services, state: RunState) -> bool:
    """Return whether the newest run is of the present plan and branch: else a question about its work is not answered.

    Its phase can be judged wherever its work was merged.
    """
    try:
        contract = loading.load_present(services, state.phase).contract
    except InputError:
        return False
    if contract is None or not contract_versions.is_run_of(state, contract):
        return False
    return state.is_complete or preconditions.way_back(services, state) is None


def consent_questions(services: Services) -> list[dict[str, Any]]:
    """Return questions about consent that could not be asked at a terminal. Outdated ones are omitted."""
    return [_consent_row(one) for one in asking.unanswered(services) if not ask_consent.why_void(services, one)]


def _consent_row(stored: Unanswered) -> dict[str, Any]:
    """Return the row of a consent question. Its commands answer the question and start nothing."""
    asked = stored.question
    answers_it = [replace(c, command=f"idumb decide {asked.id} {c.id}") for c in asked.choices]
    row = replace(asked, choices=tuple(answers_it)).row()
    return {**row, "phase": stored.phase} if stored.phase else row


def decide(services: Services, answer: Answer) -> Result:
    """Record an answer, and append it to the plan; `resume` then uses it."""
    stored = next((one for one in asking.unanswered(services) if one.question.id == answer.decision), None)
    if stored is not None:
        return _answer_consent(services, stored, answer)
    of_plan = plan_questions.require_open(services, answer.decision)
    if of_plan is not None:
        _check_choice(of_plan, answer.choice)
        return Result(_answered(answer, plan_questions.apply_answer(services, of_plan, answer)))
    state = next((s for s in run_lookup.latest_runs(services) if answer.decision in s.decisions), None)
    if state is None:
        hint = Action("decisions")
        raise InputError("decision.unknown", f"No question has the id {answer.decision}.", hint=hint)
    question, phase = state.decisions[answer.decision], state.phase
    _check_choice(question, answer.choice)
    if question["subject"] == questions.EXHAUSTED:
        return _effect(services, state, answer, _carry_out(services, state, question, answer))
    if answer.decision in state.answers:
        raise Refusal("decision.answered", f"{answer.decision} is already answered.", hint=Action.of("resume", phase))
    if question["kind"] != PHASE:  # a phase can be judged wherever its work was merged; other answers change the plan
        preconditions.require_branch(services, state)
    if question["kind"] == HISTORY and answer.choice == questions.FRESH:
        return _effect(services, state, answer, _rolled_back(services, state, str(question["task"]), answer))
    _require_answerable(services, state, question)
    version = state.contract.version
    verified: str | None = None
    warnings: tuple[str, ...] = ()
    with operation.recorded(services, "decide", state) as journal:
        if question["kind"] == HISTORY and answer.choice == questions.RETURN:
            done_work.bring_back(services, state, question["evidence"][-1])
        journal.write(journal.answer_event(answer, question.get("task")))
        contract = _append_to_plan(services, journal)
        if question["kind"] == PHASE and contract is not None:
            from idumb.app.verify import verify_work  # only this question needs it

            verified, warnings = verify_work.apply_answer(services, journal, contract)
    added = state.contract.version if state.contract.version != version else None
    following = [_after(question, phase, verified)]
    return Result(_answered(answer, following, version=added, verification=verified), warnings=warnings)


def _answered(answer: Answer, following: list[Any], *, version: int | None = None, **more: Any) -> dict[str, Any]:
    """Return the answer of `decide`. `version` is that of the contract with the answer, if the plan has it."""
    said = {"decision": answer.decision, "choice": answer.choice, "verification": None}
    return {**said, "version": version, "next": following, **more}


def _require_answerable(services: Services, state: RunState, question: Mapping[str, Any]) -> None:
    """Refuse an answer that comes too late, or about work that is not there."""
    why, hint = "", Action.of("resume", state.phase)
    if question.get("task") is None and not state.is_complete:
        unfinished = [f"{id} ({one.status})" for id, one in state.tasks.items() if one.status not in outcome.ENDED]
        verb = "is" if len(unfinished) == 1 else "are"
        why = f"it is about the work of phase {state.phase}, and {wording.listed(unfinished)} {verb} not done"
        if state.restoring is not None:
            why = f"{state.restoring['words']} was interrupted"
    elif question["id"] not in {row["id"] for row in schedule.open_questions(state)}:
        why, hint = "nothing waits for it any more", Action("decisions")
    elif question["id"] not in {row["id"] for row in schedule.open_questions(state, services.clock.now())}:
        why = f"it was open until {question['until']}, and nobody answered, so the answer is no"  # `resume` records it
    if why:
        raise plan_questions.void(question["id"], why, hint)


def _effect(services: Services, state: RunState, answer: Answer, effect: Result | None) -> Result:
    """Return the result of an answer that took effect at once; with no `effect`, `resume` uses it."""
    version: int | None = run_lookup.require_run(services, state.phase).contract.version
    version = version if version != state.contract.version else None
    if effect is None:
        return Result(_answered(answer, [Action.of("resume", state.phase)], version=version, result=None))
    data = _answered(answer, list(effect.data["next"]), version=version, result=effect.data)
    return Result(data, warnings=effect.warnings)


def _rolled_back(services: Services, state: RunState, task: str, answer: Answer) -> Result:
    """Roll back, and record the answer with it; the next command appends the answer to the plan."""
    from idumb.app.history import rollback  # only this question needs it

    answered = NewEvent("decision.answered", asdict(answer), run=state.id, task=task)
    fresh = answer.choice == questions.FRESH
    to = START if fresh else rollback.target_before(services, state, state.attempted[task])
    return rollback.rollback(services, state.phase, to, yes=True, then=(answered,))


def _carry_out(services: Services, state: RunState, question: Mapping[str, Any], answer: Answer) -> Result | None:
    """Answer a question about a task that used all its attempts. Every choice but `retry` takes effect at once.

    If the effect is refused, the question keeps waiting.
    """
    from idumb.app.running import task_overrides  # only this question needs it

    task = str(question["task"])
    if not questions.is_current(state, question) or answer.decision in state.answers:
        failed = state.tasks.get(task)
        words = f"{task} is {'no longer in the plan' if failed is None else f'now {failed.status}'}"
        raise plan_questions.void(answer.decision, words, Action.of("show", task))
    why = answer.guidance.strip() or f"answered {answer.choice} to {answer.decision}"

    def answered(journal: Journal) -> None:
        reset = [journal.event("task.reset", task, reason=ANSWERED)] if answer.choice == questions.RETRY else []
        journal.write(journal.answer_event(answer, task), *reset)
        _append_to_plan(services, journal)

    if answer.choice == questions.ACCEPT:
        return task_overrides.accept(services, task, why, answer.by, answered)
    if answer.choice == SKIP:
        return task_overrides.skip(services, task, why, answer.by, answered)
    if answer.choice == questions.ROLL_BACK:
        return _rolled_back(services, state, task, answer)
    with operation.recorded(services, "decide", state) as journal:
        answered(journal)
    return None


def _after(question: Mapping[str, Any], phase: str, verified: str | None) -> Action:
    if question.get("task"):
        return Action.of("resume", phase)
    return Action("next") if verified == "passed" else Action.of("verify-work", phase)


def _answer_consent(services: Services, stored: Unanswered, answer: Answer) -> Result:
    """Answer a question about consent. The answer is stored with what was agreed to, not in the log or the plan."""
    why = ask_consent.why_void(services, stored)
    if why:
        services.consent.forget_question(answer.decision)
        raise plan_questions.void(answer.decision, why, f"{stored.command} asks again")
    _check_choice(stored.question.row(), answer.choice)
    agreed = answer.choice == asking.YES
    if agreed:
        phase_grants.record_consent(
            services, stored.phase, stored.parts, how=asking.DECIDE, need=stored.question.subject
        )
    services.consent.forget_question(answer.decision)
    return Result(_answered(answer, [stored.command] if agreed else []))


def _append_to_plan(services: Services, journal: Journal) -> Contract | None:
    """Append answers to the plan and return the new contract; None if the plan is not as it was locked.

    The next command that runs a changed plan appends them instead.
    """
    contract = contract_versions.present_if_locked(services, journal.state)
    return None if contract is None else contract_versions.append_answers(services, journal, contract)


def _check_choice(decision: Mapping[str, Any], choice: str) -> None:
    choices = [c["id"] for c in decision["choices"]]
    if choice not in choices:
        raise InputError(
            "decision.bad-choice",
            f"{decision['id']} has no choice {choice!r}; choose {', '.join(choices)}.",
            hint=Action.of("decide", decision["id"], nearest(choice, choices) or choices[0]),
        )
