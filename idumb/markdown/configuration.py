"""The files of settings: the configuration, policies of tools and prompt templates.

All problems of a file are reported at once, with their lines. `setting_types` says what the configuration may hold.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from idumb.domain import agent, permissions, settings
from idumb.domain.errors import InputError
from idumb.domain.finding import Finding, errors
from idumb.domain.permissions import Policy
from idumb.domain.proof import gate_table
from idumb.markdown import setting_types
from idumb.markdown.plans import steps
from idumb.markdown.syntax import tree, value_types
from idumb.markdown.syntax.inline import Text
from idumb.markdown.syntax.source import CONFIG, POLICY, DocumentKind, Place, Source, decoded
from idumb.markdown.syntax.tree import Node, is_map, is_text
from idumb.markdown.syntax.value_types import choice, is_null, list_of, section
from idumb.system import named_files

T = TypeVar("T")

PATH = ".idumb/config.yaml"
_MOST = 1024 * 1024 + 1  # a byte more than `decoded` accepts
_NAMED_ROLES = (agent.BUILDER, agent.VALIDATOR)


def load(root: str) -> settings.Settings:
    """Return the settings of the repository at `root`; defaults without a file. Raises InputError with findings."""
    hint = f"Fix {PATH}; idumb help configuration explains every key."
    chosen = of_file(os.path.join(root, PATH), PATH, CONFIG, read, hint) or settings.Settings()
    chosen = replace(chosen, prompts=_prompts(root))
    _require_templates(chosen)
    return chosen


def position(root: str, *keys: str) -> tuple[int, int]:
    """Return line and column of a nested key, or of its nearest existing parent."""
    try:
        node, source = parsed(named_files.read(os.path.join(root, PATH), _MOST), PATH, CONFIG)
    except OSError:
        return 1, 1
    offset = 0 if node is None else tree.key_offset(node, *keys)
    return source.line_number(offset), source.column(offset)


def _require_templates(chosen: settings.Settings) -> None:
    """Check that every template used by a role exists. Raises InputError `prompt.missing`."""
    for role in chosen.roles:
        template = chosen.role(role).prompt
        if template not in chosen.prompts and template not in agent.ROLES:
            place = f"{_PROMPTS}/{template}.md"
            raise InputError(
                "prompt.missing", f"The role {role} uses the prompt template {template}, but {place} does not exist.",
                hint=f"Write {place}, or remove `prompt` from roles.{role} in {PATH}",
            )  # fmt: skip


@functools.lru_cache(maxsize=4)  # a run reads the files again before each attempt; they seldom change
def read(data: bytes, path: str = PATH) -> tuple[settings.Settings | None, tuple[Finding, ...]]:
    """Return settings from the bytes of a configuration file; None if a finding is an error."""
    node, source = parsed(data, path, CONFIG)
    chosen = settings.Settings()
    if node is not None and not source.any_error:
        given = value_types.read_value(_CONFIGURATION, node, Place("", source, kind=CONFIG, key="configuration"))
        chosen = _Whole(node, source, given or {}).result()
    findings = source.sorted()
    return (None if source.any_error else chosen), findings


_CONFIGURATION = section(dict, setting_types.KEYS, owner="the configuration")


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
        return settings.Settings(**given)

    def _bindings(self, bindings: Mapping[str, settings.Binding]) -> None:
        for name, binding in bindings.items():
            if binding.adapter in {"acp", "command"} and not binding.argv:
                words = {"key": "argv", "owner": f"`bindings.{name}`", "accepted": "[program, argument, ...]"}
                self._report("config.missing-key", ("bindings", name), "", **words)

    def _filled(self, keys: tuple[str, ...], role: str) -> None:
        self._chosen(
            keys, {agent.BUILDER: tuple(agent.BUILT_IN), agent.VALIDATOR: (agent.HUMAN,)}.get(role, ()), "bindings"
        )

    def _chosen(self, keys: tuple[str, ...], built_in: tuple[str, ...], section: str) -> None:
        """Report a name that its section does not define."""
        node, defined = tree.find(self._node, *keys), tree.find(self._node, section)
        names = (*(key.value for key in (defined.items if is_map(defined) else ())), *built_in)
        if is_text(node) and node.value.strip() and node.value not in names:
            accepted = f"one of {', '.join(names)}" if names else f"defined under `{section}`"
            fix = f"define {node.value} under `{section}`"
            self._report("config.bad-value", keys, node.value, names, accepted=accepted, fix=fix)

    def _gate(self, name: str, gate: settings.GateSettings) -> None:
        row, keys = gate_table.of_name(name), ("gates", name)
        if row is not None and gate.level is not None and gate.level < row.lowest:
            allowed = " or ".join(str(number) for number in range(row.lowest, gate_table.CRITICAL + 1))
            self._wrong((*keys, "level"), str(gate.level), f"{allowed}, because no setting disables it")
        if gate.run and gate.entry_point:
            words = {"accepted": "absent beside `run`", "fix": "remove one of them"}
            self._report("config.bad-value", (*keys, "entry_point"), gate.entry_point, **words)
        # Commands that you name may take any time.
        if gate.timeout is not None and name in gate_table.KNOWN and name not in gate_table.WITH_COMMANDS:
            usual = gate_table.KNOWN[name][1]
            self._in_range((*keys, "timeout"), usual if gate.level is None else gate.level, gate.timeout)

    def _in_range(self, keys: tuple[str, ...], level: int, timeout: int) -> None:
        problem = gate_table.timeout_problem(level, timeout)
        if problem is not None:
            self._wrong(keys, f"{timeout}s", problem)

    def _wrong(self, keys: tuple[str, ...], found: str, accepted: str) -> None:
        self._report("config.bad-value", keys, found, accepted=accepted)

    def _report(self, code: str, keys: tuple[str, ...], found: str, near: Any = (), **words: Any) -> None:
        name, node = ".".join(keys), tree.find(self._node, *keys)
        start = node.start if node is not None and code == "config.bad-value" else tree.key_offset(self._node, *keys)
        self._source.report(code, start, found, near, field=name, name=name, **words)


# Every file of settings


def parsed(data: bytes, path: str, kind: DocumentKind) -> tuple[Node | None, Source]:
    """Return the YAML of a file of settings, and its text with what is wrong in it."""
    source = decoded(data, path, most=1)
    node = None if source.findings else tree.read(Text(source.text), source, kind.prefix)
    return (None if node is None or is_null(node) else node), source


def data_of(path: str, shown: str, kind: DocumentKind) -> bytes | None:
    """Return the bytes of a file of settings, None without it. Raises InputError if it cannot be read.

    A link to nothing, and a file whose name ends in `.yml`, are errors: without their settings, more is allowed.
    """
    other = f"{shown.removesuffix('.yaml')}.yml"
    if os.path.lexists(f"{path.removesuffix(shown)}{other}"):
        words = f"{other} is not read: the settings are in {shown}"
        raise InputError(f"{kind.prefix}.unreadable", words, hint=f"Move them to {shown}, and remove {other}")
    try:
        return named_files.read(path, _MOST)
    except OSError as problem:
        if isinstance(problem, (FileNotFoundError, NotADirectoryError)) and not os.path.islink(path):
            return None
        message = f"{shown} cannot be read: {problem.strerror or problem}"
        raise InputError(f"{kind.prefix}.unreadable", message, hint=f"ls -l {shown}") from problem


def of_file(
    path: str,
    shown: str,
    kind: DocumentKind,
    read: Callable[[bytes, str], tuple[T | None, tuple[Finding, ...]]],
    hint: str,
) -> T | None:
    """Return what `read` makes of a file, None without it. InputError with findings if it is wrong or unreadable."""
    data = data_of(path, shown, kind)
    if data is None:
        return None
    value, findings = read(data, shown)
    if errors(findings):
        raise rejected(f"{kind.prefix}.invalid", findings, hint)
    return value


def rejected(code: str, findings: tuple[Finding, ...], hint: str, variable: str = "") -> InputError:
    """Return the error of a file with findings, which quotes the first one; its fix replaces the hint.

    With `variable`, what was read is its value: it has no lines, so the error names it and has no findings.
    """
    first, *others = errors(findings)
    found, more = f", not {first.found!r}" if first.found else "", f" (and {len(others)} more)" if others else ""
    message = f"{variable or first.place}: {first.message}{found * first.code.endswith('bad-value')}{more}"
    step = first.fix if first.fix.startswith("idumb ") else first.fix[:1].upper() + first.fix[1:] or hint
    return InputError(code, message, findings=() if variable else findings, hint=step)


# `.idumb/policy/tools.yaml` and the system-wide policies

POLICY_PATH = ".idumb/policy/tools.yaml"


def policy(root: str, system: Iterable[tuple[str, bool]] = ()) -> Policy:
    """Return the policy of the repository at `root`, narrowed by system-wide files (path, required).

    Raises InputError `policy.unreadable` or `policy.invalid`: an unreadable policy must not allow anything.
    """
    policies = []
    for path, required in (*system, (POLICY_PATH, False)):
        hint = "idumb help configuration shows a policy"
        own = of_file(os.path.join(root, path), path, POLICY, read_policy, hint)
        if own is None and required:
            raise InputError("policy.unreadable", f"The policy {path} does not exist.", hint=f"ls -l {path}")
        policies += [own] if own is not None else []
    return permissions.narrow(tuple(policies))


@functools.lru_cache(maxsize=4)  # a run reads the files again before each attempt; they seldom change
def read_policy(data: bytes, path: str = POLICY_PATH) -> tuple[Policy | None, tuple[Finding, ...]]:
    """Return a policy from the bytes of its file; None if a finding is an error."""
    node, source = parsed(data, path, POLICY)
    place = Place("", source, kind=POLICY, key="policy")
    tools = value_types.read_value(_POLICY, node, place) if node is not None else {}
    if source.any_error:
        return None, source.sorted()
    allowed = frozenset(tools.get("allow", steps.TOOLS)) - frozenset(tools.get("deny", ()))
    return Policy(allowed if tools else None, ((path, hashlib.sha256(data).hexdigest()),)), source.sorted()


_TOOLS = list_of(choice(*steps.TOOLS), "a list of tools")
_POLICY = section(dict, {"allow": _TOOLS, "deny": _TOOLS}, "allow and deny, each with a list of tools")


# The user's prompt templates, `.idumb/prompts/<name>.md`

_PROMPTS = ".idumb/prompts"
_MOST_PROMPTS = 100


def _prompts(root: str) -> Mapping[str, str]:
    """Return the templates by name. Raises InputError `prompt.unreadable` for links, large and non-UTF-8 files.

    Links are never followed: through them a repository could show any file of the user to a model.
    """
    folder = os.path.join(root, _PROMPTS)
    link = next(filter(os.path.islink, (os.path.dirname(folder), folder)), None)
    if link is not None and os.path.lexists(folder):
        raise _unusable(os.path.relpath(link, root), "it is a symbolic link")
    try:
        files = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as problem:
        raise _unusable(_PROMPTS, problem.strerror or str(problem)) from problem
    if len(files) > _MOST_PROMPTS:
        raise _unusable(_PROMPTS, f"it contains more than {_MOST_PROMPTS} templates")
    return {name.removesuffix(".md"): _prompt(os.path.join(folder, name), f"{_PROMPTS}/{name}") for name in files}


def _prompt(path: str, shown: str) -> str:
    try:
        source = decoded(named_files.read(path, _MOST, links=False), shown, most=1)
    except OSError as problem:
        why = "it is a symbolic link" if os.path.islink(path) else problem.strerror or str(problem)
        raise _unusable(shown, why) from problem
    for wrong in source.findings:
        raise _unusable(wrong.place, wrong.message)
    return source.text


def _unusable(shown: str, why: str) -> InputError:
    return InputError("prompt.unreadable", f"The prompt template {shown} cannot be used: {why}.", hint=f"ls -l {shown}")
