"""Approvals that count: what a contract is bound to now, which still hold, and the refusal where none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.app.core import next_actions, run_lookup
from idumb.app.core.services import Services
from idumb.domain import agent, roles
from idumb.domain import contract as contracts
from idumb.domain.consent import approval as approvals
from idumb.domain.consent.approval import Approval, Change, Kept, Part
from idumb.domain.contract import Contract
from idumb.domain.decision import Choice
from idumb.domain.errors import AdapterError, Refusal
from idumb.domain.plans.plan import STRICT, Task
from idumb.domain.proof import ledger
from idumb.domain.runs.run import COMPLETED, RunState
from idumb.domain.settings import Settings

OWN_REPORTS = (".idumb/brain/**", "**/*-SUMMARY.md", "**/*-VERIFICATION.md")
"""What idumb itself writes while a run goes on."""


def parts(
    services: Services, contract: Contract, *, base: str | None = None, files: Iterable[str] | None = None
) -> dict[str, Part]:
    """Everything that decides what runs, as it is now; `base` only where an approval is pinned to it.

    `files` are those that an approval is bound to; None are all that are there now.
    """
    return approvals.bound(
        contract,
        services.settings,
        commands=all_commands(contract),
        adapters=adapters(services, contract),
        files=_present(services, contract) if files is None else services.files.digests(files),
        policy=_policy(services),
        base=base,
    )


def _present(services: Services, contract: Contract) -> Mapping[str, str]:
    """SHA-256 of the repository's files that commands and argument lists name, and that no task declares to write."""
    written = [p for task in contract.tasks.values() for p in ledger.written_paths(task.files)]
    known = services.settings.bindings
    argv = [known[name].argv for name in agents(services.settings, contract)]
    return named_files(services, argv, commands=all_commands(contract), written=written)


def named_files(
    services: Services, arguments: Iterable[Sequence[str]], *, commands: Sequence[str] = (), written: Sequence[str] = ()
) -> dict[str, str]:
    """SHA-256 of the repository's files that these name, without those that are `written` (paths, globs).

    What git ignores is not the repository's: outputs of the very commands, most of them.
    """
    names = approvals.named_files(commands, [*OWN_REPORTS, *written], services.root, arguments)
    found = services.files.digests(names)
    ignored = services.history.ignored(found)
    return {path: digest for path, digest in found.items() if path not in ignored}


def files_of(approval: Approval) -> tuple[str, ...]:
    """The files that an approval is bound to."""
    return tuple(approval.bound["files"].value) if "files" in approval.bound else ()


def _policy(services: Services) -> dict[str, Any]:
    known = services.policy
    return {"tools": None if known.tools is None else sorted(known.tools), "sources": dict(known.sources)}


def adapters(services: Services, contract: Contract) -> dict[str, tuple[str, ...]]:
    """Binding to the resolved argument list; Refusal where a program cannot be started."""
    found = {}
    for name in agents(services.settings, contract):
        try:
            found[name] = tuple(services.adapters.get(name).describe())
        except AdapterError as problem:
            raise Refusal(problem.code, f"The binding {name}: {problem.message}", hint=problem.hint) from problem
    return found


def agents(settings: Settings, contract: Contract) -> tuple[str, ...]:
    """The bindings that build or validate, in the order of their first use."""
    return tuple(models(settings, contract))


def models(settings: Settings, contract: Contract) -> dict[str, dict[str, str | None]]:
    """Of each binding that builds or validates: the roles it fills, with the model that it is asked for in each."""
    found: dict[str, dict[str, str | None]] = {}
    for plan in contract.plans:
        for task in plan.tasks:
            builder = contracts.builder_of(plan, task, settings)
            validator = contracts.validator_of(plan, task, settings)
            for role, name in ((agent.BUILDER, builder), (agent.VALIDATOR, validator)):
                if name is not None and name in settings.bindings and role not in found.get(name, ()):
                    found.setdefault(name, {})[role] = roles.filling(settings, role, name).model
    return found


def commands(task: Task) -> tuple[str, ...]:
    """Every command string of a task, in the order in which it may run."""
    of_steps = [
        str(s.arguments.get("command") or " ".join(map(str, s.arguments.get("argv", ()))))
        for s in task.steps
        if s.tool == "run"
    ]
    conditions = [c.subject for c in (*task.preconditions, *task.postconditions) if c.kind == "command"]
    criteria = [c.command for c in task.acceptance if c.command]
    return tuple(dict.fromkeys([*conditions, *of_steps, *criteria, *task.verify, *(t.command for t in task.tests)]))


def all_commands(contract: Contract) -> tuple[str, ...]:
    """Every command string of a contract, once: of set-up, tasks, rollback, invariants and success criteria."""
    found: list[str] = []
    for plan in contract.plans:
        found += [needed.check for needed in plan.setup if needed.check]
        for task in plan.tasks:
            found += [*commands(task), *task.rollback.commands]
        found += [invariant.check for invariant in plan.invariants]
        found += [c.command for c in plan.success_criteria if c.command]
    return tuple(dict.fromkeys(found))


def present_base(services: Services, phase: str) -> str | None:
    """What the phase's unfinished run began from, else where HEAD is."""
    state = run_lookup.latest_run(services, phase)
    if state is not None and state.state != COMPLETED:
        return state.base_commit
    return services.history.head().commit


def make(
    services: Services,
    contract: Contract,
    *,
    by: str,
    accepted: tuple[str, ...] = (),
    answers: tuple[Mapping[str, str], ...] = (),
    expires: str | None = None,
    pin_base: bool = False,
) -> Approval:
    """An approval of a contract as it is now; it counts only where it is kept."""
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
        bound=parts(services, contract, base=present_base(services, contract.phase) if pin_base else None),
        base_commit=base,
        expires=expires,
        accepted=accepted,
        answers=answers,
    )


class Standings:
    """The approvals of one phase, held against the contract as it is now. Parts are looked at once.

    `base` is what a run began from, for what is done about that very run; None is what the next one begins from.
    """

    def __init__(self, services: Services, contract: Contract, base: str | None = None) -> None:
        self._base = base
        self._services = services
        self._contract = contract
        self._now = services.clock.now()
        self._parts: dict[tuple[bool, tuple[str, ...]], dict[str, Part]] = {}

    def now(self, approval: Approval) -> dict[str, Part]:
        """The parts that this approval is to be compared with."""
        key = (approvals.BASE in approval.bound, files_of(approval))
        if key not in self._parts:
            base = (self._base or present_base(self._services, self._contract.phase)) if key[0] else None
            self._parts[key] = parts(self._services, self._contract, base=base, files=key[1])
        return self._parts[key]

    def of(self, kept: Kept) -> str:
        return approvals.standing(kept, self._now, lambda: self.now(kept.approval))

    def changes(self, kept: Kept) -> tuple[Change, ...]:
        return approvals.changes(kept.approval.bound, self.now(kept.approval))

    def live(self) -> tuple[Kept, ...]:
        return tuple(kept for kept in self._services.consent.approvals(self._contract.phase) if self.of(kept) == LIVE)


LIVE = approvals.LIVE


def given(services: Services, contract: Contract, *, base: str | None = None) -> bool:
    """Whether somebody consented to run what a contract runs: by plain consent, or by an approval that holds."""
    return services.consent.given(contract.hash) or newest_live(services, contract, base=base) is not None


def require_for(services: Services, contract: Contract, state: RunState) -> None:
    """What a run's contract names may be started now, be the run over or not.

    In strict mode the refusals of `require`; else Refusal `consent.missing` without plain consent or an approval that
    holds, with what differs from an approval that holds no more.
    """
    if STRICT in (contract.mode, state.mode):
        require(services, contract, base=state.base_commit)
        return
    if given(services, contract, base=state.base_commit):
        return
    gone = lost(services, contract, base=state.base_commit)
    raise Refusal(
        "consent.missing",
        missing(contract, gone),
        hint=_command(contract),
        details={"contract_hash": contract.hash, **({} if gone is None else gone.details)},
    )


def missing(contract: Contract, gone: Lost | None) -> str:
    """That nobody's word for a contract is there, or holds any more."""
    named = f"contract {contract.hash[:16]} of phase {contract.phase}"
    return f"Nobody consented to {named}" + (f": {gone.words}." if gone is not None else " on this machine.")


def name_of(services: Services, contract: Contract) -> str | None:
    """The nonce of the newest approval of a contract, by which it can be found; None where there is none."""
    kept = _newest(services, contract.phase, contract.hash)
    return None if kept is None else kept.approval.nonce


def _newest(services: Services, phase: str, contract_hash: str) -> Kept | None:
    known = services.consent.approvals(phase)
    return next((k for k in known if k.revoked is None and k.approval.contract_hash == contract_hash), None)


def newest_live(services: Services, contract: Contract, *, base: str | None = None) -> Kept | None:
    """The newest approval that holds and whose signature, where it has one, is right."""
    return next((kept for kept in Standings(services, contract, base).live() if _genuine(services, kept)), None)


def all_live(services: Services, contract: Contract, *, base: str | None = None) -> tuple[Kept, ...]:
    """All that hold and whose signature, where they have one, is right; newest first."""
    return tuple(kept for kept in Standings(services, contract, base).live() if _genuine(services, kept))


def accepted(services: Services, contract: Contract) -> frozenset[str]:
    """The irreversible tasks that a person accepted, each by its name, in approvals that hold."""
    live = Standings(services, contract).live()
    return frozenset(task for kept in live if kept.approval.accepted and _genuine(services, kept)
                     for task in kept.approval.accepted)  # fmt: skip


def require(services: Services, contract: Contract, *, base: str | None = None) -> Kept:
    """The newest one that holds. Refusal `approval.missing`, `.expired`, `.revoked`, `.void` or `.bad-signature`."""
    standings = Standings(services, contract, base)
    known = services.consent.approvals(contract.phase)
    for kept in known:
        if standings.of(kept) == LIVE:
            _require_genuine(services, contract, kept)
            return kept
    if not known:
        raise refusal(contract, approvals.MISSING, "nobody approved it")
    raise _no_longer(contract, _why(standings, _nearest(contract, known)))


def take_in(services: Services, contract: Contract, path: str) -> Kept:
    """An approval from a signed file, which is kept like one given here. The same refusals as `require`."""
    kept = services.consent.read_file(path)
    signer = services.signatures.signer(kept.approval.canonical(), kept.signature or "")
    if signer is None:
        raise refusal(contract, "bad-signature", f"{path} is signed by nobody on the list of allowed signers")
    known = services.consent.approvals(kept.approval.phase)
    revoked = next((k.revoked for k in known if k.approval.nonce == kept.approval.nonce), None)
    kept = Kept(kept.approval, kept.signature, revoked)
    if kept.approval.phase != contract.phase:
        raise refusal(contract, approvals.VOID, f"{path} is for phase {kept.approval.phase}")
    base = kept.approval.base_commit
    if base is not None and not services.history.descends(base):
        raise refusal(
            contract, approvals.VOID, f"{path} was given for another history: HEAD does not descend from {base}"
        )
    standings = Standings(services, contract)
    if standings.of(kept) != LIVE:
        raise _no_longer(contract, _why(standings, kept))
    services.consent.approve(kept)
    return kept


def _nearest(contract: Contract, known: Sequence[Kept]) -> Kept:
    """Of approvals that do not hold, the one whose fate is told: the newest of this very contract, else the newest."""
    return next((kept for kept in known if kept.approval.contract_hash == contract.hash), known[0])


def lost(services: Services, contract: Contract, *, base: str | None = None) -> Lost | None:
    """Why the approval of a phase, of which none holds, does so no more; None where there never was one."""
    known = services.consent.approvals(contract.phase)
    return _why(Standings(services, contract, base), _nearest(contract, known)) if known else None


@dataclass(frozen=True, slots=True)
class Lost:
    """Why an approval holds no more; `details` are what differs, where it is void."""

    standing: str
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(self.details.get("evidence", ()))


def _why(standings: Standings, kept: Kept) -> Lost:
    approval, standing = kept.approval, standings.of(kept)
    by = f"the approval by {approval.by} of {approval.validated_at}"
    if standing == approvals.EXPIRED:
        return Lost(standing, f"{by} ended at {approval.expires}")
    if standing == approvals.REVOKED:
        who = (kept.revoked or {}).get("by", "somebody")
        return Lost(standing, f"{by} was taken back by {who} at {(kept.revoked or {}).get('at', '?')}")
    if standing == LIVE:
        return Lost("bad-signature", f"{by} has a signature that is not one of an allowed signer over these bytes")
    found = standings.changes(kept)
    now = standings.now(approval)
    details = {
        "evidence": [_evidence(change, approval.bound, now) for change in found],
        "changed": [change.part for change in found],
        "parts": [
            {
                "part": change.part,
                "keys": list(change.keys),
                "was": approval.bound[change.part].digest if change.part in approval.bound else None,
                "is": now[change.part].digest if change.part in now else None,
            }
            for change in found
        ],
    }
    words = f"{by} is void, because this changed since: {'; '.join(change.words for change in found)}"
    return Lost(standing, words, details)


def _no_longer(contract: Contract, gone: Lost) -> Refusal:
    return refusal(contract, gone.standing, gone.words, **gone.details)


def _evidence(change: Change, was: dict[str, Part] | Any, now: dict[str, Part]) -> str:
    old = was[change.part].digest[:12] if change.part in was else "not bound"
    new = now[change.part].digest[:12] if change.part in now else "not there"
    return f"{change.words}: was {old}, is {new}"


def refusal(contract: Contract, kind: str, words: str, *, evidence: Sequence[str] = (), **more: Any) -> Refusal:
    """A refusal with what, why, evidence, choices and the consequence of each."""
    phase = contract.phase
    choices = [
        Choice(
            "approve",
            "look at it and approve it",
            "an approval of exactly what is there now is kept; it runs nothing",
            _command(contract),
        ),
        Choice("no", "leave it", "nothing runs"),
    ]
    if kind == approvals.VOID:
        back = Choice("put-back", "put back what changed", "the approval counts again", f"idumb check-plan {phase}")
        choices.insert(0, back)
    details = {
        "what": f"Run phase {phase}, contract {contract.hash}",
        "why": words,
        "evidence": list(evidence) or [f"plan {p.path}, sha256 {p.sha256}" for p in contract.plans],
        "choices": next_actions.rows(choices),
        "contract_hash": contract.hash,
        **more,
    }
    return Refusal(
        f"approval.{kind}",
        f"Phase {phase} needs a valid approval, and {words}.",
        hint=_command(contract),
        details=details,
    )


def _command(contract: Contract) -> str:
    """The command that approves it. A strict plan's also answers its self-check, so `approve` gives it the hash."""
    return f"idumb approve {contract.phase}" + ("" if contract.mode == STRICT else f" --hash {contract.hash}")


def _genuine(services: Services, kept: Kept) -> bool:
    """Whether a signature, where there is one, is right: by an allowed signer where there is a list of them."""
    if kept.signature is None:
        return True
    data = kept.approval.canonical()
    if services.signatures.has_list():
        return services.signatures.signer(data, kept.signature) is not None
    return services.signatures.intact(data, kept.signature)


def _require_genuine(services: Services, contract: Contract, kept: Kept) -> None:
    if not _genuine(services, kept):
        raise refusal(contract, "bad-signature", "its signature is not one of an allowed signer over these bytes")


def shown(services: Services, contract: Contract) -> dict[str, Any] | None:
    """Where the newest approval of a phase stands, for `check-plan`; None where there is none."""
    known = services.consent.approvals(contract.phase)
    if not known:
        return None
    standings = Standings(services, contract)
    try:
        kept = next((k for k in known if standings.of(k) == LIVE), known[0])
        standing = standings.of(kept)
        changed = [change.part for change in standings.changes(kept)] if standing == approvals.VOID else []
    except Refusal:  # a program is not there any more
        kept, standing, changed = known[0], approvals.VOID, ["adapters"]
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
