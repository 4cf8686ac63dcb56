"""Which settings a contract is bound to: all that its run can come across, and none of the others (R-LOCK-4)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from idumb.domain import contract
from idumb.domain.plans.plan import Plan, Task
from idumb.domain.settings import (
    Binding,
    Ceiling,
    GateSettings,
    GitSettings,
    Limits,
    RoleSettings,
    RunSettings,
    Settings,
)
from tests.support.cases import every

LOCKED = Settings(
    builder="coder",
    validator="judge",
    bindings={
        name: Binding(name, "command", argv=(name,)) for name in ("coder", "judge", "task-own", "plan-own", "doubter")
    },
    roles={"skeptic": RoleSettings("doubter"), "builder": RoleSettings(prompt="terse", model="m")},
    profiles={"budget": {"validator": "small"}},
    profile="budget",
    prompts={"terse": "Be terse.", "validator": "Judge.", "verifier": "Look."},
)
PLAN = Plan(
    path="p",
    sha256="0" * 64,
    phase="1",
    plan="01",
    title="",
    goal="",
    builder="plan-own",
    tasks=(Task("T1-01", "one"), Task("T1-02", "two", builder="task-own")),
)


def bound(settings: Settings) -> str:
    return contract.contract_hash([PLAN], settings)


def changed(**values: Any) -> Settings:
    """The locked settings with more or other entries in mappings, and other values elsewhere."""
    merged: dict[str, Any] = {
        name: {**getattr(LOCKED, name), **value} if isinstance(getattr(LOCKED, name), dict) else value
        for name, value in values.items()
    }
    return replace(LOCKED, **merged)


NEW = Binding("new", "claude", environment=("NEW_KEY",))


@every(
    "settings",
    [
        changed(bindings={"new": NEW}),
        changed(bindings={"new": NEW}, roles={"planner": RoleSettings("new", model="big")}),
        changed(roles={role: RoleSettings("coder") for role in ("researcher", "plan-checker", "debugger")}),
        changed(roles={"planner": RoleSettings("coder", ceiling=Ceiling(tokens=1))}),
        changed(profiles={"budget": {"validator": "small", "planner": "big"}, "more": {"debugger": "big"}}),
        changed(prompts={"planner": "Plan.", "unused": "Nothing."}),
    ],
)
def test_settings_that_no_run_uses_leave_a_contract_unchanged(settings: Settings) -> None:
    assert settings != LOCKED
    assert bound(settings) == bound(LOCKED)


@every("name", LOCKED.bindings)
def test_every_agent_of_a_run_is_bound(name: str) -> None:
    """Of a task, a plan, the configuration, and of the roles that are asked at its end."""
    other = replace(LOCKED.bindings[name], argv=("other",))
    assert bound(changed(bindings={name: other})) != bound(LOCKED)
    without = {key: value for key, value in LOCKED.bindings.items() if key != name}
    assert bound(replace(LOCKED, bindings=without)) != bound(LOCKED)


def test_settings_that_a_run_uses_make_another_contract() -> None:
    cases: list[Settings] = [
        changed(builder="judge"),
        changed(validator=None),
        changed(roles={"verifier": RoleSettings("coder")}),
        changed(roles={"skeptic": RoleSettings("coder")}),
        changed(roles={"validator": RoleSettings(model="other")}),
        changed(roles={"builder": RoleSettings(prompt="terse")}),
        changed(roles={"builder": RoleSettings(prompt="terse", model="m", ceiling=Ceiling(attempts=3))}),
        changed(profiles={"budget": {"validator": "large"}}),
        changed(profile=None),
        changed(prompts={"terse": "Be long."}),
        changed(prompts={"verifier": "Look twice."}),
        changed(ceilings={"run": Ceiling(tokens=5)}),
        changed(gates={"limits": GateSettings(level=2)}),
        changed(levels={"1": 60}),
        changed(retry={"calls": 1}),
        changed(breaker={"failures": 1}),
        changed(protected=("x",)),
        changed(limits=Limits(cpu=1)),
        changed(environment=(*LOCKED.environment, "MORE")),
        changed(git=GitSettings(hooks=False)),
        changed(run=RunSettings(max_attempts=9)),
    ]
    assert not [settings for settings in cases if bound(settings) == bound(LOCKED)]


def test_every_setting_except_the_narrowed_ones_is_bound() -> None:
    """A setting that is added later is bound by itself: only these five are looked into."""
    narrowed = {"bindings", "roles", "profiles", "profile", "prompts"}
    kept = contract.governing_settings([PLAN], changed(bindings={"new": NEW}))
    for name in Settings.__struct_fields__:
        if name not in narrowed:
            assert getattr(kept, name) == getattr(LOCKED, name)


def test_a_binding_counts_as_soon_as_a_plan_names_it() -> None:
    """An amendment that adds the role makes a contract that is bound to it."""
    amended = replace(PLAN, tasks=(*PLAN.tasks, Task("T1-03", "three", builder="new")))
    one = contract.contract_hash([amended], changed(bindings={"new": NEW}))
    assert one != contract.contract_hash([amended], changed(bindings={"new": replace(NEW, options={"shell": True})}))


def test_a_binding_that_makes_a_variable_of_the_checks_a_secret_counts() -> None:
    """Without it the variable's value would stand in records."""
    seen = replace(LOCKED, environment=("PATH", "NEW_KEY"))
    assert bound(replace(seen, bindings={**seen.bindings, "new": NEW})) != bound(seen)
