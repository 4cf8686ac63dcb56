"""Roles: which binding, model, prompt template and timeout each one uses, and which settings govern a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from idumb.domain import agent
from idumb.domain.settings import Binding, Ceiling, RoleSettings, Settings

SECONDS = 30 * 60
"""The timeout in seconds of a role that works on no task, unless the role or its binding sets one."""


@dataclass(frozen=True, slots=True)
class ResolvedRole:
    """How a role is filled. `binding` is None if nothing fills it.

    `prompt` is the name of a template, `timeout` in seconds.

    `template` is the text that replaces the shipped template of that name, None for the shipped one.
    """

    role: str
    binding: str | None
    model: str | None
    prompt: str
    template: str | None
    timeout: int | None
    ceiling: Ceiling


def resolve(settings: Settings, role: str, binding: str | None = None) -> ResolvedRole:
    """Resolve a role; pass `binding` if a plan or task names its own."""
    own = settings.roles.get(role, RoleSettings())
    name = binding or own.binding or _named(settings, role)
    filled = settings.bindings.get(name or "")
    prompt = own.prompt or role
    return ResolvedRole(
        role=role,
        binding=name,
        model=_model(settings, role, own, filled),
        prompt=prompt,
        template=settings.prompts.get(prompt),
        timeout=own.timeout or (filled.timeout if filled is not None else None),
        ceiling=own.ceiling,
    )


def _named(settings: Settings, role: str) -> str | None:
    return {agent.BUILDER: settings.builder, agent.VALIDATOR: settings.validator}.get(role)


def _model(settings: Settings, role: str, own: RoleSettings, binding: Binding | None) -> str | None:
    """Return the model of the role, of its profile, or of its binding, in this order."""
    of_profile = settings.profiles.get(settings.profile or "", {}).get(role)
    return own.model or of_profile or (binding.model if binding is not None else None)


def readable(role: ResolvedRole) -> dict[str, Any]:
    """Return what a person sees and what consent covers."""
    return {
        "role": role.role,
        "binding": role.binding,
        "model": role.model,
        "prompt": role.prompt,
        "template": role.template,
        "timeout": role.timeout,
    }


T = TypeVar("T")


OUTSIDE = frozenset({agent.RESEARCHER, agent.PLANNER, agent.PLAN_CHECKER, agent.DEBUGGER})
"""Roles that no run calls: some work before there is a plan, and the debugger works on a stopped run."""


_ASKED = tuple(role for role in agent.ROLES if role not in OUTSIDE)


def settings_of_runs(configured: Settings, named: Iterable[str | None]) -> Settings:
    """Return the settings that can affect a run. `named` are the builders and validators of all its tasks.

    Omitted are:

    - how the roles OUTSIDE are filled, including their models in profiles. They have a consent of their own, which
      covers binding, model and template;
    - bindings that no task, setting or role of a run names. An amendment that names another binding makes another
      contract. A binding stays if one of its variables is also visible to checks, because its variables are treated as
      secrets;
    - templates that no role of a run uses.

    Everything else stays, whether the run uses it or not: too much only means that a person is asked once more.
    """
    filled = [resolve(configured, role) for role in _ASKED]
    needed = {*named, configured.builder, configured.validator, *(each.binding for each in filled)}
    profiles = {name: _without_outside(models) for name, models in configured.profiles.items()}
    kept = {name: models for name, models in profiles.items() if models}
    return dataclasses.replace(
        configured,
        bindings={
            name: bound
            for name, bound in configured.bindings.items()
            if name in needed or set(bound.environment) & set(configured.environment)
        },
        roles=_without_outside(configured.roles),
        profiles=kept,
        profile=None if configured.profile in profiles and configured.profile not in kept else configured.profile,
        prompts={name: text for name, text in configured.prompts.items() if name in {each.prompt for each in filled}},
    )


def _without_outside(by_role: Mapping[str, T]) -> dict[str, T]:
    return {role: value for role, value in by_role.items() if role not in OUTSIDE}
