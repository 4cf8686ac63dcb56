"""Research on a phase: asked of the researcher, kept with what it answers to, asked again when that changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import phase_context
from idumb.app.planning.phase_context import PhaseContext
from idumb.app.roles import role_calls, role_consent
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.app.session.operation import Owned
from idumb.app.worktree import preconditions
from idumb.domain import agent, outcome
from idumb.domain.agent import AgentResult
from idumb.domain.errors import EXIT_FAILED, InputError, Refusal

ATTIC = "research"
ASKING = "asking the researcher …"

Tell = Callable[[str], None]
"""Where it is said what is waited for."""


@dataclass(frozen=True, slots=True)
class Request:
    """`again` asks though the research is current; `approve` is the consent to the agent.

    `prompt` shows what the researcher would be told; `offered` is a report that somebody wrote already.
    """

    phase: str
    again: bool = False
    prompt: bool = False
    offered: str | None = None
    approve: tuple[str, ...] = ()


def research(services: Services, request: Request, tell: Tell = lambda _: None) -> Result:
    """Write a phase's research; Refusal `research.own` where a person wrote it."""
    preconditions.require_initialised(services)
    where = phase_context.locate(services, request.phase)
    known = phase_context.gather(services, where)
    path = where.path("RESEARCH")
    data = {"phase": where.phase, "path": path, "digest": known.digest, "next": [f"idumb plan-phase {where.phase}"]}
    if known.standing == phase_context.OWN:
        raise Refusal(
            "research.own",
            f"{path} was not written by idumb, so it is not replaced.",
            hint=f"idumb plan-phase {where.phase} uses it as it is; to have it researched, give your file another name",
            details={"phase": where.phase},
        )
    still = {"written": False, "standing": known.standing, "kept": None, "binding": None}
    if request.prompt:
        take = f"idumb research {where.phase} --from FILE"
        return Result({**data, **still, "prompt": role_calls.prompt(services, _role_request(known)), "next": [take]})
    if request.offered is not None:
        _require_words(request.offered)
        with operation.owned(services, "research") as owned:
            owned.record()
            written = _write(services, known, request.offered, None, None)
        return Result({**data, "written": True, "standing": phase_context.CURRENT, **written})
    if known.standing == phase_context.CURRENT and not request.again:
        return Result({**data, **still})
    role_consent.ensure(services, [agent.RESEARCHER], approve=request.approve, command=f"idumb research {where.phase}")
    with operation.owned(services, "research") as owner:
        owner.record()
        tell(ASKING)
        answered = ask_and_write(services, known, owner)
    if isinstance(answered, AgentResult):
        return Result(
            {**data, **still},
            EXIT_FAILED,
            (),
            failure_report(services, answered, agent.RESEARCHER, f"idumb research {where.phase}"),
        )
    return Result({**data, "written": True, "standing": phase_context.CURRENT, **answered})


def _require_words(text: str) -> None:
    if not text.strip():
        raise InputError("research.empty", "There is no word in the report.", hint="idumb research --help")


def _role_request(known: PhaseContext) -> RoleRequest:
    values = {**known.values(), "report": f"phase {known.location.phase}", "discuss": ""}
    return RoleRequest(agent.RESEARCHER, f"phase-{known.location.phase}", values)


def ask_and_write(services: Services, known: PhaseContext, owner: Owned) -> AgentResult | dict[str, str | None]:
    """Ask and write; where the agent failed, its result. What was there is kept in idumb's own folder."""
    answered = role_calls.ask(services, _role_request(known), owner)
    body = answered.reply or answered.output
    if answered.outcome != outcome.COMPLETED or not body.strip():
        return answered
    return _write(services, known, body, role_calls.binding_of(services, agent.RESEARCHER), answered.model)


def _write(
    services: Services, known: PhaseContext, body: str, binding: str | None, model: str | None
) -> dict[str, str | None]:
    where = known.location
    fields = {
        "type": "research",
        "phase": where.phase,
        "created": services.clock.now(),
        "bundle": known.digest,
        "binding": binding,
        "model": model,
    }
    path = where.path("RESEARCH")
    before = services.reports.read(path)
    kept = None if before is None else services.backups.keep(ATTIC, path.rsplit("/", 1)[-1], _bytes(before))
    services.reports.write(path, services.documents.research(fields, body))
    return {"binding": binding, "model": model, "kept": kept}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def failure_report(services: Services, answered: AgentResult, role: str, go_on: str) -> tuple[str, str, str]:
    """Why an agent brought nothing: code, message, hint. `go_on` is the command that asks it again."""
    told = role_calls.failure_message(services, role, answered, go_on)
    if told is not None:
        return f"role.{told.kind}", f"The {role} did not answer: {told.message}", told.mend
    done = answered.outcome == outcome.COMPLETED
    code = agent.MALFORMED if done else answered.outcome.replace("_", "-")
    words = answered.message or ("it answered nothing" if done else answered.outcome)
    hint = f"{go_on} asks again; idumb doctor looks at what agents need"
    return f"role.{code}", f"The {role} did not answer: {words}", hint
