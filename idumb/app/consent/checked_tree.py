"""Refuses `checks: here` in strict mode: a check that runs in the user's folder does not prove the commit.

What was approved or started in strict mode before this rule existed keeps the rules of its lock.
"""

from __future__ import annotations

from idumb.app.core import run_lookup
from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.plans.plan import STRICT
from idumb.domain.settings import IN_PLACE

CODE = "checks.here"
WORDS = (
    "strict mode refuses `checks: here`, because checks in your folder also see ignored and uncommitted files and do"
    " not prove the commit."
)

_CONFIGURATION = ".idumb/config.yaml"


def require(services: Services, contract: Contract) -> None:
    """Refuse a contract that is to run in strict mode, with code `checks.here`, if its checks run in your folder."""
    place = refused_at(services, contract)
    if place is not None:
        where = f"{_CONFIGURATION}:{place[0]}"
        raise Refusal(
            CODE,
            f"{where}: {WORDS}",
            hint=f"Replace `here` with `commit` in {where}, then idumb approve {contract.phase}",
            details={"phase": contract.phase, "place": where},
        )


def refused_at(services: Services, contract: Contract) -> tuple[int, int] | None:
    """Return line and column of the setting that strict mode refuses; None if it refuses nothing."""
    settings = services.settings.checks
    if settings is None or settings.tree != IN_PLACE or _was_agreed(services, contract):
        return None
    return services.setting_place("checks", "tree")


def _was_agreed(services: Services, contract: Contract) -> bool:
    """Return whether exactly this contract was approved for strict mode, or a strict run was locked to it."""
    approvals = (kept.approval for kept in services.consent.approvals(contract.phase) if kept.revoked is None)
    if any(approval.mode == STRICT and approval.contract_hash == contract.hash for approval in approvals):
        return True
    state = run_lookup.latest_run(services, contract.phase)
    if state is None or state.mode != STRICT:
        return False
    return contract.hash in (state.contract.hash, (state.contract.amending or {}).get("to"))
