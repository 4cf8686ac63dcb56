"""Maps adapter names to adapters, one row each. Other adapters come from the entry point `idumb.agents`, on demand."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from idumb.app.ports.agents import Agent
from idumb.app.ports.ui import Asker
from idumb.domain.agent import BUILT_IN, EDITOR
from idumb.domain.errors import AdapterError, InputError
from idumb.domain.finding import nearest
from idumb.domain.settings import Binding, Settings

if TYPE_CHECKING:
    from idumb.agents.replay import Recordings
    from idumb.agents.transcript import Stream

ENTRY_POINTS = "idumb.agents"

ApplyPatch = Callable[[str, Callable[[str], str | None]], tuple[bool, str]]
Redact = Callable[[str], str]


def _environment(names: Iterable[str]) -> dict[str, str]:
    from idumb.system.processes import child_process

    return child_process.environment(names)


@dataclass(frozen=True, slots=True)
class Equipment:
    """What the adapters of one workspace, `repository`, are built from.

    `environment` returns the variables of this process with the given names. `transcripts` is a folder for output that
    is too long for the log; `stream` redacts that output. `guard` raises if this process must no longer write. `papers`
    is a folder for input files of programs; it is emptied when the adapters are built, because files in it belong to an
    executor that was killed. `recordings` finds runs to replay. `handoffs` is a folder for work done elsewhere. `homes`
    is the home folder of this run's agents. `unpacked` is a folder for files that agents unpack; all homes share it.
    """

    settings: Settings
    repository: str
    apply_patch: ApplyPatch
    redact: Redact
    asker: Asker | None = None
    transcripts: str | None = None
    stream: Callable[[], Stream] | None = None
    guard: Callable[[], None] = lambda: None
    papers: str | None = None
    recordings: Recordings | None = None
    handoffs: str | None = None
    homes: str | None = None
    unpacked: str | None = None
    environment: Callable[[Iterable[str]], dict[str, str]] = _environment

    @property
    def allowed(self) -> tuple[str, ...]:
        """Names of the variables that every agent sees."""
        return self.settings.environment

    def variables(self, binding: Binding) -> dict[str, str]:
        """Return the variables that every agent sees, and those that only this binding adds."""
        return self.environment((*self.allowed, *binding.environment))


def _steps(_: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.steps import StepsAgent

    environment = equipment.environment(equipment.allowed)
    return StepsAgent(equipment.apply_patch, environment, equipment.redact, equipment.guard)


def _command(binding: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.command import CommandAgent

    return CommandAgent(
        binding,
        equipment.repository,
        equipment.variables(binding),
        equipment.redact,
        equipment.transcripts,
        equipment.stream,
        papers=equipment.papers,
    )


def _preset(binding: Binding, equipment: Equipment) -> Agent:
    from importlib import import_module

    from idumb.agents.preset_agent import PresetAgent, Surroundings

    preset = import_module(f"idumb.agents.presets.{binding.adapter}").PRESET
    around = Surroundings(
        equipment.variables(binding),
        equipment.repository,
        equipment.redact,
        equipment.environment,
        equipment.homes,
        equipment.unpacked,
        equipment.papers,
        equipment.transcripts,
        equipment.stream,
    )
    return PresetAgent(preset, binding, around)


def _human(_: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.human import HumanAgent

    return HumanAgent(equipment.asker)


def _editor(_: Binding, equipment: Equipment) -> Agent:  # noqa: ARG001 - every adapter is made alike
    from idumb.agents.editor import EditorAgent

    return EditorAgent()


def _http(binding: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.models.http_agent import HttpAgent

    return HttpAgent(binding, equipment.environment(binding.environment), equipment.redact, equipment.guard)


def _replay(binding: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.replay import ReplayAgent

    return ReplayAgent(binding, equipment.recordings, equipment.guard)


def _handoff(binding: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.handoff import HandoffAgent

    return HandoffAgent(
        binding,
        equipment.repository,
        equipment.handoffs,
        equipment.apply_patch,
        equipment.redact,
        equipment.guard,
    )


def _acp(binding: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.acp import AcpAgent

    return AcpAgent(
        binding,
        equipment.repository,
        equipment.variables(binding),
        equipment.redact,
        equipment.transcripts,
        equipment.stream,
        equipment.homes,
        equipment.papers,
    )


def _model(binding: Binding, equipment: Equipment) -> Agent:
    from idumb.agents.models.pydantic_agent import ModelAgent

    return ModelAgent(binding, equipment.environment(binding.environment), equipment.redact, equipment.guard)


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

PRESETS = ("claude", "codex", "gemini", "opencode", "copilot", "qwen")
"""Command-line agents that idumb knows."""

ADAPTERS: Mapping[str, Make] = {
    "steps": _steps,
    "command": _command,
    "human": _human,
    **dict.fromkeys(PRESETS, _preset),
    "http": _http,
    "model": _model,
    "acp": _acp,
    "replay": _replay,
    "handoff": _handoff,
    EDITOR: _editor,
}
"""Adapters that are also bindings, so that tasks can use them without configuration."""


class AgentRegistry:
    """The `Agents` port: one adapter per binding, created on first use."""

    def __init__(self, equipment: Equipment) -> None:
        self._settings = equipment.settings
        self._equipment = equipment
        self._made: dict[str, Agent] = {}

    def get(self, binding: str) -> Agent:
        """Return the adapter of a binding.

        Raises InputError for an unknown one, AdapterError for a broken third-party one.
        """
        if binding not in self._made:
            self._made[binding] = self._make(binding)
        return self._made[binding]

    def forget(self) -> None:
        """Remove the homes of this run's agents, including their conversations."""
        _remove([self._equipment.homes])

    def _make(self, name: str) -> Agent:
        found = self._settings.bindings.get(name)
        if found is None and name in BUILT_IN:
            found = Binding(name, name)
        if found is None:
            near = nearest(name, [*self._settings.bindings, *BUILT_IN])
            raise InputError(
                "agent.unknown-binding",
                f"No binding {name} in .idumb/config.yaml.",
                hint=f"Did you mean {near}?" if near else f"Define it under `bindings.{name}`.",
            )
        return _adapter(found.adapter)(found, self._equipment)


def build(equipment: Equipment, *, aside: bool = False) -> AgentRegistry:
    """Return the adapters of one workspace. Remove homes of other runs unless these agents work `aside` of a run."""
    _remove([equipment.papers, *(() if aside else _beside(equipment.homes))])
    return AgentRegistry(equipment)


def _remove(folders: Iterable[str | None]) -> None:
    for old in folders:
        if old is not None and os.path.lexists(old):
            import shutil

            shutil.rmtree(old, ignore_errors=True)


def _beside(homes: str | None) -> list[str]:
    """Return the folders of other runs next to this one's."""
    parent = os.path.dirname(homes or "")
    if homes is None or not os.path.isdir(parent):
        return []
    return [path for name in os.listdir(parent) if (path := os.path.join(parent, name)) != homes]


def secret_variables(settings: Settings) -> dict[str, str]:
    """Return name and value of every passed variable that is or may be a secret; their values are redacted everywhere.

    These are the variables that a binding names, and other variables whose names suggest a secret.
    """
    from idumb.system.processes import child_process

    asked = [name for binding in settings.bindings.values() for name in binding.environment]
    return child_process.environment([*asked, *(name for name in settings.environment if _SECRET.search(name))])


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
    from idumb.system.processes import child_process

    return child_process.environment(filter(_SECRET.search, child_process.variables()))


def _adapter(name: str) -> Make:
    if name in ADAPTERS:
        return ADAPTERS[name]
    from importlib import metadata

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
