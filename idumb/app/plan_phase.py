"""Write a phase's plan: research where it is missing or stale, planner and checker for some rounds, then the user."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from idumb.app import bundle, drafting, going_on, place, planning_rounds, researching, roles, session
from idumb.app.bundle import Bundle, Place
from idumb.app.drafting import Draft
from idumb.app.planning_rounds import Goal, Round
from idumb.app.researching import Tell
from idumb.app.result import Result
from idumb.app.roles import Ask
from idumb.app.services import Services
from idumb.app.session import Owned
from idumb.domain import agent, quoting
from idumb.domain.agent import AgentResult
from idumb.domain.decision import Choice, Decision
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
    place.require_initialised(services)
    where = bundle.place(services, request.phase)
    identity, path = drafting.next_path(services, where)
    if not request.gaps and identity != "01":
        raise _exists(services, where)
    if request.offered is not None:
        return _offered(services, where, identity, path, request.offered)
    if request.template is not None:
        return _from_template(services, where, identity, path, request.template)
    gaps = _gaps(services, where) if request.gaps else ""
    if request.ask:
        return _prepared(services, request, Goal(bundle.gather(services, where), identity, path, gaps))
    _require_planner(services, where)
    known = bundle.gather(services, where)
    asked = _roles(services, known, request)
    roles.ensure_consent(services, asked, approve=request.approve, command=_command(request, where))
    with session.owned(services, "plan-phase") as owner:
        owner.record()
        warnings, known = _researched(services, known, request, owner, tell)
        state = planning_rounds.held(services, Goal(known, identity, path, gaps), owner, warnings, tell)
        return _ended(services, request, where, state, warnings)


def _command(request: Request, where: Place) -> str:
    flags = (" --gaps" if request.gaps else "") + ("" if request.research else " --no-research")
    return f"idumb plan-phase {where.phase}{flags}"


def _prepared(services: Services, request: Request, goal: Goal) -> Result:
    """What the planner would be told; nothing is run or written."""
    where = goal.known.place
    told = Ask(agent.PLANNER, goal.about, planning_rounds.values(services, goal, Round()))
    data = _data(where, None, rounds=0, written=False)
    take = f"{_command(request, where)} --from FILE"
    return Result({**data, "path": goal.path, "prompt": roles.prompt(services, told), "next": [take]})


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
            hint=f"idumb plan-phase {where.phase} --template writes one to fill in, --ask shows what to tell somebody"
            " else; or name an agent in .idumb/config.yaml: `roles: {planner: {binding: NAME}}`",
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


def _researched(
    services: Services, known: Bundle, request: Request, owner: Owned, tell: Tell
) -> tuple[list[str], Bundle]:
    """The bundle with research that answers to it, where a researcher is bound; the plan is written without it too."""
    if known.standing not in (bundle.MISSING, bundle.STALE) or not request.research:
        return [], known
    if roles.bound(services, agent.RESEARCHER) is None:
        stale = known.standing == bundle.STALE
        return [_STALE] if stale else [], known
    tell(researching.ASKING)
    answered = researching.ask(services, known, owner)
    if isinstance(answered, AgentResult):
        words = researching.failure(services, answered, agent.RESEARCHER, "")[1]
        return [f"{words}; the plan is written without it."], known
    return [], bundle.gather(services, known.place)


_STALE = "The research was made of other texts than those of now, and no researcher is bound."


def _ended(services: Services, request: Request, where: Place, state: Round, warnings: Sequence[str]) -> Result:
    draft = state.draft
    if state.good and draft is not None:
        return _written(services, where, draft, state.number, warnings)
    if draft is not None and state.disputed and _taken(services, where, state, draft):
        return _written(services, where, draft, state.number, warnings)
    kept = state.kept
    take = f"{_command(replace(request, research=True), where)} --from {shlex.quote(kept)}" if kept else None
    if state.failed is not None:
        failure = researching.failure(services, state.failed, agent.PLANNER, _command(request, where))
        code = EXIT_FAILED
    else:
        failure, code = _why_not(where, state, take)
    data = _data(where, draft, rounds=state.number, written=False, kept=kept, objections=state.objections)
    return Result({**data, "next": [take] if take else []}, code, tuple(warnings), failure)


def _taken(services: Services, where: Place, state: Round, draft: Draft) -> bool:
    """Whether a person at the terminal takes a legal plan in spite of what the checker says."""
    question = Decision(
        id=f"plan.{where.phase}",
        kind="plan",
        what=f"Take the plan of phase {where.phase}, though the plan-checker objects after {state.number} rounds",
        why="It is legal, and nothing of it runs before you agree to it. What the checker says is an opinion.",
        evidence=(*(f"objection: {one}" for one in state.objections), *draft.text.split("\n")),
        choices=(
            Choice("take", "write it", f"{draft.path} is written"),
            Choice("no", "do not write it", "the draft is kept, and can be mended and taken later"),
        ),
    )
    answer = services.asker.ask(question)
    return answer is not None and answer.choice == "take"


def _why_not(where: Place, state: Round, take: str | None) -> tuple[tuple[str, str, str], int]:
    """Error and exit code of rounds that brought no plan; `take` is the command that takes the last draft."""
    if state.disputed:
        words = f"The plan-checker still objects after {state.number} rounds; the plan is legal, and yours to judge."
        return ("plan.objections", words, f"Read it and take it as it is: {take}; or change it first"), EXIT_WAITING
    words = f"The planner wrote no legal plan in {state.number} rounds; nothing was written."
    hint = f"Mend the last draft, then {take}" if take else f"idumb plan-phase {where.phase} --template"
    return ("plan.not-legal", words, hint), EXIT_FAILED


# The draft was not written, so there is nothing in the phase that could be checked.
_CORRECT = {
    "choices": going_on.rows(
        (Choice("correct", "correct what is named and give it again", "it is written once it is legal"),)
    )
}


def _offered(services: Services, where: Place, identity: str, path: str, text: str) -> Result:
    """A plan that was written elsewhere: taken as it is, or refused with every finding.

    A model's answer may be given whole: the one plan in it is taken.
    """
    if not text.removeprefix("\ufeff").startswith("---"):
        found = services.texts.plans_in(text)
        text = found[0] if len(found) == 1 else text
    draft = drafting.judge(services, where, identity, path, text)
    if draft.legal:
        with session.owned(services, "plan-phase") as owned:
            owned.record()
            return _written(services, where, draft, 0, ())
    words = f"The plan is not legal; {path} was not written."
    failure = ("plan.invalid", words, "Correct the findings above, then give it again")
    return Result(_data(where, draft, rounds=0, written=False), EXIT_INVALID, (), failure, _CORRECT)


def _from_template(services: Services, where: Place, identity: str, path: str, template: str) -> Result:
    known = bundle.gather(services, where)
    section = known.roadmap.partition("\n")
    title = quoting.one_line(where.title) or f"Phase {where.phase}"
    goal = next((line for p in section[2].split("\n\n") if (line := quoting.one_line(p))), title)
    words = {"phase": where.phase, "title": title, "goal": goal, "roadmap": known.roadmap or title}
    words["builder"] = services.settings.builder or "human"
    draft = drafting.judge(services, where, identity, path, services.documents.first_plan(template, words))
    if not draft.legal:
        found = _data(where, draft, rounds=0, written=False)
        return Result(found, EXIT_INVALID, (), ("plan.invalid", "The filled template is not legal.", None), _CORRECT)
    with session.owned(services, "plan-phase") as owned:
        owned.record()
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
