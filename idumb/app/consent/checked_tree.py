"""Refuses `checks: here` in strict mode: a check that runs in the user's folder does not prove the commit."""

from __future__ import annotations

from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal
from idumb.domain.settings import IN_PLACE

CODE = "checks.here"
WORDS = (
    "strict mode refuses `checks: here`, because checks in your folder also see ignored and uncommitted files and do"
    " not prove the commit."
)

_CONFIGURATION = ".idumb/config.yaml"


def require(services: Services, contract: Contract) -> None:
    """Refuse a contract that is to run in strict mode, with code `checks.here`, if its checks run in your folder."""
    place = refused_at(services)
    if place is not None:
        where = f"{_CONFIGURATION}:{place[0]}"
        raise Refusal(
            CODE,
            f"{where}: {WORDS}",
            hint=f"Replace `here` with `commit` in {where}, then idumb approve {contract.phase}",
            details={"phase": contract.phase, "place": where},
        )


def refused_at(services: Services) -> tuple[int, int] | None:
    """Return line and column of the setting that strict mode refuses; None if it refuses nothing."""
    settings = services.settings.checks
    if settings is None or settings.tree != IN_PLACE:
        return None
    return services.setting_place("checks", "tree")
