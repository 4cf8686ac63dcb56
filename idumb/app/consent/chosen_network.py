"""In strict mode, a configuration with a sandbox must say whether checks have the network."""

from __future__ import annotations

from idumb.app.core.services import Services
from idumb.domain.contract import Contract
from idumb.domain.errors import Refusal

CODE = "checks.network"
WORDS = "strict mode needs `checks.network`: with a sandbox, it is a choice of yours whether checks have the network."
FIX = "Add `checks: {network: none}` or `checks: {network: open}`"

_CONFIGURATION = ".idumb/config.yaml"


def require(services: Services, contract: Contract) -> None:
    """Refuse a contract that is to run in strict mode, with code `checks.network`, if the choice is missing."""
    place = refused_at(services)
    if place is not None:
        where = f"{_CONFIGURATION}:{place[0]}"
        raise Refusal(
            CODE,
            f"{where}: {WORDS}",
            hint=f"{FIX} in {_CONFIGURATION}, then idumb approve {contract.phase}",
            details={"phase": contract.phase, "place": where},
        )


def refused_at(services: Services) -> tuple[int, int] | None:
    """Return line and column of the sandbox if the choice is missing; None if it is made or not needed."""
    settings = services.settings
    if settings.sandbox is None or settings.checks.network is not None:
        return None
    return services.setting_place("sandbox")
