"""Canonical JSON for hashes (ASCII, sorted keys, no spaces), and safe decoding of untrusted JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_TOO_DEEP = "it is nested too deep"

flat = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode
"""Return the canonical text of a value that is not nested deeply; any other value goes through `encode`."""


def encode(value: Any) -> bytes:
    """Return the canonical form. Raises ValueError for values that JSON cannot express and for deep nesting."""
    try:
        return flat(value).encode("ascii")
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def decode(text: str | bytes, **hooks: Any) -> Any:
    """Decode untrusted JSON; `hooks` are those of `json.loads`. Raises ValueError, also for deep nesting."""
    try:
        return json.loads(text, **hooks)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(encode(value)).hexdigest()
