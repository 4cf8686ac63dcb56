"""Read `.idumb/config.yaml` as `Settings`. All problems are reported at once, with their lines."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from typing import Any

from idumb.domain import agent, settings
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding
from idumb.domain.proof import gate_table
from idumb.markdown.settings import prompt_files
from idumb.markdown.settings import setting_values as rows
from idumb.markdown.syntax import record, tree
from idumb.markdown.syntax.record import (
    BOOLEAN,
    COUNT,
    DATA,
    DURATION,
    BadValue,
    Key,
    choice,
    each,
    list_of,
    pattern,
    section,
)
from idumb.markdown.syntax.source import CONFIG, Place, Source
from idumb.markdown.syntax.tree import Node, is_map, is_text
from idumb.system.files import named_files

PATH = ".idumb/config.yaml"
MAX_BYTES = 1024 * 1024
_NAMED_ROLES = (agent.BUILDER, agent.VALIDATOR)


def load(root: str) -> settings.Settings:
    """Return the settings of the repository at `root`; defaults without a file. Raises InputError with findings."""
    hint = f"Fix {PATH}; idumb help configuration explains every key."
    chosen = rows.of_file(os.path.join(root, PATH), PATH, MAX_BYTES, CONFIG, read, hint) or settings.Settings()
    chosen = dataclasses.replace(chosen, prompts=prompt_files.load(root))
    _require_templates(chosen)
    return chosen


def place(root: str, *keys: str) -> tuple[int, int]:
    """Return line and column of a nested key, or of its nearest existing parent."""
    try:
        node, source = rows.parsed(named_files.read(os.path.join(root, PATH), MAX_BYTES + 1), PATH, MAX_BYTES, CONFIG)
    except OSError:
        return 1, 1
    return source.place(0 if node is None else tree.find(node, *keys)[0])


def _require_templates(chosen: settings.Settings) -> None:
    """Check that every template used by a role exists. Raises InputError `prompt.missing`."""
    for role in chosen.roles:
        template = chosen.role(role).prompt
        if template not in chosen.prompts and template not in agent.ROLES:
            place = f"{prompt_files.FOLDER}/{template}{prompt_files.ENDING}"
            raise InputError(
                "prompt.missing", f"The role {role} uses the prompt template {template}, but {place} does not exist.",
                hint=f"Write {place}, or remove `prompt` from roles.{role} in {PATH}",
            )  # fmt: skip


@functools.lru_cache(maxsize=4)  # a run reads the files again before each attempt; they seldom change
def read(data: bytes, path: str = PATH) -> tuple[settings.Settings | None, tuple[Finding, ...]]:
    """Return settings from the bytes of a configuration file; None if a finding is an error."""
    node, source = rows.parsed(data, path, MAX_BYTES, CONFIG)
    chosen = settings.Settings()
    if node is not None and not source.any_error:
        given = record.value(_CONFIGURATION, node, Place("", source, kind=CONFIG, key="configuration"))
        chosen = _Whole(node, source, given or {}).result()
    findings = source.sorted()
    return (None if source.any_error else chosen), findings


def _gates(node: Node, place: Place) -> dict[str, settings.GateSettings]:
    """Read the settings of gates and roles. A name that idumb does not know is a gate of the project's own."""
    if not is_map(node):
        raise BadValue(node)
    gates = {}
    for key, below in node.pairs:
        name, inner = key.text.s, place.inner(key.text.s, key.start)
        if name not in gate_table.KNOWN and {each.text.s for each in below.items}.isdisjoint(_OF_OWN_GATES):
            inner.report("config.unknown-key", key.start, name, _GATE_NAMES, owner="`gates`")
        elif name not in gate_table.KNOWN and not _OWN_NAME.fullmatch(name):
            accepted = "a name of small letters and digits, with single hyphens between"
            inner.report("config.bad-value", key.start, name, name=inner.name, accepted=accepted)
        elif (gate := record.value(_GATE, below, inner)) is not None:
            gates[name] = gate
    return gates


def _sandbox(node: Node, place: Place) -> settings.SandboxSettings:
    """Read the section, or the short form `sandbox: auto`."""
    if is_text(node) and node.text.s in settings.SANDBOXES:
        return settings.SandboxSettings(node.text.s)
    read: settings.SandboxSettings = _SANDBOX.read(node, place)
    return read


_ceiling = section(
    lambda time=None, **others: settings.Ceiling(seconds=time, **others),
    {"attempts": COUNT, "time": DURATION, "tokens": COUNT, "cost_usd": rows.MONEY},
)
_LIMITS = section(
    settings.Limits,
    {"memory": rows.SIZE, "cpu": DURATION, "processes": COUNT, "file_size": rows.SIZE, "open_files": COUNT},
)
_BINDING = section(
    settings.Binding,
    {
        "adapter": rows.WORDS.must, "argv": rows.ARGUMENTS, "prompt": choice("stdin", "file"),
        "environment": rows.VARIABLES, "timeout": DURATION, "idle_timeout": DURATION, "limits": _LIMITS,
        "options": DATA, "model": rows.WORDS,
    },
    named=True,
)  # fmt: skip
_BINDING_NAME = pattern(
    f"a name without spaces, other than {', '.join(agent.BUILT_IN)}", rf"(?!(?:{'|'.join(agent.BUILT_IN)})$){rows.NAME}"
)
_ROLE = section(
    settings.RoleSettings,
    {
        "binding": rows.WORDS,
        "model": rows.WORDS,
        "prompt": rows.TEMPLATE_NAME,
        "timeout": DURATION,
        "ceiling": _ceiling,
    },
)
_GATE = section(
    settings.GateSettings,
    {
        "level": rows.LEVEL, "timeout": DURATION, "threshold": rows.PERCENT,
        "run": list_of(rows.WORDS, "a text, or a list of texts", single=True, least=1), "entry_point": rows.WORDS,
    },
)  # fmt: skip
_SANDBOX = section(
    settings.SandboxSettings,
    {"level": choice(*settings.SANDBOXES), "write": list_of(rows.WORDS)},
    f"one of {', '.join(settings.SANDBOXES)}",
)
_GIT = section(
    settings.GitSettings,
    {
        "commit": choice(*settings.COMMIT_POLICIES), "hooks": BOOLEAN, "reports": choice(*settings.REPORTS),
        "message": rows.MESSAGE, "branch": choice(*settings.BRANCHES), "branch_name": rows.BRANCH, "network": BOOLEAN,
    },
)  # fmt: skip
_RUN = section(
    settings.RunSettings,
    {
        "max_attempts": COUNT, "halt_after": COUNT, "on_deviation": choice(*settings.DEVIATION_POLICIES),
        "validator_timeout": DURATION, "check_timeout": DURATION, "idle_timeout": DURATION,
        "check_idle_timeout": DURATION,
    },
)  # fmt: skip
KEYS: Mapping[str, Key] = {
    "builder": rows.WORDS,
    "validator": rows.WORDS,
    "bindings": each(_BINDING, _BINDING_NAME),
    "git": _GIT,
    "run": _RUN,
    "protected": rows.GLOBS,
    "environment": rows.VARIABLES,
    "limits": _LIMITS,
    "gates": Key("keys with values", _gates, schema={"type": "object", "additionalProperties": _GATE.schema}),
    "levels": section(dict, {"1": DURATION, "2": DURATION}),
    "roles": section(dict, dict.fromkeys(agent.ROLES, _ROLE)),
    "profile": rows.WORDS,
    "profiles": each(
        section(dict, dict.fromkeys(agent.ROLES, rows.WORDS)), pattern("a name without spaces", rows.NAME)
    ),
    "ceilings": section(dict, {"task": _ceiling, "run": _ceiling}),
    "breaker": section(dict, {"failures": COUNT, "time": DURATION}),
    "retry": section(dict, {"calls": COUNT, "pause": DURATION}),
    "ask": section(dict, {"timeout": DURATION}),
    "snapshot": section(dict, {"limit": COUNT, "keep": COUNT}),
    "checks": section(
        settings.CheckSettings,
        {"home": choice(*settings.HOMES), "control": choice(*settings.CONTROLS), "network": choice(*settings.NETWORKS)},
    ),
    "checkout": section(
        settings.CheckoutSettings,
        {"provide": rows.GLOBS, "prepare": list_of(rows.WORDS), "cache": rows.GLOBS, "limit": COUNT},
    ),
    "sandbox": _SANDBOX._replace(read=_sandbox, schema={"anyOf": [_SANDBOX.keys["level"].schema, _SANDBOX.schema]}),
}
_CONFIGURATION = Key(
    "keys with values", lambda node, place: record.record(node, KEYS, place, "the configuration"), keys=KEYS
)


class _Whole:
    """Checks what one setting says of another."""

    def __init__(self, node: Node, source: Source, given: dict[str, Any]) -> None:
        self._node, self._source, self._given = node, source, given

    def result(self) -> settings.Settings:
        given = self._given
        self._chosen(("profile",), (), "profiles")
        for role in _NAMED_ROLES:
            self._filled((role,), role)
        for role, filled in given.get("roles", {}).items():
            self._filled(("roles", role, "binding"), role)
            own = filled.binding if role in _NAMED_ROLES else None
            if own is not None and given.setdefault(role, own) != own and not self._source.any_error:
                self._wrong(("roles", role, "binding"), own, f"{given[role]}, as `{role}` says")
        if "environment" in given:
            given["environment"] = tuple(dict.fromkeys((*settings.DEFAULT_ENVIRONMENT, *given["environment"])))
        self._bindings(given.get("bindings", {}))
        for number, timeout in given.get("levels", {}).items():
            self._in_range(("levels", number), int(number), timeout)
        for name, gate in given.get("gates", {}).items():
            self._gate(name, gate)
        validator = given.get("roles", {}).get(agent.VALIDATOR)
        if validator is not None and validator.timeout is not None:
            self._forbidden(("roles", agent.VALIDATOR, "timeout"), "set gates.validator.timeout")
        return settings.Settings(**given)

    def _bindings(self, bindings: Mapping[str, settings.Binding]) -> None:
        for name, binding in bindings.items():
            if binding.adapter == "command" and not binding.argv:
                words = {"key": "argv", "owner": f"`bindings.{name}`", "accepted": "[program, argument, ...]"}
                self._report("config.missing-key", ("bindings", name), "", **words)

    def _filled(self, keys: tuple[str, ...], role: str) -> None:
        self._chosen(
            keys, {agent.BUILDER: tuple(agent.BUILT_IN), agent.VALIDATOR: (agent.HUMAN,)}.get(role, ()), "bindings"
        )

    def _chosen(self, keys: tuple[str, ...], built_in: tuple[str, ...], section: str) -> None:
        """Report a name that its section does not define."""
        node, defined = tree.find(self._node, *keys)[1], tree.find(self._node, section)[1]
        names = (*(key.text.s for key in (defined.items if is_map(defined) else ())), *built_in)
        if is_text(node) and node.text.s.strip() and node.text.s not in names:
            accepted = f"one of {', '.join(names)}" if names else f"defined under `{section}`"
            fix = f"define {node.text.s} under `{section}`"
            self._report("config.bad-value", keys, node.text.s, names, accepted=accepted, fix=fix)

    def _gate(self, name: str, gate: settings.GateSettings) -> None:
        row, known = gate_table.of_name(name), name in gate_table.KNOWN
        if row is not None and gate.level is not None and gate.level < row.lowest:
            allowed = " or ".join(str(number) for number in range(row.lowest, gate_table.CRITICAL + 1))
            self._wrong(("gates", name, "level"), str(gate.level), f"{allowed}, because no setting disables it")
        if gate.threshold is not None and name != gate_table.DESIGN:
            self._forbidden(("gates", name, "threshold"), "only design has a score")
        if (gate.run or gate.entry_point) and known and name not in gate_table.WITH_COMMANDS:
            reason = f"only {', '.join(sorted(gate_table.WITH_COMMANDS))} and gates of your own run what you name"
            self._forbidden(("gates", name, "run" if gate.run else "entry_point"), reason)
        elif gate.entry_point and (gate.run or known):
            self._forbidden(("gates", name, "entry_point"), "this gate runs a command")
        if gate.timeout is not None:
            self._timeout(("gates", name, "timeout"), name, gate.level, gate.timeout)

    def _timeout(self, keys: tuple[str, ...], name: str, own: int | None, timeout: int) -> None:
        """Check a timeout against the level of its role or gate. Commands that you name may take any time."""
        kind, usual = gate_table.KNOWN.get(name, (gate_table.GATE, gate_table.ADVISORY))
        level = usual if own is None else own
        row = gate_table.of_name(name)
        if kind == gate_table.ROLE and name == agent.BUILDER:
            self._forbidden(keys, "the task or roles.builder sets the timeout of builders")
        elif kind == gate_table.ROLE or (row is not None and name not in gate_table.RUNS_COMMANDS):
            self._in_range(keys, level, timeout)
        elif row is not None and name not in gate_table.WITH_COMMANDS:
            self._forbidden(keys, "run.check_timeout limits each command of the gate")

    def _in_range(self, keys: tuple[str, ...], level: int, timeout: int) -> None:
        problem = gate_table.timeout_problem(level, timeout)
        if problem is not None:
            self._wrong(keys, f"{timeout}s", problem)

    def _wrong(self, keys: tuple[str, ...], found: str, accepted: str) -> None:
        self._report("config.bad-value", keys, found, accepted=accepted)

    def _forbidden(self, keys: tuple[str, ...], reason: str) -> None:
        self._report("config.not-allowed", keys, "", reason=reason)

    def _report(self, code: str, keys: tuple[str, ...], found: str, near: Any = (), **words: Any) -> None:
        at, node = tree.find(self._node, *keys)
        name = ".".join(keys)
        start = node.start if node is not None and code == "config.bad-value" else at
        self._source.report(code, start, found, near, field=name, name=name, **words)


_GATE_NAMES = (*(row.name for row in gate_table.ROWS), *agent.ROLES)
_OF_OWN_GATES = frozenset({"run", "entry_point"})
_OWN_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
