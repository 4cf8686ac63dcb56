"""How a conversation with a model ends: outcomes of failed requests and error responses, and the agent's result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from idumb.agents import verdict_parsing
from idumb.agents.model_server import Answer, NoAnswer
from idumb.agents.models import model_tools
from idumb.agents.presets import reading
from idumb.domain import agent, canonical_json, outcome
from idumb.domain.agent import AgentResult, Usage

_TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum.{0,20}(context|tokens)|too (long|many tokens)|exceed.{0,30}tokens",
    re.IGNORECASE,
)
_SPENT = re.compile(r"insufficient_quota|billing|credit", re.IGNORECASE)


class Ended(Exception):
    """The end of a conversation: an outcome, a message for the user, the last reply, and a kind of failure."""

    def __init__(self, ended: str, message: str = "", *, reply: str = "", failure: str | None = None) -> None:
        super().__init__(message)
        self.outcome = ended
        self.message = message
        self.reply = reply
        self.failure = failure


def unanswered(problem: NoAnswer) -> Ended:
    if problem.late:
        return Ended(outcome.TIMED_OUT, str(problem), failure=agent.STALL)
    if problem.silent:
        return Ended(outcome.TIMED_OUT, str(problem), failure=agent.STALL)
    return Ended(outcome.ERRORED, str(problem), failure=agent.MALFORMED if problem.malformed else agent.NETWORK)


def refused(answer: Answer) -> Ended:
    """Translate a response with a status other than 200."""
    status = answer.status
    said = _error_words(answer.body)
    words = f"the server answered {status}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        return Ended(
            outcome.ERRORED,
            f"{words}; idumb does not follow redirects, so set base_url to the final address",
            failure=agent.MISSING,
        )
    if status in {400, 413, 422} and (status == 413 or _TOO_LONG.search(said)):
        return Ended(outcome.FAILED, words, failure=agent.CONTEXT_EXHAUSTED)
    if status in {401, 403}:
        return Ended(outcome.ERRORED, f"{words}; check the binding's key", failure=agent.NOT_LOGGED_IN)
    if status == 402 or (status == 429 and _SPENT.search(said)):
        return Ended(outcome.ERRORED, words, failure=agent.OVER_BUDGET)
    if status == 429:
        after = answer.headers.get("retry-after", "")
        when = f"; retry after {after[:40]}{' s' if after.isdigit() else ''}" if after else ""
        return Ended(outcome.ERRORED, words + when, failure=agent.RATE_LIMITED)
    if status in {400, 404, 405, 422, 501}:
        return _not_found(words, status, said)
    if status in {408, 425} or status >= 500:
        return Ended(outcome.ERRORED, words, failure=agent.NETWORK)
    return Ended(outcome.ERRORED, words, failure=agent.MALFORMED)


def _not_found(words: str, status: int, said: str) -> Ended:
    if reading.kind_of(said) == agent.UNKNOWN_MODEL:
        return Ended(outcome.ERRORED, words, failure=agent.UNKNOWN_MODEL)
    if status in {404, 405, 501}:
        return Ended(outcome.ERRORED, f"{words}; check base_url and model", failure=agent.MISSING)
    return Ended(outcome.ERRORED, words, failure=agent.MALFORMED)


def _error_words(body: bytes, longest: int = 300) -> str:
    """Return the server's `error` message, or the beginning of its text, on one line."""
    text = body[:65536].decode("utf-8", "replace")
    try:
        found: Any = canonical_json.decode(text)
    except ValueError:
        found = text
    if isinstance(found, dict):
        found = found.get("error", found)
    if isinstance(found, dict):
        found = " ".join(str(found[k]) for k in ("code", "type", "message") if found.get(k))
    words = " ".join("".join(c if c.isprintable() else " " for c in str(found)).split())
    return words if len(words) <= longest else words[:longest] + "..."


def agent_result(
    ended: Ended,
    work: model_tools.ModelTools,
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


def _handover(work: model_tools.ModelTools) -> str:
    """Return the handover for the next attempt: the edits made so far, with their intents."""
    made = [
        f"- {r.tool} {r.arguments.get('path') or r.arguments.get('from')}: {r.intent or r.words}"
        for r in work.records
        if r.ok
    ]
    return "Edits that were made already:\n" + "\n".join(made) if made else ""
