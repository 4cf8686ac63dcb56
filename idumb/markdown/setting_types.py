"""The settings of `.idumb/config.yaml` and the type of each, which says what it accepts and reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from idumb.domain import agent, paths, permissions, settings
from idumb.domain.finding import did_you_mean
from idumb.domain.proof import gate_table
from idumb.domain.settings import MESSAGE_FIELDS
from idumb.markdown.syntax import value_types
from idumb.markdown.syntax.source import Place
from idumb.markdown.syntax.tree import Node, is_text
from idumb.markdown.syntax.value_types import (
    ANY,
    BOOLEAN,
    COUNT,
    DATA,
    DURATION,
    TEXT,
    TEXTS,
    BadValue,
    ValueType,
    choice,
    integer,
    list_of,
    mapping_of,
    matching,
    pattern,
    scalar,
    section,
)

# Single values

_BYTES = re.compile(r"(\d{1,15})([KMGTkmgt]?)i?[Bb]?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NAME, TEMPLATE = r"[\w.:/@+-]+", "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_AMOUNT = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _size(text: str) -> int | None:
    match = _BYTES.fullmatch(text)
    total = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    return total if 0 < total <= 2**62 else None


def _money(text: str) -> float | None:
    amount = float(text) if _AMOUNT.fullmatch(text) else 0.0
    return amount if 0 < amount <= 10**9 else None


def _glob(node: Node, place: Place) -> str:
    text: str = TEXT.read(node, place)
    problem = paths.problem(text)
    if problem is not None:
        raise BadValue(node, f"a path or glob inside the repository: it {problem}", "fix the path")
    return text


_SIZE = scalar("a size such as 512M, 4G or a number of bytes", _size, {"type": ["integer", "string"]})
_MONEY = scalar("an amount of dollars above 0, such as 2.50", _money, {"type": "number"}, plain=True)
_TEMPLATE_NAME = pattern("the name of a template in .idumb/prompts/, without .md", rf"(?!.*\.md$){TEMPLATE}")
_LEVEL, _PERCENT, _DAYS = integer(0, 2, "a level: 0, 1 or 2"), integer(1, 100), integer(1, 36_500)
ARGUMENTS = list_of(ANY)
_VARIABLES = list_of(
    pattern("the name of an environment variable, without its value", "(?!IDUMB_)[A-Za-z_][A-Za-z0-9_]*"),
    "a list of names",
)
_GLOBS = list_of(ValueType("a text", _glob), "a list of paths and globs")
_BRANCH = matching(
    "the name of a branch; {phase} is replaced by the number of the phase",
    lambda text: text.strip() and "{" not in text.replace("{phase}", ""),
)


# Templates of commit messages

_BRACES = re.compile(r"\{([^{}]*)\}|[{}]")
_TRAILER = re.compile(r"(?im)^[ \t]*Idumb-[\w-]*:")


def _message(node: Node, _: Place) -> str:
    problem = _message_problem(node.value) if is_text(node) else ("a text", "")
    if problem is not None:
        raise BadValue(node, *problem)
    return node.value


_MESSAGE = ValueType("a text", _message)


def _message_problem(template: str) -> tuple[str, str] | None:
    """Return what is accepted instead of a template, and how to fix it; None if it makes a commit message."""
    for match in _BRACES.finditer(template):
        if match[1] not in MESSAGE_FIELDS:
            *most, last = (f"{{{name}}}" for name in MESSAGE_FIELDS)
            return f"text with {', '.join(most)} and {last}", _field_fix(match)
    if not template.split("\n", 1)[0].strip():
        return "text that begins with the subject of the commit", "write the subject on the first line"
    if _TRAILER.search(template):
        return "text without a line that begins with Idumb-, as only idumb's own trailers do", "remove the line"
    if any(not c.isprintable() and c != "\n" for c in template):
        return "text without control characters", "remove the control character"
    return None


def _field_fix(brace: re.Match[str]) -> str:
    """Return how to fix a brace alone, or a name in braces that idumb does not replace."""
    if brace[1] is None:
        return f"remove the single {brace[0]}"
    return did_you_mean(brace[1], MESSAGE_FIELDS, f"remove {brace[0]}", "did you mean {{{}}}?")


# Sections

_OF_OWN_GATES = frozenset({"run", "entry_point"})
_OWN_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def _gates(node: Node, place: Place) -> dict[str, settings.GateSettings]:
    """Read the settings of gates and roles. A name that idumb does not know is a gate of the project's own."""
    gates = {}
    for key, below in value_types.pairs(node):
        name, inner = key.value, place.inner(key.value, key.start)
        if name not in gate_table.KNOWN and {each.value for each in below.items}.isdisjoint(_OF_OWN_GATES):
            inner.report("config.unknown-key", key.start, name, tuple(_GATES), owner="`gates`")
        elif name not in gate_table.KNOWN and not _OWN_NAME.fullmatch(name):
            accepted = "a name of small letters and digits, with single hyphens between"
            inner.report("config.bad-value", key.start, name, name=inner.name, accepted=accepted)
        elif (gate := value_types.read_value(_GATES.get(name, _OWN_GATE), below, inner)) is not None:
            gates[name] = gate
    return gates


def _sandbox(node: Node, place: Place) -> permissions.SandboxSettings:
    """Read the section, or the short form `sandbox: auto`."""
    if is_text(node) and node.value in permissions.SANDBOXES:
        return permissions.SandboxSettings(node.value)
    read: permissions.SandboxSettings = _SANDBOX.read(node, place)
    return read


_ceiling = section(
    lambda time=None, **others: settings.Ceiling(seconds=time, **others),
    {"attempts": COUNT, "time": DURATION, "tokens": COUNT, "cost_usd": _MONEY},
)
_LIMITS = section(
    settings.Limits, {"memory": _SIZE, "cpu": DURATION, "processes": COUNT, "file_size": _SIZE, "open_files": COUNT}
)
_BINDING = section(
    settings.Binding,
    {
        "adapter": TEXT.must, "argv": ARGUMENTS, "prompt": choice("stdin", "file"),
        "environment": _VARIABLES, "timeout": DURATION, "idle_timeout": DURATION, "limits": _LIMITS,
        "options": DATA, "model": TEXT,
    },
    named=True,
)  # fmt: skip
_BINDING_NAME = pattern(
    f"a name without spaces, other than {', '.join(agent.BUILT_IN)}", rf"(?!(?:{'|'.join(agent.BUILT_IN)})$){_NAME}"
)
_OF_ROLES = {"binding": TEXT, "model": TEXT, "prompt": _TEMPLATE_NAME, "ceiling": _ceiling}
_ROLES = {
    **dict.fromkeys(agent.ROLES, section(settings.RoleSettings, {**_OF_ROLES, "timeout": DURATION})),
    agent.VALIDATOR: section(settings.RoleSettings, _OF_ROLES),  # its timeout is that of its gate
}
_TIMED = {"level": _LEVEL, "timeout": DURATION}
_RUNNING = {**_TIMED, "run": list_of(TEXT, "a text, or a list of texts", single=True, least=1)}
_GATES = {
    **dict.fromkeys(gate_table.KNOWN, section(settings.GateSettings, _TIMED)),
    # The task has the timeout of a builder, `run.check_timeout` is that of each command.
    **dict.fromkeys((agent.BUILDER, *gate_table.RUNS_COMMANDS), section(settings.GateSettings, {"level": _LEVEL})),
    **dict.fromkeys(gate_table.WITH_COMMANDS, section(settings.GateSettings, _RUNNING)),
    gate_table.DESIGN: section(settings.GateSettings, {**_TIMED, "threshold": _PERCENT}),
}
_OWN_GATE = section(settings.GateSettings, {**_RUNNING, "entry_point": TEXT})
_SANDBOX = section(
    permissions.SandboxSettings,
    {"level": choice(*permissions.SANDBOXES), "write": TEXTS},
    f"one of {', '.join(permissions.SANDBOXES)}",
)
_GIT = section(
    settings.GitSettings,
    {
        "commit": choice(*settings.COMMIT_POLICIES), "hooks": BOOLEAN, "reports": choice(*settings.REPORTS),
        "message": _MESSAGE, "branch": choice(*settings.BRANCHES), "branch_name": _BRANCH, "network": BOOLEAN,
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
KEYS: Mapping[str, ValueType] = {
    "builder": TEXT,
    "validator": TEXT,
    "bindings": mapping_of(_BINDING, _BINDING_NAME),
    "git": _GIT,
    "run": _RUN,
    "protected": _GLOBS,
    "environment": _VARIABLES,
    "limits": _LIMITS,
    "gates": ValueType(
        "keys with values",
        _gates,
        schema={
            "type": "object",
            "properties": {name: type.schema for name, type in _GATES.items()},
            "additionalProperties": _OWN_GATE.schema,
        },
    ),
    "levels": section(dict, {"1": DURATION, "2": DURATION}),
    "roles": section(dict, _ROLES),
    "profile": TEXT,
    "profiles": mapping_of(section(dict, dict.fromkeys(agent.ROLES, TEXT)), pattern("a name without spaces", _NAME)),
    "ceilings": section(dict, {"task": _ceiling, "run": _ceiling}),
    "breaker": section(dict, {"failures": COUNT, "time": DURATION}),
    "retry": section(dict, {"calls": COUNT, "pause": DURATION}),
    "ask": section(dict, {"timeout": DURATION}),
    "snapshot": section(dict, {"limit": COUNT, "keep": _DAYS}),
    "checks": section(
        settings.CheckSettings,
        {"home": choice(*settings.HOMES), "control": choice(*settings.CONTROLS), "network": choice(*settings.NETWORKS)},
    ),
    "checkout": section(
        settings.CheckoutSettings, {"provide": _GLOBS, "prepare": TEXTS, "cache": _GLOBS, "limit": COUNT}
    ),
    "sandbox": _SANDBOX._replace(read=_sandbox, schema={"anyOf": [_SANDBOX.keys["level"].schema, _SANDBOX.schema]}),
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration, for editors."""
    return value_types.document_schema(".idumb/config.yaml", KEYS)
