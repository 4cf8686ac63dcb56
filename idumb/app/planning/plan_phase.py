"""Write a phase's plan: research where it is missing or stale, planner and checker for some rounds, then the user."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from idumb.app.core import next_actions
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import draft_plan, phase_context, phase_research, plan_questions, planning_rounds
from idumb.app.planning.draft_plan import Draft
from idumb.app.planning.phase_context import PhaseContext, PhaseLocation
from idumb.app.planning.phase_research import Tell
from idumb.app.planning.plan_questions import Unsettled
from idumb.app.planning.planning_rounds import Goal, Round
from idumb.app.roles import role_calls, role_consent
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.app.session.operation import Owned
from idumb.app.worktree import preconditions
from idumb.domain import agent, wording
from idumb.domain.agent import AgentResult
from idumb.domain.decision import Choice
from idumb.domain.errors import EXIT_FAILED, EXIT_INVALID, EXIT_WAITING, Refusal

_CLOSED = "passed"


@dataclass(frozen=True, slots=True)
class Request:
    """`template` is the text of a first plan to fill in; `offered` the text of a plan that somebody wrote already.

    `gaps` asks for one more plan, which closes what the phase's verification found open. `ask` shows what the planner
    would be told. `research` false leaves research as it is.
    """

    phase: str
    template: str | None = None
    offered: str | None = None
    gaps: bool = False
    ask: bool = False
    research: bool = True
    approve: tuple[str, ...] = ()


def plan_phase(services: Services, request: Request, tell: Tell = lambda _: None) -> Result:
    """Write a plan that passes every check, or nothing. Refusal `plan.exists` where the phase has one already."""
    preconditions.require_initialised(services)
    where = phase_context.locate(services, request.phase)
    identity, path = draft_plan.next_path(services, where)
    if not request.gaps and identity != "01":
        raise _exists(services, where)
    if request.offered is not None:
        return _take_offered(services, where, identity, path, request.offered)
    if request.template is not None:
        return _from_template(services, where, identity, path, request.template)
    gaps = _gaps(services, where) if request.gaps else ""
    if request.ask:
        return _prepared(services, request, Goal(phase_context.gather(services, where), identity, path, gaps))
    _require_planner(services, where)
    known = phase_context.gather(services, where)
    asked = _roles(services, known, request)
    role_consent.ensure(services, asked, approve=request.approve, command=_command(request, where))
    with operation.owned(services, "plan-phase") as owner:
        journal = owner.record()
        warnings, known = _refresh_research(services, known, request, owner, tell)
        begin = _first_round(services, where, identity, path)
        state = planning_rounds.run_rounds(services, Goal(known, identity, path, gaps), owner, warnings, tell, begin)
        return _finish(services, journal, request, where, path, state, warnings)


def _first_round(services: Services, where: PhaseLocation, identity: str, path: str) -> Round:
    """Where the rounds begin: with the last draft and a person's words, if they said `again`."""
    known = plan_questions.sent_back(services, path)
    if known is None:
        return Round()
    draft = None if known.text is None else draft_plan.judge(services, where, identity, path, known.text)
    words = f"A person read the last draft and says: {known.guidance}" if known.guidance.strip() else ""
    return Round(0, draft, list(known.objections), words)


def _command(request: Request, where: PhaseLocation) -> str:
    flags = (" --gaps" if request.gaps else "") + ("" if request.research else " --no-research")
    return f"idumb plan-phase {where.phase}{flags}"


def _prepared(services: Services, request: Request, goal: Goal) -> Result:
    """What the planner would be told; nothing is run or written."""
    where = goal.known.location
    told = RoleRequest(agent.PLANNER, goal.about, planning_rounds.planner_values(services, goal, Round()))
    data = _data(where, None, rounds=0, written=False)
    take = f"{_command(request, where)} --from FILE"
    return Result({**data, "path": goal.path, "prompt": role_calls.prompt(services, told), "next": [take]})


def _exists(services: Services, where: PhaseLocation) -> Refusal:
    paths = [path for path, _ in services.plans.plans(where.folder)]
    phase = where.phase
    locked = services.runs.latest(phase) is not None
    ways = (
        [f"idumb amend {phase} --add-task FILE changes the plan that its run is locked to"]
        if locked
        else [f"idumb check-plan {phase} says what is wrong with it; edit it, or move it away"]
    )
    ways.append(f"idumb plan-phase {phase} --gaps plans what its verification found open")
    return Refusal(
        "plan.exists",
        f"Phase {phase} has a plan already, and none is written over another: {', '.join(paths)}.",
        hint="; ".join(ways),
        details={"plans": paths, "locked": locked},
    )


def _require_planner(services: Services, where: PhaseLocation) -> None:
    if role_calls.binding_of(services, agent.PLANNER) is None:
        raise Refusal(
            "role.unbound",
            "No agent fills the role planner, so nobody can write the plan.",
            hint=f"idumb plan-phase {where.phase} --template writes one to fill in, --ask shows what to tell somebody"
            " else; or name an agent in .idumb/config.yaml: `roles: {planner: {binding: NAME}}`",
            details={"role": agent.PLANNER},
        )


def _gaps(services: Services, where: PhaseLocation) -> str:
    """The verification report of the phase; Refusal where there is none, or nothing is open in it."""
    path = where.path("VERIFICATION")
    text = services.reports.read(path) if where.exists else None
    if text is None:
        raise Refusal(
            "plan.no-verification",
            f"Phase {where.phase} was not verified: there is no {path}, so no gap is known.",
            hint=f"idumb verify-work {where.phase}",
        )
    if services.plans.recorded(where.folder).get("VERIFICATION", {}).get("status") == _CLOSED:
        raise Refusal("plan.no-gaps", f"{path} says that nothing is open in phase {where.phase}.", hint="idumb next")
    return text


def _roles(services: Services, known: PhaseContext, request: Request) -> list[str]:
    """Those that are about to be asked."""
    wanted = [agent.PLANNER, agent.PLAN_CHECKER]
    if request.research and known.standing in (phase_context.MISSING, phase_context.STALE):
        wanted.insert(0, agent.RESEARCHER)
    return [role for role in wanted if role_calls.binding_of(services, role) is not None]


def _refresh_research(
    services: Services, known: PhaseContext, request: Request, owner: Owned, tell: Tell
) -> tuple[list[str], PhaseContext]:
    """The bundle with research that answers to it, where a researcher is bound; the plan is written without it too."""
    if known.standing not in (phase_context.MISSING, phase_context.STALE) or not request.research:
        return [], known
    if role_calls.binding_of(services, agent.RESEARCHER) is None:
        stale = known.standing == phase_context.STALE
        return [_STALE] if stale else [], known
    tell(phase_research.ASKING)
    answered = phase_research.ask_and_write(services, known, owner)
    if isinstance(answered, AgentResult):
        words = phase_research.failure_report(services, answered, agent.RESEARCHER, "")[1]
        return [f"{words}; the plan is written without it."], known
    return [], phase_context.gather(services, known.location)


_STALE = "The research was made of other texts than those of now, and no researcher is bound."


def _finish(
    services: Services,
    journal: Journal,
    request: Request,
    where: PhaseLocation,
    path: str,
    state: Round,
    warnings: Sequence[str],
) -> Result:
    draft = state.draft
    if state.good and draft is not None:
        return _written(services, where, draft, state.number, warnings)
    again = _command(replace(request, research=True), where)
    take = f"{again} --from {shlex.quote(state.kept)}" if state.kept else None
    data = _data(where, draft, rounds=state.number, written=False, kept=state.kept, objections=state.objections)
    if state.failed is not None:
        failure = phase_research.failure_report(services, state.failed, agent.PLANNER, _command(request, where))
        return Result({**data, "next": [take] if take else []}, EXIT_FAILED, tuple(warnings), failure)
    left = Unsettled(
        where, path, state.number, draft, tuple(state.objections), state.problem, state.kept, _command(request, where)
    )
    asked = plan_questions.question(journal, left)
    answer = services.asker.ask(asked)
    choice = answer.choice if answer is not None else None
    taken = None
    if draft is not None and choice == plan_questions.TAKE:
        taken = _written(services, where, draft, state.number, warnings)
    plan_questions.record(journal, left, asked, answer, services.worktree)
    return taken or Result(
        {**data, "decision": asked.id, "next": _after(left, take, choice)},
        EXIT_WAITING if choice is None else EXIT_FAILED,
        tuple(warnings),
        _why_not(where, left, choice),
        {"choices": next_actions.rows(asked.choices)} if choice is None else {},
    )


def _after(left: Unsettled, take: str | None, choice: str | None) -> list[str]:
    if choice == plan_questions.AGAIN:
        return [left.command]
    return [*([take] if take else []), *(["idumb decisions"] if choice is None else [])]


def _why_not(where: PhaseLocation, left: Unsettled, choice: str | None) -> tuple[str, str, str]:
    """The error of rounds that brought no plan."""
    waits = "The question waits: idumb decisions"
    hint = {None: waits, plan_questions.AGAIN: left.command}.get(choice, f"idumb plan-phase {where.phase} --template")
    if left.legal:
        words = f"The plan-checker still objects after {left.rounds} rounds; the plan is legal, and yours to judge."
        return "plan.objections", words, hint
    return "plan.not-legal", f"The planner wrote no legal plan in {left.rounds} rounds; nothing was written.", hint


# The draft was not written, so there is nothing in the phase that could be checked.
_CORRECT = {
    "choices": next_actions.rows(
        (Choice("correct", "correct what is named and give it again", "it is written once it is legal"),)
    )
}


def _take_offered(services: Services, where: PhaseLocation, identity: str, path: str, text: str) -> Result:
    """A plan that was written elsewhere: taken as it is, or refused with every finding.

    A model's answer may be given whole: the one plan in it is taken.
    """
    if not text.removeprefix("\ufeff").startswith("---"):
        found = services.texts.plans_in(text)
        text = found[0] if len(found) == 1 else text
    draft = draft_plan.judge(services, where, identity, path, text)
    if draft.legal:
        with operation.owned(services, "plan-phase") as owned:
            owned.record()
            return _written(services, where, draft, 0, ())
    words = f"The plan is not legal; {path} was not written."
    failure = ("plan.invalid", words, "Correct the findings above, then give it again")
    return Result(_data(where, draft, rounds=0, written=False), EXIT_INVALID, (), failure, _CORRECT)


def _from_template(services: Services, where: PhaseLocation, identity: str, path: str, template: str) -> Result:
    known = phase_context.gather(services, where)
    section = known.roadmap.partition("\n")
    title = wording.one_line(where.title) or f"Phase {where.phase}"
    goal = next((line for p in section[2].split("\n\n") if (line := wording.one_line(p))), title)
    words = {"phase": where.phase, "title": title, "goal": goal, "roadmap": known.roadmap or title}
    words["builder"] = services.settings.builder or "human"
    draft = draft_plan.judge(services, where, identity, path, services.documents.first_plan(template, words))
    if not draft.legal:
        found = _data(where, draft, rounds=0, written=False)
        return Result(found, EXIT_INVALID, (), ("plan.invalid", "The filled template is not legal.", None), _CORRECT)
    with operation.owned(services, "plan-phase") as owned:
        owned.record()
        return _written(services, where, draft, 0, ())


def _written(services: Services, where: PhaseLocation, draft: Draft, rounds: int, warnings: Sequence[str]) -> Result:
    draft_plan.write(services, draft)
    return Result(_data(where, draft, rounds=rounds, written=True), warnings=tuple(warnings))


def _data(
    where: PhaseLocation,
    draft: Draft | None,
    *,
    rounds: int,
    written: bool,
    kept: str | None = None,
    objections: Sequence[str] = (),
) -> dict[str, Any]:
    own = draft.plan if draft is not None else None
    return {
        "phase": where.phase,
        "path": draft.path if draft is not None else None,
        "written": written,
        "rounds": rounds,
        "tasks": len(own.tasks) if own is not None else 0,
        "findings": [f.as_dict() for f in draft.findings] if draft is not None else [],
        "objections": list(objections),
        "kept": kept,
        "next": [f"idumb check-plan {where.phase}", f"idumb execute-phase {where.phase}"] if written else [],
    }
