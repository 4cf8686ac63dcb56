"""The envelope: hashes of everything that an attempt ran under, so that two attempts can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from idumb.domain import canonical_json

CONTEXT = "context"
CHECKS = "checks"
"""The parts that identify a version of the agent."""

_AGREED = frozenset({"contract", "binding", CONTEXT})
"""Parts that are compared with the plan elsewhere, or that differ between tasks and attempts."""


class Envelope(Struct, frozen=True):
    """The environment of one attempt. None means unknown and is never equal to anything.

    - `tools`: program name to version text. `checks`: name of a program that a check starts to its path and hash.
    - `program`: a hash of the executable and its arguments. `validator`: of everything that the validator runs under.
    - `context`: of the files that the task tells the agent to read.

    A part that is known to be absent has the hash of an empty text. Hashes are SHA-256, in hex.
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
    tools: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)


PARTS = (
    "idumb", "adapter", "adapter_version", "program", "binding", "model", "prompt", "validator", "context",
    "rules", "tools", "checks", "policy", "configuration", "contract",
)  # fmt: skip


class Change(Struct, frozen=True):
    """A part that changed. `was` and `now` are its values, None if unknown."""

    binding: str
    part: str
    was: Any
    now: Any


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, including undecodable bytes of file names."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


NOTHING = text_digest("")


def seal(envelope: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """Return an envelope as data, with some parts replaced and a new digest."""
    values = {**{name: value for name, value in envelope.items() if name != "digest"}, **parts}
    return {**values, "digest": canonical_json.digest(values)}


def context_digest(files: Mapping[str, str | None]) -> str | None:
    """Return a hash of paths and their object ids; None if one is unknown."""
    return None if None in files.values() else canonical_json.digest(dict(files)) if files else NOTHING


def changes(was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> tuple[Change, ...]:
    """Return the parts that differ, of bindings that both have.

    Programs of checks count if both have them: an amendment can add a check with another program.
    """
    return tuple(
        Change(binding, part, was[binding][part], now[binding][part])
        for binding in was
        if binding in now and was[binding] != now[binding]
        for part in PARTS
        if part not in _AGREED
        if _differs(part, was[binding][part], now[binding][part])
    )


def _differs(part: str, was: Any, now: Any) -> bool:
    if part == CHECKS:
        return any(was[name] != now[name] for name in was.keys() & now.keys())
    return bool(was != now)


def compare(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (the parts that differ, the parts that cannot be compared) of two envelopes."""
    unknown = tuple(p for p in PARTS if first[p] is None or second[p] is None)
    return tuple(p for p in PARTS if p not in unknown and first[p] != second[p]), unknown


def changed_agents(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the changed parts, each once, in the order of the envelope."""
    changed = {change.part for change in changes}
    return tuple(part for part in PARTS if part in changed)
