"""The rounds in which a planner writes a plan and is told what is wrong with it, by idumb and by a checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from idumb.app.contract import loading
from idumb.app.core.services import Services
from idumb.app.planning import draft_plan
from idumb.app.planning.draft_plan import Draft
from idumb.app.planning.phase_context import PhaseContext, PhaseLocation
from idumb.app.planning.phase_research import Tell
from idumb.app.review import check_plan
from idumb.app.roles import role_calls
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.session.operation import Owned
from idumb.domain import agent, outcome, reply, wording
from idumb.domain.agent import AgentResult
from idumb.domain.errors import InputError
from idumb.domain.proof import levels

ROUNDS = 3

VERDICT: Mapping[str, Any] = {
    "type": "object",
    "required": ["verdict", "findings"],
    "properties": {
        "verdict": {"enum": [outcome.PASS, outcome.PARTIAL, outcome.FAIL]},
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message"],
                "properties": {"task": {"type": "string"}, "message": {"type": "string"}, "mend": {"type": "string"}},
            },
        },
    },
}
_VERDICTS = (outcome.PASS, outcome.PARTIAL, outcome.FAIL)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be planned: the phase with all that is known of it, the plan's id and file, and gaps to close."""

    known: PhaseContext
    plan: str
    path: str
    gaps: str = ""

    @property
    def about(self) -> str:
        return f"phase-{self.known.location.phase}"


@dataclass(slots=True)
class Round:
    """How far the planner came: its last draft, and what is against it. `failed` is the answer that was none.

    `kept` is where the draft is kept: what a model wrote is not lost when the command is stopped in the next round.
    """

    number: int = 0
    draft: Draft | None = None
    objections: list[str] = field(default_factory=list)
    problem: str = ""
    failed: AgentResult | None = None
    kept: str | None = None

    @property
    def good(self) -> bool:
        return self.draft is not None and self.draft.legal and not self.objections and not self.problem

    @property
    def feedback(self) -> str:
        known = self.draft.feedback if self.draft is not None else ""
        said = "\n".join(f"- {one}" for one in self.objections)
        return "\n".join(text for text in (self.problem, known, said) if text)


def run_rounds(services: Services, goal: Goal, owner: Owned, warn: list[str], tell: Tell, state: Round) -> Round:
    """Ask until the plan is good, or as often as there are rounds; `warn` takes what is to be told besides.

    `state` is where the rounds begin: with what a person sent back, or with nothing.
    """
    for number in range(1, ROUNDS + 1):
        asked = RoleRequest(agent.PLANNER, goal.about, planner_values(services, goal, state), attempt=number)
        tell(f"asking the planner, round {number} of {ROUNDS} at most …")
        answered = role_calls.ask(services, asked, owner)
        state = Round(number, state.draft, state.objections, kept=state.kept)
        if answered.outcome != outcome.COMPLETED and answered.failure != agent.MALFORMED:
            state.failed = answered
            return state
        _read(services, goal, answered, state)
        if state.draft is not None and state.draft.legal and not state.problem:
            warn += _check(services, goal, state, owner, tell)
        if state.good:
            break
        if state.draft is not None:
            state.kept = draft_plan.keep(services, state.draft)
    return state


def planner_values(services: Services, goal: Goal, state: Round) -> dict[str, str]:
    """What the planner's template is filled with."""
    known, builder = goal.known, services.settings.builder or ""
    named = ", ".join(sorted({*services.settings.bindings, "human"}))
    draft = wording.fenced(state.draft.text, "markdown") if state.draft is not None else ""
    return {
        **known.values(),
        "plan": goal.plan,
        **_ids(services, known.location),
        "existing": "\n\n".join(_present_plans(services, known.location)),
        "gaps": wording.fenced(wording.truncate(goal.gaps), "markdown"),
        "draft": draft,
        "feedback": wording.fenced(state.feedback, "text"),
        "builder": builder and f"{builder}; known are {named}",
        "no_builder": "" if builder else named,
    }


def _present_plans(services: Services, where: PhaseLocation) -> list[str]:
    found = services.plans.plans(where.folder) if where.exists else ()
    return [wording.fenced(wording.truncate(data.decode("utf-8", "replace")), "markdown") for _, data in found]


def _ids(services: Services, where: PhaseLocation) -> dict[str, str]:
    """How the phase is spelled by its plans, and the first id that is free."""
    try:
        contract = loading.present(services, where.phase).contract
    except InputError:
        contract = None
    if contract is None:
        return {"phase": where.phase, "first_id": f"T{where.phase}-01"}
    return {"phase": contract.phase, "first_id": check_plan.next_free_id(contract)}


def _read(services: Services, goal: Goal, answered: AgentResult, state: Round) -> None:
    """Find the plan in the answer and judge it; a planner that answered with none keeps its draft from before."""
    found = services.texts.plans_in(answered.reply or answered.output)
    if len(found) == 1 and not (answered.truncated and not answered.reply):
        state.draft, state.objections = (
            draft_plan.judge(services, goal.known.location, goal.plan, goal.path, found[0]),
            [],
        )
        return
    state.problem = (
        f"The answer held {len(found)} plans; answer with one."
        if found
        else "The answer held no plan. Answer with the whole plan, from its first line `---` to its last, and nothing"
        " else; a fence around it must be closed and longer than every fence inside."
    )


def _check(services: Services, goal: Goal, state: Round, owner: Owned, tell: Tell) -> list[str]:
    """Let the checker look at a legal plan; what it says is an opinion. Warnings where it brought none."""
    if role_calls.binding_of(services, agent.PLAN_CHECKER) is None or state.draft is None:
        return []
    told = {
        **goal.known.values(),
        "draft": wording.fenced(state.draft.text, "markdown"),
        "feedback": wording.fenced(state.draft.feedback, "text"),
    }
    asked = RoleRequest(agent.PLAN_CHECKER, goal.about, told, VERDICT, state.number)
    tell("asking the plan-checker …")
    answered = role_calls.ask(services, asked, owner)
    found = reply.answer(answered.reply or answered.output, "verdict")
    if answered.outcome == outcome.COMPLETED and isinstance(found, dict) and found["verdict"] in _VERDICTS:
        said = _objections(found)
        if levels.rule(services.settings, agent.PLAN_CHECKER).level == levels.INFORMATIONAL:
            return [f"The plan-checker objects, which blocks nothing at level 0: {one}" for one in said]
        state.objections = said
        return []
    why = answered.message or (found if isinstance(found, str) else "malformed answer")
    return [f"The plan-checker brought no verdict in round {state.number}: {why}."]


def _objections(verdict: Mapping[str, Any]) -> list[str]:
    """Words of every finding of a verdict other than PASS; never none for such a verdict."""
    if verdict["verdict"] == outcome.PASS:
        return []
    found = verdict.get("findings")
    said = [_objection(one) for one in found] if isinstance(found, list) else []
    return [one for one in said if one] or [f"The verdict is {verdict['verdict']}, without a reason."]


def _objection(one: Any) -> str:
    if not isinstance(one, Mapping):
        return wording.one_line(str(one))
    parts = [str(one[key]) for key in ("task", "message", "mend") if one.get(key)]
    return wording.one_line(": ".join(parts[:2]) + (f" ({parts[2]})" if len(parts) > 2 else ""))
