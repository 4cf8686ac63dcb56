"""Asks the agents of roles that build nothing: each in a throw-away copy of the work tree, and never unapproved."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from idumb.app.attempt import agent_client, budget
from idumb.app.core import run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.ports.agents import Agent, capabilities
from idumb.app.roles import role_consent
from idumb.app.session import operation
from idumb.app.session.operation import Owned
from idumb.app.worktree import tree_guard
from idumb.app.worktree.tree_guard import Heard
from idumb.domain import agent, canonical_json, failures, roles
from idumb.domain.agent import AgentRequest, AgentResult, Budget
from idumb.domain.errors import Refusal
from idumb.domain.failures import FailureMessage
from idumb.domain.proof import levels
from idumb.domain.roles import ResolvedRole
from idumb.domain.runs import spending
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent
from idumb.domain.settings import Ceiling, Settings

_TAKING = {agent.PLANNER: "idumb plan-phase {phase} --from", agent.RESEARCHER: "idumb research {phase} --from"}
"""What a person says before the path of an answer that is kept."""


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """`about` is `phase-2`, or a task's id. `values` are for the template; `schema` is a JSON Schema of the reply."""

    role: str
    about: str
    values: Mapping[str, str]
    schema: Mapping[str, Any] | None = None
    attempt: int = 1


def binding_of(services: Services, role: str) -> str | None:
    """The name of the binding that fills a role; None where none is configured."""
    return roles.resolve(services.settings, role).binding


def prompt(services: Services, asked: RoleRequest) -> str:
    """What the agent of a role is told."""
    filled = roles.resolve(services.settings, asked.role)
    return services.documents.filled(filled.template, filled.prompt, asked.values)


def ask(
    services: Services, asked: RoleRequest, owner: Owned | None = None, *, run: RunState | None = None
) -> AgentResult:
    """Ask a role, and answer with what its agent said; what it changed in its copy is dropped.

    Where an agent that is a program was at work, and the user's own tree is not as it was: `role.changed-tree`.

    `owner` is the right to write where the caller has it already; `run` the run for which the role is asked, whose
    ceilings hold and which takes note of what was used. Refusal `role.unbound`, `role.ceiling`, `consent.missing`, or
    why the agent cannot be started.
    """
    filled = role_consent.filling_of(services, asked.role)
    role_consent.require(services, [filled])
    with _journal(services, asked, owner, run) as journal:
        left = _remaining_ceiling(services, asked, filled, journal.state)
        return _call(services, journal, asked, filled, left)


def failure_message(services: Services, role: str, result: AgentResult, go_on: str) -> FailureMessage | None:
    """Why the agent of a role could not work, with the next step; None where it could. `go_on` is the next command."""
    filled = roles.resolve(services.settings, role)
    found = services.settings.bindings.get(filled.binding or "")
    if result.failure is None:
        return None
    return failures.failure_message(
        result.failure, filled.binding or role, found.argv if found else (), result.message, go_on
    )


def _remaining_ceiling(services: Services, asked: RoleRequest, filled: ResolvedRole, run: RunState) -> Ceiling:
    """What the role may use at most; Refusal `role.ceiling` where its own ceiling, or that of the run, is used up."""
    reached = budget.reached_for_role(services.settings, run)
    if reached is not None:
        raise Refusal(
            "role.ceiling",
            f"The ceiling of run {run.number} of phase {run.phase} leaves nothing to the {asked.role}: {reached.words}",
            hint="Raise ceilings.run in .idumb/config.yaml",
            details={"role": asked.role, "about": asked.about, "used": reached.words},
        )
    return spending.lowest(
        (_remaining_role_ceiling(services, asked, filled), budget.left_for_role(services.settings, run))
    )


def _remaining_role_ceiling(services: Services, asked: RoleRequest, filled: ResolvedRole) -> Ceiling:
    """What is left of the role's own ceiling over all it was ever asked about this; Refusal where nothing is."""
    if filled.ceiling == Ceiling():
        return filled.ceiling
    known = [e.payload for e in services.log.events(kind="role.asked")]
    mine = [p for p in known if p["role"] == asked.role and p["about"] == asked.about]
    spent = spending.total(spending.spent_by_call(p["usage"]) + Spent(attempts=1, seconds=p["seconds"]) for p in mine)
    reached = spending.reached_ceiling(asked.role, filled.ceiling, spent)
    if reached is not None:
        raise Refusal(
            "role.ceiling",
            f"The ceiling of the {asked.role} for {asked.about} is reached: {reached.words}.",
            hint=f"Raise roles.{asked.role}.ceiling in .idumb/config.yaml to ask it again",
            details={"role": asked.role, "about": asked.about, "used": reached.words},
        )
    return spending.remaining(filled.ceiling, spent)


def _call(services: Services, journal: Journal, asked: RoleRequest, filled: ResolvedRole, left: Ceiling) -> AgentResult:
    place = services.open_workspace("here", "")
    agents = services.open_agents(place, journal.operation, aside=True)
    who = agents.get(filled.binding or "")
    known = prompt(services, asked)
    with _guarded(services, journal, asked, who) as heard, services.open_copy() as folder:
        request = AgentRequest(
            role=asked.role,
            task=None,
            prompt=known,
            workspace=folder,
            allowed_paths=(),
            attempt=asked.attempt,
            deadline=_deadline(services.settings, filled, left),
            budget=Budget(left.tokens, left.cost_usd, services.settings.run.output_limit),
            run_id=journal.operation,
            idle_timeout=services.settings.idle_timeout(filled.binding, capabilities(who).idle_timeout),
            limits=_limits(services, filled),
            about=asked.about,
            model=filled.model,
            schema=asked.schema,
        )
        try:
            result = agent_client.call(services, journal, agent_client.Call(who, filled.binding or "", request))
        finally:
            agents.forget()
        heard.reply = result.reply
        journal.write(_event(journal, asked, filled, who.name, known, result))
    return result


def _guarded(services: Services, journal: Journal, asked: RoleRequest, who: Agent) -> AbstractContextManager[Heard]:
    if not tree_guard.starts_a_program(who):
        return nullcontext(Heard())
    # A form that was asked for is no file that a command takes.
    taking = "" if asked.schema is not None else _TAKING.get(asked.role, "")
    phase = asked.about.removeprefix("phase-")
    return tree_guard.watched(services, journal, asked.role, asked.attempt, taking.format(phase=phase))


def _event(
    journal: Journal, asked: RoleRequest, filled: ResolvedRole, adapter: str, told: str, result: AgentResult
) -> NewEvent:
    return journal.event(
        "role.asked",
        None,
        asked.attempt,
        role=asked.role,
        about=asked.about,
        binding=filled.binding,
        adapter=adapter,
        model=result.model or filled.model,
        prompt=canonical_json.digest(told),
        outcome=result.outcome,
        failure=result.failure,
        message=result.message,
        usage=dataclasses.asdict(result.usage),
        seconds=round(result.seconds, 3),
        transcript=result.transcript,
    )


def _deadline(settings: Settings, filled: ResolvedRole, left: Ceiling) -> float | None:
    """The shortest of what the role, its level and its ceiling allow; None is no limit, as level 0 has it."""
    if levels.timed(settings, filled.role):
        own, of_level = filled.timeout, levels.rule(settings, filled.role).timeout
    else:
        own, of_level = filled.timeout or roles.SECONDS, None
    known = [float(limit) for limit in (own, of_level, left.seconds) if limit is not None]
    return min(known, default=None)


def _limits(services: Services, filled: ResolvedRole) -> Mapping[str, int]:
    found = services.settings.bindings.get(filled.binding or "")
    own = found.limits if found is not None else None
    return (own or services.settings.limits).chosen()


@contextmanager
def _journal(services: Services, asked: RoleRequest, owner: Owned | None, run: RunState | None) -> Iterator[Journal]:
    """A journal of the run, or of none, under the caller's operation or one of its own."""
    if owner is not None:
        state = run or RunState()
        yield Journal(services.log, services.reporter, operation=owner.operation, fence=owner.fence, state=state)
        return
    with operation.owned(services, f"{asked.role} {asked.about}") as made:
        yield made.journal(run_lookup.run_of(services, run.id) if run is not None else RunState())
