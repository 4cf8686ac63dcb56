"""How the roles are filled: by which binding, with which model, prompt template and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
