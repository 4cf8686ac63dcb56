"""Canonical JSON: the one spelling of a value that is hashed. ASCII, sorted keys, no blanks."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def encode(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(encode(value)).hexdigest()
