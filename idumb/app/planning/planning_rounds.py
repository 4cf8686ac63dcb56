"""Planning rounds: the planner writes a plan, and idumb and the plan-checker return what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from idumb.app import role_calls
from idumb.app.contract import loading
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.planning import draft_plan
from idumb.app.planning.phase_context import PhaseLocation
from idumb.app.planning.phase_research import Tell
from idumb.app.planning.plan_questions import Goal, Round
from idumb.app.review import check_plan
from idumb.app.role_calls import RoleRequest
from idumb.domain import agent, outcome, replies, wording
from idumb.domain.agent import AgentResult
from idumb.domain.errors import InputError
from idumb.domain.proof import gate_table

ROUNDS = 3

_FINDING = replies.object_of(task=replies.TEXT, message=replies.TEXT, fix=replies.TEXT)
VERDICT = replies.object_of(verdict=replies.VERDICT, findings=replies.list_of(_FINDING))


def run_rounds(
    services: Services, goal: Goal, journal: Journal, warnings: list[str], tell: Tell, state: Round
) -> Round:
    """Run rounds until the plan is good, or the rounds are used up; append to `warnings`.

    `state` is the start: a draft that was sent back, or nothing.
    """
    for number in range(1, ROUNDS + 1):
        request = RoleRequest(agent.PLANNER, goal.about, planner_values(services, goal, state), attempt=number)
        tell(f"asking the planner, round {number} of up to {ROUNDS} …")
        result = role_calls.ask(services, request, journal)
        state = Round(number, state.draft, state.objections, kept=state.kept)
        if result.outcome != outcome.COMPLETED and result.failure != agent.MALFORMED:
            state.failed = result
            return state
        _read(services, goal, result, state)
        if state.legal and not state.problem:
            warnings += _check(services, goal, state, journal, tell)
        if state.good:
            break
        if state.draft is not None:
            state.kept = draft_plan.keep(services, state.draft)
    return state


def planner_values(services: Services, goal: Goal, state: Round) -> dict[str, str]:
    """Return the values for the planner's template."""
    context, builder = goal.context, services.settings.builder or ""
    builders = ", ".join(sorted({*services.settings.bindings, "human"}))
    draft = wording.fenced(state.draft.text, "markdown") if state.draft is not None else ""
    return {
        **context.values(),
        "plan": goal.file.id,
        **_ids(services, context.location),
        "existing": "\n\n".join(
            wording.fenced(wording.truncate(data.decode("utf-8", "replace")), "markdown")
            for _, data in services.plans.plans(context.location.folder)
        ),
        "gaps": wording.fenced(wording.truncate(goal.gaps), "markdown"),
        "draft": draft,
        "feedback": wording.fenced(state.feedback, "text"),
        "builder": builder and f"{builder}; known are {builders}",
        "no_builder": "" if builder else builders,
    }


def _ids(services: Services, where: PhaseLocation) -> dict[str, str]:
    """Return the phase as its plans spell it, and the first free task id."""
    try:
        contract = loading.load_present(services, where.phase).contract
    except InputError:
        contract = None
    if contract is None:
        return {"phase": where.phase, "first_id": f"T{where.phase}-01"}
    return {"phase": contract.phase, "first_id": check_plan.next_free_id(contract)}


def _read(services: Services, goal: Goal, result: AgentResult, state: Round) -> None:
    """Find the plan in the reply and judge it. Without exactly one plan, keep the previous draft."""
    plans = replies.plans_in(result.reply or result.output)
    if len(plans) == 1 and not (result.truncated and not result.reply):
        state.draft, state.objections = draft_plan.judge(services, goal.file, plans[0]), []
        return
    state.problem = (
        f"The answer contained {len(plans)} plans; answer with one."
        if plans
        else "The answer contained no plan. Answer with the whole plan, from its first line `---` to its last, and"
        " nothing else; a fence around it must be closed and longer than every fence inside."
    )


def _check(services: Services, goal: Goal, state: Round, journal: Journal, tell: Tell) -> list[str]:
    """Ask the plan-checker about a legal plan, and keep its objections; return warnings."""
    if role_calls.binding_of(services, agent.PLAN_CHECKER) is None or state.draft is None:
        return []
    values = {
        **goal.context.values(),
        "draft": wording.fenced(state.draft.text, "markdown"),
        "feedback": wording.fenced(state.draft.feedback, "text"),
    }
    request = RoleRequest(agent.PLAN_CHECKER, goal.about, values, VERDICT, state.number)
    tell("asking the plan-checker …")
    result = role_calls.ask(services, request, journal)
    verdict = replies.answer(result.reply or result.output, "verdict")
    if result.outcome == outcome.COMPLETED and isinstance(verdict, dict) and verdict["verdict"] in replies.VERDICTS:
        objections = _objections(verdict)
        if gate_table.rule(services.settings, agent.PLAN_CHECKER).level == gate_table.INFORMATIONAL:
            return [f"The plan-checker objects, but level 0 does not block: {objection}" for objection in objections]
        state.objections = objections
        return []
    why = result.message or (verdict if isinstance(verdict, str) else "malformed reply")
    return [f"The plan-checker gave no verdict in round {state.number}: {why}."]


def _objections(verdict: Mapping[str, Any]) -> list[str]:
    """Return the objections of a verdict; at least one, unless the verdict is PASS."""
    if verdict["verdict"] == outcome.PASS:
        return []
    findings = verdict.get("findings")
    objections = [_objection(row) for row in findings] if isinstance(findings, list) else []
    return [row for row in objections if row] or [f"The verdict is {verdict['verdict']}, without a reason."]


def _objection(reported: Any) -> str:
    if not isinstance(reported, Mapping):
        return wording.one_line(str(reported))
    parts = [str(reported[key]) for key in ("task", "message", "fix") if reported.get(key)]
    return wording.one_line(": ".join(parts[:2]) + (f" ({parts[2]})" if len(parts) > 2 else ""))
