"""Drives a model behind any server with the Chat Completions API, without a library.

The adapter fills roles that answer in text or JSON. As builder the model uses a few declared tools; its edits are made
by the code that runs the steps of plans.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from idumb.agents import answers, model_server
from idumb.agents.model_server import Answer, Endpoint, NoAnswer
from idumb.agents.models import model_tools
from idumb.agents.models.conversation import Ended, ModelAdapter, Talk, refused, unanswered
from idumb.domain import agent, canonical_json, outcome, reply
from idumb.domain.agent import BUILDER, VALIDATOR, AgentRequest, Capabilities, Usage
from idumb.lazy_dataclass import dataclass

_PATH = "/chat/completions"
_LONGEST_TALK = 32 * 1024 * 1024  # bytes of one request
_BUILDER_RULES = """\
You have no terminal and no hands but the tools you are offered: read what you need, and change files by calls of the \
tools alone. Only the declared files can be changed. When the work is done, or cannot be done, answer without a call, \
in a few sentences."""
_READER_RULES = "You change nothing. Where tools are offered, read what you need with them before you answer."
_EDITS = """\
You have no tools. Answer with one JSON object and nothing else: {"edits": [...], "summary": "..."}. Each edit is
{"tool": "write_file", "path": ..., "content": ..., "intent": ...},
{"tool": "edit_file", "path": ..., "find": ..., "replace": ..., "intent": ...} for a text that stands exactly once,
{"tool": "delete_file", "path": ..., "intent": ...} or {"tool": "move_file", "from": ..., "to": ..., "intent": ...}.
The declared files, as they are now:
"""
JSON_SCHEMA, JSON_OBJECT, IN_PROMPT = "json_schema", "json_object", "prompt"
_TURNS = 50
_KNOWN = ("base_url", "key", "plain_http", "proxy", "schema", "tools", "turns", "parameters", "model")


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of a binding. `schema` says how to request a reply in a given form."""

    endpoint: Endpoint
    key: str | None
    model: str | None
    schema: str
    tools: bool
    turns: int
    parameters: Mapping[str, Any]


class HttpAgent(ModelAdapter):
    """Asks the server of `binding.options`."""

    name = "http"
    capabilities = Capabilities(sandboxed=True)

    def _options(self, _: str | None) -> Options:
        self._require_known(_KNOWN)
        address = self._option("base_url", str, "")
        if not address:
            raise self._wrong("base_url", "is missing", "For example http://127.0.0.1:8080/v1.")
        proxy = self._option("proxy", str, "")
        schema = self._option("schema", str, JSON_SCHEMA)
        if schema not in {JSON_SCHEMA, JSON_OBJECT, IN_PROMPT}:
            raise self._wrong("schema", f"must be {JSON_SCHEMA}, {JSON_OBJECT} or {IN_PROMPT}")
        return Options(
            Endpoint(address, plain=self._option("plain_http", bool, default=False), proxy=proxy or None),
            self._key(),
            self._binding.model or self._option("model", str, "") or None,
            schema,
            self._option("tools", bool, default=True),
            self._option("turns", int, _TURNS),
            self._option("parameters", dict, {}),
        )

    def _talk(self, request: AgentRequest, until: float | None) -> Talk:
        return _Talk(self._options(request.model), request, self._tools(request, until), until)


class _Talk(Talk):
    def __init__(
        self, options: Options, request: AgentRequest, work: model_tools.ModelTools, until: float | None
    ) -> None:
        super().__init__(request, work)
        self.options = options
        self.until = until
        self.messages: list[dict[str, Any]] = []

    def converse(self) -> Ended:
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
            return _READER_RULES
        return _BUILDER_RULES if self.options.tools else _EDITS + self.work.declared_files()

    def _prompt(self) -> str:
        schema = self.schema
        if schema is None or self.options.schema == JSON_SCHEMA:
            return self.request.prompt
        return f"{self.request.prompt}\n\nAnswer with one JSON object of this JSON Schema:\n{json.dumps(schema)}"

    def _turn(self) -> tuple[Mapping[str, Any], str]:
        """Return (the model's message, why it stopped)."""
        answer = self._posted()
        if answer.status != 200:
            raise self._with_models(refused(answer))
        try:
            completion = canonical_json.decode(answer.body)
            self._count(completion)
            choice = completion["choices"][0]
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
        accepted = model_server.described_models(model_server.listed_models(self.options.endpoint, self._headers()))
        return Ended(ended.outcome, f"{ended.message}; {accepted}", failure=ended.failure)

    def _extras(self) -> dict[str, Any]:
        extras: dict[str, Any] = {}
        schema = self.schema
        if schema is not None and self.options.schema == JSON_SCHEMA:
            reply_schema = {"name": "reply", "schema": dict(schema)}
            extras["response_format"] = {"type": JSON_SCHEMA, "json_schema": reply_schema}
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

    def _count(self, answer: Mapping[str, Any]) -> None:
        usage = answer.get("usage") or {}
        tokens = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        totals = (self.usage.tokens_in, self.usage.tokens_out)
        counted = [_sum(old, new) for old, new in zip(totals, tokens, strict=True)]
        self.usage = Usage(counted[0], counted[1])
        self.model = answer["model"] if isinstance(answer.get("model"), str) else self.model

    def _require_budget(self) -> None:
        most = self.request.budget.tokens
        used = (self.usage.tokens_in or 0) + (self.usage.tokens_out or 0)
        if most is not None and used > most:
            words = f"it used {used} tokens; the limit is {most}"
            raise Ended(outcome.FAILED, words, failure=agent.OVER_BUDGET)

    def _called(self, call: Any) -> dict[str, Any]:
        """Run one tool call and return the result for the model."""
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Ended(outcome.FAILED, "a tool call has no name", failure=agent.MALFORMED)
        try:
            arguments = canonical_json.decode(function.get("arguments") or "{}")
        except (ValueError, TypeError):
            arguments = None
        self.require_time()
        done, words = self.work.call(function["name"], arguments)
        return {"role": "tool", "tool_call_id": call.get("id"), "content": words if done else f"error: {words}"}

    def _finished(self, text: str, why: str) -> Ended:
        if why == "content_filter":
            return Ended(outcome.FAILED, "the server's content filter removed the answer", failure=agent.DECLINED)
        if why == "length":
            words = "the answer reached the token limit and was cut off"
            return Ended(outcome.FAILED, words, reply=text, failure=agent.CONTEXT_EXHAUSTED)
        if self.request.role == BUILDER and not self.options.tools:
            return self._edited(text)
        if self.request.schema is not None and self.request.role != VALIDATOR:
            return _formed(text, self.request.schema)
        return self.ended_with(text)

    def _edited(self, text: str) -> Ended:
        """Apply the edits of a builder without tools; the first failure ends the attempt."""
        answer = reply.answer(text, "edits")
        if isinstance(answer, str):
            return Ended(outcome.FAILED, answer, reply=text, failure=agent.MALFORMED)
        edits = answer["edits"]
        if not isinstance(edits, list) or not all(isinstance(e, dict) for e in edits):
            return Ended(outcome.FAILED, "the answer contains no list of edits", reply=text, failure=agent.MALFORMED)
        for number, edit in enumerate(edits, 1):
            self.require_time()
            name = str(edit.get("tool"))
            succeeded, words = self.work.call(name, {k: v for k, v in edit.items() if k != "tool"})
            if not succeeded:
                return Ended(outcome.FAILED, f"edit {number} ({name}): {words}", reply=text)
        return Ended(outcome.COMPLETED, reply=text)


def _formed(text: str, schema: Mapping[str, Any]) -> Ended:
    """Return the JSON object of a reply; a reply without one is malformed."""
    answer = reply.answer(text, schema["required"][0])
    if isinstance(answer, str):
        return Ended(outcome.FAILED, answer, reply=text, failure=agent.MALFORMED)
    missing = answers.missing(answer, schema)
    if missing:
        words = f"the answer has no {', '.join(missing)}"
        return Ended(outcome.FAILED, words, reply=text, failure=agent.MALFORMED)
    return Ended(outcome.COMPLETED, reply=json.dumps(answer, ensure_ascii=False))


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message; some servers send it in parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _sum(old: int | None, new: Any) -> int | None:
    """Add two counts. Unknown plus unknown is unknown."""
    return answers.total(old, answers.count(new))
