"""Results that several adapters construct in the same way."""

from __future__ import annotations

from collections.abc import Callable

from idumb.agents import verdict_parsing
from idumb.agents.models import model_tools
from idumb.agents.models.http_failures import Ended
from idumb.domain import agent
from idumb.domain.agent import AgentResult, Usage


def of_talk(
    ended: Ended,
    work: model_tools.Desk,
    redact: Callable[[str], str],
    *,
    usage: Usage,
    model: str | None,
    seconds: float,
) -> AgentResult:
    """Return the result of a conversation whose edits were made through the model's tools, without secrets."""
    reply = redact(ended.reply)
    return AgentResult(
        outcome=ended.outcome,
        message=redact(ended.message),
        claimed_files=tuple(work.touched),
        usage=usage,
        output=verdict_parsing.shortened(reply),
        steps=tuple(work.records),
        seconds=seconds,
        cause="model-stall" if ended.failure == agent.STALL else None,
        failure=ended.failure,
        reply=reply,
        handover=_handover(work) if ended.failure == agent.CONTEXT_EXHAUSTED else "",
        model=model,
    )


def _handover(work: model_tools.Desk) -> str:
    """Return the handover for the next attempt: the edits made so far, with their intents."""
    made = [
        f"- {r.tool} {r.arguments.get('path') or r.arguments.get('from')}: {r.intent or r.words}"
        for r in work.records
        if r.ok
    ]
    return "Edits that were made already:\n" + "\n".join(made) if made else ""
