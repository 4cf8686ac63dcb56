"""`.idumb/config.yaml` as `Settings`: every problem at once, with its line; defaults where the file says nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from idumb.domain import levels, paths
from idumb.domain.errors import InputError
from idumb.domain.finding import ERROR, Finding, nearest
from idumb.domain.settings import (
    BRANCHES,
    COMMIT_POLICIES,
    DEFAULT_ENVIRONMENT,
    DEVIATION_POLICIES,
    Binding,
    GateSettings,
    GitSettings,
    Limits,
    RunSettings,
    Settings,
)
from idumb.markdown import yaml_nodes
from idumb.markdown.problems import Problems
from idumb.markdown.source import Source
from idumb.markdown.yaml_nodes import Mapping as MappingNode
from idumb.markdown.yaml_nodes import Node, Scalar, Sequence

PATH = ".idumb/config.yaml"
MAX_BYTES = 1024 * 1024

_BUILT_IN = ("steps", "human")
_DURATION = re.compile(r"(?=\d)(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,7})s?)?")
_SIZE = re.compile(r"(\d{1,15})([KMGTkmgt]?)i?[Bb]?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[\w.:/@+-]+")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER = re.compile(r"[-+]?\d+")
_DECIMAL = re.compile(r"[-+]?(\d+\.\d*|\.?\d+)([eE][-+]?\d+)?")


def load(root: str) -> Settings:
    """The settings of the repository at `root`; raises InputError with findings, gives defaults without a file."""
    try:
        with open(os.path.join(root, PATH), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except OSError as problem:
        raise InputError(
            "config.unreadable", f"{PATH} cannot be read: {problem.strerror}", hint=f"Look at `ls -l {PATH}`."
        ) from problem
    settings, findings = read(data)
    if settings is None:
        wrong = [f for f in findings if f.severity == ERROR]
        first = wrong[0]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InputError(
            "config.invalid",
            f"{first.place}: {first.message}{more}",
            findings=findings,
            hint=first.mend or f"Correct {PATH}; docs/configuration.md explains every key.",
        )
    return settings


def read(data: bytes, path: str = PATH) -> tuple[Settings | None, tuple[Finding, ...]]:
    """Settings from the bytes of a configuration file; None when a finding is an error."""
    try:
        text = _decoded(data)
    except ValueError as problem:
        return None, (Finding("config.unreadable", ERROR, path, 1, 1, "", "", "UTF-8 text", f"{path} {problem}."),)
    problems = Problems(Source(text, path))
    node = yaml_nodes.read(text, lambda at: at, problems, "configuration")
    settings = Settings()
    if node is not None and not problems.any_error:
        settings = _Reading(problems).settings(node)
    findings = problems.sorted()
    return (None if problems.any_error else settings), findings


def _decoded(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(f"is not UTF-8 at byte {problem.start}") from None


class _WrongValue(Exception):
    """A value that a key cannot have; `at` is its offset."""

    def __init__(self, at: int, found: str, accepted: str, mend: str = "") -> None:
        super().__init__(accepted)
        self.at, self.found, self.accepted, self.mend = at, found, accepted, mend


Reader = Callable[[Node], Any]


class _Reading:
    """Turns nodes into settings and notes what is wrong."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def settings(self, node: Any) -> Settings:
        found = self._section(node, "", _TOP)
        bindings = self._bindings(found.pop("bindings", None))
        git = self._section(found.pop("git", None), "git", _GIT)
        run = self._section(found.pop("run", None), "run", _RUN)
        limits = self._section(found.pop("limits", None), "limits", _LIMITS)
        gates = self._gates(found.pop("gates", None))
        times = self._times(found.pop("levels", None))
        for role in ("builder", "validator"):
            if role in found:
                found[role] = self._binding_name(role, found[role], bindings)
        if "environment" in found:
            found["environment"] = tuple(dict.fromkeys((*DEFAULT_ENVIRONMENT, *found["environment"])))
        return Settings(
            bindings=bindings,
            git=GitSettings(**git),
            run=RunSettings(**run),
            limits=Limits(**limits),
            gates=gates,
            levels=times,
            **found,
        )

    def _gates(self, node: Any) -> dict[str, GateSettings]:
        """Level and timeout of gates and roles; a timeout is in the range of the level."""
        found: dict[str, GateSettings] = {}
        for key, value in self._pairs(node, "gates"):
            where = f"gates.{key.value}"
            if key.value not in levels.KNOWN:
                self._unknown(where, key, levels.KNOWN)
                continue
            made = GateSettings(**self._section(value, where, _GATE))
            kind, usual = levels.KNOWN[key.value]
            if made.timeout is not None and kind == levels.GATE:
                self._wrong(f"{where}.timeout", key.start, f"{made.timeout}s", "for a gate, which waits for nothing")
            elif made.timeout is not None:
                self._in_range(f"{where}.timeout", key.start, usual if made.level is None else made.level, made.timeout)
            found[key.value] = made
        return found

    def _times(self, node: Any) -> dict[str, int]:
        """The usual timeout of a level, in its range."""
        found: dict[str, int] = self._section(node, "levels", _LEVELS)
        for number, timeout in found.items():
            self._in_range(f"levels.{number}", node.start, int(number), timeout)
        return found

    def _in_range(self, where: str, at: int, level: int, timeout: int) -> None:
        problem = levels.problem(level, timeout)
        if problem is not None:
            self._wrong(where, at, f"{timeout}s", problem)

    def _bindings(self, node: Any) -> dict[str, Binding]:
        found: dict[str, Binding] = {}
        for key, value in self._pairs(node, "bindings"):
            where = f"bindings.{key.value}"
            if key.value in _BUILT_IN or not _NAME.fullmatch(key.value):
                self._wrong(where, key.start, key.value, "a name without blanks that is not steps or human")
                continue
            fields = self._section(value, where, _BINDING)
            adapter = fields.pop("adapter", None)
            if "limits" in fields:
                fields["limits"] = Limits(**self._section(fields["limits"], f"{where}.limits", _LIMITS))
            if adapter is None:
                self._wrong(where, key.start, "no adapter", "adapter: command", "Add `adapter: command`.")
            elif adapter == "command" and not fields.get("argv"):
                self._wrong(where, key.start, "no argv", "argv: [program, argument, ...]", "Add `argv`.")
            found[key.value] = Binding(key.value, adapter or "", **fields)
        return found

    def _binding_name(self, role: str, named: tuple[str, int], bindings: Mapping[str, Binding]) -> str | None:
        name, at = named
        known = [*bindings, *(_BUILT_IN if role == "builder" else ("human",))]
        if name in known:
            return name
        near = nearest(name, known)
        mend = f"Did you mean {near}?" if near else f"Define {name} under `bindings`."
        self._wrong(role, at, name, ", ".join(known), mend)
        return None

    def _section(self, node: Node | None, where: str, readers: Mapping[str, Reader]) -> dict[str, Any]:
        """The values of one mapping, by key; what is wrong is noted and left out."""
        found: dict[str, Any] = {}
        for key, value in self._pairs(node, where):
            name = f"{where}.{key.value}" if where else key.value
            if key.value not in readers:
                self._unknown(name, key, readers)
                continue
            try:
                found[key.value] = readers[key.value](value)
            except _WrongValue as wrong:
                self._wrong(name, wrong.at, wrong.found, wrong.accepted, wrong.mend)
        return found

    def _pairs(self, node: Node | None, where: str) -> Iterable[tuple[Scalar, Node]]:
        if node is None or (isinstance(node, Scalar) and _is_null(node)):
            return ()
        if not isinstance(node, MappingNode):
            self._wrong(where or "configuration", node.start, _shown(node), "keys with values")
            return ()
        return node.pairs

    def _unknown(self, name: str, key: Scalar, known: Iterable[str]) -> None:
        near = nearest(key.value, known)
        self._problems.error(
            "config.unknown-key",
            key.start,
            f"{name} is no key of the configuration",
            field=name,
            found=key.value,
            accepted=", ".join(known),
            mend=f"Did you mean {near}?" if near else "Take the key out.",
        )

    def _wrong(self, name: str, at: int, found: str, accepted: str, mend: str = "") -> None:
        self._problems.error(
            "config.bad-value",
            at,
            f"{name}: {found!r} is not {accepted}",
            field=name,
            found=found,
            accepted=accepted,
            mend=mend or f"Write {accepted}.",
        )


def _is_null(node: Scalar) -> bool:
    return node.plain and node.value in {"", "~", "null", "Null", "NULL"}


def _shown(node: Node) -> str:
    return node.value if isinstance(node, Scalar) else "a list" if isinstance(node, Sequence) else "a mapping"


def _text(node: Node) -> str:
    if not isinstance(node, Scalar) or not node.value.strip() or "\0" in node.value:
        raise _WrongValue(node.start, _shown(node), "a text")
    return str(node.value)


def _placed(node: Node) -> tuple[str, int]:
    return _text(node), node.start


def _boolean(node: Node) -> bool:
    if not (isinstance(node, Scalar) and node.plain and node.value in _BOOLEANS):
        raise _WrongValue(node.start, _shown(node), "true or false")
    return _BOOLEANS[node.value]


def _count(node: Node) -> int:
    if not (isinstance(node, Scalar) and node.plain and node.value.isascii() and node.value.isdecimal()):
        raise _WrongValue(node.start, _shown(node), "a whole number of at least 1")
    if not 1 <= int(node.value[:20]) <= 10**15:
        raise _WrongValue(node.start, _shown(node), "a whole number of at least 1")
    return int(node.value)


def _level(node: Node) -> int:
    if not (isinstance(node, Scalar) and node.plain and node.value in {"0", "1", "2"}):
        raise _WrongValue(node.start, _shown(node), "a level: 0, 1 or 2")
    return int(node.value)


def _duration(node: Node) -> int:
    match = _DURATION.fullmatch(node.value) if isinstance(node, Scalar) else None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    total = hours * 3600 + minutes * 60 + seconds
    if not total:
        raise _WrongValue(node.start, _shown(node), "a time such as 90s, 45m, 1h30m or a number of seconds")
    return total


def _size(node: Node) -> int:
    match = _SIZE.fullmatch(node.value) if isinstance(node, Scalar) else None
    total = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not 0 < total <= 2**62:
        raise _WrongValue(node.start, _shown(node), "a size such as 512M, 4G or a number of bytes")
    return total


def _one_of(choices: tuple[str, ...]) -> Reader:
    def reader(node: Node) -> str:
        if isinstance(node, Scalar) and node.value in choices:
            return str(node.value)
        near = nearest(_shown(node), choices)
        raise _WrongValue(
            node.start, _shown(node), f"one of {', '.join(choices)}", f"Did you mean {near}?" if near else ""
        )

    return reader


def _list_of(item: Callable[[Node], str]) -> Reader:
    def reader(node: Node) -> tuple[str, ...]:
        if isinstance(node, Scalar) and _is_null(node):
            return ()
        if not isinstance(node, Sequence):
            raise _WrongValue(node.start, _shown(node), "a list")
        return tuple(item(one) for one in node.items)

    return reader


def _argument(node: Node) -> str:
    """One element of an argument list; it may be empty."""
    if not isinstance(node, Scalar) or "\0" in node.value:
        raise _WrongValue(node.start, _shown(node), "a text")
    return str(node.value)


def _variable(node: Node) -> str:
    name = _text(node)
    if not _VARIABLE.fullmatch(name) or name.startswith("IDUMB_"):
        raise _WrongValue(node.start, name, "the name of an environment variable, without its value")
    return name


def _glob(node: Node) -> str:
    text = _text(node)
    problem = paths.problem(text)
    if problem is not None:
        raise _WrongValue(node.start, text, f"a path or glob inside the repository: it {problem}", "Correct the path.")
    return text


def _branch_name(node: Node) -> str:
    text = _text(node)
    if "{" in text.replace("{phase}", ""):
        raise _WrongValue(node.start, text, "the name of a branch, in which {phase} is the number of the phase")
    return text


def _any(node: Node) -> Any:
    """What an adapter of a third party reads: the value by the core schema."""
    if isinstance(node, MappingNode):
        return {key.value: _any(value) for key, value in node.pairs}
    if isinstance(node, Sequence):
        return [_any(item) for item in node.items]
    return _scalar(node)


def _scalar(node: Scalar) -> Any:
    if not node.plain:
        return node.value
    if _is_null(node):
        return None
    if node.value in _BOOLEANS:
        return _BOOLEANS[node.value]
    if _NUMBER.fullmatch(node.value):
        return int(node.value)
    return float(node.value) if _DECIMAL.fullmatch(node.value) else node.value


def _options(node: Node) -> dict[str, Any]:
    if not isinstance(node, MappingNode):
        raise _WrongValue(node.start, _shown(node), "keys with values")
    found: dict[str, Any] = _any(node)
    return found


def _node(node: Node) -> Any:
    return node


_TOP: Mapping[str, Reader] = {
    "builder": _placed,
    "validator": _placed,
    "bindings": _node,
    "git": _node,
    "run": _node,
    "protected": _list_of(_glob),
    "environment": _list_of(_variable),
    "limits": _node,
    "gates": _node,
    "levels": _node,
}
_BINDING: Mapping[str, Reader] = {
    "adapter": _text,
    "argv": _list_of(_argument),
    "prompt": _one_of(("stdin", "file")),
    "environment": _list_of(_variable),
    "timeout": _duration,
    "idle_timeout": _duration,
    "limits": _node,
    "options": _options,
}
_GIT: Mapping[str, Reader] = {
    "commit": _one_of(COMMIT_POLICIES),
    "hooks": _boolean,
    "commit_reports": _boolean,
    "branch": _one_of(BRANCHES),
    "branch_name": _branch_name,
    "network": _boolean,
}
_RUN: Mapping[str, Reader] = {
    "max_attempts": _count,
    "halt_after": _count,
    "on_deviation": _one_of(DEVIATION_POLICIES),
    "validator_timeout": _duration,
    "check_timeout": _duration,
    "output_limit": _count,
    "workspace": _one_of(("here", "clone")),
    "idle_timeout": _duration,
    "check_idle_timeout": _duration,
}
_GATE: Mapping[str, Reader] = {"level": _level, "timeout": _duration}
_LEVELS: Mapping[str, Reader] = {"1": _duration, "2": _duration}
_LIMITS: Mapping[str, Reader] = {
    "memory": _size,
    "cpu": _duration,
    "processes": _count,
    "file_size": _size,
    "open_files": _count,
}
