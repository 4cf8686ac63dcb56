"""`idumb gates`: the table of gates, with the levels that the configuration sets."""

from __future__ import annotations

from typing import Any

from idumb.app.core.result import Result
from idumb.app.core.services import Services
from idumb.domain import agent, wording
from idumb.domain.errors import Refusal
from idumb.domain.finding import did_you_mean
from idumb.domain.intake import registry
from idumb.domain.proof import gate_table, levels
from idumb.domain.proof.gate_table import Row
from idumb.domain.settings import Settings


def list_gates(services: Services) -> Result:
    """Return all gates in order, and the roles with their levels."""
    settings = services.settings
    roles = [levels.rule(settings, role).as_dict() for role in agent.ROLES]
    return Result({"gates": [_row(row, settings) for row in _rows(settings)], "roles": roles, "explained": False})


def explain(services: Services, code: str) -> Result:
    """Return one gate. Refuses an unknown name with the nearest one."""
    rows, name = _rows(services.settings), code.strip().lower()
    row = next((each for each in rows if name == each.name), None)
    if row is None:
        names = [each.name for each in rows]
        hint = did_you_mean(code, names, "idumb gates lists them", "idumb gates explain {}")
        raise Refusal("gate.unknown", f"No gate has the name {code}.", hint=hint)
    return Result({"gates": [_row(row, services.settings)], "roles": [], "explained": True})


def _rows(settings: Settings) -> tuple[Row, ...]:
    """Return the gates of the table, and the project's own after the last one of stage `step`."""
    own = [_own_row(name, settings) for name in levels.own_gates(settings)]
    last = max(place for place, row in enumerate(gate_table.ROWS) if row.stage == gate_table.STEP) + 1
    return (*gate_table.ROWS[:last], *own, *gate_table.ROWS[last:])


def _own_row(name: str, settings: Settings) -> Row:
    own = settings.gates[name]
    commands = wording.listed((f"`{command}`" for command in own.run), len(own.run))
    holds = f"{commands} exits with 0" if own.run else f"the entry point {own.entry_point} of a package finds nothing"
    return Row(
        name,
        gate_table.STEP,
        levels.ADVISORY,
        levels.INFORMATIONAL,
        gate_table.CHECK_TIMEOUT,
        ("committed files", "command", "environment") if own.run else ("changed files", "task", "plan", "entry point"),
        f"the project's own: {holds}",
        f"{holds[0].upper()}{holds[1:]}, on the files that the task commits.",
        "The configuration of the project asks for it.",
        f"Correct the work, or correct `gates.{name}` in .idumb/config.yaml.",
        "nothing, because it judges the files of the work",
    )


def _row(row: Row, settings: Settings) -> dict[str, Any]:
    rule, codes = levels.rule(settings, row.name), registry.codes_of_gate(row.name)
    of_commands = row.timeout == gate_table.CHECK_TIMEOUT
    usual = float(settings.run.check_timeout) if of_commands else levels.time_to_judge(settings, row.name)
    own = settings.gates.get(row.name)
    return {
        "name": row.name,
        "stage": row.stage,
        "stages": [gate_table.PLANNING, row.stage] if codes and row.stage != gate_table.PLANNING else [row.stage],
        "in_plan": row.in_plan,
        "plan_codes": list(codes),
        "level": rule.level,
        "default_level": row.level,
        "lowest_level": row.lowest,
        "timeout": rule.timeout or usual,
        "timeout_of": "command" if of_commands and not (own and own.entry_point) else "gate",
        "run": [] if own is None else list(own.run),
        "entry_point": None if own is None else own.entry_point,
        "cache_key": list(row.cache_key),
        "summary": row.summary,
        "must_hold": row.must_hold,
        "why": row.why,
        "way_out": row.way_out,
    }
