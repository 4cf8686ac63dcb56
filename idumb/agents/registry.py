"""Maps adapter names to adapters, one row each. Other adapters come from the entry point `idumb.agents`, on demand."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from idumb.agents.adapter import Equipment
from idumb.app.ports import Agent
from idumb.domain.agent import BUILT_IN, EDITOR
from idumb.domain.errors import AdapterError, InputError
from idumb.domain.finding import nearest
from idumb.domain.settings import Binding, Settings

ENTRY_POINTS = "idumb.agents"

Make = Callable[[Binding, Equipment], Agent]

_NAMED = re.compile("KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|AUTH|DSN", re.IGNORECASE)
_SECRET = re.compile(f"{_NAMED.pattern}|_URL$|_URI$", re.IGNORECASE)  # an address may contain a password
_WORD = re.compile("[A-Za-z]{1,20}[0-9]{0,2}|[0-9]{1,8}|[A-Za-z0-9]{1,3}")
_BETWEEN = re.compile("[-_./:@,= ]+")
_SAYS_SO = re.compile(  # whole words: AUTH does not match AUTHOR, and PGPASSWORD ends in one
    "(?:(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|APIKEY)|(?:^|_)(?:KEY|CREDENTIAL|PRIVATE|AUTH|DSN))S?(?:_|$)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile("GIT_(?:AUTHOR|COMMITTER)_.*|XAUTHORITY|.*_(?:SOCK|FILE|PATH)", re.IGNORECASE)
_PLACE = re.compile(r"~(?:/.*)?|(?:/[\w.@ -]+){2,}/?")  # a key in base64 may begin with a slash too
_LONG = 16  # part of a flag; longer values are not settings
_MIXED = re.compile("[0-9]{5,}|(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{3}")

PRESETS = ("claude", "codex")
"""Command-line agents that report in a format of their own."""
SPEAKERS = ("gemini", "opencode", "copilot", "qwen")
"""Command-line agents that speak the Agent Client Protocol, the rows of `known_agent`."""

ADAPTERS: Mapping[str, str] = {
    "steps": "steps.StepsAgent",
    "command": "command.CommandAgent",
    "human": "handoff.HumanAgent",
    **dict.fromkeys(PRESETS, "preset_agent.PresetAgent"),
    "model": "model_agent.ModelAgent",
    **dict.fromkeys((*SPEAKERS, "acp"), "acp.AcpAgent"),
    "replay": "replay.ReplayAgent",
    "handoff": "handoff.HandoffAgent",
    EDITOR: "handoff.EditorAgent",
}
"""The class of each adapter, below `idumb.agents`."""


class AgentRegistry:
    """The `Agents` port: one adapter per binding, created on first use."""

    def __init__(self, equipment: Equipment) -> None:
        self._settings = equipment.settings
        self._equipment = equipment
        self._adapters: dict[str, Agent] = {}

    def get(self, binding: str) -> Agent:
        """Return the adapter of a binding.

        Raises InputError for an unknown one, AdapterError for a broken third-party one.
        """
        if binding not in self._adapters:
            self._adapters[binding] = self._make(binding)
        return self._adapters[binding]

    def _make(self, name: str) -> Agent:
        chosen = self._settings.bindings.get(name)
        if chosen is None and name in BUILT_IN:
            chosen = Binding(name, name)
        if chosen is None:
            near = nearest(name, [*self._settings.bindings, *BUILT_IN])
            raise InputError(
                "agent.unknown-binding",
                f"No binding {name} in .idumb/config.yaml.",
                hint=f"Did you mean {near}?" if near else f"Define it under `bindings.{name}`.",
            )
        return _adapter(chosen.adapter)(chosen, self._equipment)


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
    from idumb.system import child_process

    names = [name for binding in settings.bindings.values() for name in binding.environment]
    return child_process.environment([*names, *(name for name in settings.environment if _SECRET.search(name))])


def certain(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values that are certainly secrets: they consist of no words and are neither paths nor flags.

    A project, a profile, a path, a model or the password `postgres` would match in half of all file names.
    """
    return {name: value for name, value in variables.items() if _is_certain(name, value)}


def _is_certain(name: str, value: str) -> bool:
    if _NO_SECRET.fullmatch(name) or _PLACE.fullmatch(value):
        return False
    parts = [part for part in _BETWEEN.split(value) if part]
    if not all(_WORD.fullmatch(part) for part in parts):
        return not (value.startswith("--") and max(map(len, parts)) < _LONG)
    # If the name says secret, pieces such as `x7k` and long numbers do not count as words.
    return bool(_SAYS_SO.search(name)) and any(_MIXED.fullmatch(part) for part in parts)


def named_secret() -> dict[str, str]:
    """Do the same for the whole environment of this process, by variable names alone."""
    from idumb.system import child_process

    return child_process.environment(filter(_SECRET.search, child_process.variables()))


def _adapter(name: str) -> Make:
    if name in ADAPTERS:
        from importlib import import_module

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
