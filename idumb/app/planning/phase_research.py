"""Research on a phase: ask the researcher, and record the context it was made from, so that stale research shows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from idumb.app import role_calls
from idumb.app.consent import needs
from idumb.app.core.journal import Journal
from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.app.planning import phase_context
from idumb.app.planning.phase_context import PhaseContext
from idumb.app.role_calls import RoleRequest
from idumb.app.session import operation
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
    context = phase_context.gather(services, phase_context.locate(services, phase))
    where, path = context.location, context.location.path("RESEARCH")
    command = Action.of("plan", "research", where.phase)
    if context.research_state == phase_context.OWN:
        raise Refusal(
            "research.own",
            f"idumb did not write {path}, so it does not replace it.",
            hint=f"idumb plan-phase {where.phase} uses it as it is; to research the phase, rename your file first",
            details={"phase": where.phase},
        )
    data: dict[str, Any] = {
        "phase": where.phase,
        "path": path,
        "digest": context.digest,
        "written": False,
        "standing": context.research_state,
        "kept": None,
        "binding": None,
        "next": [Action.of("plan-phase", where.phase)],
    }
    if ask:
        take = replace(command, arguments=(*command.arguments, "--from", "FILE"))
        return Result({**data, "prompt": role_calls.prompt(services, _role_request(context)), "next": [take]})
    if offered is None:
        if context.research_state == phase_context.CURRENT and not again:
            return Result(data)
        role_calls.ensure_consent(services, needs.of_roles(services, [agent.RESEARCHER]), approve=approve)
    elif not offered.strip():
        raise InputError("research.empty", "The report is empty.", hint=Action.of("plan", "research", "--help"))
    with operation.owned(services, "research") as owned:
        journal = owned.record()
        if offered is None:
            tell(ASKING)
        written = ask_and_write(services, context, journal) if offered is None else _write(services, context, offered)
    if isinstance(written, AgentResult):
        return Result(data, EXIT_FAILED, (), role_calls.no_answer(services, agent.RESEARCHER, written, command))
    return Result({**data, "written": True, "standing": phase_context.CURRENT, **written})


def _role_request(context: PhaseContext) -> RoleRequest:
    values = {**context.values(), "report": f"phase {context.location.phase}", "discuss": ""}
    return RoleRequest(agent.RESEARCHER, f"phase-{context.location.phase}", values)


def ask_and_write(services: Services, context: PhaseContext, journal: Journal) -> AgentResult | dict[str, str | None]:
    """Ask the researcher and write its report; return the result if it failed. A replaced report is kept."""
    result = role_calls.ask(services, _role_request(context), journal)
    body = result.reply or result.output
    if result.outcome != outcome.COMPLETED or not body.strip():
        return result
    return _write(services, context, body, role_calls.binding_of(services, agent.RESEARCHER), result.model)


def _write(
    services: Services, context: PhaseContext, body: str, binding: str | None = None, model: str | None = None
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
