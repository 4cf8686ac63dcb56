"""What adapters are built from in tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from idumb.agents.adapter import Equipment
from idumb.domain.settings import Binding, Settings


def equipped(
    root: Path | str,
    *bindings: Binding,
    redact: Callable[[str], str] = str,
    settings: Settings | None = None,
    **more: Any,
) -> Equipment:
    """The equipment of a workspace in which no patch is expected."""
    chosen = settings or Settings(bindings={binding.name: binding for binding in bindings})
    return Equipment(chosen, str(root), lambda *_: (False, "no patch expected"), redact, **more)
