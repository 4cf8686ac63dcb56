"""JSON: the one spelling of a value that is hashed (ASCII, sorted keys, no blanks), and reading what others spelled."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_TOO_DEEP = "it is nested too deep"


def encode(value: Any) -> bytes:
    """ValueError for what JSON has no word for, and for deep nesting."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return text.encode("ascii")


def decode(text: str | bytes, **hooks: Any) -> Any:
    """The value of a JSON text from anywhere; `hooks` are those of `json.loads`. ValueError, also for deep nesting."""
    try:
        return json.loads(text, **hooks)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(encode(value)).hexdigest()
