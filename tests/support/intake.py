"""Plans in memory, and the findings of the checks on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from idumb.domain import contract
from idumb.domain.contract import Contract
from idumb.domain.finding import Finding
from idumb.domain.intake import registry, rule
from idumb.domain.intake.rule import StartState
from idumb.domain.permissions import Policy
from idumb.domain.plans.plan import (
    Criterion,
    FileClaim,
    Plan,
    Span,
    Step,
    Task,
)
from idumb.domain.settings import Binding, Settings

AGENTS = {name: Binding(name, "command", ("true",)) for name in ("agent", "critic")}
SETTINGS = Settings(builder="agent", bindings=AGENTS)
HERE = Span(0, 1, 9)
ABSENT = {"plan.no-requirements", "plan.no-success-criteria", "plan.no-non-goals"}


def checked(id: str = "T1-01") -> tuple[Criterion, ...]:
    return (Criterion("AC-1", "a file is there", "check", f"grep -q {id} a.txt", span=Span(0, 1, 12)),)


CHECKED = checked()


def task(id: str = "T1-01", **more: Any) -> Task:
    sample = Task(id, "Make a file", files=(FileClaim("create", "a.txt"),), acceptance=checked(id), span=HERE)
    return replace(sample, **more)


def plan(*tasks: Task, **more: Any) -> Plan:
    sample = Plan("01-PLAN.md", "0" * 64, "1", "01", "T", "G", tasks=tasks or (task(),))
    return replace(sample, **more)


def assembled(*plans: Plan, settings: Settings = SETTINGS) -> Contract:
    """The contract of these plans, which have no errors."""
    made, wrong = contract.assemble("1", "folder", plans, settings)
    assert made is not None, wrong
    return made


def findings_of(
    *plans: Plan,
    mode: str | None = None,
    policy: Policy | None = None,
    present: StartState | None = None,
    settings: Settings = SETTINGS,
    links: Mapping[str, str] | None = None,
) -> list[Finding]:
    made = assembled(*plans, settings=settings)
    case = rule.Case(made, settings, policy or Policy(), mode, links or {}, present=present)
    return list(registry.findings(case))


def codes(*plans: Plan, mode: str | None = None) -> set[str]:
    return {one.code for one in findings_of(*plans, mode=mode)}


def step(tool: str = "run", intent: str = "say hello to everybody", **arguments: Any) -> Step:
    return Step(0, tool, intent, arguments, line=20)


def steps(*single: Step) -> Plan:
    return plan(task(steps=single))
