"""Results that several adapters make alike."""

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
    """What a talk with a model came to, whose work was done at a desk; secrets are taken out."""
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
    """What the next one must know: the edits that were made, with their intents."""
    made = [
        f"- {r.tool} {r.arguments.get('path') or r.arguments.get('from')}: {r.intent or r.words}"
        for r in work.records
        if r.ok
    ]
    return "Edits that were made already:\n" + "\n".join(made) if made else ""
