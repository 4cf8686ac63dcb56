"""Read `.idumb/config.yaml` as `Settings`. All problems are reported at once, with their lines."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping
from typing import Any

from idumb import lazy_pattern
from idumb.domain import agent
from idumb.domain.errors import InputError
from idumb.domain.finding import ERROR, Finding, did_you_mean
from idumb.domain.proof import gate_table, levels
from idumb.domain.settings import (
    BRANCHES,
    COMMIT_POLICIES,
    CONTROLS,
    DEFAULT_ENVIRONMENT,
    DEVIATION_POLICIES,
    HOMES,
    NAMED,
    NETWORKS,
    REPORTS,
    SANDBOXES,
    Binding,
    Ceiling,
    CheckoutSettings,
    CheckSettings,
    GateSettings,
    GitSettings,
    Limits,
    RoleSettings,
    RunSettings,
    SandboxSettings,
    Settings,
)
from idumb.markdown.settings import prompt_files
from idumb.markdown.settings import setting_values as values
from idumb.markdown.syntax import tree
from idumb.markdown.syntax.problems import Field, Problems
from idumb.markdown.syntax.source import Source
from idumb.markdown.syntax.tree import Node, is_map, is_text
from idumb.system.files import named_files

PATH = ".idumb/config.yaml"
MAX_BYTES = 1024 * 1024

_NAMED_ROLES = (agent.BUILDER, agent.VALIDATOR)


def load(root: str) -> Settings:
    """Return the settings of the repository at `root`; defaults without a file. Raises InputError with findings."""
    try:
        data = named_files.read(os.path.join(root, PATH), MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Settings(prompts=prompt_files.load(root))
    except OSError as problem:
        raise InputError(
            "config.unreadable", f"{PATH} cannot be read: {problem.strerror}", hint=f"ls -l {PATH}"
        ) from problem
    settings, findings = read(data)
    if settings is None:
        raise values.rejected("config.invalid", findings, f"Fix {PATH}; idumb help configuration explains every key.")
    settings = dataclasses.replace(settings, prompts=prompt_files.load(root))
    _require_templates(settings)
    return settings


def place(root: str, *keys: str) -> tuple[int, int]:
    """Return line and column of a nested key, or of its nearest existing parent."""
    try:
        text = values.decoded(named_files.read(os.path.join(root, PATH), MAX_BYTES + 1), MAX_BYTES)
    except (OSError, ValueError):
        return 1, 1
    source = Source(text, PATH)
    node, at = tree.read(text, lambda at: at, Problems(source), "configuration"), 0
    for key in keys:
        pair = next((p for p in node.pairs if p[0].value == key), None) if is_map(node) else None
        if pair is None:
            break
        at, node = pair[0].start, pair[1]
    return source.place(at)


def _require_templates(settings: Settings) -> None:
    """Check that every template used by a role exists. Raises InputError `prompt.missing`."""
    for role in settings.roles:
        template = settings.role(role).prompt
        if template not in settings.prompts and template not in agent.ROLES:
            place = f"{prompt_files.FOLDER}/{template}{prompt_files.ENDING}"
            raise InputError(
                "prompt.missing", f"The role {role} uses the prompt template {template}, but {place} does not exist.",
                hint=f"Write {place}, or remove `prompt` from roles.{role} in {PATH}",
            )  # fmt: skip


@functools.lru_cache(maxsize=4)  # a run reads the files again before each attempt; they seldom change
def read(data: bytes, path: str = PATH) -> tuple[Settings | None, tuple[Finding, ...]]:
    """Return settings from the bytes of a configuration file; None if a finding is an error."""
    try:
        text = values.decoded(data, MAX_BYTES)
    except ValueError as problem:
        return None, (Finding("config.unreadable", ERROR, path, 1, 1, "", "", "UTF-8 text", f"{path} {problem}."),)
    problems = Problems(Source(text, path))
    node = tree.read(text, lambda at: at, problems, "configuration")
    settings = Settings()
    if node is not None and not problems.any_error:
        settings = _Reading(problems).settings(node)
    findings = problems.sorted()
    return (None if problems.any_error else settings), findings


class _Reading:
    """Turns nodes into settings and collects problems."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._places: dict[str, int] = {}

    def settings(self, node: Any) -> Settings:
        top = self._section(node, "", _TOP)
        bindings = self._bindings(top.pop("bindings", None))
        git, git_keys = self._git(top.pop("git", None))
        run = self._section(top.pop("run", None), "run", _RUN)
        limits = self._section(top.pop("limits", None), "limits", _LIMITS)
        gates = self._gates(top.pop("gates", None))
        times = self._times(top.pop("levels", None))
        profiles = self._profiles(top.pop("profiles", None))
        ceilings = self._ceilings(top.pop("ceilings", None))
        numbers: dict[str, Any] = {
            name: self._section(top.pop(name, None), name, readers) for name, readers in _NUMBERS.items()
        }
        checks = self._section(top.pop("checks", None), "checks", _CHECKS)
        checkout = self._section(top.pop("checkout", None), "checkout", _CHECKOUT)
        sandbox = self._sandbox(top.pop("sandbox", None))
        if "profile" in top:
            top["profile"] = self._chosen("profile", top["profile"], profiles, "profiles")
        for role in _NAMED_ROLES:
            if role in top:
                top[role] = self._binding_name(role, top[role], bindings)
        roles = self._roles(top.pop("roles", None), bindings)
        for role in _NAMED_ROLES:
            own = roles[role].binding if role in roles else None
            if own is not None and top.setdefault(role, own) != own:
                self._wrong(f"roles.{role}.binding", self._places[role], own, f"{top[role]}, as `{role}` says")
        if "environment" in top:
            top["environment"] = tuple(dict.fromkeys((*DEFAULT_ENVIRONMENT, *top["environment"])))
        return Settings(
            bindings=bindings,
            git=git,
            run=RunSettings(**run),
            limits=Limits(**limits),
            gates=gates,
            levels=times,
            roles=roles,
            profiles=profiles,
            ceilings=ceilings,
            checks=CheckSettings(**checks) if checks else None,
            checkout=CheckoutSettings(**checkout) if checkout else None,
            sandbox=sandbox,
            configured_keys=frozenset((*(f"run.{key}" for key in run), *git_keys)) & frozenset(NAMED),
            **numbers,
            **top,
        )

    def _gates(self, node: Any) -> dict[str, GateSettings]:
        """Read the settings of gates and roles. A name that idumb does not know is a gate of the project's own."""
        gates: dict[str, GateSettings] = {}
        for key, value in self._pairs(node, "gates"):
            where = f"gates.{key.value}"
            row = gate_table.of_name(key.value)
            name = key.value
            if name not in levels.KNOWN and not self._is_own_gate(where, key, value):
                continue
            gate = gates[name] = GateSettings(**self._section(value, where, _GATE))
            if row is not None and gate.level is not None and gate.level < row.lowest:
                allowed = " or ".join(str(number) for number in range(row.lowest, levels.CRITICAL + 1))
                self._wrong(f"{where}.level", key.start, str(gate.level), f"{allowed}, because no setting disables it")
            if gate.threshold is not None and name != gate_table.DESIGN:
                self._not_allowed(f"{where}.threshold", key.start, str(gate.threshold), "only design has a score")
            self._check_command(where, key, name, gate)
            if gate.timeout is not None:
                self._check_timeout(where, key, name, gate)
        return gates

    def _is_own_gate(self, where: str, key: Node, value: Any) -> bool:
        """Return whether an unknown name is that of a gate of the project's own; report what is neither."""
        keys = {each.value for each, _ in value.pairs} if is_map(value) else set()
        if not keys & _OF_OWN_GATES:
            self._unknown(where, key, _GATE_NAMES)
            return False
        if not _OWN_NAME.fullmatch(key.value):
            self._wrong(where, key.start, key.value, "a name of small letters and digits, with single hyphens between")
            return False
        return True

    def _check_command(self, where: str, key: Node, name: str, gate: GateSettings) -> None:
        if (gate.run or gate.entry_point) and name in levels.KNOWN and name not in levels.WITH_COMMANDS:
            accepted = f"only {', '.join(sorted(levels.WITH_COMMANDS))} and gates of your own run what you name"
            self._not_allowed(f"{where}.{'run' if gate.run else 'entry_point'}", key.start, key.value, accepted)
        elif gate.entry_point and (gate.run or name in levels.KNOWN):
            self._not_allowed(f"{where}.entry_point", key.start, gate.entry_point, "this gate runs a command")

    def _check_timeout(self, where: str, key: Node, name: str, gate: GateSettings) -> None:
        """Check a timeout against the level of its role or gate. Commands that you name may take any time."""
        kind, usual = levels.KNOWN.get(name, (levels.GATE, levels.ADVISORY))
        level = usual if gate.level is None else gate.level
        reason = ""
        if kind == levels.GATE:
            row = gate_table.of_name(name)
            if row is not None and name not in gate_table.RUNS_COMMANDS:
                self._in_range(f"{where}.timeout", key.start, max(level, levels.ADVISORY), gate.timeout or 0)
            elif row is not None and name not in levels.WITH_COMMANDS:
                reason = "run.check_timeout limits each command of the gate"
        elif name == agent.BUILDER:
            reason = "the task or roles.builder sets the timeout of builders"
        elif gate.timeout is not None:
            self._in_range(f"{where}.timeout", key.start, level, gate.timeout)
        if reason:
            self._not_allowed(f"{where}.timeout", key.start, f"{gate.timeout}s", reason)

    def _sandbox(self, node: Any) -> SandboxSettings | None:
        """Read the section, or the short form `sandbox: auto`."""
        if is_text(node) and node.value in SANDBOXES:
            return SandboxSettings(node.value)
        if is_text(node) and not values.is_null(node):
            self._wrong("sandbox", node.start, node.value, f"one of {', '.join(SANDBOXES)}")
            return None
        fields = self._section(node, "sandbox", _SANDBOX)
        return SandboxSettings(**fields) if fields else None

    def _times(self, node: Any) -> dict[str, int]:
        """Read the default timeout of each level, and check its range."""
        times: dict[str, int] = self._section(node, "levels", _LEVELS)
        for number, timeout in times.items():
            self._in_range(f"levels.{number}", node.start, int(number), timeout)
        return times

    def _in_range(self, where: str, at: int, level: int, timeout: int) -> None:
        problem = levels.problem(level, timeout)
        if problem is not None:
            self._wrong(where, at, f"{timeout}s", problem)

    def _bindings(self, node: Any) -> dict[str, Binding]:
        bindings: dict[str, Binding] = {}
        for key, value in self._pairs(node, "bindings"):
            where = f"bindings.{key.value}"
            if key.value in agent.BUILT_IN or not values.NAME.fullmatch(key.value):
                self._wrong(
                    where, key.start, key.value, f"a name without spaces, other than {', '.join(agent.BUILT_IN)}"
                )
                continue
            fields = self._section(value, where, _BINDING)
            adapter = fields.pop("adapter", None)
            if "limits" in fields:
                fields["limits"] = Limits(**self._section(fields["limits"], f"{where}.limits", _LIMITS))
            if adapter is None:
                self._missing(where, key.start, "adapter", "adapter: command")
            elif adapter == "command" and not fields.get("argv"):
                self._missing(where, key.start, "argv", "argv: [program, argument, ...]")
            bindings[key.value] = Binding(key.value, adapter or "", **fields)
        return bindings

    def _binding_name(
        self, role: str, choice: tuple[str, int], bindings: Mapping[str, Binding], where: str = ""
    ) -> str | None:
        built_in = {agent.BUILDER: tuple(agent.BUILT_IN), agent.VALIDATOR: (agent.HUMAN,)}.get(role, ())
        return self._chosen(where or role, choice, (*bindings, *built_in), "bindings")

    def _chosen(self, where: str, choice: tuple[str, int], defined: Iterable[str], section: str) -> str | None:
        """Return the name if it is defined in the section; report it otherwise."""
        name, at = choice
        defined = tuple(defined)
        if name in defined:
            return name
        fix = did_you_mean(name, defined, f"Define {name} under `{section}`.", values.DID_YOU_MEAN)
        self._wrong(where, at, name, ", ".join(defined) or f"defined under `{section}`", fix)
        return None

    def _roles(self, node: Any, bindings: Mapping[str, Binding]) -> dict[str, RoleSettings]:
        """Read the settings of each role; `_places` keeps the offset of its binding."""
        role_settings: dict[str, RoleSettings] = {}
        for key, value in self._of_roles(node, "roles"):
            where = f"roles.{key.value}"
            fields = self._section(value, where, _ROLE)
            if "binding" in fields:
                self._places[key.value] = fields["binding"][1]
                fields["binding"] = self._binding_name(key.value, fields["binding"], bindings, f"{where}.binding")
            if "ceiling" in fields:
                fields["ceiling"] = self._ceiling(fields["ceiling"], f"{where}.ceiling")
            if key.value == agent.VALIDATOR and "timeout" in fields:
                self._not_allowed(f"{where}.timeout", key.start, f"{fields['timeout']}s", "set gates.validator.timeout")
            role_settings[key.value] = RoleSettings(**fields)
        return role_settings

    def _profiles(self, node: Any) -> dict[str, dict[str, str]]:
        """Read the profiles: for each, the model of each role."""
        profiles: dict[str, dict[str, str]] = {}
        for key, value in self._pairs(node, "profiles"):
            where = f"profiles.{key.value}"
            if not values.NAME.fullmatch(key.value):
                self._wrong(where, key.start, key.value, "a name without spaces")
                continue
            profiles[key.value] = self._section(value, where, dict.fromkeys(agent.ROLES, values.words))
        return profiles

    def _git(self, node: Any) -> tuple[GitSettings, frozenset[str]]:
        """Return the settings, and the names of those that the configuration sets."""
        section = self._section(node, "git", _GIT)
        return GitSettings(**section), frozenset(f"git.{key}" for key in section)

    def _ceilings(self, node: Any) -> dict[str, Ceiling]:
        read = self._section(node, "ceilings", {"task": values.node, "run": values.node})
        return {name: self._ceiling(value, f"ceilings.{name}") for name, value in read.items()}

    def _ceiling(self, node: Node, where: str) -> Ceiling:
        fields = self._section(node, where, _CEILING)
        if "time" in fields:
            fields["seconds"] = fields.pop("time")
        return Ceiling(**fields)

    def _of_roles(self, node: Any, where: str) -> Iterable[tuple[Node, Node]]:
        for key, value in self._pairs(node, where):
            if key.value in agent.ROLES:
                yield key, value
            else:
                self._unknown(f"{where}.{key.value}", key, agent.ROLES)

    def _section(self, node: Node | None, where: str, readers: Mapping[str, values.Reader]) -> dict[str, Any]:
        """Return the valid values of a mapping by key, and report the others."""
        section: dict[str, Any] = {}
        for key, value in self._pairs(node, where):
            name = f"{where}.{key.value}" if where else key.value
            if key.value not in readers:
                self._unknown(name, key, readers)
                continue
            try:
                section[key.value] = readers[key.value](value)
            except values.WrongValue as wrong:
                self._wrong(name, wrong.at, wrong.found, wrong.accepted, wrong.fix)
        return section

    def _pairs(self, node: Node | None, where: str) -> Iterable[tuple[Node, Node]]:
        if node is None or (is_text(node) and values.is_null(node)):
            return ()
        if not is_map(node):
            self._wrong(where or "configuration", node.start, values.shown(node), "keys with values")
            return ()
        return node.pairs

    def _unknown(self, name: str, key: Node, accepted: Iterable[str]) -> None:
        fix = did_you_mean(key.value, accepted, "Remove the key.", values.DID_YOU_MEAN)
        self._error(name, key.start, f"Unknown key `{name}`", key.value, ", ".join(accepted), fix, "config.unknown-key")

    def _missing(self, where: str, at: int, key: str, accepted: str) -> None:
        self._error(where, at, f"{where} has no `{key}`", "", accepted, f"Add `{accepted}`.")

    def _not_allowed(self, name: str, at: int, found: str, reason: str) -> None:
        self._error(name, at, f"{name} is not allowed: {reason}", found, "no value", f"Remove {name}.")

    def _wrong(self, name: str, at: int, found: str, accepted: str, fix: str = "") -> None:
        self._error(name, at, f"{name}: {found!r} is not {accepted}", found, accepted, fix or f"Write {accepted}.")

    def _error(
        self, name: str, at: int, message: str, found: str, accepted: str, fix: str, code: str = "config.bad-value"
    ) -> None:
        Field(name, self._problems).error(code, at, message, found, accepted, fix)


_NUMBERS: Mapping[str, Mapping[str, values.Reader]] = {
    "breaker": {"failures": values.count, "time": values.duration},
    "retry": {"calls": values.count, "pause": values.duration},
    "ask": {"timeout": values.duration},
    "snapshot": {"limit": values.count, "keep": values.count},
}
_TOP: Mapping[str, values.Reader] = {
    "builder": values.placed,
    "validator": values.placed,
    "bindings": values.node,
    "git": values.node,
    "run": values.node,
    "protected": values.list_of(values.glob),
    "environment": values.list_of(values.variable),
    "limits": values.node,
    "gates": values.node,
    "levels": values.node,
    "roles": values.node,
    "profile": values.placed,
    "profiles": values.node,
    "ceilings": values.node,
    **dict.fromkeys(_NUMBERS, values.node),
    "checks": values.node,
    "checkout": values.node,
    "sandbox": values.node,
}
_BINDING: Mapping[str, values.Reader] = {
    "adapter": values.words,
    "argv": values.list_of(values.argument),
    "prompt": values.one_of(("stdin", "file")),
    "environment": values.list_of(values.variable),
    "timeout": values.duration,
    "idle_timeout": values.duration,
    "limits": values.node,
    "options": values.options,
    "model": values.words,
}
_ROLE: Mapping[str, values.Reader] = {
    "binding": values.placed,
    "model": values.words,
    "prompt": values.template_name,
    "timeout": values.duration,
    "ceiling": values.node,
}
_CHECKS: Mapping[str, values.Reader] = {
    "home": values.one_of(HOMES),
    "control": values.one_of(CONTROLS),
    "network": values.one_of(NETWORKS),
}
_CHECKOUT: Mapping[str, values.Reader] = {
    "provide": values.list_of(values.glob),
    "prepare": values.list_of(values.words),
    "cache": values.list_of(values.glob),
    "limit": values.count,
}
_CEILING: Mapping[str, values.Reader] = {
    "attempts": values.count,
    "time": values.duration,
    "tokens": values.count,
    "cost_usd": values.money,
}
_SANDBOX: Mapping[str, values.Reader] = {
    "level": values.one_of(SANDBOXES),
    "write": values.list_of(values.words),
}
_GIT: Mapping[str, values.Reader] = {
    "commit": values.one_of(COMMIT_POLICIES),
    "hooks": values.boolean,
    "reports": values.one_of(REPORTS),
    "message": values.message,
    "branch": values.one_of(BRANCHES),
    "branch_name": values.branch_name,
    "network": values.boolean,
}
_RUN: Mapping[str, values.Reader] = {
    "max_attempts": values.count,
    "halt_after": values.count,
    "on_deviation": values.one_of(DEVIATION_POLICIES),
    "validator_timeout": values.duration,
    "check_timeout": values.duration,
    "output_limit": values.count,
    "idle_timeout": values.duration,
    "check_idle_timeout": values.duration,
}
_GATE_NAMES = (*(row.name for row in gate_table.ROWS), *agent.ROLES)
_GATE: Mapping[str, values.Reader] = {
    "level": values.level,
    "timeout": values.duration,
    "threshold": values.percentage,
    "run": values.one_or_more(values.words),
    "entry_point": values.words,
}
_OF_OWN_GATES = frozenset({"run", "entry_point"})
_OWN_NAME = lazy_pattern.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LEVELS: Mapping[str, values.Reader] = {"1": values.duration, "2": values.duration}
_LIMITS: Mapping[str, values.Reader] = {
    "memory": values.size,
    "cpu": values.duration,
    "processes": values.count,
    "file_size": values.size,
    "open_files": values.count,
}
