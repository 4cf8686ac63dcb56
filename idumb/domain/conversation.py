"""An agent's own conversation, and when a later attempt may be made in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idumb.domain import agent, canonical_json

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_WHO = ("adapter", "adapter_version", "program", "binding", "model")
_OVER = frozenset({agent.CONTEXT_EXHAUSTED, agent.DECLINED, agent.MALFORMED})
"""Failures after which nobody goes on in the same conversation: it is full, was refused, or nobody can read it."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """`session` is the agent's own id of it, `attempt` the last one that was made in it.

    `speaker` is a digest of who the agent was, `contract` the hash of what was locked in then.
    """

    session: str
    attempt: int
    speaker: str
    contract: str


def session_id(session: object) -> str | None:
    """An id that may stand among a program's arguments; None for every other text, for agents choose it."""
    return session if isinstance(session, str) and _ID.fullmatch(session) else None


def speaker_digest(envelope: Mapping[str, Any]) -> str:
    """A digest of the agent as an envelope has it; another version, program or model is somebody else."""
    return canonical_json.digest([envelope.get(part) for part in _WHO])


def continue_conversation(
    known: Conversation | None, finished: Mapping[str, Any], *, attempt: int, speaker: str, contract: str
) -> Conversation | None:
    """What `attempt.finished` leaves to go on with; None where there is nothing, or nobody should."""
    built = finished.get("builder") or {}
    if built.get("failure") in _OVER:
        return None
    session = session_id(built.get("session"))
    if session is None and finished.get("resumed") and known is not None:
        session = known.session
    return None if session is None else Conversation(session, attempt, speaker, contract)
