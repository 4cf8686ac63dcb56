"""The envelope: hashes of everything an attempt ran under, so that two attempts can be compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from idumb.domain import canonical_json, paths
from idumb.domain.plans.plan import Task

CONTEXT = "context"
CONVERSATION = "conversation"
CHECKS = "checks"
ADAPTER_PARTS = frozenset({"adapter", "adapter_version", "program"})
"""What is meant by "another version of the agent"."""

_AGREED = frozenset({"contract", "binding", CONTEXT, CONVERSATION})
"""Parts that are held against the plan elsewhere, or that differ from task to task or attempt to attempt."""

_PLACES = re.compile(r"`([^`\s]+)`|\]\(([^()\s]+)\)|(?:^|\s)@([^\s,;]+)")


@dataclass(frozen=True, slots=True)
class Envelope:
    """None means "not known"; it is shown as unknown, never as equal.

    `tools` maps a program's name to its version text, `checks` the name of a program that a check starts to its place
    and the hash of its bytes. `program` is a hash of the file that is started and its
    arguments, `validator` of all that the validator runs under, `context` of the files that the task tells to read,
    `conversation` of the agent's own conversation that it goes on in.
    What is known to be absent has the hash of an empty text. Hashes are SHA-256, in hex.
    """

    idumb: str
    adapter: str
    adapter_version: str
    binding: str
    configuration: str
    contract: str
    model: str | None = None
    prompt: str | None = None
    context: str | None = None
    rules: str | None = None
    program: str | None = None
    validator: str | None = None
    policy: str | None = None
    conversation: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def digest(self) -> str:
        return hashlib.sha256(canonical_json.encode(self.as_dict())).hexdigest()


PARTS = (
    "idumb", "adapter", "adapter_version", "program", "binding", "model", "prompt", "validator", "context",
    "conversation", "rules", "tools", "checks", "policy", "configuration", "contract",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One part that is not what it was. `was` and `now` are its values, None where unknown."""

    binding: str
    part: str
    was: Any
    now: Any

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def text_digest(text: str) -> str:
    """SHA-256 of a text, bytes of file names included."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


NOTHING = text_digest("")


def envelope_key(builder: str, validator: str | None) -> str:
    """Under which name an envelope is kept: the bindings of its builder and its validator."""
    return builder if validator is None else f"{builder} + {validator}"


def seal(known: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """An envelope as data with some parts replaced and its digest made anew."""
    values = {**{name: value for name, value in known.items() if name != "digest"}, **parts}
    return {**values, "digest": canonical_json.digest(values)}


def context_paths(task: Task) -> tuple[str, ...]:
    """Paths that a task tells to read: its `context` conditions, and what looks like a path in its references."""
    named = [c.subject for c in task.preconditions if c.kind == CONTEXT]
    named += [next(filter(None, found)) for found in _PLACES.findall(task.references)]
    plain = (name.removeprefix("./").rstrip("/") for name in named)
    return tuple(dict.fromkeys(name for name in plain if name and paths.problem(name) is None))


def context_digest(files: Mapping[str, str | None]) -> str | None:
    """A hash of paths and the object each one is; None where one is not known."""
    return None if None in files.values() else canonical_json.digest(dict(files)) if files else NOTHING


def changes(was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> tuple[Change, ...]:
    """Parts that differ, of bindings that both have. What either does not have, or neither knows, tells nothing.

    A lock of an older version lacks parts, and an amendment may bring in a check with another program.
    """
    return tuple(
        Change(binding, part, was[binding][part], now[binding][part])
        for binding in was
        if binding in now and was[binding] != now[binding]
        for part in PARTS
        if part not in _AGREED and part in was[binding] and part in now[binding]
        if _differs(part, was[binding][part], now[binding][part])
    )


def _differs(part: str, was: Any, now: Any) -> bool:
    if part == CHECKS:
        return any(was[name] != now[name] for name in was.keys() & now.keys())
    return bool(was != now)


def compare(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(parts that differ, parts that nobody can compare) of two envelopes."""
    unknown = tuple(p for p in PARTS if one.get(p) is None or other.get(p) is None)
    return tuple(p for p in PARTS if p not in unknown and one[p] != other[p]), unknown


def changed_agents(found: Iterable[Change]) -> tuple[str, ...]:
    """The parts, each once, in the order in which envelopes have them."""
    changed = {change.part for change in found}
    return tuple(part for part in PARTS if part in changed)
