"""Drives a model behind any server with the Chat Completions API, without a library.

The adapter fills roles that answer in text or JSON. As builder the model uses a few declared tools; its edits are made
by the code that runs the steps of plans.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from idumb.agents import figures, model_catalogue, verdict_parsing
from idumb.agents.model_server import Answer, NoAnswer
from idumb.agents.models import conversation_end, model_tools
from idumb.agents.models.conversation_end import Ended, refused, unanswered
from idumb.agents.models.http_options import JSON_OBJECT, JSON_SCHEMA, Options
from idumb.domain import agent, canonical_json, outcome, reply
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, AgentResult, Usage
from idumb.domain.errors import AdapterError
from idumb.domain.settings import Binding

_FORMAT = "1"
_PATH = "/chat/completions"
_LONGEST_TALK = 32 * 1024 * 1024  # bytes of one request
_HANDS = """\
You have no terminal and no hands but the tools you are offered: read what you need, and change files by calls of the \
tools alone. Only the declared files can be changed. When the work is done, or cannot be done, answer without a call, \
in a few sentences."""
_EYES = "You change nothing. Where tools are offered, read what you need with them before you answer."
_EDITS = """\
You have no tools. Answer with one JSON object and nothing else: {"edits": [...], "summary": "..."}. Each edit is
{"tool": "write_file", "path": ..., "content": ..., "intent": ...},
{"tool": "edit_file", "path": ..., "find": ..., "replace": ..., "intent": ...} for a text that stands exactly once,
{"tool": "delete_file", "path": ..., "intent": ...} or {"tool": "move_file", "from": ..., "to": ..., "intent": ...}.
The declared files, as they are now:
"""


class HttpAgent:
    """Asks the server of `binding.options`. `environment` contains the binding's own variables, including its key."""

    name = "http"
    version = _FORMAT
    continues = True

    def __init__(
        self,
        binding: Binding,
        environment: Mapping[str, str],
        redact: Callable[[str], str],
        guard: Callable[[], None] = lambda: None,
    ) -> None:
        self._binding = binding
        self._environment = environment
        self._redact = redact
        self._guard = guard

    def describe(self) -> Sequence[str]:
        """Check options and key without sending a request. Raises AdapterError."""
        Options.of(self._binding, self._environment)
        return ()

    def run(self, request: AgentRequest) -> AgentResult:
        began = time.monotonic()
        try:
            options = Options.of(self._binding, self._environment)
        except AdapterError as problem:
            return agent.unusable(problem)
        until = None if request.deadline is None else began + request.deadline
        work = model_tools.ModelTools(request, self._redact, self._guard, until=until)
        talk = _Talk(options, request, work, until, self._redact)
        try:
            ended = talk.held()
        except Ended as early:
            ended = early
        finally:
            work.close()
        seconds = time.monotonic() - began
        return conversation_end.agent_result(
            ended, work, self._redact, usage=talk.usage, model=talk.model, seconds=seconds
        )


@dataclass(slots=True)
class _Talk:
    """One conversation: one request of the engine, and as many requests to the server as its tools need."""

    options: Options
    request: AgentRequest
    work: model_tools.ModelTools
    until: float | None
    redact: Callable[[str], str]
    messages: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = Usage()
    model: str | None = None

    def held(self) -> Ended:
        self.messages = [{"role": "system", "content": self._system()}, {"role": "user", "content": self._prompt()}]
        for _ in range(self.options.turns):
            message, why = self._turn()
            calls = message.get("tool_calls")
            if not calls:
                return self._finished(_text(message), why)
            if len(calls) > model_tools.MOST_CALLS:
                words = f"it made {len(calls)} tool calls in one turn; the limit is {model_tools.MOST_CALLS}"
                raise Ended(outcome.FAILED, words)
            self.messages.append({"role": "assistant", "content": message.get("content"), "tool_calls": calls})
            self.messages += [self._called(call) for call in calls]
        raise Ended(
            outcome.FAILED,
            f"it called tools for {self.options.turns} turns without finishing",
        )

    def _system(self) -> str:
        if self.request.role != BUILDER:
            return _EYES
        return _HANDS if self.options.tools else _EDITS + self.work.declared_files()

    def _prompt(self) -> str:
        schema = self._schema()
        if schema is None or self.options.schema == JSON_SCHEMA:
            return self.request.prompt
        return f"{self.request.prompt}\n\nAnswer with one JSON object of this JSON Schema:\n{json.dumps(schema)}"

    def _schema(self) -> Mapping[str, Any] | None:
        if self.request.schema is None and self.request.role == VALIDATOR:
            return verdict_parsing.VERDICT
        return self.request.schema

    def _turn(self) -> tuple[Mapping[str, Any], str]:
        """Return (the model's message, why it stopped)."""
        answer = self._posted()
        if answer.status != 200:
            raise self._with_models(refused(answer))
        try:
            said = canonical_json.decode(answer.body)
            self._count(said)
            choice = said["choices"][0]
            message = choice["message"]
            if not isinstance(message, dict) or not isinstance(message.get("tool_calls") or [], list):
                raise TypeError
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise Ended(
                outcome.FAILED, "the server's response is not a chat completion", failure=agent.MALFORMED
            ) from None
        if message.get("refusal"):
            raise Ended(outcome.FAILED, f"the model declined: {message['refusal']}", failure=agent.DECLINED)
        self._require_budget()
        return message, str(choice.get("finish_reason") or "")

    def _posted(self) -> Answer:
        body = {
            "model": self.request.model or self.options.model,
            "messages": self.messages,
            "temperature": 0,
            **self._extras(),
            **self.options.parameters,
            "stream": False,
        }
        data = json.dumps({k: v for k, v in body.items() if v is not None}).encode("ascii")
        if len(data) > _LONGEST_TALK:
            words = f"the conversation is longer than {_LONGEST_TALK} bytes"
            raise Ended(outcome.FAILED, words, failure=agent.CONTEXT_EXHAUSTED)
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._headers()}
        try:
            return self.options.endpoint.post(_PATH, data, headers, until=self.until, idle=self.request.idle_timeout)
        except NoAnswer as problem:
            raise unanswered(problem) from None

    def _headers(self) -> dict[str, str]:
        key = self.options.key
        return {"User-Agent": "idumb", **({"Authorization": f"Bearer {key}"} if key is not None else {})}

    def _with_models(self, ended: Ended) -> Ended:
        """Add the models that the server lists, if the model is unknown."""
        if ended.failure != agent.UNKNOWN_MODEL:
            return ended
        accepted = model_catalogue.words(model_catalogue.listed(self.options.endpoint, self._headers()))
        return Ended(ended.outcome, f"{ended.message}; {accepted}", failure=ended.failure)

    def _extras(self) -> dict[str, Any]:
        extras: dict[str, Any] = {}
        schema = self._schema()
        if schema is not None and self.options.schema == JSON_SCHEMA:
            named = {"name": "reply", "schema": dict(schema)}
            extras["response_format"] = {"type": JSON_SCHEMA, "json_schema": named}
        elif schema is not None and self.options.schema == JSON_OBJECT:
            extras["response_format"] = {"type": JSON_OBJECT}
        if self.options.tools:
            extras["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": name,
                        "description": model_tools.description(name),
                        "parameters": model_tools.schema(name),
                    },
                }
                for name in model_tools.offered(self.request.role)
            ]
        return extras

    def _count(self, said: Mapping[str, Any]) -> None:
        found = said.get("usage") or {}
        tokens = [found.get(name) for name in ("prompt_tokens", "completion_tokens")]
        known = (self.usage.tokens_in, self.usage.tokens_out)
        counted = [_sum(old, new) for old, new in zip(known, tokens, strict=True)]
        self.usage = Usage(counted[0], counted[1])
        self.model = said["model"] if isinstance(said.get("model"), str) else self.model

    def _require_budget(self) -> None:
        most = self.request.budget.tokens
        used = (self.usage.tokens_in or 0) + (self.usage.tokens_out or 0)
        if most is not None and used > most:
            words = f"it used {used} tokens; the limit is {most}"
            raise Ended(outcome.FAILED, words, failure=agent.OVER_BUDGET)

    def _require_time(self) -> None:
        if self.work.is_late():
            raise Ended(outcome.TIMED_OUT, "the time limit expired before its tool calls ran", failure=agent.STALL)

    def _called(self, call: Any) -> dict[str, Any]:
        """Run one tool call and return the result for the model."""
        asked = call.get("function") if isinstance(call, dict) else None
        if not isinstance(asked, dict) or not isinstance(asked.get("name"), str):
            raise Ended(outcome.FAILED, "a tool call has no name", failure=agent.MALFORMED)
        try:
            arguments = canonical_json.decode(asked.get("arguments") or "{}")
        except (ValueError, TypeError):
            arguments = None
        self._require_time()
        done, words = self.work.call(asked["name"], arguments)
        return {"role": "tool", "tool_call_id": call.get("id"), "content": words if done else f"error: {words}"}

    def _finished(self, text: str, why: str) -> Ended:
        if why == "content_filter":
            return Ended(outcome.FAILED, "the server's content filter removed the answer", failure=agent.DECLINED)
        if why == "length":
            words = "the answer reached the token limit and was cut off"
            return Ended(outcome.FAILED, words, reply=text, failure=agent.CONTEXT_EXHAUSTED)
        if self.request.role == VALIDATOR:
            ended, message, failure = verdict_parsing.judged(text)
            return Ended(ended, message, reply=text, failure=failure)
        if self.request.role == BUILDER and not self.options.tools:
            return self._edited(text)
        if self.request.schema is not None:
            return _formed(text, self.request.schema)
        if not text.strip():
            return Ended(outcome.FAILED, "the answer is empty", failure=agent.MALFORMED)
        return Ended(outcome.COMPLETED, reply=text)

    def _edited(self, text: str) -> Ended:
        """Apply the edits of a builder without tools; the first failure ends the attempt."""
        said = reply.answer(text, "edits")
        if isinstance(said, str):
            return Ended(outcome.FAILED, said, reply=text, failure=agent.MALFORMED)
        edits = said["edits"]
        if not isinstance(edits, list) or not all(isinstance(e, dict) for e in edits):
            return Ended(outcome.FAILED, "the answer contains no list of edits", reply=text, failure=agent.MALFORMED)
        for number, edit in enumerate(edits, 1):
            self._require_time()
            name = str(edit.get("tool"))
            made, words = self.work.call(name, {k: v for k, v in edit.items() if k != "tool"})
            if not made:
                return Ended(outcome.FAILED, f"edit {number} ({name}): {words}", reply=text)
        return Ended(outcome.COMPLETED, reply=text)


def _formed(text: str, schema: Mapping[str, Any]) -> Ended:
    """Return the JSON object of a reply; a reply without one is malformed."""
    found = reply.answer(text, schema["required"][0])
    if isinstance(found, str):
        return Ended(outcome.FAILED, found, reply=text, failure=agent.MALFORMED)
    gone = verdict_parsing.missing(found, schema)
    if gone:
        words = f"the answer has no {', '.join(gone)}"
        return Ended(outcome.FAILED, words, reply=text, failure=agent.MALFORMED)
    return Ended(outcome.COMPLETED, reply=json.dumps(found, ensure_ascii=False))


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; some servers send it in parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _sum(old: int | None, new: Any) -> int | None:
    """Add two counts. Unknown plus unknown is unknown."""
    return figures.total(old, figures.count(new))
