"""Maps adapter names to adapters, one row each. Other adapters come from the entry point `idumb.agents`, on demand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module

from idumb.agents.adapter import Equipment
from idumb.app.ports import Agent
from idumb.domain.agent import BUILT_IN, EDITOR, HUMAN
from idumb.domain.errors import AdapterError
from idumb.domain.finding import nearest
from idumb.domain.settings import Binding, Settings

ENTRY_POINTS = "idumb.agents"

Make = Callable[[Binding, Equipment], Agent]

PRESETS = ("claude", "codex")
"""Command-line agents that report in a format of their own."""
SPEAKERS = ("gemini", "opencode", "copilot", "qwen")
"""Command-line agents that speak the Agent Client Protocol, the rows of `known_agent`."""

ADAPTERS: Mapping[str, str] = {
    "steps": "steps.StepsAgent",
    "command": "command.CommandAgent",
    **dict.fromkeys((HUMAN, EDITOR), "handoff.HumanAgent"),
    **dict.fromkeys(PRESETS, "preset_agent.PresetAgent"),
    "model": "model_agent.ModelAgent",
    **dict.fromkeys((*SPEAKERS, "acp"), "acp.AcpAgent"),
    "replay": "replay.ReplayAgent",
    "handoff": "handoff.HandoffAgent",
}
"""The class of each adapter, below `idumb.agents`."""


class AgentRegistry:
    """The `Agents` port: one adapter per binding, created on first use."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._bindings = {name: Binding(name, name) for name in BUILT_IN} | {**equipment.settings.bindings}
        self._adapters: dict[str, Agent] = {}

    def get(self, binding: str) -> Agent:
        """Return the adapter of a binding. Raises AdapterError for a broken third-party one.

        What is read names no other binding: KeyError.
        """
        if binding not in self._adapters:
            chosen = self._bindings[binding]
            self._adapters[binding] = _adapter(chosen.adapter)(chosen, self._equipment)
        return self._adapters[binding]


def build(equipment: Equipment) -> AgentRegistry:
    """Return the adapters of one workspace. Remove what programs of a killed executor left in the folder of inputs."""
    if equipment.inputs is not None and os.path.lexists(equipment.inputs):
        import shutil

        shutil.rmtree(equipment.inputs, ignore_errors=True)
    return AgentRegistry(equipment)


def secret_variables(settings: Settings) -> dict[str, str]:
    """Return name and value of every passed variable that is or may be a secret; their values are redacted everywhere.

    These are the variables that a binding names, and other variables whose names suggest a secret.
    """
    from idumb.system import child_process, redaction

    names = [name for binding in settings.bindings.values() for name in binding.environment]
    suspects = filter(redaction.SECRET_NAME.search, settings.environment)
    return child_process.environment([*names, *suspects])


def named_secret() -> dict[str, str]:
    """Do the same for the whole environment of this process, by variable names alone."""
    from idumb.system import child_process, redaction

    return child_process.environment(filter(redaction.SECRET_NAME.search, child_process.variables()))


def _adapter(name: str) -> Make:
    if name in ADAPTERS:
        module, _, adapter = ADAPTERS[name].rpartition(".")
        built_in: Make = getattr(import_module(f"idumb.agents.{module}"), adapter)
        return built_in

    from importlib import metadata  # it loads zipfile, csv and email

    for entry in metadata.entry_points(group=ENTRY_POINTS, name=name):
        try:
            make: Make = entry.load()
        except Exception as problem:
            raise AdapterError(
                "agent.not-loadable",
                f"Cannot load adapter {name} ({entry.value}): {problem}",
                hint="Reinstall the package that provides it.",
            ) from problem
        return make
    near = nearest(name, ADAPTERS)
    raise AdapterError(
        "agent.unknown-adapter",
        f"Unknown agent adapter {name}.",
        hint=f"Did you mean {near}?" if near else f"Adapters: {', '.join(ADAPTERS)}.",
    )
