"""`idumb gates`: the table of gates, with the levels that the configuration sets."""

from __future__ import annotations

from typing import Any

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain import agent
from idumb.domain.errors import Refusal
from idumb.domain.finding import did_you_mean
from idumb.domain.proof import gate_table, levels
from idumb.domain.proof.gate_table import Row
from idumb.domain.settings import Settings


def list_gates(services: Services) -> Result:
    """Return all gates in order, and the roles with their levels."""
    settings = services.settings
    roles = [levels.rule(settings, role).as_dict() for role in agent.ROLES]
    return Result({"gates": [_row(row, settings) for row in gate_table.ROWS], "roles": roles, "explained": False})


def explain(services: Services, code: str) -> Result:
    """Return one gate. Refuses an unknown name with the nearest one."""
    row = gate_table.of_name(code.strip().lower())
    if row is None:
        names = [each.name for each in gate_table.ROWS]
        hint = did_you_mean(code, names, "idumb gates lists them", "idumb gates explain {}")
        raise Refusal("gate.unknown", f"No gate has the name {code}.", hint=hint)
    return Result({"gates": [_row(row, services.settings)], "roles": [], "explained": True})


def _row(row: Row, settings: Settings) -> dict[str, Any]:
    level = levels.rule(settings, row.setting).level
    return {
        "name": row.name,
        "alias": row.alias,
        "stage": row.stage,
        "level": level,
        "default_level": row.level,
        "lowest_level": row.lowest,
        "timeout": float(settings.run.check_timeout) if row.timeout == gate_table.CHECK_TIMEOUT else None,
        "cache_key": list(row.cache_key),
        "summary": row.summary,
        "must_hold": row.must_hold,
        "why": row.why,
        "way_out": row.way_out,
    }
