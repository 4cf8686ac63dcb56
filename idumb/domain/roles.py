"""How the roles are filled: by which binding, with which model, prompt template and time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from idumb.domain import agent
from idumb.domain.settings import Binding, Ceiling, RoleSettings, Settings

SECONDS = 30 * 60
"""How long a role that works on no task may take, unless it or its binding says otherwise."""


@dataclass(frozen=True, slots=True)
class ResolvedRole:
    """`binding` is None where nothing fills the role; `prompt` is the name of a template, `timeout` in seconds.

    `template` is the text that stands for the shipped template of that name, None where the shipped one is used.
    """

    role: str
    binding: str | None
    model: str | None
    prompt: str
    template: str | None
    timeout: int | None
    ceiling: Ceiling


def resolve(settings: Settings, role: str, binding: str | None = None) -> ResolvedRole:
    """How a role is filled; `binding` where a plan or task names its own."""
    own = settings.roles.get(role, RoleSettings())
    name = binding or own.binding or _named(settings, role)
    found = settings.bindings.get(name or "")
    prompt = own.prompt or role
    return ResolvedRole(
        role=role,
        binding=name,
        model=_model(settings, role, own, found),
        prompt=prompt,
        template=settings.prompts.get(prompt),
        timeout=own.timeout or (found.timeout if found is not None else None),
        ceiling=own.ceiling,
    )


def _named(settings: Settings, role: str) -> str | None:
    return {agent.BUILDER: settings.builder, agent.VALIDATOR: settings.validator}.get(role)


def _model(settings: Settings, role: str, own: RoleSettings, binding: Binding | None) -> str | None:
    """The role's own, else its profile's, else its binding's."""
    of_profile = settings.profiles.get(settings.profile or "", {}).get(role)
    return own.model or of_profile or (binding.model if binding is not None else None)


def readable(found: ResolvedRole) -> dict[str, Any]:
    """What a person is shown, and what consent is bound to."""
    return {
        "role": found.role,
        "binding": found.binding,
        "model": found.model,
        "prompt": found.prompt,
        "template": found.template,
        "timeout": found.timeout,
    }


T = TypeVar("T")


OUTSIDE = frozenset({agent.RESEARCHER, agent.PLANNER, agent.PLAN_CHECKER, agent.DEBUGGER})
"""Roles that no run asks: before it there is no plan yet, and the debugger is asked about a run that stands still."""


_ASKED = tuple(role for role in agent.ROLES if role not in OUTSIDE)


def settings_of_runs(given: Settings, named: Iterable[str | None]) -> Settings:
    """The settings without what a run cannot come across. `named` are the builders and validators of all its tasks.

    Left out are:

    - how the roles OUTSIDE are filled, their models in profiles among it. Whatever they start has a consent of its own,
      to their binding, model and template, so none of it runs under the consent to a phase;
    - bindings that no task, no setting and no role of a run names: agents are looked up by these names alone. An
      amendment that names another one makes another contract, which has that binding in it. A binding stays if one of
      its variables is among those that checks see too, for a variable that a binding asks for is known as a secret;
    - templates that no role of a run is told.

    All else stays, whether the run makes use of it or not: to leave in too much only asks a person once more.
    """
    filled = [resolve(given, role) for role in _ASKED]
    wanted = {*named, given.builder, given.validator, *(each.binding for each in filled)}
    profiles = {name: _without_outside(models) for name, models in given.profiles.items()}
    kept = {name: models for name, models in profiles.items() if models}
    return dataclasses.replace(
        given,
        bindings={
            name: found
            for name, found in given.bindings.items()
            if name in wanted or set(found.environment) & set(given.environment)
        },
        roles=_without_outside(given.roles),
        profiles=kept,
        profile=None if given.profile in profiles and given.profile not in kept else given.profile,
        prompts={name: text for name, text in given.prompts.items() if name in {each.prompt for each in filled}},
    )


def _without_outside(by_role: Mapping[str, T]) -> dict[str, T]:
    return {role: value for role, value in by_role.items() if role not in OUTSIDE}
