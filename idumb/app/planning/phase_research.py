"""Research on a phase: ask the researcher, and record the context it was made from, so that stale research shows."""

from __future__ import annotations

from collections.abc import Callable, Collection

from idumb.app.consent import needs
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import phase_context
from idumb.app.planning.phase_context import PhaseContext
from idumb.app.roles import role_calls, role_consent
from idumb.app.roles.role_calls import RoleRequest
from idumb.app.session import operation
from idumb.app.session.operation import Owned
from idumb.domain import agent, outcome
from idumb.domain.action import Action
from idumb.domain.agent import AgentResult
from idumb.domain.errors import EXIT_FAILED, InputError, Refusal

BACKUP_FOLDER = "research"
ASKING = "asking the researcher …"

Tell = Callable[[str], None]
"""Report progress to the user."""


def research(
    services: Services, phase: str, tell: Tell, *, again: bool, ask: bool, offered: str | None, approve: Collection[str]
) -> Result:
    """Write the research of a phase; Refusal `research.own` if the file was written by hand.

    `again` asks even if the research is current; `approve` is consent to the agent. `ask` shows the researcher's
    prompt; `offered` is a finished report to take instead.
    """
    location = phase_context.locate(services, phase)
    context = phase_context.gather(services, location)
    path = location.path("RESEARCH")
    data = {
        "phase": location.phase,
        "path": path,
        "digest": context.digest,
        "next": [Action.of("plan-phase", location.phase)],
    }
    if context.research_state == phase_context.OWN:
        raise Refusal(
            "research.own",
            f"idumb did not write {path}, so it does not replace it.",
            hint=f"idumb plan-phase {location.phase} uses it as it is; to research the phase, rename your file first",
            details={"phase": location.phase},
        )
    unchanged = {"written": False, "standing": context.research_state, "kept": None, "binding": None}
    if ask:
        take_command = Action.of("plan", "research", location.phase, "--from", "FILE")
        return Result(
            {**data, **unchanged, "prompt": role_calls.prompt(services, _role_request(context)), "next": [take_command]}
        )
    if offered is not None:
        if not offered.strip():
            raise InputError("research.empty", "The report is empty.", hint=Action.of("plan", "research", "--help"))
        with operation.owned(services, "research") as owned:
            owned.record()
            written = _write(services, context, offered, None, None)
        return Result({**data, "written": True, "standing": phase_context.CURRENT, **written})
    if context.research_state == phase_context.CURRENT and not again:
        return Result({**data, **unchanged})
    role_consent.ensure(services, needs.of_roles(services, [agent.RESEARCHER]), approve=approve)
    with operation.owned(services, "research") as owner:
        owner.record()
        tell(ASKING)
        outcome_of_call = ask_and_write(services, context, owner)
    if isinstance(outcome_of_call, AgentResult):
        return Result(
            {**data, **unchanged},
            EXIT_FAILED,
            (),
            failure_report(services, outcome_of_call, agent.RESEARCHER, Action.of("plan", "research", location.phase)),
        )
    return Result({**data, "written": True, "standing": phase_context.CURRENT, **outcome_of_call})


def _role_request(context: PhaseContext) -> RoleRequest:
    values = {**context.values(), "report": f"phase {context.location.phase}", "discuss": ""}
    return RoleRequest(agent.RESEARCHER, f"phase-{context.location.phase}", values)


def ask_and_write(services: Services, context: PhaseContext, owner: Owned) -> AgentResult | dict[str, str | None]:
    """Ask the researcher and write its report; return the result if it failed. A replaced report is kept."""
    result = role_calls.ask(services, _role_request(context), owner)
    body = result.reply or result.output
    if result.outcome != outcome.COMPLETED or not body.strip():
        return result
    return _write(services, context, body, role_calls.binding_of(services, agent.RESEARCHER), result.model)


def _write(
    services: Services, context: PhaseContext, body: str, binding: str | None, model: str | None
) -> dict[str, str | None]:
    where = context.location
    fields = {
        "type": "research",
        "phase": where.phase,
        "created": services.clock.now(),
        "bundle": context.digest,
        "binding": binding,
        "model": model,
    }
    path = where.path("RESEARCH")
    previous, kept = services.reports.read(path), None
    if previous is not None:
        data = previous.encode("utf-8", "surrogateescape")
        kept = services.backups.keep(BACKUP_FOLDER, path.rsplit("/", 1)[-1], data)
    services.reports.write(path, services.documents.research(fields, body))
    return {"binding": binding, "model": model, "kept": kept}


def failure_report(services: Services, result: AgentResult, role: str, go_on: Action) -> tuple[str, str, str]:
    """Return code, message and hint for an agent that failed. `go_on` is the command that asks it again."""
    failure = role_calls.failure_message(services, role, result, str(go_on))
    if failure is not None:
        return f"role.{failure.kind}", f"The {role} did not answer: {failure.message}", failure.next_step
    completed = result.outcome == outcome.COMPLETED
    code = agent.MALFORMED if completed else result.outcome.replace("_", "-")
    words = result.message or ("it answered nothing" if completed else result.outcome)
    hint = f"{go_on} asks again; idumb doctor checks the agents"
    return f"role.{code}", f"The {role} did not answer: {words}", hint
