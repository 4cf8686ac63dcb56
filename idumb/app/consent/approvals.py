"""Creates and imports approvals, finds the valid ones, and refuses to run without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from idumb.app.consent import approval_parts
from idumb.app.core import next_actions
from idumb.app.core.services import Services
from idumb.domain import contract as contracts
from idumb.domain.consent import approval as approvals
from idumb.domain.consent.approval import Approval, Change, Part, StoredApproval
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from idumb.domain.runs.run import RunState
from idumb.lazy_dataclass import dataclass


def create(
    services: Services,
    contract: Contract,
    *,
    by: str,
    accepted: tuple[str, ...] = (),
    answers: tuple[Mapping[str, str], ...] = (),
    expires: str | None = None,
    pin_base: bool = False,
) -> Approval:
    """Create an approval of a contract as it is now. It takes effect once it is stored."""
    base = services.history.head().commit
    return Approval(
        phase=contract.phase,
        plan_hash=contracts.phase_hash(contract.plans),
        contract_hash=contract.hash,
        validated_at=services.clock.now(),
        validator=f"idumb {services.version}",
        scope=", ".join(dict.fromkeys(p.scope.root or "." for p in contract.plans)),
        by=by,
        mode=contract.mode,
        nonce=services.consent.nonce(),
        bound=approval_parts.parts(
            services, contract, base=approval_parts.present_base(services, contract.phase) if pin_base else None
        ),
        base_commit=base,
        expires=expires,
        accepted=accepted,
        answers=answers,
    )


class PhaseApprovals:
    """The approvals of one phase, compared with the contract as it is now. Each part is computed once.

    `base` is the commit that an existing run began from. None means the commit that the next run begins from.
    """

    def __init__(self, services: Services, contract: Contract, base: str | None = None) -> None:
        self._base = base
        self._services = services
        self._contract = contract
        self._now = services.clock.now()
        self._parts: dict[tuple[bool, tuple[str, ...]], dict[str, Part]] = {}

    def now(self, approval: Approval) -> dict[str, Part]:
        """The present parts to compare an approval with."""
        key = (approvals.BASE in approval.bound, approval_parts.bound_files(approval))
        if key not in self._parts:
            base = (self._base or approval_parts.present_base(self._services, self._contract.phase)) if key[0] else None
            self._parts[key] = approval_parts.parts(self._services, self._contract, base=base, files=key[1])
        return self._parts[key]

    def status(self, kept: StoredApproval) -> str:
        return approvals.status(kept, self._now, lambda: self.now(kept.approval))

    def changes(self, kept: StoredApproval) -> tuple[Change, ...]:
        return approvals.changes(kept.approval.bound, self.now(kept.approval))

    def live(self) -> tuple[StoredApproval, ...]:
        return tuple(
            kept for kept in self._services.consent.approvals(self._contract.phase) if self.status(kept) == LIVE
        )


LIVE = approvals.LIVE


def has_consent(services: Services, contract: Contract, *, base: str | None = None) -> bool:
    """Whether a contract may run: by plain consent or by a valid approval."""
    return services.consent.has_consent(contract.hash) or newest_valid(services, contract, base=base) is not None


def require_for(services: Services, contract: Contract, state: RunState) -> None:
    """Require that the commands of a run's contract may start now, whether the run has finished or not.

    In strict mode this refuses like `require`. Otherwise it raises Refusal `consent.missing` if there is neither plain
    consent nor a valid approval, and reports why an existing approval is no longer valid.
    """
    if STRICT in (contract.mode, state.mode):
        require(services, contract, base=state.base.commit)
        return
    if has_consent(services, contract, base=state.base.commit):
        return
    invalid = why_invalid(services, contract, base=state.base.commit)
    raise Refusal(
        "consent.missing",
        no_consent_message(contract, invalid),
        hint=_command(contract),
        details={"contract_hash": contract.hash, **({} if invalid is None else invalid.details)},
    )


def no_consent_message(contract: Contract, invalid: InvalidApproval | None) -> str:
    needs = f"Phase {contract.phase} needs your approval before it can run"
    why = f"contract {contract.hash[:16]} has none on this machine" if invalid is None else invalid.words
    return f"{needs}: {why}."


def newest_nonce(services: Services, contract: Contract) -> str | None:
    """The nonce that identifies the newest approval of a contract; None if there is none."""
    kept = _newest(services, contract.phase, contract.hash)
    return None if kept is None else kept.approval.nonce


def _newest(services: Services, phase: str, contract_hash: str) -> StoredApproval | None:
    stored = services.consent.approvals(phase)
    return next((k for k in stored if k.revoked is None and k.approval.contract_hash == contract_hash), None)


def newest_valid(services: Services, contract: Contract, *, base: str | None = None) -> StoredApproval | None:
    """The newest valid approval. A signature is optional, but must be valid."""
    return next(
        (kept for kept in PhaseApprovals(services, contract, base).live() if _has_valid_signature(services, kept)), None
    )


def all_valid(services: Services, contract: Contract, *, base: str | None = None) -> tuple[StoredApproval, ...]:
    """All valid approvals, newest first. A signature is optional, but must be valid."""
    return tuple(
        kept for kept in PhaseApprovals(services, contract, base).live() if _has_valid_signature(services, kept)
    )


def accepted_tasks(services: Services, contract: Contract) -> frozenset[str]:
    """The irreversible tasks that valid approvals accept by name."""
    live = PhaseApprovals(services, contract).live()
    return frozenset(task for kept in live if kept.approval.accepted and _has_valid_signature(services, kept)
                     for task in kept.approval.accepted)  # fmt: skip


def require(services: Services, contract: Contract, *, base: str | None = None) -> StoredApproval:
    """Return the newest valid approval.

    Refusal `approval.missing`, `.expired`, `.revoked`, `.void` or `.bad-signature`.
    """
    phase_approvals = PhaseApprovals(services, contract, base)
    stored = services.consent.approvals(contract.phase)
    for kept in stored:
        if phase_approvals.status(kept) == LIVE:
            _require_valid_signature(services, contract, kept)
            return kept
    if not stored:
        raise refusal(contract, approvals.MISSING, "it has none")
    raise _invalid_refusal(contract, _invalid(phase_approvals, _most_relevant(contract, stored)))


def import_signed(services: Services, contract: Contract, path: str) -> None:
    """Import an approval from a signed file and store it. Refuses like `require`."""
    kept = services.consent.read_file(path)
    signer = services.signatures.signer(kept.approval.canonical(), kept.signature or "")
    if signer is None:
        raise refusal(contract, "bad-signature", f"the signature of {path} is not from an allowed signer")
    stored = services.consent.approvals(kept.approval.phase)
    revoked = next((k.revoked for k in stored if k.approval.nonce == kept.approval.nonce), None)
    kept = StoredApproval(kept.approval, kept.signature, revoked)
    if kept.approval.phase != contract.phase:
        raise refusal(contract, approvals.VOID, f"{path} approves phase {kept.approval.phase}")
    base = kept.approval.base_commit
    if base is not None and not services.history.descends(base):
        raise refusal(contract, approvals.VOID, f"{path} is for another history: HEAD does not descend from {base}")
    phase_approvals = PhaseApprovals(services, contract)
    if phase_approvals.status(kept) != LIVE:
        raise _invalid_refusal(contract, _invalid(phase_approvals, kept))
    services.consent.approve(kept)


def _most_relevant(contract: Contract, stored: Sequence[StoredApproval]) -> StoredApproval:
    """The invalid approval to report: the newest of this contract, else the newest of the phase."""
    return next((kept for kept in stored if kept.approval.contract_hash == contract.hash), stored[0])


def why_invalid(services: Services, contract: Contract, *, base: str | None = None) -> InvalidApproval | None:
    """Why no approval of a phase is valid; None if there never was one."""
    stored = services.consent.approvals(contract.phase)
    return _invalid(PhaseApprovals(services, contract, base), _most_relevant(contract, stored)) if stored else None


@dataclass(frozen=True, slots=True)
class InvalidApproval:
    """Why an approval is not valid; if it is void, `details` lists what changed."""

    standing: str
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(self.details.get("evidence", ()))


def _invalid(phase_approvals: PhaseApprovals, kept: StoredApproval) -> InvalidApproval:
    approval, standing = kept.approval, phase_approvals.status(kept)
    by = f"the approval by {approval.by} of {approval.validated_at}"
    if standing == approvals.EXPIRED:
        return InvalidApproval(standing, f"{by} expired at {approval.expires}")
    if standing == approvals.REVOKED:
        revoked = kept.revoked or {}
        return InvalidApproval(
            standing, f"{by} was revoked by {revoked.get('by', 'an unknown user')} at {revoked.get('at', '?')}"
        )
    if standing == LIVE:
        return InvalidApproval("bad-signature", f"{by} does not have a valid signature of an allowed signer")
    changes = phase_approvals.changes(kept)
    now = phase_approvals.now(approval)
    details = {
        "evidence": [_evidence(change, approval.bound, now) for change in changes],
        "changed": [change.part for change in changes],
        "parts": [
            {
                "part": change.part,
                "keys": list(change.keys),
                "was": approval.bound[change.part].digest if change.part in approval.bound else None,
                "is": now[change.part].digest if change.part in now else None,
            }
            for change in changes
        ],
    }
    words = f"{by} is void, because these changed: {'; '.join(change.words for change in changes)}"
    return InvalidApproval(standing, words, details)


def _invalid_refusal(contract: Contract, invalid: InvalidApproval) -> Refusal:
    return refusal(contract, invalid.standing, invalid.words, **invalid.details)


def _evidence(change: Change, was: dict[str, Part] | Any, now: dict[str, Part]) -> str:
    old = was[change.part].digest[:12] if change.part in was else "not bound"
    new = now[change.part].digest[:12] if change.part in now else "absent"
    return f"{change.words}: was {old}, is {new}"


def refusal(contract: Contract, kind: str, words: str, *, evidence: Sequence[str] = (), **more: Any) -> Refusal:
    """Build a refusal with its evidence and choices."""
    phase = contract.phase
    choices = [
        Choice(
            "approve",
            "review and approve it",
            "records an approval of exactly the present state; nothing runs",
            _command(contract),
        ),
        Choice("no", "do not approve it", "nothing runs"),
    ]
    if kind == approvals.VOID:
        back = Choice(
            "put-back", "restore what changed", "the approval becomes valid again", f"idumb check-plan {phase}"
        )
        choices.insert(0, back)
    details = next_actions.offer(
        f"Run phase {phase}, contract {contract.hash}",
        words,
        evidence or [f"plan {p.path}, sha256 {p.sha256}" for p in contract.plans],
        choices,
        contract_hash=contract.hash,
        **more,
    )
    return Refusal(
        f"approval.{kind}",
        f"Phase {phase} needs a valid approval: {words}.",
        hint=_command(contract),
        details=details,
    )


def _command(contract: Contract) -> str:
    """The command that approves a contract. For a strict plan, `approve` shows the hash with the self-check."""
    return f"idumb approve {contract.phase}" + ("" if contract.mode == STRICT else f" --hash {contract.hash}")


def _has_valid_signature(services: Services, kept: StoredApproval) -> bool:
    """Whether the signature, if any, is valid and, if there is a list of allowed signers, by one of them."""
    if kept.signature is None:
        return True
    data = kept.approval.canonical()
    if services.signatures.has_list():
        return services.signatures.signer(data, kept.signature) is not None
    return services.signatures.intact(data, kept.signature)


def _require_valid_signature(services: Services, contract: Contract, kept: StoredApproval) -> None:
    if not _has_valid_signature(services, kept):
        raise refusal(contract, "bad-signature", "its approval does not have a valid signature of an allowed signer")


def status(services: Services, contract: Contract) -> dict[str, Any] | None:
    """Status of the newest approval of a phase, for `check-plan`; None if there is none."""
    stored = services.consent.approvals(contract.phase)
    if not stored:
        return None
    phase_approvals = PhaseApprovals(services, contract)
    try:
        kept = next((k for k in stored if phase_approvals.status(k) == LIVE), stored[0])
        standing = phase_approvals.status(kept)
        changed = [change.part for change in phase_approvals.changes(kept)] if standing == approvals.VOID else []
    except Refusal:  # a program no longer exists
        kept, standing, changed = stored[0], approvals.VOID, ["adapters"]
    approval = kept.approval
    return {
        "standing": standing,
        "by": approval.by,
        "validated_at": approval.validated_at,
        "expires": approval.expires,
        "accepted": list(approval.accepted),
        "signed": kept.signature is not None,
        "changed": changed,
    }
