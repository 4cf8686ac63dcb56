"""Levels of gates and roles, with their timeouts (R-GATE-6)."""

from __future__ import annotations

import math

from msgspec.structs import replace

from idumb.domain import agent
from idumb.domain.proof import gate_table
from idumb.domain.settings import GateSettings, RunSettings, Settings
from tests.support.cases import every


def configured(level: int | None = None, timeout: int | None = None, **of_levels: int) -> Settings:
    times = {name.removeprefix("level_"): seconds for name, seconds in of_levels.items()}
    return Settings(gates={"validator": GateSettings(level, timeout)}, levels=times)


def test_a_validator_is_advisory_and_a_gate_has_no_timeout() -> None:
    assert [rule.as_dict() for rule in gate_table.rules(Settings())] == [
        {"name": "size", "kind": "gate", "level": 1, "timeout": None},
        {"name": "validator", "kind": "role", "level": 1, "timeout": 120.0},
    ]


def test_the_most_specific_timeout_setting_wins() -> None:
    """R-GATE-6, R-RUN-4: none for level 0, 30 s to 5 min for level 1, 10 s to 1 min for level 2."""
    cases: list[tuple[Settings, float | None]] = [
        (configured(0), None),
        (configured(0, level_1=100), None),
        (configured(1), 120.0),
        (configured(1, level_1=100), 100.0),
        (configured(1, 50, level_1=100), 50.0),
        (configured(2), 60.0),
        (configured(2, level_2=20, level_1=100), 20.0),
        (configured(2, 15, level_2=20), 15.0),
        (configured(timeout=45), 45.0),
        (Settings(run=RunSettings(validator_timeout=900)), 900.0),
        (replace(configured(2), run=RunSettings(validator_timeout=900)), 60.0),
    ]
    assert not [
        (settings, timeout) for settings, timeout in cases if gate_table.rule(settings, "validator").timeout != timeout
    ]


@every("level, ends", [(1, (30, 300)), (2, (10, 60))])
def test_a_timeout_must_be_in_the_range_of_its_level(level: int, ends: tuple[int, int]) -> None:
    shortest, longest = ends
    assert gate_table.timeout_problem(level, shortest) is None
    assert gate_table.timeout_problem(level, longest) is None
    for outside in (shortest - 1, longest + 1):
        assert f"between {shortest}s and {longest}s" in str(gate_table.timeout_problem(level, outside))
    assert "no timeout" in str(gate_table.timeout_problem(0, 30))


_OTHERS = [role for role in agent.ROLES if role not in (agent.VALIDATOR, agent.BUILDER)]


@every("role", _OTHERS)
def test_a_level_sets_a_role_s_timeout_only_if_the_configuration_names_the_role(role: str) -> None:
    """R-GATE-6: `levels` alone changes nothing for roles that `gates` does not name."""
    for settings in (Settings(), Settings(levels={"1": 100}), Settings(gates={role: GateSettings()})):
        assert not gate_table.level_limits_time(settings, role)
        assert gate_table.rule(settings, role) == gate_table.Rule(role, "role", 1)
    for own, times, timeout in (
        (GateSettings(0), {}, None),
        (GateSettings(1), {}, 120.0),
        (GateSettings(1), {"1": 100}, 100.0),
        (GateSettings(2), {}, 60.0),
        (GateSettings(2, 15), {"2": 20}, 15.0),
        (GateSettings(timeout=45), {}, 45.0),
    ):
        settings = Settings(gates={role: own}, levels=times, run=RunSettings(validator_timeout=900))
        assert gate_table.level_limits_time(settings, role)
        assert gate_table.rule(settings, role).timeout == timeout


def test_a_builder_accepts_a_level_but_not_its_timeout() -> None:
    """R-GATE-6."""
    settings = Settings(gates={"builder": GateSettings(2)}, levels={"2": 20})
    assert not gate_table.level_limits_time(settings, "builder")
    assert gate_table.rule(settings, "builder") == gate_table.Rule("builder", "role", 2)


def test_lock_in_lists_the_roles_that_the_configuration_names() -> None:
    """R-ENV-1."""
    settings = Settings(gates={"skeptic": GateSettings(0), "builder": GateSettings(1)})
    assert {rule.name for rule in gate_table.rules(settings)} == {"size", "validator", "builder", "skeptic"}


def test_a_gate_has_its_own_timeout_else_that_of_its_level() -> None:
    """R-GATE-6: at level 0 it has no limit."""
    for own, times, seconds in (
        (GateSettings(timeout=45), {}, 45.0),
        (GateSettings(0), {"1": 100}, math.inf),
        (GateSettings(1), {}, 120.0),
        (GateSettings(1), {"1": 100}, 100.0),
        (GateSettings(2), {"1": 100}, 60.0),
    ):
        assert gate_table.time_to_judge(Settings(gates={"syntax": own}, levels=times), "syntax") == seconds


def test_what_a_change_shows_only_reports_unless_it_was_approved_or_the_configuration_names_it() -> None:
    """R-GATE-4, R-GATE-6."""
    levels_of = {
        name: (
            gate_table.of_change(Settings(), name, strict=True),
            gate_table.of_change(Settings(), name, strict=False),
        )
        for name in ("change-class", "types", "syntax", "theirs")
    }
    assert levels_of == {
        "change-class": (1, 0), "types": (0, 0), "syntax": (0, 0), "theirs": (1, 1)
    }  # fmt: skip
    named = Settings(gates={name: GateSettings(2) for name in levels_of})
    assert {gate_table.of_change(named, name, strict=strict) for name in levels_of for strict in (True, False)} == {2}


def test_gates_with_commands_and_those_of_the_project_run_something() -> None:
    names = ("types", "lint", "theirs", "syntax", "validator", "size")
    running = [name for name in names if gate_table.run_commands(Settings(gates={name: GateSettings()}))]
    assert running == ["types", "lint", "theirs"]
    assert gate_table.run_commands(Settings(gates={name: GateSettings() for name in names}))


def test_a_third_party_gate_is_advisory_unless_configured() -> None:
    assert gate_table.rule(Settings(), "theirs") == gate_table.Rule("theirs", "gate", 1)
    assert gate_table.rule(Settings(gates={"theirs": GateSettings(level=0)}), "theirs").level == 0
