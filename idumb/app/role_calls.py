"""Agents that build nothing: each is asked in a copy, with consent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from idumb.app.attempt import agent_client, budget
from idumb.app.consent import asking, needs
from idumb.app.consent.asking import ConsentText
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services, fields
from idumb.app.worktree import preconditions
from idumb.domain import agent, canonical_json, failures, outcome
from idumb.domain import grant as grants
from idumb.domain.action import Action
from idumb.domain.agent import MALFORMED, AgentRequest, AgentResult, Budget, capabilities
from idumb.domain.errors import Refusal
from idumb.domain.grant import Change, Need
from idumb.domain.proof import gate_table
from idumb.domain.runs import spending
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent
from idumb.domain.settings import ROLE_TIMEOUT, Ceiling, ResolvedRole, Settings


class RoleRequest(Struct, frozen=True):
    """A question to a role. `about` is `phase-2` or a task id; `values` fill the template; `schema` is of the reply."""

    role: str
    about: str
    values: Mapping[str, str]
    schema: Mapping[str, Any] | None = None
    attempt: int = 1


def binding_of(services: Services, role: str) -> str | None:
    """Return the binding of a role; None if none is configured."""
    return services.settings.role(role).binding


def prompt(services: Services, role_request: RoleRequest) -> str:
    """Return the prompt for the agent of a role."""
    filled = services.settings.role(role_request.role)
    return services.documents.filled(filled.template, filled.prompt, role_request.values)


def ask(services: Services, role_request: RoleRequest, journal: Journal) -> AgentResult:
    """Call the agent of a role and return its result. Its changes are dropped with its copy.

    The caller owns the working tree. If `journal` is that of a run, the call counts for it: its ceilings apply.
    Refusal `role.unbound`, `role.ceiling`, `consent.missing`, a reason why the agent cannot start, or
    `role.changed-tree` if the agent changed the working tree itself.
    """
    filled = needs.role_with_binding(services, role_request.role)
    _require_consent(services, filled)
    run = journal.state if journal.state.id else RunState()
    return _call(services, journal, role_request, filled, _remaining_ceiling(services, role_request, filled, run))


def no_answer(services: Services, role: str, result: AgentResult, go_on: Action) -> tuple[str, str, str]:
    """Return code, message and hint for an agent that gave no answer. `go_on` is the command that asks it again."""
    if result.failure is not None:
        name = services.settings.role(role).binding or role
        program = services.settings.program_of(name)
        why = failures.failure_message(result.failure, name, program, result.message, str(go_on))
        return f"role.{why.kind}", f"The {role} did not answer: {why.message}", why.next_step
    completed = result.outcome == outcome.COMPLETED
    code = MALFORMED if completed else result.outcome.replace("_", "-")
    words = result.message or ("it answered nothing" if completed else result.outcome)
    hint = f"{go_on} asks again; idumb doctor checks the agents"
    return f"role.{code}", f"The {role} did not answer: {words}", hint


def _remaining_ceiling(services: Services, role_request: RoleRequest, filled: ResolvedRole, run: RunState) -> Ceiling:
    """Return what the role may still use; Refusal `role.ceiling` if its ceiling, or that of the run, is used up."""
    reached = budget.reached(services.settings, run, None)
    if reached is not None:
        raise _used_up(role_request, f"run {run.number} of phase {run.phase}", reached.words, "ceilings.run")
    own = filled.ceiling
    if own != Ceiling():  # all its calls about this subject count
        calls = [e.payload for e in services.log.events(kind="role.asked")]
        same_subject = [p for p in calls if p["role"] == role_request.role and p["about"] == role_request.about]
        spent = spending.total(
            spending.spent_by_call(p["usage"]) + Spent(attempts=1, seconds=p["seconds"]) for p in same_subject
        )
        reached = spending.reached_ceiling(role_request.role, own, spent)
        if reached is not None:
            raise _used_up(role_request, role_request.about, reached.words, f"roles.{role_request.role}.ceiling")
        own = spending.remaining(own, spent)
    return spending.lowest((own, budget.left_for_role(services.settings, run)))


def _used_up(role_request: RoleRequest, where: str, words: str, setting: str) -> Refusal:
    return Refusal(
        "role.ceiling",
        f"The ceiling of {where} leaves nothing for the {role_request.role}: {words}",
        hint=f"Raise {setting} in .idumb/config.yaml to ask it",
        details={"role": role_request.role, "about": role_request.about, "used": words},
    )


def _call(
    services: Services, journal: Journal, role_request: RoleRequest, filled: ResolvedRole, remaining: Ceiling
) -> AgentResult:
    settings, agents = services.settings, services.open_agents(services.here, journal.operation)
    binding = settings.bindings.get(filled.binding or "")
    who = agents.get(filled.binding or "")
    if settings.requires_sandbox and not capabilities(who).sandboxed:
        raise Refusal("agent.no-sandbox", f"idumb cannot put {filled.binding} in a sandbox.")
    prompt_text = prompt(services, role_request)
    before = services.history.state()
    with services.open_copy() as folder:
        request = AgentRequest(
            role=role_request.role,
            task=None,
            prompt=prompt_text,
            workspace=folder,
            repository=services.root,
            allowed_paths=(),
            attempt=role_request.attempt,
            deadline=_deadline(settings, filled, remaining),
            budget=Budget(remaining.tokens, remaining.cost_usd),
            run_id=journal.operation,
            idle_timeout=settings.idle_timeout(filled.binding, capabilities(who).idle_timeout),
            limits=((binding.limits if binding is not None else None) or settings.limits).chosen(),
            about=role_request.about,
            model=filled.model,
            schema=role_request.schema,
        )
        result = agent_client.ask(services, journal, agent_client.Call(who, filled.binding or "", request))
        journal.append(
            "role.asked",
            None,
            role_request.attempt,
            **fields(role_request, "role", "about"),
            binding=filled.binding,
            adapter=who.name,
            model=result.model or filled.model,
            prompt=canonical_json.digest(prompt_text),
            **fields(result, "outcome", "failure", "message", "usage", "transcript"),
            seconds=round(result.seconds, 3),
            **({"sandbox": result.sandbox} if result.sandbox else {}),
        )
    changed = preconditions.changed_since(services, before)
    preconditions.note_guarded_files(services, f"While the {role_request.role} worked", changed)
    if result.sandbox:
        services.reporter.note(f"Sandbox of the {role_request.role}: {result.sandbox}.")
    return result


def _deadline(settings: Settings, filled: ResolvedRole, remaining: Ceiling) -> float | None:
    """Return the shortest time that role, level and ceiling allow; None means no limit, as at level 0."""
    if gate_table.level_limits_time(settings, filled.role):
        role_timeout, level_timeout = filled.timeout, gate_table.rule(settings, filled.role).timeout
    else:
        role_timeout, level_timeout = filled.timeout or ROLE_TIMEOUT, None
    limits = [float(limit) for limit in (role_timeout, level_timeout, remaining.seconds) if limit is not None]
    return min(limits, default=None)


_WHY = (
    "The configuration names programs to run on this machine. idumb runs them only with your consent to exactly these."
)


def missing_consent(services: Services, need: Need) -> tuple[Change, ...]:
    stored = services.consent.grants(needs.ROLES)
    parts = {name: each for name, each in need.parts.items() if name in agent.ROLES}
    return grants.missing(parts, [grant for grant in stored if grant.revoked is None], stored)


def ensure_consent(services: Services, need: Need, *, approve: Collection[str]) -> None:
    """Require consent to the agents of a need: earlier, by `--approve`, or at the terminal now; Refusal otherwise.

    Without a terminal, the question is kept for `idumb decisions`.
    """
    open_parts = missing_consent(services, need)
    asking.require_known(services, need, approve, agreed=not open_parts)
    if open_parts:
        asking.ask(services, need, open_parts, consent_text(services, need, open_parts), approve)


def consent_text(services: Services, need: Need, open_parts: Sequence[Change]) -> ConsentText:
    names = [name for name in need.parts if name in agent.ROLES]
    what = f"Ask the {', '.join(names)}"
    return ConsentText(
        what,
        _WHY,
        consent_lines(services, names, open_parts),
        "run them",
        f"consent is recorded for these agents ({need.digest[:16]})",
        f"These agents need your consent before they can run ({need.digest[:16]}): the {', '.join(names)}.",
    )


def consent_lines(services: Services, names: Sequence[str], open_parts: Sequence[Change]) -> tuple[str, ...]:
    """Return one line for each role: what it starts, and what changed since the user agreed."""
    since = {c.name: f"; changed since you agreed: {c.words}" for c in open_parts if c.was is not None}
    return tuple(_line(services, needs.role_with_binding(services, name)) + since.get(name, "") for name in names)


def _line(services: Services, filled: ResolvedRole) -> str:
    name, argv = filled.binding or "", needs.role_argv(services, filled)
    words = asking.words_of_binding(services, name, argv, models={filled.role: filled.model})
    template = f"; prompt .idumb/prompts/{filled.prompt}.md" if filled.template is not None else ""
    named = needs.named_files(services, [argv]).items()
    files = "".join(f"; uses {path}, sha256 {sha[:16]}" for path, sha in named)
    return f"{filled.role}: {name}: {words}{template}{files}"


def _require_consent(services: Services, filled: ResolvedRole) -> None:
    """Refuse to call an agent without consent, in case a use case did not ask with `ensure_consent`."""
    need = needs.of_roles(services, [filled.role])
    open_parts = missing_consent(services, need)
    if open_parts:
        text = consent_text(services, need, open_parts)
        raise asking.refusal(need, open_parts, text, asking.question(services, need, text))
