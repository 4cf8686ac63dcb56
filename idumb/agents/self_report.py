"""The report that a program writes to the file named by `IDUMB_STATE_FILE`. Every value in it is a claim.

{"state": "context-exhausted", "handover": "...", "message": "...", "model": "...", "usage": {"tokens_in": 1200,
"tokens_out": 300, "cost_usd": 0.02}}

Every key is optional. Invalid values are ignored. `state` may change while the program works.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from idumb.agents import figures
from idumb.domain import canonical_json
from idumb.domain.agent import FAILURES, STATES, Claim, Usage
from idumb.system.files import named_files

VARIABLE = "IDUMB_STATE_FILE"
MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SelfReport:
    """`failure` is one of `idumb.domain.agent.FAILURES`, or None if the program reports no failure."""

    failure: str | None = None
    message: str = ""
    handover: str = ""
    model: str | None = None
    usage: Usage = Usage()


def read(path: str, redact: Callable[[str], str]) -> SelfReport:
    """Return the report without secrets; an empty one if the file is missing or invalid."""
    try:
        data = named_files.read(path, MAX_BYTES + 1, links=False)
    except OSError:
        return SelfReport()
    said = _object(data) if len(data) <= MAX_BYTES else {}
    used = said.get("usage")
    usage = used if isinstance(used, dict) else {}
    return SelfReport(
        failure=_one_of(FAILURES, said),
        message=redact(_text(said.get("message"))),
        handover=redact(_text(said.get("handover"))),
        model=redact(_text(said.get("model"))) or None,
        usage=Usage(
            figures.count(usage.get("tokens_in")),
            figures.count(usage.get("tokens_out")),
            figures.amount(usage.get("cost_usd")),
        ),
    )


def claim(data: bytes) -> Claim | None:
    """Return the file's content, secrets included; None if it is missing, empty or only partly written."""
    said = _object(data)
    state = _one_of(STATES, said)
    return None if state is None else Claim(state, _text(said.get("message")))


def _object(data: bytes) -> dict[str, Any]:
    try:
        said = canonical_json.decode(data)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _one_of(known: Collection[str], said: Mapping[str, Any]) -> str | None:
    state = said.get("state")
    return state if isinstance(state, str) and state in known else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
