"""What was agreed to about a phase, compared with how it is now; and the refusals to run without an approval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from idumb.app.consent import needs
from idumb.app.core import actions, run_lookup
from idumb.app.core.services import Services
from idumb.app.ports import Agents
from idumb.domain import agent, outcome, wording
from idumb.domain import contract as contracts
from idumb.domain import grant as grants
from idumb.domain.action import Action, Choice, Decision
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.grant import APPROVE, LIVE, Change, Grant, Need, Part, Parts
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.runs.run import RunState

AMENDMENT = "amendment"
"""How a grant was given by which a run continues under the next version of its contract."""


def record_consent(services: Services, place: str, parts: Parts, *, how: str, need: str = "") -> None:
    """Record that the user agreed to these parts. The agents of roles count for every phase."""
    of_roles = {name: each for name, each in parts.items() if name in agent.ROLES}
    others = {name: each for name, each in parts.items() if name not in of_roles}
    for where, agreed in ((place, others), (needs.ROLES, of_roles)):
        if agreed:
            services.consent.record(new_grant(services, where, agreed, how=how, need=need))


def new_grant(
    services: Services, place: str, parts: Parts, *, how: str, need: str = "", by: str | None = None
) -> Grant:
    by = services.consent.person() if by is None else by
    return Grant(place, dict(parts), by, services.clock.now(), how, services.consent.nonce(), need)


def record_amendment(services: Services, contract: Contract, earlier: str) -> None:
    """Record consent to an amended contract. Programs keep the consent that they had under the contract `earlier`."""
    stored = services.consent.grants(contract.phase)
    agreed = [g for g in stored if g.contract_hash == earlier and g.revoked is None]
    known = {name for grant in stored for name in grant.parts}
    present = needs.of_agents(services, contract)
    unchanged = present.keys() - {change.name for change in grants.missing(present, agreed, ())}
    agents = {name: each for name, each in present.items() if name not in known or name in unchanged}
    parts = {grants.CONTRACT: grants.part(contract.hash), **agents, **needs.of_checks(services)}
    record_consent(services, contract.phase, parts, how=AMENDMENT, need=Need(contract.phase, parts).digest)


class PhaseGrants:
    """The grants of one phase. Each part is computed once.

    `base` is the commit that an existing run began from. None means the commit that the next run begins from.
    """

    def __init__(self, services: Services, contract: Contract, base: str | None = None) -> None:
        self._services = services
        self._contract = contract
        self._base = base
        self._now = services.clock.now()
        self._present: dict[tuple[bool, tuple[str, ...]], dict[str, Part]] = {}

    @cached_property
    def all(self) -> tuple[Grant, ...]:
        """Newest first."""
        return self._services.consent.grants(self._contract.phase)

    @property
    def approvals(self) -> tuple[Grant, ...]:
        return tuple(grant for grant in self.all if grant.how == APPROVE)

    @cached_property
    def live(self) -> tuple[Grant, ...]:
        """The valid ones, newest first. A signature is optional, but must be valid."""
        return tuple(g for g in self.all if self.standing(g) == LIVE and has_valid_signature(self._services, g))

    def standing(self, grant: Grant) -> str:
        return grants.standing(grant, self._now, lambda: self.present(grant))

    def present(self, grant: Grant) -> dict[str, Part]:
        """The present parts to compare an approval with."""
        bound = grant.parts
        key = (grants.BASE in bound, tuple(bound[grants.FILES].value) if grants.FILES in bound else ())
        if key not in self._present:
            base = (self._base or needs.present_base(self._services, self._contract.phase)) if key[0] else None
            self._present[key] = needs.of_approval(self._services, self._contract, base=base, files=key[1])
        return self._present[key] | needs.of_irreversible(self._contract, grant.accepted)

    def changes(self, grant: Grant) -> tuple[Change, ...]:
        return grants.changes(grant.parts, self.present(grant))

    def missing(self, parts: Parts, *, plain: bool = False) -> tuple[Change, ...]:
        """The parts that nothing valid covers; with `plain`, nothing but an approval."""
        of_roles = self._services.consent.grants(needs.ROLES)
        of_phase = (grant for grant in self.live if not (plain and grant.how == APPROVE))
        valid = [*of_phase, *(grant for grant in of_roles if grant.revoked is None)]
        return grants.missing(parts, valid, [*self.all, *of_roles])

    def covers(self, contract_hash: str, *, plain: bool = False) -> bool:
        """Whether the contract may run; with `plain`, without an approval."""
        return any(g.contract_hash == contract_hash and not (plain and g.how == APPROVE) for g in self.live)

    def accepted(self, *, strict: bool) -> frozenset[str]:
        """The irreversible tasks that are accepted by name; in strict mode, by an approval."""
        parts = needs.of_irreversible(self._contract, (t.id for t in needs.irreversible_tasks(self._contract)))
        valid = [grant for grant in self.live if grant.how == APPROVE or not strict]
        open_parts = {change.name for change in grants.missing(parts, valid, ())}
        return frozenset(p.value["task"] for name, p in parts.items() if name not in open_parts)

    def approval(self) -> Grant:
        """Return the newest valid approval.

        Refusal `approval.missing`, `.expired`, `.revoked`, `.void` or `.bad-signature`.
        """
        approval = next((grant for grant in self.live if grant.how == APPROVE), None)
        if approval is None:
            invalid = self.why_invalid() or Invalid(grants.MISSING, "it has none")
            raise refusal(self._contract, invalid.standing, invalid.words, **invalid.details)
        return approval

    def why_invalid(self, kept: Grant | None = None) -> Invalid | None:
        """Why an approval is not valid, by default the newest of this contract, else the newest of the phase."""
        stored = self.approvals
        of_contract = (grant for grant in stored if grant.contract_hash == self._contract.hash)
        grant = kept or next(of_contract, stored[0] if stored else None)
        return None if grant is None else self._invalid(grant)

    def _invalid(self, grant: Grant) -> Invalid:
        by, standing = f"the approval by {grant.by} of {grant.at}", self.standing(grant)
        if standing == grants.EXPIRED:
            return Invalid(standing, f"{by} expired at {grant.expires}")
        if standing == grants.REVOKED:
            revoked = grant.revoked or {}
            words = f"{by} was revoked by {revoked.get('by', 'an unknown user')} at {revoked.get('at', '?')}"
            return Invalid(standing, words)
        if standing == LIVE:
            return Invalid("bad-signature", f"{by} does not have a valid signature of an allowed signer")
        changes = self.changes(grant)
        words = f"{by} is void, because these changed: {'; '.join(change.words for change in changes)}"
        return Invalid(standing, words, {"evidence": [change.evidence for change in changes], **details_of(changes)})


class Invalid(Struct, frozen=True):
    """Why an approval is not valid; if it is void, `details` lists what changed."""

    standing: str
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)


def details_of(changes: Sequence[Change]) -> dict[str, Any]:
    """Changes as the details of a refusal."""
    return {"changed": [change.name for change in changes], "parts": [change.as_dict() for change in changes]}


def require_approval(services: Services, contract: Contract, *, base: str | None = None) -> Grant:
    """Return the newest valid approval; refuses like `PhaseGrants.approval`."""
    return PhaseGrants(services, contract, base).approval()


def require_for(services: Services, contract: Contract, state: RunState) -> None:
    """Require that the commands of a run's contract may start now, whether the run has finished or not.

    In strict mode this needs an approval. Otherwise it raises Refusal `consent.missing` if nothing covers the contract,
    and reports why an existing approval is no longer valid.
    """
    agreed = PhaseGrants(services, contract, state.base.commit)
    if STRICT in (contract.mode, state.mode):
        agreed.approval()
    elif not agreed.covers(contract.hash):
        invalid = agreed.why_invalid()
        raise _not_agreed(contract, no_consent_message(contract, invalid), {} if invalid is None else invalid.details)


def _not_agreed(contract: Contract, words: str, differs: Mapping[str, Any], hint: str | None = None) -> Refusal:
    details = {"contract_hash": contract.hash, **differs}
    return Refusal("consent.missing", words, hint=hint or approve_command(contract), details=details)


def require_ran(services: Services, contract: Contract, state: RunState) -> None:
    """Require that the contract of a run was agreed to here, so that its checks may run again on what it committed.

    A configuration that changed since asks nothing, unless it changes how checks run. Refusal `consent.missing`.
    """
    now, strict = services.clock.now(), STRICT in (contract.mode, state.mode)
    stored = (g for g in services.consent.grants(contract.phase) if g.how == APPROVE or not strict)
    agreed = [g for g in stored if not grants.has_ended(g, now) and has_valid_signature(services, g)]
    parts = {grants.CONTRACT: grants.part(state.contract.hash), **needs.of_checks(services)}
    missing = grants.missing(parts, agreed, agreed)
    newest = next((g.parts for g in agreed if g.contract_hash), {})
    if not missing and grants.CHECKS in newest.keys() - parts.keys():  # they run as usual again
        missing = (Change(grants.CHECKS, newest[grants.CHECKS], None),)
    if missing:
        raise _not_agreed(contract, no_consent_message(contract, None, missing), details_of(missing))


def require_agents(services: Services, contract: Contract, agents: Agents, again: Action) -> None:
    """Require that a run starts the programs that the user agreed to. Refusal `consent.missing`.

    PATH may have changed while a question waited for its answer. `again` is the command that asks for consent again.
    """
    missing = PhaseGrants(services, contract).missing(needs.of_agents(services, contract, agents))
    if missing:
        what = f"Phase {contract.phase} would start programs that you did not agree to"
        words = f"{what}: {'; '.join(change.words for change in missing)}. Nothing was started."
        differs = {"again": again, **details_of(missing)}
        raise _not_agreed(contract, words, differs, f"{again} asks for your consent again")


def no_consent_message(contract: Contract, invalid: Invalid | None, missing: Sequence[Change] = ()) -> str:
    words = [change.words for change in missing if change.was is not None]
    new = [f"how {c.name} run" if c.name == grants.CHECKS else c.words for c in missing if c.name != grants.CONTRACT]
    why = f"contract {contract.hash[:16]} has none on this machine"
    if invalid is not None:
        why = invalid.words
    elif words:
        why = f"these changed since you agreed: {'; '.join(words)}"
    elif new and len(new) == len(missing):
        why = f"you agreed to its contract, but not to {wording.listed(new)}"
    return f"Phase {contract.phase} needs your approval before it can run: {why}."


def newest_nonce(services: Services, contract: Contract) -> str | None:
    """The nonce that identifies the newest approval of a contract; None if there is none."""
    stored = (grant for grant in PhaseGrants(services, contract).approvals if grant.revoked is None)
    return next((grant.nonce for grant in stored if grant.contract_hash == contract.hash), None)


def import_signed(services: Services, contract: Contract, path: str) -> None:
    """Import an approval from a signed file and store it. Refuses like `PhaseGrants.approval`."""
    kept = services.consent.read_file(path)
    signer = services.signatures.signer(kept.canonical(), kept.signature or "")
    if signer is None:
        raise refusal(contract, "bad-signature", f"the signature of {path} is not from an allowed signer")
    if kept.place != contract.phase or kept.how != APPROVE:
        raise refusal(contract, grants.VOID, f"{path} approves phase {kept.place}")
    if kept.base_commit is not None and not services.history.descends(kept.base_commit):
        why = f"{path} is for another history: HEAD does not descend from {kept.base_commit}"
        raise refusal(contract, grants.VOID, why)
    agreed = PhaseGrants(services, contract)
    kept = replace(kept, revoked=next((g.revoked for g in agreed.all if g.nonce == kept.nonce), None))
    invalid = agreed.why_invalid(kept) if agreed.standing(kept) != LIVE else None
    if invalid is not None:
        raise refusal(contract, invalid.standing, invalid.words, **invalid.details)
    services.consent.record(kept)


def refusal(contract: Contract, kind: str, words: str, *, evidence: Sequence[str] = (), **more: Any) -> Refusal:
    """Build a refusal with its evidence and choices."""
    phase, command = contract.phase, approve_command(contract)
    means = "records an approval of exactly the present state; nothing runs"
    choices = [
        Choice("approve", "review and approve it", means, command),
        Choice("no", "do not approve it", "nothing runs"),
    ]
    if kind == grants.VOID:
        means = "the approval becomes valid again"
        choices.insert(0, Choice("put-back", "restore what changed", means, Action.of("check-plan", phase)))
    details = actions.offer(
        f"Run phase {phase}, contract {contract.hash}",
        words,
        evidence or [f"plan {p.path}, sha256 {p.sha256}" for p in contract.plans],
        choices,
        contract_hash=contract.hash,
        **more,
    )
    return Refusal(f"approval.{kind}", f"Phase {phase} needs a valid approval: {words}.", hint=command, details=details)


def approve_command(contract: Contract) -> Action:
    """The command that approves a contract. For a strict plan, `approve` shows the hash with the self-check."""
    options = () if contract.mode == STRICT else ("--hash", contract.hash)
    return Action.of("approve", contract.phase, *options)


def has_valid_signature(services: Services, grant: Grant) -> bool:
    """Whether the signature, if any, is valid and, if there is a list of allowed signers, by one of them."""
    if grant.signature is None:
        return True
    if services.signatures.has_list():
        return services.signatures.signer(grant.canonical(), grant.signature) is not None
    return services.signatures.intact(grant.canonical(), grant.signature)


def newest_approval(services: Services, contract: Contract) -> dict[str, Any] | None:
    """Status of the newest approval of a phase, for `check-plan`; None if there is none."""
    agreed = PhaseGrants(services, contract)
    if not agreed.approvals:
        return None
    grant = next((g for g in agreed.approvals if agreed.standing(g) == LIVE), agreed.approvals[0])
    standing = agreed.standing(grant)
    return {
        "standing": standing,
        "by": grant.by,
        "validated_at": grant.at,
        "expires": grant.expires,
        "accepted": list(grant.accepted),
        "signed": grant.signature is not None,
        "changed": [change.name for change in agreed.changes(grant)] if standing == grants.VOID else [],
    }


# Irreversible tasks: the user accepts each of them by name, and no yes to a run covers them


def require_accepted(
    services: Services, contract: Contract, *, strict: bool, asks: bool, only: str | None = None
) -> None:
    """Require that the user accepted every irreversible task that may still run, or `only` one, by name.

    With `asks`, a user at the terminal is asked about each of them, and the answers are recorded. Refusal
    `irreversible.not-accepted`.
    """
    tasks = [task for task in needs.irreversible_tasks(contract) if only in (None, task.id)]
    accepted = PhaseGrants(services, contract).accepted(strict=strict) if tasks else frozenset()
    missing = [t for t in tasks if t.id not in accepted and not _is_finished(services, contract, t)]
    if missing and asks and services.asker.interactive:
        missing = [t for t in missing if not _accepted_at_terminal(services, contract, t)]
    if missing:
        raise _not_accepted(contract, missing, sorted(accepted))


def _is_finished(services: Services, contract: Contract, task: Task) -> bool:
    """Whether the newest run finished, skipped or omitted the task, and the task is unchanged."""
    state = run_lookup.latest_run(services, contract.phase)
    task_state = state.tasks.get(task.id) if state is not None else None
    if task_state is None or task_state.digest != contracts.task_digest(task):
        return False
    return task_state.status in outcome.ENDED


def _accepted_at_terminal(services: Services, contract: Contract, task: Task) -> bool:
    question = Decision.confirmation(
        f"{task.id}.irreversible",
        "irreversible",
        f"Run {task.id} {task.title}, which is irreversible",
        task.rollback.reason or "Its effects cannot be rolled back.",
        (f"runs {command}" for command in needs.task_commands(task)),
        Choice("accept", "accept this task", "it runs when its turn comes", _accept_command(contract, [task.id])),
        "do not accept it",
        "the phase does not run",
        task=task.id,
    )
    part = needs.of_irreversible(contract, [task.id])
    agreed = question.agreed(services.asker.ask(question))
    if agreed:
        record_consent(services, contract.phase, part, how="terminal")
    return agreed


def _accept_command(contract: Contract, tasks: Iterable[str]) -> Action:
    options = [word for task in tasks for word in ("--accept-irreversible", task)]
    return Action.of("approve", contract.phase, "--hash", contract.hash, *options)


def _not_accepted(contract: Contract, tasks: list[Task], accepted: list[str]) -> Refusal:
    names = [t.id for t in tasks]
    accept = _accept_command(contract, [*accepted, *names])
    return Refusal(
        "irreversible.not-accepted",
        f"Phase {contract.phase} has irreversible tasks that need your acceptance: {', '.join(names)}.",
        hint=accept,
        details=actions.offer(
            f"Run {', '.join(names)}",
            "The effects of these tasks cannot be rolled back.",
            [f"{t.id} {t.title}: {t.rollback.reason}" for t in tasks],
            [Choice("accept", "accept each of them by name", "they run when their turn comes", accept)],
            contract_hash=contract.hash,
            tasks=names,
        ),
    )
