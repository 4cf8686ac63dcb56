"""Which settings govern a run: all that consent, approval, lock and envelope are bound to, and nothing besides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TypeVar

from idumb.domain import agent, roles
from idumb.domain.settings import Settings

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
    filled = [roles.resolve(given, role) for role in _ASKED]
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
