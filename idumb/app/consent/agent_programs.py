"""Which programs the agents of a contract are, by their paths: those that were agreed to, and those of now.

The hash of a contract does not tell them: which file a name means is for PATH to say. What a program's bytes are is not
looked at, so an agent may be brought up to date where it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idumb.app.consent import approvals
from idumb.app.core.services import Services
from idumb.app.ports.agents import Agents
from idumb.domain import canonical_json
from idumb.domain.consent.approval import Kept
from idumb.domain.contract import Contract
from idumb.domain.errors import AdapterError, Refusal

_KEY = "programs"


@dataclass(frozen=True, slots=True)
class Move:
    """The agent of a binding is another file than the one that was agreed to; `was` is None where none was."""

    binding: str
    was: str | None
    now: str

    @property
    def words(self) -> str:
        return f"agent {self.binding}: {self.was or 'no program'} was agreed to, and {self.now} would be started now"


def present(services: Services, contract: Contract, agents: Agents | None = None) -> dict[str, str]:
    """Binding to the absolute path of its program; without those that start none, or cannot be started.

    `agents` are those of a run, None those that are there to be looked at.
    """
    found = {}
    for name in approvals.agents(services.settings, contract):
        try:
            argv = (agents or services.adapters).get(name).describe()
        except AdapterError:  # the run itself says so
            continue
        if argv:
            found[name] = argv[0]
    return found


def bound(services: Services, contract: Contract, earlier: str | None = None) -> dict[str, Any]:
    """What to record with consent. To programs that were agreed to under `earlier`, a hash, nobody agreed anew."""
    now = present(services, contract)
    kept = {} if earlier is None else _agreed(services, earlier) or _approved(services, contract.phase, earlier)
    return {_KEY: {name: kept.get(name, path) for name, path in now.items()}}


def moves(services: Services, contract: Contract) -> tuple[Move, ...]:
    """The agents that are another file than when the contract was consented to, or approved; none without either."""
    if services.consent.given(contract.hash):
        was = _agreed(services, contract.hash)
    else:
        was = _approved(services, contract.phase, contract.hash)
        if not was:
            return ()
    return _differing(was, present(services, contract))


def _differing(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[Move, ...]:
    return tuple(Move(name, was.get(name), path) for name, path in now.items() if was.get(name) != path)


def require(services: Services, contract: Contract, agents: Agents, again: str) -> None:
    """The agents of a run are the programs that somebody agreed to; Refusal `consent.other-program` otherwise.

    A name may mean another file since consent was looked for: a question waits as long as a person does. `again` is the
    command that asks anew.
    """
    now = present(services, contract, agents)
    words = [_agreed(services, contract.hash)] if services.consent.given(contract.hash) else []
    words += [_started(kept) for kept in services.consent.approvals(contract.phase) if _is_of(kept, contract.hash)]
    found = [_differing(was, now) for was in words]
    if not found or () in found:
        return
    raise Refusal(
        "consent.other-program",
        f"Since this command looked at the agents of phase {contract.phase}, one became another program:"
        f" {'; '.join(move.words for move in found[0])}. Nothing was started.",
        hint=f"{again} asks anew",
        details={
            "again": again,
            "contract_hash": contract.hash,
            "changed": [dataclasses.asdict(move) for move in found[0]],
        },
    )


def consented(services: Services, contract: Contract) -> bool:
    """Whether plain consent is on record, to these very programs."""
    return services.consent.given(contract.hash) and not moves(services, contract)


def whole_hash(services: Services, contract: Contract) -> str:
    """A hash of the contract and its programs: what is agreed to where only the programs changed."""
    return canonical_json.digest({"contract": contract.hash, _KEY: present(services, contract)})


def _approved(services: Services, phase: str, contract_hash: str) -> dict[str, str]:
    """Of the newest approval of a contract that nobody took back, which counts as consent too."""
    known = (_started(one) for one in services.consent.approvals(phase) if _is_of(one, contract_hash))
    return next(known, {})


def _started(kept: Kept) -> dict[str, str]:
    bound = kept.approval.bound
    found: Any = bound["adapters"].value if "adapters" in bound else {}
    return {str(name): argv[0] for name, argv in found.items() if argv}


def _is_of(kept: Kept, contract_hash: str) -> bool:
    return kept.approval.contract_hash == contract_hash and kept.revoked is None


def _agreed(services: Services, contract_hash: str) -> dict[str, str]:
    found = services.consent.agreed(contract_hash).get(_KEY)
    return {str(name): str(path) for name, path in found.items()} if isinstance(found, dict) else {}
