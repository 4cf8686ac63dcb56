"""What a program says of itself in the file that `IDUMB_STATE_FILE` names: a claim, read once it has ended.

    {"state": "context-exhausted", "handover": "...", "message": "...", "model": "...",
     "usage": {"tokens_in": 1200, "tokens_out": 300, "cost_usd": 0.02}}

Every key may be missing. What makes no sense is taken as not said.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from idumb.agents import figures
from idumb.domain.agent import FAILURES, Usage
from idumb.system import plain_files

VARIABLE = "IDUMB_STATE_FILE"
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SelfReport:
    """`failure` is one of `idumb.domain.agent.FAILURES`, None where it reports none."""

    failure: str | None = None
    message: str = ""
    handover: str = ""
    model: str | None = None
    usage: Usage = Usage()


def read(path: str, redact: Callable[[str], str]) -> SelfReport:
    """The report without secrets; an empty one where there is no file, or nothing that can be understood."""
    try:
        data = plain_files.read(path, MAX_BYTES + 1)
        said = json.loads(data) if len(data) <= MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return SelfReport()
    if not isinstance(said, dict):
        return SelfReport()
    used = said.get("usage")
    usage = used if isinstance(used, dict) else {}
    return SelfReport(
        failure=said["state"] if said.get("state") in FAILURES else None,
        message=redact(_text(said.get("message"))),
        handover=redact(_text(said.get("handover"))),
        model=redact(_text(said.get("model"))) or None,
        usage=Usage(
            figures.count(usage.get("tokens_in")),
            figures.count(usage.get("tokens_out")),
            figures.amount(usage.get("cost_usd")),
        ),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
