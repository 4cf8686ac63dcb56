"""The envelope: hashes of everything an attempt ran under, so that two attempts can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from idumb.domain import canonical


@dataclass(frozen=True, slots=True)
class Envelope:
    """None means "not known"; it is shown as unknown, never as equal.

    `tools` maps a program's name to its version text. Hashes are SHA-256, in hex.
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
    tools: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def digest(self) -> str:
        return hashlib.sha256(canonical.encode(self.as_dict())).hexdigest()
