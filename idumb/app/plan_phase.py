"""Write a phase's plan: research where it is missing or stale, planner and checker for some rounds, then the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.app import bundle, check_plan, drafting, researching, roles, session
from idumb.app.bundle import Bundle, Place
from idumb.app.drafting import Draft
from idumb.app.result import Result
from idumb.app.roles import Ask
from idumb.app.services import Services
from idumb.app.session import Owned
from idumb.domain import agent, outcome, quoting
from idumb.domain.agent import AgentResult
from idumb.domain.errors import EXIT_FAILED, EXIT_INVALID, EXIT_WAITING, InputError, Refusal

ROUNDS = 3
_CLOSED = "passed"

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


@dataclass(frozen=True, slots=True)
class Request:
    """`template` is the text of a first plan to fill in; `offered` the text of a plan that somebody wrote already.

    `gaps` asks for one more plan, which closes what the phase's verification found open. `research` false leaves
    research as it is.
    """

    phase: str
    template: str | None = None
    offered: str | None = None
    gaps: bool = False
    research: bool = True
    approve: str | None = None


@dataclass(slots=True)
class _Round:
    """How far the planner came: its last draft, what is against it, and what it was told of the one before."""

    number: int = 0
    draft: Draft | None = None
    objections: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def good(self) -> bool:
        return self.draft is not None and self.draft.legal and not self.objections and not self.problem

    @property
    def feedback(self) -> str:
        known = self.draft.feedback if self.draft is not None else ""
        said = "\n".join(f"- {one}" for one in self.objections)
        return "\n".join(text for text in (self.problem, known, said) if text)


def plan_phase(services: Services, request: Request) -> Result:
    """Write a plan that passes every check, or nothing. Refusal `plan.exists` where the phase has one already."""
    where = bundle.place(services, request.phase)
    identity, path = drafting.next_path(services, where)
    if not request.gaps and identity != "01":
        raise _exists(services, where)
    gaps = _gaps(services, where) if request.gaps else ""
    if request.offered is not None:
        return _offered(services, where, identity, path, request.offered)
    if request.template is not None:
        return _from_template(services, where, identity, path, request.template)
    _require_planner(services, where)
    known = bundle.gather(services, where)
    asked = _roles(services, known, request)
    roles.ensure_consent(services, asked, approve=request.approve, command=_command(request, where))
    with session.owned(services, "plan-phase") as owner:
        warnings, known = _researched(services, known, request, owner)
        return _planned(services, known, (identity, path, gaps), owner, warnings)


def _command(request: Request, where: Place) -> str:
    flags = (" --gaps" if request.gaps else "") + ("" if request.research else " --no-research")
    return f"idumb plan-phase {where.phase}{flags}"


def _exists(services: Services, where: Place) -> Refusal:
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


def _require_planner(services: Services, where: Place) -> None:
    if roles.bound(services, agent.PLANNER) is None:
        raise Refusal(
            "role.unbound",
            "No agent fills the role planner, so nobody can write the plan.",
            hint=f"idumb plan-phase {where.phase} --template writes one to fill in; or name an agent in"
            " .idumb/config.yaml: `roles: {planner: {binding: NAME}}`",
            details={"role": agent.PLANNER},
        )


def _gaps(services: Services, where: Place) -> str:
    """The verification report of the phase; Refusal where there is none, or nothing is open in it."""
    path = where.path("VERIFICATION")
    text = services.reports.read(path) if where.there else None
    if text is None:
        raise Refusal(
            "plan.no-verification",
            f"Phase {where.phase} was not verified: there is no {path}, so no gap is known.",
            hint=f"idumb verify-work {where.phase}",
        )
    if services.plans.recorded(where.folder).get("VERIFICATION", {}).get("status") == _CLOSED:
        raise Refusal("plan.no-gaps", f"{path} says that nothing is open in phase {where.phase}.", hint="idumb next")
    return text


def _roles(services: Services, known: Bundle, request: Request) -> list[str]:
    """Those that are about to be asked."""
    wanted = [agent.PLANNER, agent.PLAN_CHECKER]
    if request.research and known.standing in (bundle.MISSING, bundle.STALE):
        wanted.insert(0, agent.RESEARCHER)
    return [role for role in wanted if roles.bound(services, role) is not None]


def _researched(services: Services, known: Bundle, request: Request, owner: Owned) -> tuple[list[str], Bundle]:
    """The bundle with research that answers to it, where a researcher is bound; the plan is written without it too."""
    if known.standing not in (bundle.MISSING, bundle.STALE) or not request.research:
        return [], known
    if roles.bound(services, agent.RESEARCHER) is None:
        stale = known.standing == bundle.STALE
        return [_STALE] if stale else [], known
    answered = researching.ask(services, known, owner)
    if isinstance(answered, AgentResult):
        words = researching.failure(answered, known.place.phase)[1]
        return [f"{words}; the plan is written without it."], known
    return [], bundle.gather(services, known.place)


_STALE = "The research was made of other texts than those of now, and no researcher is bound."


def _planned(
    services: Services, known: Bundle, target: tuple[str, str, str], owner: Owned, warnings: list[str]
) -> Result:
    identity, path, gaps = target
    state = _Round()
    for number in range(1, ROUNDS + 1):
        values = _values(services, known, identity, gaps, state)
        answered = roles.ask(services, Ask(agent.PLANNER, _about(known), values, attempt=number), owner)
        state = _Round(number, state.draft, state.objections)
        if answered.outcome != outcome.COMPLETED and answered.failure != agent.MALFORMED:
            return _unanswered(services, known.place, state, answered, warnings)
        _read(services, known, (identity, path), answered, state)
        if state.draft is not None and state.draft.legal and not state.problem:
            warnings += _objected(services, known, state, owner)
        if state.good:
            break
    return _ended(services, known.place, state, warnings)


def _about(known: Bundle) -> str:
    return f"phase-{known.place.phase}"


def _values(services: Services, known: Bundle, identity: str, gaps: str, state: _Round) -> dict[str, str]:
    before = _present_plans(services, known.place)
    draft = quoting.fenced(state.draft.text, "markdown") if state.draft is not None else ""
    return {
        **known.values(),
        "plan": identity,
        "first_id": _first_id(services, known.place),
        "existing": "\n\n".join(before),
        "gaps": quoting.fenced(quoting.cut(gaps), "markdown"),
        "draft": draft,
        "feedback": quoting.fenced(state.feedback, "text"),
        "builders": ", ".join(sorted({*services.settings.bindings, "human", "steps"})),
        "builder": services.settings.builder or "",
    }


def _present_plans(services: Services, where: Place) -> list[str]:
    found = services.plans.plans(where.folder) if where.there else ()
    return [quoting.fenced(quoting.cut(data.decode("utf-8", "replace")), "markdown") for _, data in found]


def _first_id(services: Services, where: Place) -> str:
    from idumb.app import loading

    try:
        contract = loading.load(services.plans, where.phase, services.settings, services.policy).contract
    except InputError:
        contract = None
    return f"T{where.phase}-01" if contract is None else check_plan.next_free_id(contract)


def _read(services: Services, known: Bundle, target: tuple[str, str], answered: AgentResult, state: _Round) -> None:
    """Find the plan in the answer and judge it; a planner that answered with none keeps its draft from before."""
    found = services.texts.plans_in(answered.reply or answered.output)
    if len(found) == 1 and not (answered.truncated and not answered.reply):
        state.draft, state.objections = drafting.judge(services, known.place, *target, found[0]), []
        return
    state.problem = (
        f"The answer held {len(found)} plans; answer with one."
        if found
        else "The answer held no plan. Answer with the whole plan, from its first line `---` to its last, and nothing"
        " else; a fence around it must be closed and longer than every fence inside."
    )


def _objected(services: Services, known: Bundle, state: _Round, owner: Owned) -> list[str]:
    """Let the checker look at a legal plan; what it says is an opinion. Warnings where it brought none."""
    if roles.bound(services, agent.PLAN_CHECKER) is None or state.draft is None:
        return []
    values = {
        **known.values(),
        "draft": quoting.fenced(state.draft.text, "markdown"),
        "feedback": quoting.fenced(state.draft.feedback, "text"),
    }
    asked = Ask(agent.PLAN_CHECKER, _about(known), values, VERDICT, state.number)
    answered = roles.ask(services, asked, owner)
    found = services.texts.object_in(answered.reply or answered.output)
    if answered.outcome == outcome.COMPLETED and found is not None and found.get("verdict") in _VERDICTS:
        state.objections = _objections(found)
        return []
    return [f"The plan-checker brought no verdict in round {state.number}: {answered.message or 'malformed answer'}."]


_VERDICTS = (outcome.PASS, outcome.PARTIAL, outcome.FAIL)


def _objections(verdict: Mapping[str, Any]) -> list[str]:
    """Words of every finding of a verdict other than PASS; never none for such a verdict."""
    if verdict["verdict"] == outcome.PASS:
        return []
    found = verdict.get("findings")
    said = [_objection(one) for one in found] if isinstance(found, list) else []
    return [one for one in said if one] or [f"The verdict is {verdict['verdict']}, without a reason."]


def _objection(one: Any) -> str:
    if not isinstance(one, Mapping):
        return quoting.one_line(str(one))
    parts = [str(one[key]) for key in ("task", "message", "mend") if one.get(key)]
    return quoting.one_line(": ".join(parts[:2]) + (f" ({parts[2]})" if len(parts) > 2 else ""))


def _ended(services: Services, where: Place, state: _Round, warnings: Sequence[str]) -> Result:
    if state.good and state.draft is not None:
        return _written(services, where, state.draft, state.number, warnings)
    kept = drafting.keep(services, state.draft) if state.draft is not None else None
    data = _data(where, state.draft, rounds=state.number, written=False, kept=kept, objections=state.objections)
    take = f"idumb plan-phase {where.phase} --from {kept}"
    if state.draft is not None and state.draft.legal:
        words = f"The plan-checker still objects after {state.number} rounds; the plan is legal, and yours to judge."
        failure = ("plan.objections", words, f"Read it and take it as it is: {take}; or change it first")
        return Result({**data, "next": [take]}, EXIT_WAITING, tuple(warnings), failure)
    words = f"The planner wrote no legal plan in {state.number} rounds; nothing was written."
    hint = f"Mend the last draft, {kept}, then {take}" if kept else f"idumb plan-phase {where.phase} --template"
    failure = ("plan.not-legal", words, hint)
    return Result({**data, "next": [take] if kept else []}, EXIT_FAILED, tuple(warnings), failure)


def _unanswered(
    services: Services, where: Place, state: _Round, answered: AgentResult, warnings: Sequence[str]
) -> Result:
    kept = drafting.keep(services, state.draft) if state.draft is not None else None
    data = _data(where, state.draft, rounds=state.number, written=False, kept=kept)
    failure = researching.failure(answered, where.phase, agent.PLANNER)
    return Result(data, EXIT_FAILED, tuple(warnings), failure)


def _offered(services: Services, where: Place, identity: str, path: str, text: str) -> Result:
    """A plan that was written elsewhere: taken as it is, or refused with every finding."""
    draft = drafting.judge(services, where, identity, path, text)
    if draft.legal:
        with session.owned(services, "plan-phase"):
            return _written(services, where, draft, 0, ())
    words = f"The plan is not legal; {path} was not written."
    failure = ("plan.invalid", words, "Correct the findings above, then give it again")
    return Result(_data(where, draft, rounds=0, written=False), EXIT_INVALID, (), failure)


def _from_template(services: Services, where: Place, identity: str, path: str, template: str) -> Result:
    known = bundle.gather(services, where)
    section = known.roadmap.partition("\n")
    goal = next((p for p in section[2].split("\n\n") if p.strip()), "") or where.title
    title = where.title or f"Phase {where.phase}"
    words = {"phase": where.phase, "title": title, "goal": goal or title, "roadmap": known.roadmap or title}
    words["builder"] = services.settings.builder or "human"
    draft = drafting.judge(services, where, identity, path, services.documents.first_plan(template, words))
    if not draft.legal:
        found = _data(where, draft, rounds=0, written=False)
        return Result(found, EXIT_INVALID, (), ("plan.invalid", "The filled template is not legal.", None))
    with session.owned(services, "plan-phase"):
        return _written(services, where, draft, 0, ())


def _written(services: Services, where: Place, draft: Draft, rounds: int, warnings: Sequence[str]) -> Result:
    drafting.write(services, draft)
    return Result(_data(where, draft, rounds=rounds, written=True), warnings=tuple(warnings))


def _data(
    where: Place,
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
