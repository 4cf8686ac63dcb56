"""Asks the agents of roles that build nothing: each in a throw-away copy of the work tree, and never unapproved."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from idumb.app.attempt import agent_client, budget
from idumb.app.consent import agent_programs, approval_parts, pending_consent, role_approval
from idumb.app.consent.pending_consent import PendingQuestion
from idumb.app.core import next_actions, run_lookup
from idumb.app.core.journal import Journal
from idumb.app.core.services import Services
from idumb.app.ports.agents import Agent, capabilities
from idumb.app.session import operation
from idumb.app.session.operation import Owned
from idumb.app.worktree import tree_guard
from idumb.app.worktree.tree_guard import Heard
from idumb.domain import agent, canonical_json, failures, roles
from idumb.domain.agent import AgentRequest, AgentResult, Budget
from idumb.domain.decision import Choice, Decision
from idumb.domain.errors import Refusal
from idumb.domain.failures import Told
from idumb.domain.proof import levels
from idumb.domain.roles import Filling
from idumb.domain.runs import spending
from idumb.domain.runs.event import NewEvent
from idumb.domain.runs.run import RunState
from idumb.domain.runs.spending import Spent
from idumb.domain.settings import Ceiling, Settings

PLACE = role_approval.PLACE
_TAKING = {agent.PLANNER: "idumb plan-phase {phase} --from", agent.RESEARCHER: "idumb research {phase} --from"}
"""What a person says before the path of an answer that is kept."""


@dataclass(frozen=True, slots=True)
class Ask:
    """`about` is `phase-2`, or a task's id. `values` are for the template; `schema` is a JSON Schema of the reply."""

    role: str
    about: str
    values: Mapping[str, str]
    schema: Mapping[str, Any] | None = None
    attempt: int = 1


def bound(services: Services, role: str) -> str | None:
    """The name of the binding that fills a role; None where none is configured."""
    return roles.filling(services.settings, role).binding


def prompt(services: Services, asked: Ask) -> str:
    """What the agent of a role is told."""
    filled = roles.filling(services.settings, asked.role)
    return services.documents.filled(filled.template, filled.prompt, asked.values)


def ask(services: Services, asked: Ask, owner: Owned | None = None, *, run: RunState | None = None) -> AgentResult:
    """Ask a role, and answer with what its agent said; what it changed in its copy is dropped.

    Where an agent that is a program was at work, and the user's own tree is not as it was: `role.changed-tree`.

    `owner` is the right to write where the caller has it already; `run` the run for which the role is asked, whose
    ceilings hold and which takes note of what was used. Refusal `role.unbound`, `role.ceiling`, `consent.missing`, or
    why the agent cannot be started.
    """
    filled = _filling(services, asked.role)
    _require_consent(services, [filled])
    with _journal(services, asked, owner, run) as journal:
        left = _room(services, asked, filled, journal.state)
        return _asked(services, journal, asked, filled, left)


def told(services: Services, role: str, result: AgentResult, go_on: str) -> Told | None:
    """Why the agent of a role could not work, with the next step; None where it could. `go_on` is the next command."""
    filled = roles.filling(services.settings, role)
    found = services.settings.bindings.get(filled.binding or "")
    if result.failure is None:
        return None
    return failures.told(result.failure, filled.binding or role, found.argv if found else (), result.message, go_on)


def _room(services: Services, asked: Ask, filled: Filling, run: RunState) -> Ceiling:
    """What the role may use at most; Refusal `role.ceiling` where its own ceiling, or that of the run, is used up."""
    reached = budget.reached_for_role(services.settings, run)
    if reached is not None:
        raise Refusal(
            "role.ceiling",
            f"The ceiling of run {run.number} of phase {run.phase} leaves nothing to the {asked.role}: {reached.words}",
            hint="Raise ceilings.run in .idumb/config.yaml",
            details={"role": asked.role, "about": asked.about, "used": reached.words},
        )
    return spending.smallest((_own_room(services, asked, filled), budget.left_for_role(services.settings, run)))


def _own_room(services: Services, asked: Ask, filled: Filling) -> Ceiling:
    """What is left of the role's own ceiling over all it was ever asked about this; Refusal where nothing is."""
    if filled.ceiling == Ceiling():
        return filled.ceiling
    known = [e.payload for e in services.log.events(kind="role.asked")]
    mine = [p for p in known if p["role"] == asked.role and p["about"] == asked.about]
    spent = spending.total(spending.of_call(p["usage"]) + Spent(attempts=1, seconds=p["seconds"]) for p in mine)
    reached = spending.reached(asked.role, filled.ceiling, spent)
    if reached is not None:
        raise Refusal(
            "role.ceiling",
            f"The ceiling of the {asked.role} for {asked.about} is reached: {reached.words}.",
            hint=f"Raise roles.{asked.role}.ceiling in .idumb/config.yaml to ask it again",
            details={"role": asked.role, "about": asked.about, "used": reached.words},
        )
    return spending.left(filled.ceiling, spent)


def _asked(services: Services, journal: Journal, asked: Ask, filled: Filling, left: Ceiling) -> AgentResult:
    place = services.open_workspace("here", "")
    agents = services.open_agents(place, journal.operation, aside=True)
    who = agents.get(filled.binding or "")
    known = prompt(services, asked)
    with _watched(services, journal, asked, who) as heard, services.open_copy() as folder:
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


def _watched(services: Services, journal: Journal, asked: Ask, who: Agent) -> AbstractContextManager[Heard]:
    if not tree_guard.starts_a_program(who):
        return nullcontext(Heard())
    # A form that was asked for is no file that a command takes.
    taking = "" if asked.schema is not None else _TAKING.get(asked.role, "")
    phase = asked.about.removeprefix("phase-")
    return tree_guard.watched(services, journal, asked.role, asked.attempt, taking.format(phase=phase))


def _event(journal: Journal, asked: Ask, filled: Filling, adapter: str, told: str, result: AgentResult) -> NewEvent:
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


def _deadline(settings: Settings, filled: Filling, left: Ceiling) -> float | None:
    """The shortest of what the role, its level and its ceiling allow; None is no limit, as level 0 has it."""
    if levels.timed(settings, filled.role):
        own, of_level = filled.timeout, levels.rule(settings, filled.role).timeout
    else:
        own, of_level = filled.timeout or roles.SECONDS, None
    known = [float(limit) for limit in (own, of_level, left.seconds) if limit is not None]
    return min(known, default=None)


def _limits(services: Services, filled: Filling) -> Mapping[str, int]:
    found = services.settings.bindings.get(filled.binding or "")
    own = found.limits if found is not None else None
    return (own or services.settings.limits).chosen()


@contextmanager
def _journal(services: Services, asked: Ask, owner: Owned | None, run: RunState | None) -> Iterator[Journal]:
    """A journal of the run, or of none, under the caller's operation or one of its own."""
    if owner is not None:
        state = run or RunState()
        yield Journal(services.log, services.reporter, operation=owner.operation, fence=owner.fence, state=state)
        return
    with operation.owned(services, f"{asked.role} {asked.about}") as made:
        yield made.journal(run_lookup.run_of(services, run.id) if run is not None else RunState())


def _filling(services: Services, role: str) -> Filling:
    filled = roles.filling(services.settings, role)
    if filled.binding is None:
        raise Refusal(
            "role.unbound",
            f"No agent fills the role {role}.",
            hint=f"Write `roles: {{{role}: {{binding: NAME}}}}` in .idumb/config.yaml, with NAME one of its bindings",
            details={"role": role},
        )
    return filled


def consent_hash(services: Services, asked: Iterable[str]) -> str:
    """What `--approve` must name, so that these roles may be asked: bindings, programs, scripts, models, templates."""
    return role_approval.combined_digest(
        role_approval.digest(services, _filling(services, role)) for role in dict.fromkeys(asked)
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Consent to some roles: `whole` is the hash that names them together, `missing` what nobody agreed to yet.

    `missing` has what to record by the hash of each role, looked at before a question, so that the word is to what was
    shown, whatever is changed meanwhile.
    """

    filled: tuple[Filling, ...]
    whole: str
    missing: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.role for each in self.filled)


def wanted(services: Services, asked: Iterable[str]) -> Wanted:
    """Refusal where a role is not filled, or its program cannot be started."""
    filled = tuple(_filling(services, role) for role in dict.fromkeys(asked))
    own = {each: role_approval.digest(services, each) for each in filled}
    missing = {
        digest: role_approval.consent_record(services, each)
        for each, digest in own.items()
        if not services.consent.given(digest)
    }
    return Wanted(filled, role_approval.combined_digest(own.values()), missing)


def agree(services: Services, to: Wanted, how: str) -> None:
    """Record a person's consent to what was missing."""
    for digest, agreed in to.missing.items():
        services.consent.record(digest, phase=PLACE, how=how, at=services.clock.now(), agreed=agreed)


def ensure_consent(services: Services, asked: Iterable[str], *, approve: Collection[str], command: str) -> None:
    """Consent to what these roles start: given before, by `--approve`, or at the terminal now; Refusal otherwise.

    `command` is what a person types to go on, without `--approve`. Where nobody can be asked, the question is kept.
    """
    to = wanted(services, asked)
    stranger = next((one for one in approve if one != to.whole), None)
    if stranger is not None:
        other = role_approval.why_other_hash(services, stranger, to.filled)
        raise _refusal(question(services, to, command), to.whole, command, other=other)
    if to.missing and not approve:
        asked_now(services, to, command)
    elif to.missing:
        agree(services, to, "--approve")


def asked_now(services: Services, to: Wanted, command: str) -> None:
    """Ask at the terminal; Refusal where the answer is no, `Waiting` where nobody can be asked or answered in time."""
    put = question(services, to, command)
    answer = services.asker.ask(put)
    if answer is not None and answer.choice == pending_consent.YES:
        agree(services, to, "terminal")
        return
    refusal = _refusal(put, to.whole, command)
    if not services.asker.interactive:
        refusal = pending_consent.keep(services, refusal, PendingQuestion(put.id, command, roles=to.names))
    raise refusal


def _require_consent(services: Services, filled: list[Filling]) -> None:
    """The use case asks with `ensure_consent`; nobody reaches an agent around it."""
    own = [role_approval.digest(services, each) for each in filled]
    if all(services.consent.given(digest) for digest in own):
        return
    whole = role_approval.combined_digest(own)
    to = Wanted(tuple(filled), whole, {})
    raise _refusal(question(services, to, "idumb COMMAND"), whole, "the same command with")


def question(services: Services, to: Wanted, command: str) -> Decision:
    whole = to.whole
    return Decision(
        id=f"{pending_consent.MARK}{whole}",
        kind="consent",
        what=f"Ask the {', '.join(to.names)}",
        why="The configuration names programs that run on this machine. They run only when you agree to exactly them.",
        evidence=lines(services, to),
        choices=(
            Choice(
                "run",
                "run it",
                f"consent is recorded for these agents ({whole[:16]})",
                f"{command} --approve {whole}",
            ),
            Choice("no", "do not run it", "nothing happens"),
        ),
    )


def lines(services: Services, to: Wanted) -> tuple[str, ...]:
    """What each of the roles starts, one line each."""
    return tuple(_line(services, each) for each in to.filled)


def _line(services: Services, filled: Filling) -> str:
    name = filled.binding or ""
    argv = role_approval.argv(services, filled)
    words = agent_programs.describe_binding(services, name, argv, models={filled.role: filled.model})
    own = f"; prompt .idumb/prompts/{filled.prompt}.md" if filled.template is not None else ""
    used = "".join(
        f"; uses {path}, sha256 {sha[:16]}" for path, sha in approval_parts.named_files(services, [argv]).items()
    )
    found = role_approval.changes_since_consent(services, filled)
    since = f"; changed since you agreed: {', '.join(found)}" if found else ""
    return f"{filled.role}: {name}: {words}{own}{used}{since}"


def _refusal(question: Decision, whole: str, command: str, *, other: str | None = None) -> Refusal:
    """Nobody's word is there; `other` says why the one that was given is not for this."""
    missing = f"Nobody consented to these agents ({whole[:16]}): {question.what.removeprefix('Ask ')}"
    return Refusal(
        "consent.missing" if other is None else "consent.other-agents",
        f"{other or missing}.",
        hint=f"{command} --approve {whole}",
        details={
            "what": question.what,
            "why": question.why,
            "evidence": list(question.evidence),
            "choices": next_actions.rows(question.choices),
            "consent_hash": whole,
            "decision": question.id,
            **({} if other is None else {"expected": whole}),
        },
    )
