"""Output of `fake-model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def serving(data: Mapping[str, Any]) -> str:
    """Return only the address, for scripts."""
    return f"{data['address']}\n"
