"""Plan a phase: research it if needed, let planner and plan-checker agree in rounds, and ask you if they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from idumb.app import role_calls
from idumb.app.consent import needs
from idumb.app.core import actions
from idumb.app.core.journal import Journal
from idumb.app.core.services import Result, Services
from idumb.app.planning import draft_plan, phase_context, phase_research, plan_questions, planning_rounds
from idumb.app.planning.draft_plan import Draft, PlanFile
from idumb.app.planning.phase_context import PhaseContext, PhaseLocation
from idumb.app.planning.phase_research import Tell
from idumb.app.planning.plan_questions import Goal, Round
from idumb.app.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.domain import agent, replies, wording
from idumb.domain.action import Action, Choice
from idumb.domain.agent import AgentResult
from idumb.domain.errors import EXIT_FAILED, EXIT_WAITING, Refusal


class Request(Struct, frozen=True):
    """Flags of `plan-phase`. `template` is a first plan to fill in; `offered` is a finished plan to take.

    `gaps` plans what the phase's verification found open. `ask` shows the planner's prompt. Without `research`,
    research is not updated.
    """

    phase: str
    template: str | None = None
    offered: str | None = None
    gaps: bool = False
    ask: bool = False
    research: bool = True
    approve: tuple[str, ...] = ()


def plan_phase(services: Services, request: Request, tell: Tell = lambda _: None) -> Result:
    """Write a plan that passes every check, or nothing. Refusal `plan.exists` if the phase has a plan."""
    where = phase_context.locate(services, request.phase)
    file = draft_plan.next_plan(services, where, is_first=not request.gaps)
    if request.offered is not None:
        return _take_offered(services, file, request.offered)
    if request.template is not None:
        return _from_template(services, file, request.template)
    gaps = _gaps(services, where) if request.gaps else ""
    if request.ask:
        goal = Goal(phase_context.gather(services, where), file, gaps)
        asked = RoleRequest(agent.PLANNER, goal.about, planning_rounds.planner_values(services, goal, Round()))
        facts = {"path": file.path, "prompt": role_calls.prompt(services, asked)}
        return Result({**_data(where, None), **facts, "next": [f"{_command(request, where)} --from FILE"]})
    if role_calls.binding_of(services, agent.PLANNER) is None:
        flags = ["--gaps"] * request.gaps
        template, ask = (Action.of("plan-phase", where.phase, *flags, option) for option in ("--template", "--ask"))
        bind = "bind an agent in .idumb/config.yaml: `roles: {planner: {binding: NAME}}`"
        ways = (
            Choice("bind", bind, "then run the command again"),
            Choice("ask", "print the prompt for another agent", "--from takes its answer", ask),
            Choice("template", "write a plan to fill in", "a new file, with every field", template),
        )[: 2 if request.gaps else 3]  # a template cannot fill gaps
        raise Refusal(
            "role.unbound",
            "No agent is bound to the role planner, so idumb cannot have the plan written.",
            hint=ask if request.gaps else template,
            details={"role": agent.PLANNER, "choices": actions.choice_rows(ways)},
        )
    context = phase_context.gather(services, where)
    roles = _roles(services, context, request)
    role_calls.ensure_consent(services, needs.of_roles(services, roles), approve=request.approve)
    with operation.recorded(services, "plan-phase") as journal:
        warnings, context = _refresh_research(services, context, request, journal, tell)
        text, first = plan_questions.sent_back(services, file.path)
        first.draft = None if text is None else draft_plan.judge(services, file, text)
        goal = Goal(context, file, gaps)
        state = planning_rounds.run_rounds(services, goal, journal, warnings, tell, first)
        return _finish(services, journal, request, goal, state, warnings)


def _command(request: Request, where: PhaseLocation) -> Action:
    flags = [*(["--gaps"] if request.gaps else []), *([] if request.research else ["--no-research"])]
    return Action.of("plan-phase", where.phase, *flags)


def _gaps(services: Services, where: PhaseLocation) -> str:
    """Return the verification report of the phase; Refusal without a report or an open gap."""
    path = where.path("VERIFICATION")
    text = services.files.read(path)
    if text is None:
        words = f"Phase {where.phase} is not verified: {path} does not exist, so its gaps are unknown."
        raise Refusal("plan.no-verification", words, hint=Action.of("verify-work", where.phase))
    if (services.plans.recorded(where.folder, "VERIFICATION") or {}).get("status") == draft_plan.CLOSED:
        raise Refusal("plan.no-gaps", f"Phase {where.phase} has no gaps, according to {path}.", hint=Action("next"))
    return text


def _roles(services: Services, context: PhaseContext, request: Request) -> list[str]:
    """Return the bound roles that this command will ask."""
    roles = [agent.PLANNER, agent.PLAN_CHECKER]
    if request.research and context.research_state in (phase_context.MISSING, phase_context.STALE):
        roles.insert(0, agent.RESEARCHER)
    return [role for role in roles if role_calls.binding_of(services, role) is not None]


def _refresh_research(
    services: Services, context: PhaseContext, request: Request, journal: Journal, tell: Tell
) -> tuple[list[str], PhaseContext]:
    """Update missing or stale research if a researcher is bound; return warnings and the context."""
    if context.research_state not in (phase_context.MISSING, phase_context.STALE) or not request.research:
        return [], context
    if role_calls.binding_of(services, agent.RESEARCHER) is None:
        stale = context.research_state == phase_context.STALE
        return [_STALE] if stale else [], context
    tell(phase_research.ASKING)
    result = phase_research.ask_and_write(services, context, journal)
    if isinstance(result, AgentResult):
        message = role_calls.no_answer(services, agent.RESEARCHER, result, Action("plan-phase"))[1]
        return [f"{message}; planning continues without research."], context
    return [], phase_context.gather(services, context.location)


_STALE = "The research is stale: its sources have changed, and no researcher is bound."


def _finish(
    services: Services, journal: Journal, request: Request, goal: Goal, state: Round, warnings: Sequence[str]
) -> Result:
    where, draft = goal.context.location, state.draft
    if state.good and draft is not None:
        return _written(services, where, draft, state.number, warnings)
    command, again = _command(replace(request, research=True), where), _command(request, where)
    take = [replace(command, arguments=(*command.arguments, "--from", state.kept))] if state.kept else []
    facts = {"rounds": state.number, "kept": state.kept, "objections": list(state.objections)}
    data = {**_data(where, draft), **facts}
    if state.failed is not None:
        failure = role_calls.no_answer(services, agent.PLANNER, state.failed, again)
        return Result({**data, "next": take}, EXIT_FAILED, tuple(warnings), failure)
    question = plan_questions.record(journal, goal, state, again, services.worktree)
    answer = services.asker.ask(question)
    choice = answer.choice if answer is not None else None
    written = None
    if draft is not None and choice == plan_questions.TAKE:
        written = _written(services, where, draft, state.number, warnings)
    if answer is not None:
        journal.write(journal.answer_event(answer))
    following = [again] if choice == plan_questions.AGAIN else [*take, *([] if choice else [Action("decisions")])]
    return written or Result(
        {**data, "decision": question.id, "next": following},
        EXIT_WAITING if choice is None else EXIT_FAILED,
        tuple(warnings),
        _why_not(where, state, again, choice),
        {"choices": actions.choice_rows(question.choices)} if choice is None else {},
    )


def _why_not(where: PhaseLocation, state: Round, again: Action, choice: str | None) -> tuple[str, str, Action | str]:
    """Return the error of rounds that wrote no plan."""
    template = Action.of("plan-phase", where.phase, "--template")
    hint = {None: Action("decisions"), plan_questions.AGAIN: again}.get(choice, template)
    if state.legal:
        words = f"The plan-checker still objects after {state.number} rounds. The plan is legal; you decide."
        return "plan.objections", words, hint
    return "plan.not-legal", f"The planner wrote no legal plan in {state.number} rounds; nothing was written.", hint


def _take_offered(services: Services, file: PlanFile, text: str) -> Result:
    """Write a plan that was written elsewhere, or refuse it with every finding.

    The text may be the whole reply of a model that contains one plan.
    """
    if not text.removeprefix("\ufeff").startswith("---"):
        plans = replies.plans_in(text)
        text = plans[0] if len(plans) == 1 else text
    draft = draft_plan.judge(services, file, text)
    return _written_if_legal(services, file.where, draft, f"The plan is not legal; {file.path} was not written.")


def _from_template(services: Services, file: PlanFile, template: str) -> Result:
    where = file.where
    context = phase_context.gather(services, where)
    section = context.roadmap.partition("\n")
    title = wording.one_line(where.title) or f"Phase {where.phase}"
    goal = next((line for p in section[2].split("\n\n") if (line := wording.one_line(p))), title)
    values = {"phase": where.phase, "title": title, "goal": goal, "roadmap": context.roadmap or title}
    values["builder"] = services.settings.builder or "human"
    draft = draft_plan.judge(services, file, services.documents.first_plan(template, values))
    return _written_if_legal(services, where, draft, "The filled template is not legal.")


def _written_if_legal(services: Services, where: PhaseLocation, draft: Draft, words: str) -> Result:
    if not draft.legal:
        return draft_plan.illegal(_data(where, draft), words)
    with operation.recorded(services, "plan-phase"):
        return _written(services, where, draft, 0, ())


def _written(services: Services, where: PhaseLocation, draft: Draft, rounds: int, warnings: Sequence[str]) -> Result:
    draft_plan.write(services, draft)
    ways = [Action.of("check-plan", where.phase), Action.of("execute-phase", where.phase)]
    data = {**_data(where, draft), "rounds": rounds, "written": True, "next": ways}
    return Result(data, warnings=tuple(warnings))


def _data(where: PhaseLocation, draft: Draft | None) -> dict[str, Any]:
    """Return the answer about a plan that is not written."""
    plan = draft.plan if draft is not None else None
    return {
        "phase": where.phase,
        "path": draft.path if draft is not None else None,
        "written": False,
        "rounds": 0,
        "tasks": len(plan.tasks) if plan is not None else 0,
        "findings": [f.as_dict() for f in draft.findings] if draft is not None else [],
        "objections": [],
        "kept": None,
        "next": [],
    }
