"""What `idumb fake-model` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def serving(data: Mapping[str, Any]) -> str:
    """The address alone, so that a script can read it as it is."""
    return f"{data['address']}\n"
