"""What the adapters of models share: their options, the course of a conversation, and how it ends."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from idumb import lazy_pattern
from idumb.agents import answers
from idumb.agents.adapter import Adapter, Equipment
from idumb.agents.model_server import Answer, NoAnswer
from idumb.agents.models.model_tools import ModelTools
from idumb.domain import agent, canonical_json, outcome
from idumb.domain.agent import VALIDATOR, AgentRequest, AgentResult, Usage
from idumb.domain.errors import AdapterError
from idumb.domain.finding import nearest
from idumb.domain.settings import Binding

_TOO_LONG = lazy_pattern.compile(
    r"context.?(length|window|size)|maximum.{0,20}(context|tokens)|too (long|many tokens)|exceed.{0,30}tokens",
    re.IGNORECASE,
)
_SPENT = lazy_pattern.compile(r"insufficient_quota|billing|credit", re.IGNORECASE)


class Ended(Exception):
    """The end of a conversation: an outcome, a message for the user, the last reply, and a kind of failure."""

    def __init__(self, ended: str, message: str = "", *, reply: str = "", failure: str | None = None) -> None:
        super().__init__(message)
        self.outcome = ended
        self.message = message
        self.reply = reply
        self.failure = failure


class Talk:
    """One conversation: a request of the engine, and as many requests to the model as its tools need."""

    def __init__(self, request: AgentRequest, work: ModelTools) -> None:
        self.request = request
        self.work = work
        self.usage = Usage()
        self.model: str | None = None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of the reply; None for plain text."""
        return answers.schema_of(self.request)

    def converse(self) -> Ended:
        raise NotImplementedError

    def require_time(self) -> None:
        """Raise Ended if the time limit expired."""
        if self.work.is_late():
            raise Ended(outcome.TIMED_OUT, "the time limit expired before its tool calls ran", failure=agent.STALL)

    def ended_with(self, text: str) -> Ended:
        """Judge the model's last message."""
        if self.request.role == VALIDATOR:
            ended, message, failure = answers.judged(text)
            return Ended(ended, message, reply=text, failure=failure)
        if not text.strip():
            return Ended(outcome.FAILED, "the answer is empty", failure=agent.MALFORMED)
        return Ended(outcome.COMPLETED, reply=text)


class ModelAdapter(Adapter):
    """Asks a model. Its environment contains only the binding's own variables, including its key."""

    def __init__(self, binding: Binding, equipment: Equipment) -> None:
        super().__init__(binding, equipment)
        self._environment = equipment.environment(binding.environment)

    def _options(self, model: str | None) -> Any:
        """Return the checked options; `model` is the model of a request. Raises AdapterError."""
        raise NotImplementedError

    def describe(self) -> Sequence[str]:
        """Check the options and the key without sending a request. Raises AdapterError."""
        self._options(None)
        return ()

    def _require_known(self, names: Sequence[str]) -> None:
        for name in self._binding.options:
            if name not in names:
                near = nearest(name, names)
                words = f"is not an option of {self._binding.adapter}"
                raise self._wrong(name, words, f"Did you mean {near}?" if near else None)

    def _option(self, name: str, kind: type, default: Any) -> Any:
        """Return the value of an option. Raises AdapterError if it has another type."""
        value = self._binding.options.get(name, default)
        if (isinstance(value, Mapping) and kind is dict) or (isinstance(value, tuple) and kind is list):
            return kind(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._wrong(name, f"must be of type {kind.__name__}")
        return value

    def _wrong(self, name: str, words: str, hint: str | None = None) -> AdapterError:
        place = f"bindings.{self._binding.name}.options.{name}"
        hint = hint or "For the options, run `idumb help agents`."
        return AdapterError("agent.bad-option", f"{place} {words}.", hint=hint)

    def _key(self) -> str | None:
        """Return the value of the key's variable; None if the configuration names none."""
        variables = self._binding.environment
        name = self._option("key", str, "") or next(iter(variables), "")
        if not name:
            return None
        if name not in variables:
            raise self._wrong("key", "must be one of the binding's variables", f"Add {name} to its `environment`.")
        value = self._environment.get(name, "").strip()
        if not value:
            raise AdapterError("agent.no-key", f"{name} is not set.", hint=f"Run `export {name}=...`, then retry.")
        if not value.isascii() or not value.isprintable():
            raise AdapterError(
                "agent.no-key",
                f"{name} contains characters that are not valid in a key.",
                hint=f"Set {name} to the key again.",
            )
        return value

    def _talk(self, request: AgentRequest, until: float | None) -> Talk:
        """Begin a conversation. Raises AdapterError for unusable options, before anything is opened or sent."""
        raise NotImplementedError

    def _tools(self, request: AgentRequest, until: float | None) -> ModelTools:
        return ModelTools(request, self._redact, self._equipment.guard, until=until)

    def run(self, request: AgentRequest) -> AgentResult:
        began = time.monotonic()
        try:
            talk = self._talk(request, None if request.deadline is None else began + request.deadline)
        except AdapterError as problem:
            return agent.unusable(problem)
        try:
            ended = talk.converse()
        except Ended as early:
            ended = early
        finally:
            talk.work.close()
        reply = self._redact(ended.reply)
        return AgentResult(
            outcome=ended.outcome,
            message=self._redact(ended.message),
            claimed_files=tuple(talk.work.touched),
            usage=talk.usage,
            output=answers.shortened(reply),
            steps=tuple(talk.work.records),
            seconds=time.monotonic() - began,
            cause="model-stall" if ended.failure == agent.STALL else None,
            failure=ended.failure,
            reply=reply,
            handover=_handover(talk.work) if ended.failure == agent.CONTEXT_EXHAUSTED else "",
            model=talk.model,
        )


def _handover(work: ModelTools) -> str:
    """Return the handover for the next attempt: the edits made so far, with their intents."""
    edits = [
        f"- {r.tool} {r.arguments.get('path') or r.arguments.get('from')}: {r.intent or r.words}"
        for r in work.records
        if r.ok
    ]
    return "Edits that were made already:\n" + "\n".join(edits) if edits else ""


def unanswered(problem: NoAnswer) -> Ended:
    if problem.late or problem.silent:
        return Ended(outcome.TIMED_OUT, str(problem), failure=agent.STALL)
    return Ended(outcome.ERRORED, str(problem), failure=agent.MALFORMED if problem.malformed else agent.NETWORK)


def refused(answer: Answer) -> Ended:
    """Translate a response with a status other than 200."""
    status = answer.status
    error = _error_words(answer.body)
    words = f"the server answered {status}" + (f": {error}" if error else "")
    if 300 <= status < 400:
        return Ended(
            outcome.ERRORED,
            f"{words}; idumb does not follow redirects, so set base_url to the final address",
            failure=agent.MISSING,
        )
    if status in {400, 413, 422} and (status == 413 or _TOO_LONG.search(error)):
        return Ended(outcome.FAILED, words, failure=agent.CONTEXT_EXHAUSTED)
    if status in {401, 403}:
        return Ended(outcome.ERRORED, f"{words}; check the binding's key", failure=agent.NOT_LOGGED_IN)
    if status == 402 or (status == 429 and _SPENT.search(error)):
        return Ended(outcome.ERRORED, words, failure=agent.OVER_BUDGET)
    if status == 429:
        after = answer.headers.get("retry-after", "")
        when = f"; retry after {after[:40]}{' s' if after.isdigit() else ''}" if after else ""
        return Ended(outcome.ERRORED, words + when, failure=agent.RATE_LIMITED)
    if status in {400, 404, 405, 422, 501}:
        return _not_found(words, status, error)
    if status in {408, 425} or status >= 500:
        return Ended(outcome.ERRORED, words, failure=agent.NETWORK)
    return Ended(outcome.ERRORED, words, failure=agent.MALFORMED)


def _not_found(words: str, status: int, message: str) -> Ended:
    if answers.kind_of(message) == agent.UNKNOWN_MODEL:
        return Ended(outcome.ERRORED, words, failure=agent.UNKNOWN_MODEL)
    if status in {404, 405, 501}:
        return Ended(outcome.ERRORED, f"{words}; check base_url and model", failure=agent.MISSING)
    return Ended(outcome.ERRORED, words, failure=agent.MALFORMED)


def _error_words(body: bytes) -> str:
    """Return the server's `error` message, or the beginning of its text, on one line."""
    text = body[:65536].decode("utf-8", "replace")
    try:
        error: Any = canonical_json.decode(text)
    except ValueError:
        error = text
    if isinstance(error, dict):
        error = error.get("error", error)
    if isinstance(error, dict):
        error = " ".join(str(error[k]) for k in ("code", "type", "message") if error.get(k))
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    return words if len(words) <= 300 else words[:300] + "..."
