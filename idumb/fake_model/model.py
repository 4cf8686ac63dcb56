"""The scripted model: turns a request of either protocol into a response. Does no network I/O."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct, structs

from idumb.domain import model_script as script
from idumb.domain.model_script import Answer, Script
from idumb.fake_model import anthropic, conversation, responses
from idumb.fake_model.conversation import Conversation, Reply, ToolCall

FORMATS: dict[str, ModuleType] = {"/messages": anthropic, "/responses": responses}
"""The protocol of each address: a module with `read`, `whole`, `events`, `error` and `ERRORS`."""
_MODEL = {"id": "fake-model", "type": "model", "object": "model", "display_name": "fake-model", "created": 0,
          "created_at": "2025-01-01T00:00:00Z", "owned_by": "idumb"}  # fmt: skip


class Sent(Struct, frozen=True):
    """The response: a JSON object, or the events of a stream; `fault` corrupts how it is sent, the log gets `note`."""

    status: int
    body: Any
    stream: bool = False
    fault: str | None = None
    seconds: float = 0.0
    note: Mapping[str, Any] = {}


class FakeModel:
    """Answers requests from a script. Thread-safe."""

    def __init__(self, scripted: Script) -> None:
        self._script = scripted
        self._used = Counter[int]()
        self._lock = threading.Lock()

    def answer(self, path: str, data: bytes | None) -> Sent:
        """Answer one request; `path` is without its query, `data` what is posted."""
        path = path.rstrip("/")
        if data is None and path.endswith("/models"):
            return Sent(200, {"object": "list", "has_more": False, "data": [_MODEL]})
        if data is not None and path.endswith("/count_tokens"):
            return Sent(200, {"input_tokens": len(data) // 4})
        protocol = next((module for end, module in FORMATS.items() if path.endswith(end)), None)
        if data is None or protocol is None:
            return refused(404, "not_found_error", f"the scripted model does not serve {path}")
        try:
            return self._follow(protocol, protocol.read(data, path))
        except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
            return refused(400, "invalid_request_error", f"the request cannot be read: {problem}")

    def _follow(self, protocol: ModuleType, asked: Conversation) -> Sent:
        with self._lock:
            request = script.ModelRequest(asked.prompt, asked.answered, bool(asked.tools))
            chosen = script.choose(self._script, request, self._used)
            self._used[-1 if chosen.rule is None else chosen.rule] += 1  # -1 is no rule
            number = self._used.total()
        answer, reply = chosen.answer, _reply(chosen.answer, asked, number)
        note = {
            "protocol": protocol.__name__.rpartition(".")[2], "model": asked.model, "stream": asked.stream,
            "tools": [tool.name for tool in asked.tools], "prompt_characters": len(asked.prompt),
            "said_characters": len(asked.text), "answered": asked.answered,
            "rule": None if chosen.rule is None else self._script.rules[chosen.rule].title, "answer": chosen.number,
            "fault": answer.fault, "calls": [call.name for call in reply.calls],
        }  # fmt: skip
        if answer.fault in protocol.ERRORS:  # the provider reports it in a response of its own
            return structs.replace(Sent(*protocol.error(*protocol.ERRORS[answer.fault])), note=note)
        body = protocol.events(reply) if asked.stream else protocol.whole(reply)
        return Sent(200, body, asked.stream, answer.fault, answer.seconds, note)


def _reply(answer: Answer, asked: Conversation, number: int) -> Reply:
    text, refuses = answer.say, answer.fault == script.REFUSED
    wanted = [call for action in answer.calls for call in conversation.offered_calls(action, asked)]
    if (structured := conversation.structured_call(answer.data, asked)) is not None:
        wanted.append(structured)
    elif answer.data is not None:
        text = json.dumps(answer.data)
    calls = tuple(ToolCall(f"call_{number}_{i}", name, json.dumps(given)) for i, (name, given) in enumerate(wanted))
    text = text or ("I cannot help with that." if refuses else "" if calls else "Done.")
    length = len(text) + sum(len(call.arguments) for call in calls)
    tokens_in = len(asked.text) // 4 + 1 if answer.tokens_in is None else answer.tokens_in
    tokens_out = length // 4 + 1 if answer.tokens_out is None else answer.tokens_out
    return Reply(number, asked.model, text, calls, tokens_in, tokens_out, refuses)


def refused(status: int, code: str, message: str) -> Sent:
    return Sent(*conversation.error(status, code, message))
