"""Questions to people: which wait, what was answered, what the plan tells of it, and what is remembered."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from idumb.app.consent import pending_consent
from idumb.app.contract import plan_answers
from idumb.app.core import run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.engine import exhausted_tasks
from idumb.app.planning import plan_questions
from idumb.app.review import ask_consent
from idumb.app.review.ask_consent import Pending
from idumb.app.session import next_steps, operation
from idumb.app.worktree import exposed_secrets
from idumb.domain.contract import Contract
from idumb.domain.decision import Answer, Choice, Decision
from idumb.domain.errors import InputError, Refusal
from idumb.domain.runs import saved_answers
from idumb.domain.runs.run import ANSWERED, EXHAUSTED, RunState
from idumb.domain.runs.saved_answers import SavedAnswer


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """Flags of `decide`. `remember` needs `yes` or a word at the terminal."""

    decision: str
    choice: str
    who: str
    guidance: str = ""
    remember: bool = False
    yes: bool = False


def waiting(services: Services) -> Result:
    """Every question that waits for a person, in all phases of this work tree."""
    rows = [d for phase in services.runs.phases() for d in _open(services, phase)]
    return Result({"decisions": [*consent_questions(services), *plan_questions.open_questions(services), *rows]})


def consent_questions(services: Services) -> list[dict[str, Any]]:
    """What nobody could be asked before something started; what changed since is asked anew, and is not listed."""
    found = (ask_consent.pending(services, kept) for kept in pending_consent.all_pending(services))
    return [_consent_row(one) for one in found if one is not None]


def _consent_row(one: Pending) -> dict[str, Any]:
    """As every other question; the commands are those that answer this one, and not those that run at once."""
    answers_it = [
        dataclasses.replace(c, command=f"idumb decide {one.question.id} {c.id}") for c in one.question.choices
    ]
    row = dataclasses.asdict(dataclasses.replace(one.question, choices=tuple(answers_it)))
    return row if one.contract is None else {**row, "phase": one.contract.phase}


def _open(services: Services, phase: str) -> list[dict[str, Any]]:
    state = run_lookup.latest_run(services, phase)
    if state is None:
        return []
    return [{**d, "phase": phase} for d in next_steps.pending(state)]


def decide(services: Services, request: Request) -> Result:
    """Record a person's answer and let the plan tell of it; the run takes it up with `resume`."""
    if request.decision.startswith(pending_consent.MARK):
        return _answer_consent(services, request)
    of_plan = plan_questions.require_open(services, request.decision)
    if of_plan is not None:
        return _answer_plan(services, of_plan, request)
    state = _run_that_asked(services, request.decision)
    question, phase = state.decisions[request.decision], state.phase
    _check_choice(question, request.choice)
    if question["kind"] == EXHAUSTED:
        return _answer_failed_task(services, state, question, request)
    given = state.answers.get(request.decision)
    if given is not None and not (request.remember and given["choice"] == request.choice):
        raise Refusal("decision.answered", f"{request.decision} was answered already.", hint=f"idumb resume {phase}")
    memory = _to_remember(services, state, question, request) if request.remember else None
    version = state.contract.version
    verified: str | None = None
    warnings: tuple[str, ...] = ()
    with operation.owned(services, "decide") as owned:
        journal = owned.journal(state)
        if given is None:
            answer = Answer(request.decision, request.choice, request.who, request.guidance)
            journal.write(journal.event("decision.answered", question.get("task"), **dataclasses.asdict(answer)))
            contract = _append_to_plan(services, journal)
            if question["kind"] == next_steps.VERIFICATION and contract is not None:
                verified, warnings = _verified(services, journal, contract)
        if memory is not None:
            services.saved_answers.keep(memory)
    data: dict[str, Any] = {"decision": request.decision, "choice": request.choice}
    data |= {"verification": verified, "next": [_after(question, phase, verified)]}
    data["remembered"] = None if memory is None else memory.id
    data["version"] = state.contract.version if state.contract.version != version else None
    return Result(data, warnings=warnings)


def _answer_plan(services: Services, question: Mapping[str, Any], request: Request) -> Result:
    """What becomes of a plan that planner and checker did not settle; it belongs to no run."""
    _check_choice(question, request.choice)
    if request.remember:
        raise _not_remembered(request)
    answer = Answer(request.decision, request.choice, request.who, request.guidance)
    return plan_questions.apply_answer(services, question, answer)


def _answer_failed_task(services: Services, state: RunState, question: Mapping[str, Any], request: Request) -> Result:
    """What a person wants of a task that failed with all its attempts. But for `retry` it is done at once."""
    if not exhausted_tasks.stands(state, question) or question["id"] in state.answers:
        task = state.tasks.get(str(question["task"]))
        now = "no longer in the plan" if task is None else f"{task.status} now"
        raise Refusal(
            "decision.void",
            f"{question['id']} is void: {question['task']} is {now}. Nothing was recorded.",
            hint=f"idumb show {question['task']}",
        )
    if request.remember:
        raise _not_remembered(request)
    done = _carry_out(services, state, str(question["task"]), request)
    after = run_lookup.latest_run(services, state.phase)
    version = None if after is None else after.contract.version
    data: dict[str, Any] = {
        "decision": request.decision,
        "choice": request.choice,
        "verification": None,
        "remembered": None,
        "version": version if version != state.contract.version else None,
        "result": None if done is None else done.data,
        "next": [f"idumb resume {state.phase}"] if done is None else list(done.data["next"]),
    }
    return Result(data, warnings=() if done is None else done.warnings)


def _carry_out(services: Services, state: RunState, task: str, request: Request) -> Result | None:
    """The answer is recorded with what it leads to, in one operation; where that is refused, the question waits on."""
    from idumb.app.history import rollback  # of all questions only this one needs them
    from idumb.app.running import task_overrides

    why = request.guidance.strip() or f"answered {request.choice} to {request.decision}"

    def answered(journal: Journal) -> None:
        answer = Answer(request.decision, request.choice, request.who, request.guidance)
        again = [journal.event("task.reset", task, reason=ANSWERED)] if request.choice == exhausted_tasks.RETRY else []
        journal.write(journal.event("decision.answered", task, **dataclasses.asdict(answer)), *again)
        _append_to_plan(services, journal)

    if request.choice == exhausted_tasks.ACCEPT:
        return task_overrides.accept(services, task, why, request.who, then=answered)
    if request.choice == exhausted_tasks.SKIP:
        return task_overrides.skip(services, task, why, request.who, yes=True, then=answered)
    if request.choice == exhausted_tasks.ROLL_BACK:
        to = rollback.before(services, state, task)
        return rollback.rollback(services, state.phase, to, yes=True, then=answered)
    with operation.owned(services, "decide") as owned:
        answered(owned.journal(state))
    return None


def _after(question: Mapping[str, Any], phase: str, verified: str | None) -> str:
    if question.get("task") and exposed_secrets.ACCEPTED in question["id"]:
        return f"idumb accept {question['task']} --why REASON"
    if question.get("task"):
        return f"idumb resume {phase}"
    return "idumb next" if verified == "passed" else f"idumb verify-work {phase}"


def _verified(services: Services, journal: Journal, contract: Contract) -> tuple[str, tuple[str, ...]]:
    from idumb.app.verify import verify_work  # of all questions only this one needs it

    return verify_work.apply_answer(services, journal, contract)


def _answer_consent(services: Services, request: Request) -> Result:
    """A person's word about what is to start: kept where consent is, and never told by a plan."""
    kept = next((one for one in pending_consent.all_pending(services) if one.id == request.decision), None)
    if kept is None:
        raise _unknown(request.decision)
    found = ask_consent.pending(services, kept)
    if found is None:
        services.consent.forget_question(kept.id)
        raise Refusal(
            "decision.void",
            f"{kept.id} is void: consent was given since, or what it was about changed. Nothing was recorded.",
            hint=f"{kept.command} asks about what is there now",
        )
    _check_choice(dataclasses.asdict(found.question), request.choice)
    if request.remember:
        raise _not_remembered(request)
    if request.choice == pending_consent.YES:
        ask_consent.record(services, found)
    services.consent.forget_question(kept.id)
    after = [kept.command] if request.choice == pending_consent.YES else []
    data = {"decision": kept.id, "choice": request.choice, "next": after, "remembered": None, "version": None}
    return Result(data)


def _append_to_plan(services: Services, journal: Journal) -> Contract | None:
    """Only of a plan that is as it was locked; else the next command that runs it does. The contract that follows."""
    contract = plan_answers.locked(services, journal.state)
    return None if contract is None else plan_answers.append(services, journal, contract)


def _run_that_asked(services: Services, decision: str) -> RunState:
    """The newest run that asked; InputError `decision.unknown`."""
    for phase in services.runs.phases():
        state = run_lookup.latest_run(services, phase)
        if state is not None and decision in state.decisions:
            return state
    raise _unknown(decision)


def _unknown(decision: str) -> InputError:
    return InputError("decision.unknown", f"No question has the id {decision}.", hint="idumb decisions")


def _check_choice(decision: Mapping[str, Any], choice: str) -> None:
    known = [c["id"] for c in decision["choices"]]
    if choice not in known:
        raise InputError(
            "decision.bad-choice",
            f"{choice!r} is no choice of {decision['id']}; it has {', '.join(known)}.",
            hint=f"idumb decide {decision['id']} {known[0]}",
        )


def _to_remember(services: Services, state: RunState, question: Mapping[str, Any], request: Request) -> SavedAnswer:
    """What will be remembered, once a person confirmed just that."""
    choices = tuple(c["id"] for c in question["choices"])
    found = saved_answers.question_key(question["kind"], choices, question["what"])
    contract = plan_answers.locked(services, state)
    task = contract.tasks.get(question.get("task") or "") if contract is not None else None
    if found is None or (task is not None and not saved_answers.may_answer(task)):
        raise _not_remembered(request)
    kept = SavedAnswer(
        found,
        question["kind"],
        question["what"],
        request.choice,
        request.who,
        services.clock.now(),
        request.guidance,
    )
    _confirm(services, kept, request)
    return kept


def _not_remembered(request: Request) -> Refusal:
    return Refusal(
        "decision.not-remembered",
        f"An answer to {request.decision} is not remembered: consent, a judgement of work and what cannot be taken"
        " back need a person's word each time.",
        hint=f"idumb decide {request.decision} {request.choice}",
    )


def _confirm(services: Services, kept: SavedAnswer, request: Request) -> None:
    if request.yes:
        return
    command = f"idumb decide {request.decision} {request.choice} --remember --yes"
    applies = "every failure that asks" if kept.kind == saved_answers.FAILURE else "this very question"
    question = Decision(
        id=f"remember.{kept.id}",
        kind="remember",
        what=f"Remember {kept.choice} for {applies}, in this repository and for you alone",
        why="A remembered answer is given without asking you.",
        evidence=(kept.what, f"idumb decide --forget {kept.id} takes it back"),
        choices=(
            Choice("remember", "remember it", "the same question is answered so from now on", command),
            Choice("no", "do not", "nothing is recorded"),
        ),
    )
    answer = services.asker.ask(question)
    if answer is None or answer.choice != "remember":
        raise Refusal(
            "decision.not-confirmed",
            f"Nothing was recorded: remembering {kept.choice} needs your confirmation.",
            hint=f"{command}, or without --remember",
            details={"choices": [dataclasses.asdict(choice) for choice in question.choices]},
        )


def remembered_answers(services: Services) -> Result:
    """`idumb decisions --remembered`."""
    return Result({"decisions": [], "remembered": [dataclasses.asdict(one) for one in services.saved_answers.all()]})


def forget(services: Services, question: str) -> Result:
    """`idumb decide --forget ID`."""
    if not services.saved_answers.forget(question):
        raise InputError(
            "decision.not-known", f"No remembered answer has the id {question}.", hint="idumb decisions --remembered"
        )
    return Result({"decision": question, "choice": "forgotten", "next": ["idumb decisions --remembered"]})
